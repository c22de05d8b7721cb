// Cache of which groups have a subscription or stream for events of pulls or refused pushes. Requests must not wait for the
// database, so results are cached. A commit of this process that may change a result clears the cache.
import type { Change, Db } from '#db/sql.ts'
import type { Audience } from '#domains/outbox/registry-events.model.ts'
import { Newest } from '#lib/caches/newest.ts'
import { lineage, top } from '#lib/uid.ts'
import { matchesType } from '../routing/type-patterns.ts'
import { hasStream, typesAt } from './audience.store.ts'

/**
 * Lifetime of a result in milliseconds. If other servers share the database, their changes apply within a second. Otherwise a
 * result is valid until the next commit.
 */
const maxAgeMs = { shared: 500, alone: 60_000 }
const maxEntries = 10_000

const changes: readonly Change[] = [
  'insert subscriptions',
  'update subscriptions',
  'delete subscriptions',
  'insert pull_streams',
  'delete pull_streams',
]

/**
 * Creates the cache. `type` is the type of the events in our names. `token` is the vendor token in the other name of the type.
 * `monotonic` returns milliseconds of a monotonic clock.
 */
export function createAudience(
  db: Db,
  type: string,
  clock: () => Date,
  monotonic: () => number,
  token?: string,
): Audience {
  const entries = new Newest<string, { wanted: boolean; at: number }>(maxEntries)
  const ageMs = db.shared ? maxAgeMs.shared : maxAgeMs.alone
  let epoch = 0
  db.onCommit((committed) => {
    if (!changes.some((one) => committed.has(one))) return
    epoch++
    entries.clear()
  })
  const find = (group: string): boolean | undefined => {
    const entry = entries.get(group)
    return entry && monotonic() - entry.at < ageMs ? entry.wanted : undefined
  }
  return {
    isEmpty: (group) => find(group) === false,
    async includes(group) {
      const known = find(group)
      if (known !== undefined) return known
      const [started, at] = [epoch, monotonic()]
      const wanted = await load(db, group, { type, token }, clock().toISOString())
      if (started === epoch) entries.set(group, { wanted, at })
      return wanted
    },
  }
}

type EventsType = { type: string; token: string | undefined }

async function load(db: Db, group: string, { type, token }: EventsType, now: string): Promise<boolean> {
  const groups = lineage(group)
  const subscribed = await typesAt(db, groups)
  if (subscribed.some(({ types, vendor }) => matchesType(JSON.parse(types) as string[], type, vendor || token)))
    return true
  return hasStream(db, [...groups, top], now)
}
