// Figures of a database that several servers share. One of the servers shows them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Wanted } from './domains/events/delivery/depth.store.ts'

/**
 * View of a database by one of its servers. If `isFirst` returns true, the server shows the figures that are the same on all of
 * them. `clock` is that of the database. `wants` is true if a subscription wants events of a type.
 */
export type Sight = { isFirst: () => boolean; clock: () => Date; wants?: Wanted }
export const alone: Sight = { isFirst: () => true, clock: () => new Date() }

/** Longest time for the database to return its figures, in milliseconds. */
const answerMs = 2000

/**
 * Figures of the database for all servers. Undefined if another server shows them, and if the database does not respond: the
 * other figures are needed most then.
 */
export async function inCommon<T>({ isFirst }: Sight, read: () => Promise<T>): Promise<T | undefined> {
  if (!isFirst()) return undefined
  const answered = new AbortController()
  const late = sleep(answerMs, undefined, { signal: answered.signal })
  try {
    return await Promise.race([read(), late])
  } catch {
    return undefined
  } finally {
    answered.abort()
  }
}

/** Shares one read among simultaneous callers, such as the gauges of one scrape. */
export function atOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined
  return () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
}
