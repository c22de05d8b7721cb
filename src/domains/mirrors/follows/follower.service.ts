// Identity of the mirroring service. Also lets concurrent callers share one request.
import type { App, Work } from '#app.ts'
import { noRights } from '#domains/iam/access/rights.ts'
import { ownCause } from '#lib/cause.ts'
import { followerActor } from './follows.model.ts'

/** Work in the name of the mirroring service. Content that a pull fetches does not count as a push by the caller. */
export function followerWork(app: App): Work {
  const caller = { uid: followerActor, operator: false, rights: noRights }
  return { app, caller, cause: ownCause(app.clock, followerActor), log: app.log }
}

/** Runs `run` once for concurrent callers with the same key. Later callers wait for the result of the first call. */
export async function singleFlight<T>(
  flights: Map<string, Promise<unknown>>,
  key: string,
  run: () => Promise<T>,
): Promise<T> {
  const flying = flights.get(key) as Promise<T> | undefined
  if (flying) return flying
  const flight = run()
  flights.set(key, flight)
  try {
    return await flight
  } finally {
    flights.delete(key)
  }
}
