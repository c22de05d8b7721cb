// Work on items of the comparison queue: compares packages in slices, and updates suppressions.
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

/**
 * Transactions with this option are written to disk later. If a power loss undoes them, the queue item is also back, so the work
 * is repeated.
 */
export const later: TxOptions = { durability: 'later' }

/** Target duration of a slice in ms. Only a slice of the minimum size can exceed this duration. */
const sliceMs = 5
const mostComponents = 64
/**
 * Size of a slice: the number of packages times the number of advisory entries. All packages of a slice can have the same source
 * package, so each entry can apply to each package.
 */
const compared = { least: 64, first: 1024, most: 64_000 }
const mostRows = 1000
const pairsAtOnce = 16
const findingsAtOnce = 500

/** An item in progress. `isLate` returns true if the item must pause, so that other items of the queue are processed. */
export type ItemInProgress = { app: App; item: DueMatch; signal: AbortSignal; pace: SliceSize; isLate: () => boolean }

/** Puts the item back into the queue with its progress, so that other items are processed first. */
export async function pause(
  { app, item }: ItemInProgress,
  progress = '',
  dueTime = app.clock().toISOString(),
): Promise<void> {
  await app.db.tx((tx) => queue.pauseMatch(tx, { ...item, progress }, dueTime), later)
}

export async function end({ app, item }: ItemInProgress): Promise<void> {
  await app.db.tx((tx) => queue.endMatch(tx, item), later)
}

/**
 * Result of a comparison. `next` is the first entry that was not compared because `isEnough` returned true. It is undefined if
 * all entries were compared.
 */
export type Matched = { added: number; addedForAll: number; next: number | undefined }

/**
 * Compares components with all advisory entries after `after`. Calls `isEnough` after each slice and stops if it returns true. A
 * turn that continues earlier work does not mark the components as compared, because they may have been on hold in the meantime.
 */
export async function matchAll(
  { app, item, signal, pace }: ItemInProgress,
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

/** Updates the suppressions of pairs of packages by the current advisories. */
export async function suppressAll({ app, signal }: ItemInProgress, pairs: readonly OwnedPair[]): Promise<void> {
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

export type SliceSize = { readonly size: number; rowsFor(components: number): number; took(ms: number): void }

/** Adapts the size of slices: smaller after a slow one, larger after a fast one. */
export function createSliceSize(): SliceSize {
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
