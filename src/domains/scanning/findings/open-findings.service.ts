// Maintains the number of open findings in each package list. Each list is counted completely only once. After that, changes in
// packages are added to the counts of their lists.

import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Tx } from '#db/sql.ts'
import { chargeFindings, leastCharged } from '../lists/lists.service.ts'
import * as limits from '../lists/lists.store.ts'
import { changedPackage, type DueMatch, type MatchItem } from '../queue/queue.model.ts'
import { queueMatches } from '../queue/queue.store.ts'
import * as store from './open-findings.store.ts'

/**
 * Records changes of the findings in packages, in the transaction that makes the changes. Also queues the update of the lists'
 * counts. Its due time is before that of the current item, even if the clock steps.
 */
export async function noteChanged(
  tx: Tx,
  components: readonly number[],
  { organization, dueTime }: Pick<DueMatch, 'organization' | 'dueTime'>,
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
    ({ componentNo }): MatchItem => ({ kind: 'counts', organization, item: changedPackage(componentNo) }),
  )
  await queueMatches(tx, items, new Date(Date.parse(dueTime) - 1).toISOString())
}

type Work = { app: Pick<App, 'config' | 'clock'>; item: Pick<DueMatch, 'organization' | 'dueTime'> }

const listsAtOnce = 500

/** Adds the oldest change of a package to the counts of at most `most` lists. Returns false if there is no change. */
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

/** Counts the findings of packages in a list. From then on, changes of these packages are recorded. */
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

/**
 * Counts the findings of a list once all of its packages were counted. From then on, changes of packages are added to the count.
 */
export async function countList(tx: Tx, work: Work, listNo: number): Promise<void> {
  let open = 0
  for (let after = 0; ; ) {
    const page = await store.openOfPage(tx, listNo, { after, most: packagesAtOnce.added })
    if (!page.isCounted) throw new Error(`package list ${listNo} has a package without a count`)
    open += page.open
    if (page.isLast) break
    after = page.last
  }
  await store.setOpen(tx, listNo, open)
  await follow(tx, work, [listNo])
}

/** Applies new counts. Checks the findings limit of a list, and updates the bytes that its organization is charged for. */
async function follow(tx: Tx, { app, item: { organization, dueTime } }: Work, lists: readonly number[]): Promise<void> {
  const most = app.config.vulnerabilityFindingsPerImage
  const some = await store.listsToFollow(tx, lists, { most, leastCharged })
  if (some.length === 0) return
  const now = app.clock().toISOString()
  const turned: MatchItem[] = []
  for (const { listNo, open } of some) {
    if (await hasChanged(tx, { listNo, open, most }, now))
      turned.push({ kind: 'list', organization, item: String(listNo) })
  }
  await queueMatches(tx, turned, dueTime)
  await chargeFindings(tx, some)
}

/**
 * True if the list has now exceeded its limit, or fallen below half of the limit. Between half and all of the limit, the state
 * does not change. So a list is not compared again and again.
 */
async function hasChanged(
  tx: Tx,
  { listNo, open, most }: { listNo: number; open: number; most: number },
  now: string,
): Promise<boolean> {
  if (open > most) return limits.setOver(tx, listNo, now)
  return open < most / 2 && (await limits.setWithin(tx, listNo, now))
}
