// Says that something is to be compared again, in the transaction that is the reason for it.
import type { Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { queueMatches } from './queue.store.ts'

/** Queues all that has to do with these advisories. */
export async function queueAdvisories(tx: Tx, uids: readonly string[], now: string): Promise<void> {
  const items = [...new Set(uids)].sort().map((uid) => ({ kind: 'advisory' as const, place: rootOf(uid), item: uid }))
  await queueMatches(tx, items, now)
}
