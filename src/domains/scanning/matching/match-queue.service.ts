// Works through what waits to be compared, item by item and place by place, in slices short enough for everybody else.
import type { App } from '#app.ts'
import { bringInLists } from '../lists/backfill.service.ts'
import { openOwnSource, takeAdvisory } from '../own/own-advisories.service.ts'
import type { DueMatch } from '../queue/queue.model.ts'
import * as queue from '../queue/queue.store.ts'
import { createPace, type Doing, later } from './doing.service.ts'
import { doCounts, doList } from './list-item.service.ts'
import { doPackage } from './package-item.service.ts'

export type { DueMatch } from '../queue/queue.model.ts'

export type MatchTaker = { node: string; isGone(node: string): boolean; after: string | undefined }

/** How long an item goes on before the others of the queue have their turn. */
const turnMs = 1000

/** Takes an item that is due, or one whose taker is gone; `undefined` when there is none. Places take turns. */
export async function claimMatch(app: App, { node, isGone, after }: MatchTaker): Promise<DueMatch | undefined> {
  for (;;) {
    const left = (await queue.ownedMatches(app.db)).find(({ owner }) => owner === node || isGone(owner))
    const next = left ?? (await nextDue(app, after))
    if (!next) return undefined
    const claimed = await app.db.tx((tx) => queue.claimMatch(tx, next, node), { isolation: 'rowLocks', ...later })
    if (claimed) return claimed
  }
}

/** The first that is due of the next place behind `after`, beginning anew behind the last. */
async function nextDue({ db, clock }: App, after: string | undefined): Promise<DueMatch | undefined> {
  const now = clock().toISOString()
  for (const [from, to] of after === undefined
    ? [[undefined, undefined] as const]
    : [[after, undefined] as const, [undefined, after] as const]) {
    for (let last: string | undefined = from; ; ) {
      const next = await queue.nextMatch(db, last)
      if (!next || (to !== undefined && next.place > to)) break
      if (next.dueTime <= now) return next
      last = next.place
    }
  }
  return undefined
}

/** Does what an item asks for. Throws when it should be tried again. */
export async function doMatch(app: App, item: DueMatch, signal: AbortSignal): Promise<void> {
  const began = performance.now()
  const work = { app, item, signal, pace: createPace(), isLate: () => performance.now() - began > turnMs }
  await doers[item.kind](work)
}

export async function postponeMatch(app: App, item: DueMatch, ms: number): Promise<void> {
  const dueTime = new Date(app.clock().getTime() + ms).toISOString()
  await app.db.tx((tx) => queue.giveBackMatch(tx, item, dueTime))
}

const doers: Record<DueMatch['kind'], (doing: Doing) => Promise<void>> = {
  package: doPackage,
  list: doList,
  counts: doCounts,

  async advisory({ app, item }) {
    const sourceNo = await openOwnSource(app)
    await app.db.tx(async (tx) => {
      await takeAdvisory(app, tx, sourceNo, item.item)
      await queue.endMatch(tx, item)
    }, later)
  },

  async backfill(doing) {
    const { app, item } = doing
    const last = await bringInLists(app, item.item, doing.signal)
    await app.db.tx(async (tx) => {
      // Whoever takes it next goes on behind what is there.
      if ((await queue.endMatch(tx, item)) && last !== undefined) {
        await queue.queueMatches(tx, [{ ...item, item: last }], app.clock().toISOString())
      }
    }, later)
  },
}
