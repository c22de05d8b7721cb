// Rows of a restored database that must be changed or removed, since other systems have newer data.
import { removeFact, writeFact } from '#db/facts.ts'
import { sql, type Tx } from '#db/sql.ts'

export type Forgotten = { sessions: number; pushTokens: number; position: number }

/** Distance that event positions jump ahead. Clients already have positions from after the backup, which no new event may get. */
const positionsAhead = 1_000_000_000

/**
 * Releases leases of former servers. Ends sessions and tokens that may have been revoked since the backup. Moves event positions
 * ahead.
 */
export async function forgetRestored(
  tx: Tx,
  { now, pushTokens }: { now: string; pushTokens: boolean },
): Promise<Forgotten> {
  for (const fact of ['url', 'local_url', 'local_network'] as const) await removeFact(tx, fact)
  await writeFact(tx, 'restore_time', now)
  // No former server is running, so the leases can be released without waiting for heartbeats.
  await tx.run(sql`UPDATE duties SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`UPDATE delivery_queues SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`UPDATE image_reads SET owner = '' WHERE owner <> ''`)
  await tx.run(sql`DELETE FROM nodes`)
  const router = await tx.get<{ position: number }>(sql`
    UPDATE events_router SET position = position + ${positionsAhead} WHERE id = 1 RETURNING position`)
  // As a witness, the server may have signed checkpoints that the restored database does not contain. With a new key, it cannot
  // contradict these signatures.
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
