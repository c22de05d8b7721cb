// What the items of the queue are done with: comparing in slices, and what is suppressed.
import { setImmediate } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { TxOptions } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import type { MatchedComponent } from '../lists/lists.model.ts'
import type { DueMatch } from '../queue/queue.model.ts'
import * as queue from '../queue/queue.store.ts'
import { matchSlice } from './compare.service.ts'
import { noteChanged } from './open-findings.service.ts'
import { suppress } from './suppression.service.ts'
import type { FoundCursor, OwnedPair } from './suppressions.store.ts'

/** Nobody was promised any of it: what a power cut undoes is done again, since the queue is undone with it. */
export const later: TxOptions = { durability: 'later' }

/** How long a slice takes at most, but for one that cannot be shorter. */
const sliceMs = 5
const mostComponents = 64
/** Packages times what is said of them, since all packages of a slice may be built from the same. */
const compared = { least: 64, first: 1024, most: 64_000 }
const mostRows = 1000
const pairsAtOnce = 16
const findingsAtOnce = 500

/** An item that somebody is at. `isLate`: the others of the queue should have their turn. */
export type Doing = { app: App; item: DueMatch; signal: AbortSignal; pace: Pace; isLate: () => boolean }

/** Gives way to what waits; the item goes on from the progress. */
export async function pause({ app, item }: Doing, progress = '', dueTime = app.clock().toISOString()): Promise<void> {
  await app.db.tx((tx) => queue.pauseMatch(tx, { ...item, progress }, dueTime), later)
}

export async function end({ app, item }: Doing): Promise<void> {
  await app.db.tx((tx) => queue.endMatch(tx, item), later)
}

/** `next`: where the statements begin that were not compared, since enough was found; undefined when all were. */
export type Matched = { added: number; addedForAll: number; next: number | undefined }

/**
 * Compares components with all that is said of them behind `after`, until `isEnough`, which is asked after each slice.
 * What goes on with a turn of before does not note them as compared: they may have been held meanwhile.
 */
export async function matchAll(
  { app, item, signal, pace }: Doing,
  components: readonly MatchedComponent[],
  { after: first = 0, isEnough }: { after?: number; isEnough(so: Matched): boolean },
): Promise<Matched> {
  const so: Matched = { added: 0, addedForAll: 0, next: first }
  for (let after: number | undefined = first; after !== undefined; after = so.next) {
    signal.throwIfAborted()
    const began = performance.now()
    const from: number = after
    const rows = pace.rowsFor(components.length)
    const page = { after: from, most: rows, whole: first === 0, now: app.clock().toISOString() }
    const slice = await app.db.tx(async (tx) => {
      const done = await matchSlice(tx, components, page)
      await noteChanged(tx, done.changed, item)
      return done
    }, later)
    pace.took(performance.now() - began)
    so.added += slice.added
    so.addedForAll += slice.addedForAll
    so.next = slice.next
    await setImmediate()
    if (isEnough(so)) break
  }
  return so
}

/** Brings what is suppressed in pairs to what is said now. */
export async function suppressAll({ app, signal }: Doing, pairs: readonly OwnedPair[]): Promise<void> {
  for (const some of chunks(pairs, pairsAtOnce)) {
    for (let after: FoundCursor | undefined; ; ) {
      signal.throwIfAborted()
      const page = { after, most: findingsAtOnce, now: app.clock().toISOString() }
      after = await app.db.tx((tx) => suppress(tx, some, page), later)
      await setImmediate()
      if (!after) break
    }
  }
}

export type Pace = { readonly size: number; rowsFor(components: number): number; took(ms: number): void }

/** How much a slice compares: less after one that took long, more after a short one. */
export function createPace(): Pace {
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
