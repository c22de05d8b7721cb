// Pulls and refused pushes are events only where somebody wants them, so a stream that does says so, where every server can
// read it.
import { randomUUID } from 'node:crypto'
import type { StreamCall } from '#app.ts'
import { aPull, aPush } from '#domains/outbox/registry-events.model.ts'
import { matchesType } from '../routing/type-patterns.ts'
import { deleteStream, renewStream, setStream } from '../subscriptions/audience.store.ts'

/** From more places than this none are written for a stream alone. */
const maxPlaces = 1000
const leastRenewMs = 30_000
const writes = { isolation: 'rowLocks', durability: 'later' } as const

export type Announced = AsyncDisposable & {
  /** To be called at least as often as a stream says that it is there. */
  renew(): Promise<void>
}

/** Resolves once they are written for the stream, as far as its types name them and its caller sees them. */
export async function announce(
  call: StreamCall,
  { group, types }: { group: string; types: readonly string[] },
): Promise<Announced> {
  const { db, config, vendor, clock, eventTable, log } = call.app
  const pull = eventTable.find('registry.pull', undefined, aPull.kind)
  const push = eventTable.find('registry.push', undefined, aPush.kind)
  if (![pull, push].some(({ type }) => matchesType(types, type, vendor?.token))) {
    return { renew: async () => {}, [Symbol.asyncDispose]: async () => {} }
  }
  const stream = randomUUID()
  const renewMs = Math.max(config.streamIdleMs, leastRenewMs)
  let places = ''
  let said = 0

  const placesNow = async (): Promise<readonly string[]> => {
    if (group !== '') return [group]
    const { access } = call.method
    const { rights } = await call.callerNow()
    return access.mode === 'unscoped' ? rights.roots(access.capabilities).slice(0, maxPlaces) : []
  }
  const say = async (): Promise<void> => {
    said = performance.now()
    const now = await placesNow()
    const until = new Date(clock().getTime() + 3 * renewMs + config.requestTimeoutMs).toISOString()
    const same = places === now.join()
    places = now.join()
    await db.tx(async (tx) => {
      if (same && (await renewStream(tx, stream, until)) > 0) return
      await setStream(tx, stream, now, until)
    }, writes)
  }
  await say()
  return {
    async renew() {
      if (performance.now() - said >= renewMs) await say()
    },
    async [Symbol.asyncDispose]() {
      // What stays behind counts no more after a while.
      await db
        .tx((tx) => deleteStream(tx, stream), writes)
        .catch((error: unknown) => {
          log.warn('an ended stream could not be taken away', { error })
        })
    },
  }
}
