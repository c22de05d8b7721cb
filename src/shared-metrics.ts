// Figures that describe a database which several servers share. Only one of the servers shows them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Wanted } from './domains/events/delivery/depth.store.ts'

/**
 * The database as one of its servers sees it. If `isFirst` returns true, this server shows the figures. `clock` is the time of
 * the database. `wants` returns true if a subscription wants events of a type.
 */
export type NodeView = { isFirst: () => boolean; clock: () => Date; wants?: Wanted }
export const alone: NodeView = { isFirst: () => true, clock: () => new Date() }

/** Longest wait for the figures of the database, in milliseconds. */
const answerMs = 2000

/**
 * Reads the figures of the database. Undefined if another server shows them, or if the database does not respond in time. The
 * other metrics are then shown without them.
 */
export async function inCommon<T>({ isFirst }: NodeView, read: () => Promise<T>): Promise<T | undefined> {
  if (!isFirst()) return undefined
  const answered = new AbortController()
  try {
    return await Promise.race([read(), sleep(answerMs, undefined, { signal: answered.signal })])
  } catch {
    return undefined
  } finally {
    answered.abort()
  }
}

/** Shares one read among simultaneous callers, such as all gauges of one scrape. */
export function atOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined
  return () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
}
