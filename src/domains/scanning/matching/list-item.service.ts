// A list of packages is compared, as far as what is found in one list is kept, and counted.
import { setImmediate } from 'node:timers/promises'
import type { Tx } from '#db/sql.ts'
import { countsOf } from '../known/counts.service.ts'
import { saveCounts } from '../known/known.store.ts'
import * as limits from '../lists/limits.store.ts'
import { listStates } from '../lists/lists.model.ts'
import { chargeFindings } from '../lists/lists.service.ts'
import { findListByNo, noteListMatched, unmatchedOf } from '../lists/lists.store.ts'
import * as queue from '../queue/queue.store.ts'
import { type Doing, end, later, matchAll, pause, suppressAll } from './doing.service.ts'
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
  const counted = await countsOf(app.db, listNo, app.config.findingsPerList)
  await app.db.tx(async (tx) => {
    const now = app.clock().toISOString()
    await saveCounts(tx, listNo, counted.counts, now)
    await chargeFindings(tx, listNo, counted.open)
    await noteListMatched(tx, listNo, now)
    await queue.endMatch(tx, item)
  }, later)
}

/** Counts a list anew, and tells whether more is found in it than is kept of one, or no longer. */
export async function doCounts({ app, item }: Doing): Promise<void> {
  const listNo = Number(item.item)
  // A change meanwhile queues it anew.
  const counted = await countsOf(app.db, listNo, app.config.findingsPerList)
  await app.db.tx(async (tx) => {
    const now = app.clock().toISOString()
    const list = await findListByNo(tx, listNo)
    if (!list || list.state === listStates.gone) return queue.endMatch(tx, item)
    await saveCounts(tx, listNo, counted.counts, now)
    await chargeFindings(tx, listNo, counted.open)
    if (await hasTurned(tx, { listNo, open: counted.open, most: app.config.findingsPerList }, now)) {
      await queue.queueMatches(tx, [{ kind: 'list', place: item.place, item: item.item }], item.dueTime)
    }
    return queue.endMatch(tx, item)
  }, later)
}

/** Whether it is over now and was not, or the other way round; only when it has fallen to half is all looked for again. */
async function hasTurned(
  tx: Tx,
  { listNo, open, most }: { listNo: number; open: number; most: number },
  now: string,
): Promise<boolean> {
  if (open > most) return limits.setOver(tx, listNo, now)
  return open < most / 2 && (await limits.setWithin(tx, listNo, now))
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
