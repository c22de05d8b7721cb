// Works through what waits to be compared, item by item and place by place, in slices short enough for everybody else.
import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { TxOptions } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { countsOf } from '../known/counts.service.ts'
import { saveCounts } from '../known/known.store.ts'
import { bringInLists } from '../lists/backfill.service.ts'
import type { StoredComponent } from '../lists/lists.model.ts'
import { listsWith, noteListMatched, unmatchedOf } from '../lists/lists.store.ts'
import { openOwnSource, takeAdvisory } from '../own/own-advisories.service.ts'
import { type DueMatch, readPackageItem } from '../queue/queue.model.ts'
import * as queue from '../queue/queue.store.ts'
import { componentsNamed } from './findings.store.ts'
import { matchSlice } from './matching.service.ts'
import { suppress } from './suppression.service.ts'
import { type OwnedPair, pairsOfList, pairsTouching } from './suppressions.store.ts'

export type { DueMatch } from '../queue/queue.model.ts'

export type MatchTaker = { node: string; isGone(node: string): boolean; after: string | undefined }

/** Nobody was promised any of it: what a power cut undoes is done again, since the queue is undone with it. */
const later: TxOptions = { durability: 'later' }

/** How long a slice takes at most, but for one that cannot be shorter. */
const sliceMs = 5
const mostComponents = 64
/** Packages times what is said of them, since all packages of a slice may be built from the same. */
const compared = { least: 64, first: 1024, most: 64_000 }
const mostRows = 1000
/** How long an item goes on before the others of the queue have their turn. */
const turnMs = 1000
const listsAtOnce = 500
const pairsAtOnce = 16

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

type Doing = { app: App; item: DueMatch; signal: AbortSignal; pace: Pace; isLate: () => boolean }

const doers: Record<DueMatch['kind'], (doing: Doing) => Promise<void>> = {
  async package(doing) {
    const { name } = readPackageItem(doing.item.item)
    for (let after = 0; ; ) {
      const components = await componentsNamed(doing.app.db, name, { after, most: doing.pace.size })
      if (components.length === 0) break
      after = components.at(-1)!.componentNo
      const changed = await matchAll(doing, components)
      const pairs = await pairsTouching(
        doing.app.db,
        components.map(({ componentNo }) => componentNo),
      )
      await queueCounts(doing, [...changed, ...(await suppressAll(doing, pairs))])
    }
    await end(doing)
  },

  async list(doing) {
    const { app, item } = doing
    const listNo = Number(item.item)
    for (;;) {
      const components = await unmatchedOf(app.db, listNo, doing.pace.size)
      if (components.length === 0) break
      await matchAll(doing, components)
      // What has been compared is noted with the packages, so whoever takes it next goes on from here.
      if (doing.isLate()) return pause(doing)
    }
    for (let after = 0; ; ) {
      const pairs = await pairsOfList(app.db, listNo, { after, most: listsAtOnce })
      const last = pairs.at(-1)
      if (!last) break
      after = last.componentNo
      await suppressAll(doing, pairs)
    }
    const counts = await countsOf(app.db, listNo)
    await app.db.tx(async (tx) => {
      const now = app.clock().toISOString()
      await saveCounts(tx, listNo, counts, now)
      await noteListMatched(tx, listNo, now)
      await queue.endMatch(tx, item)
    }, later)
  },

  async counts({ app, item }) {
    // A change meanwhile queues it anew.
    const counts = await countsOf(app.db, Number(item.item))
    await app.db.tx(async (tx) => {
      await saveCounts(tx, Number(item.item), counts, app.clock().toISOString())
      await queue.endMatch(tx, item)
    }, later)
  },

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

async function pause({ app, item }: Doing): Promise<void> {
  await app.db.tx((tx) => queue.pauseMatch(tx, item, app.clock().toISOString()), later)
}

async function end({ app, item }: Doing): Promise<void> {
  await app.db.tx((tx) => queue.endMatch(tx, item), later)
}

/** Compares components with all that is said of them; answers with those whose findings have changed. */
async function matchAll({ app, signal, pace }: Doing, components: readonly StoredComponent[]): Promise<number[]> {
  const all: number[] = []
  for (let after: number | undefined = 0; after !== undefined; ) {
    signal.throwIfAborted()
    const began = performance.now()
    const from: number = after
    const rows = pace.rowsFor(components.length)
    const { changed, next } = await app.db.tx(
      (tx) => matchSlice(tx, components, { after: from, most: rows, now: app.clock().toISOString() }),
      later,
    )
    pace.took(performance.now() - began)
    all.push(...changed)
    after = next
    await setImmediate()
  }
  return [...new Set(all)]
}

/** Brings what is suppressed in pairs to what is said now; answers with the packages for which that has changed. */
async function suppressAll({ app, signal }: Doing, pairs: readonly OwnedPair[]): Promise<number[]> {
  const changed: number[] = []
  for (const some of chunks(pairs, pairsAtOnce)) {
    signal.throwIfAborted()
    changed.push(...(await app.db.tx((tx) => suppress(tx, some, app.clock().toISOString()), later)))
    await setImmediate()
  }
  return changed
}

/** The counts of all lists with one of the components are to be made anew. */
async function queueCounts({ app, signal }: Doing, changed: readonly number[]): Promise<void> {
  for (let after = 0; changed.length > 0; ) {
    signal.throwIfAborted()
    const lists = await listsWith(app.db, changed, { after, most: listsAtOnce })
    if (lists.length === 0) return
    after = lists.at(-1)!
    const items = lists.map((list) => ({ kind: 'counts' as const, place: '', item: String(list) }))
    await app.db.tx((tx) => queue.queueMatches(tx, items, app.clock().toISOString()), later)
    await setImmediate()
  }
}

type Pace = { readonly size: number; rowsFor(components: number): number; took(ms: number): void }

/** How much a slice compares: less after one that took long, more after a short one. */
function createPace(): Pace {
  let many = compared.first
  return {
    get size() {
      return Math.min(mostComponents, Math.floor(Math.sqrt(many) / 2))
    },
    rowsFor: (components) => Math.min(mostRows, Math.max(1, Math.floor(many / components))),
    took(ms) {
      if (ms > sliceMs) many = Math.max(compared.least, Math.floor(many / 2))
      else if (ms < sliceMs / 2) many = Math.min(compared.most, many * 2)
    },
  }
}
