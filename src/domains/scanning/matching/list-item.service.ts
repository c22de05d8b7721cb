// A list of packages is compared, as far as what is found in one list is kept, and what is found in it is counted.
import { setImmediate } from 'node:timers/promises'
import * as limits from '../lists/limits.store.ts'
import { listStates } from '../lists/lists.model.ts'
import { findListByNo, noteListMatched, unmatchedOf } from '../lists/lists.store.ts'
import { readCountsItem } from '../queue/queue.model.ts'
import * as queue from '../queue/queue.store.ts'
import { type Doing, end, later, matchAll, pause, suppressAll } from './doing.service.ts'
import { countList, countPackages, spreadPage } from './open-findings.service.ts'
import { pairsOfList } from './suppressions.store.ts'

const componentsAtOnce = 64
const heldAtOnce = 200
const pairsAtOnce = 500

export async function doList(doing: Doing): Promise<void> {
  const { app, item } = doing
  const listNo = Number(item.item)
  const list = await findListByNo(app.db, listNo)
  if (!list || list.state === listStates.gone) return end(doing)
  if (!list.isOver) {
    await holdOrRelease(doing, listNo, false)
    const outcome = await compare(doing, listNo)
    if (outcome === 'late') return pause(doing)
    if (outcome === 'over') {
      await app.db.tx((tx) => limits.setOver(tx, listNo, app.clock().toISOString()), later)
      await holdOrRelease(doing, listNo, true)
    }
  } else await holdOrRelease(doing, listNo, true)
  for (let after = Number(item.progress || '0'); ; ) {
    const pairs = await pairsOfList(app.db, listNo, { after, most: pairsAtOnce })
    const last = pairs.at(-1)
    if (!last) break
    after = last.componentNo
    await suppressAll(doing, pairs)
    if (doing.isLate()) return pause(doing, String(after))
  }
  await countAll(doing, listNo)
}

/** Has lists follow what is found in a package now, or counts one as a whole. */
export async function doCounts(doing: Doing): Promise<void> {
  const what = readCountsItem(doing.item.item)
  return 'listNo' in what ? countAll(doing, what.listNo) : spread(doing, what.componentNo)
}

/** From then on the list follows by what changes. */
async function countAll(doing: Doing, listNo: number): Promise<void> {
  const { app, item } = doing
  await countPackages(doing, listNo)
  await app.db.tx(async (tx) => {
    const list = await findListByNo(tx, listNo)
    if (list && list.state !== listStates.gone) {
      await countList(tx, doing, listNo)
      if (item.kind === 'list') await noteListMatched(tx, listNo, app.clock().toISOString())
    }
    await queue.endMatch(tx, item)
  }, later)
}

async function spread(doing: Doing, componentNo: number): Promise<void> {
  const { app, item, signal } = doing
  for (;;) {
    signal.throwIfAborted()
    const isDone = await app.db.tx(async (tx) => {
      if (await spreadPage(tx, doing, componentNo)) return false
      await queue.endMatch(tx, item)
      return true
    }, later)
    if (isDone) return
    await setImmediate()
    if (doing.isLate()) return pause(doing, '', item.dueTime)
  }
}

/** Has the packages of a list follow whether it is over. */
async function holdOrRelease({ app, signal }: Doing, listNo: number, isOver: boolean): Promise<void> {
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const page = { after, most: heldAtOnce }
    const wrong = await limits.misheldOf(app.db, listNo, isOver, page)
    const last = wrong.at(-1)
    if (last === undefined) return
    after = last
    await app.db.tx((tx) => (isOver ? limits.hold : limits.release)(tx, listNo, wrong), later)
    await setImmediate()
  }
}

/** Compares what was not yet. What has been compared is noted with the packages, so whoever takes it next goes on there. */
async function compare(doing: Doing, listNo: number): Promise<'all' | 'late' | 'over'> {
  const most = doing.app.config.findingsPerList
  let open = await countOpen(doing, listNo)
  for (;;) {
    if (open > most) return 'over'
    const components = await unmatchedOf(doing.app.db, listNo, doing.pace.size)
    if (components.length === 0) return 'all'
    const before = open
    const { addedForAll } = await matchAll(doing, components, {
      isEnough: (so) => before + so.addedForAll > most,
    })
    open += addedForAll
    if (doing.isLate() && open <= most) return 'late'
  }
}

async function countOpen({ app, signal }: Doing, listNo: number): Promise<number> {
  let total = 0
  for (let after: number | undefined = 0; after !== undefined && total <= app.config.findingsPerList; ) {
    signal.throwIfAborted()
    const page: Awaited<ReturnType<typeof limits.countOpen>> = await limits.countOpen(app.db, listNo, {
      after,
      most: componentsAtOnce,
    })
    total += page.open
    after = page.last
    await setImmediate()
  }
  return total
}
