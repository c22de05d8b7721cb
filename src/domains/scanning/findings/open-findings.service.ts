// How much is found in a list is a sum over its packages, so it follows by what changes in one of them: the change is written
// with the findings, and goes from list to list after that. A list is counted as a whole only once.

import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { chargeFindings, leastCharged } from '../lists/lists.service.ts'
import * as limits from '../lists/lists.store.ts'
import { changedPackage, type DueMatch, type MatchItem } from '../queue/queue.model.ts'
import { queueMatches } from '../queue/queue.store.ts'
import * as store from './open-findings.store.ts'

/** In the transaction that has changed what is found in packages: their lists follow before the item goes on, whatever the clock says. */
export async function noteChanged(
  tx: Tx,
  components: readonly number[],
  { place, dueTime }: Pick<DueMatch, 'place' | 'dueTime'>,
): Promise<void> {
  if (components.length === 0) return
  const before = new Map((await store.countedOf(tx, components)).map((one) => [one.componentNo, one.open]))
  if (before.size === 0) return
  const now = await store.countComponents(tx, [...before.keys()])
  const changes = now
    .map(({ componentNo, open }) => ({ componentNo, delta: open - before.get(componentNo)! }))
    .filter(({ delta }) => delta !== 0)
  await store.addChanges(tx, changes)
  const items = changes.map(
    ({ componentNo }): MatchItem => ({ kind: 'counts', place, item: changedPackage(componentNo) }),
  )
  await queueMatches(tx, items, new Date(Date.parse(dueTime) - 1).toISOString())
}

type Work = { app: Pick<App, 'config' | 'clock'>; item: Pick<DueMatch, 'place' | 'dueTime'> }

const listsAtOnce = 500

/** Has so many lists follow the oldest change of a package; false when there is none. */
export async function spreadPage(tx: Tx, work: Work, componentNo: number, most = listsAtOnce): Promise<boolean> {
  const change = await store.nextChange(tx, componentNo)
  if (!change) return false
  const lists = await store.listsWith(tx, componentNo, { after: change.lastList, most })
  await store.changeLists(tx, lists, change.delta)
  if (lists.length < most) await store.endChange(tx, change.changeNo)
  else await store.advanceChange(tx, change.changeNo, lists.at(-1)!)
  await follow(tx, work, lists)
  return true
}

const packagesAtOnce = { counted: 200, added: 1000 }

/** Has the packages of a list counted, from when on its changes are written. */
export async function countPackages({ app, signal }: { app: App; signal: AbortSignal }, listNo: number): Promise<void> {
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const page = { after, most: packagesAtOnce.counted }
    const some = await store.uncountedOf(app.db, listNo, page)
    const last = some.at(-1)
    if (last === undefined) return
    after = last
    await app.db.tx((tx) => store.countComponents(tx, some), { durability: 'later' })
    await setImmediate()
  }
}

/** Counts a list whose packages are counted, from when on it follows their changes. */
export async function countList(tx: Tx, work: Work, listNo: number): Promise<void> {
  let open = 0
  for (let after = 0; ; ) {
    const page = await store.openOfPage(tx, listNo, { after, most: packagesAtOnce.added })
    if (!page.isCounted) throw new Error(`a package of list ${listNo} is not counted`)
    open += page.open
    if (page.isLast) break
    after = page.last
  }
  await store.setOpen(tx, listNo, open)
  await follow(tx, work, [listNo])
}

/** What follows from how much is found in lists: whether more than is kept of one, and what somebody is charged for. */
async function follow(tx: Tx, { app, item: { place, dueTime } }: Work, lists: readonly number[]): Promise<void> {
  const most = app.config.findingsPerList
  const some = await store.listsToFollow(tx, lists, { most, leastCharged })
  if (some.length === 0) return
  const now = app.clock().toISOString()
  const turned: MatchItem[] = []
  for (const { listNo, open } of some) {
    if (await hasTurned(tx, { listNo, open, most }, now)) turned.push({ kind: 'list', place, item: String(listNo) })
  }
  await queueMatches(tx, turned, dueTime)
  await chargeFindings(tx, some)
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
