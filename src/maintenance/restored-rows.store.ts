// Rows of a restored database that must not be used any more, since other systems have newer data.
import { removeFact, writeFact } from '#db/facts.ts'
import { sql, type Tx } from '#db/sql.ts'

export type Forgotten = { sessions: number; pushTokens: number; position: number }

/** Clients have positions of the stream of events from after the backup, which must not be given out again. */
const positionsAhead = 1_000_000_000

/**
 * Releases leases of former servers, ends sessions and tokens that may have been ended since, and moves positions of events
 * ahead.
 */
export async function forgetRestored(
  tx: Tx,
  { now, pushTokens }: { now: string; pushTokens: boolean },
): Promise<Forgotten> {
  for (const fact of ['url', 'local_url', 'local_network'] as const) await removeFact(tx, fact)
  await writeFact(tx, 'restore_time', now)
  // No former server is running, so no heartbeat is awaited.
  await tx.run(sql`UPDATE duties SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`UPDATE image_reads SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`DELETE FROM nodes`)
  const router = await tx.get<{ position: number }>(sql`
    UPDATE events_router SET position = position + ${positionsAhead} WHERE id = 1 RETURNING position`)
  // As a witness, the server may have signed checkpoints that the restored database does not have. With another key it never
  // contradicts itself.
  await tx.run(sql`DELETE FROM witness_keys`)
  await tx.run(sql`DELETE FROM sign_in_attempts`)
  await tx.run(sql`DELETE FROM console_codes`)
  await tx.run(sql`DELETE FROM device_codes`)
  await tx.run(sql`DELETE FROM sign_in_codes`)
  await tx.run(sql`DELETE FROM headless_sign_ins`)
  await tx.run(sql`DELETE FROM refresh_tokens`)
  const sessions = await tx.run(sql`DELETE FROM sessions`)
  const ended = pushTokens ? await tx.run(sql`DELETE FROM push_tokens`) : 0
  return { sessions, pushTokens: ended, position: router!.position }
}
