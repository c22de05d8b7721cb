// What all that follows upstreams does in one way: in whose name, and once where many want the same.
import type { App, Work } from '#app.ts'
import { noRights } from '#domains/iam/access/rights.ts'
import { ownCause } from '#lib/cause.ts'
import { followerActor } from './follows.model.ts'

/** In the name of the service that follows: what a pull brings is not what whoever pulls has pushed. */
export function followerWork(app: App): Work {
  const caller = { uid: followerActor, operator: false, rights: noRights }
  return { app, caller, cause: ownCause(app.clock, followerActor), log: app.log }
}

/** Those who want the same at the same time wait for the first. */
export async function oneFlight<T>(
  flights: Map<string, Promise<unknown>>,
  key: string,
  fly: () => Promise<T>,
): Promise<T> {
  const flying = flights.get(key) as Promise<T> | undefined
  if (flying) return flying
  const flight = fly()
  flights.set(key, flight)
  try {
    return await flight
  } finally {
    flights.delete(key)
  }
}
