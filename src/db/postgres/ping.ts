// Health check of PostgreSQL. It tells a pool without a free connection from a database that does not respond.
import { setTimeout as sleep } from 'node:timers/promises'
import { busy } from '#lib/errors.ts'
import type { Connections } from './connections.ts'

/** Wait for a free connection, in milliseconds. After it, a new connection checks whether the database responds. */
const freeMs = 500
/** Longest wait for the new connection, in milliseconds. Load balancers get their answer within two seconds. */
const probeMs = 1000

/**
 * Waits for `ask`, which uses a connection of the pool. If it gets no connection in time, throws `TOO_BUSY` if a new connection
 * gets an answer, and `ETIMEDOUT` otherwise.
 */
export async function pingWhileFull(connections: Connections, ask: () => Promise<void>): Promise<void> {
  const asked = ask()
  const isAnswered = await Promise.race([asked.then(() => true), sleep(freeMs, false, { ref: false })])
  if (isAnswered || !connections.isWaitedFor()) return asked
  asked.catch(() => {})
  return Promise.race([asked, probe(connections)])
}

async function probe(connections: Connections): Promise<never> {
  if (await connections.answersFresh(probeMs)) throw busy('all connections to the database are in use; try again')
  throw Object.assign(new Error('the database does not respond'), { code: 'ETIMEDOUT' })
}
