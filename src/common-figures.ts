// Figures of a database that several servers share: one of the servers shows them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Wanted } from './domains/events/delivery/depth.store.ts'

/**
 * View of a database by one of its servers. The server that `isFirst` shows the figures that are the same on all of them. `clock`
 * is that of the database. `wants` says whether a subscription wants events of a type.
 */
export type Sight = { isFirst: () => boolean; clock: () => Date; wants?: Wanted }
export const alone: Sight = { isFirst: () => true, clock: () => new Date() }

/** So long a database may take for its part of what is shown. */
const answerMs = 2000

/**
 * What the database says of all servers: `undefined` where another one shows it, and where it does not answer, since the
 * rest is wanted most then.
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

/** Callers at the same time share one read, such as the gauges of one scrape. */
export function atOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined
  return () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
}
