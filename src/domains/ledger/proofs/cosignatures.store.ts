import { locking } from '#db/row-locks.ts'
import { list, type Reader, sql, type Tx } from '#db/sql.ts'
import { stateNumbers } from './logs.model.ts'

/** A log whose checkpoint lacks the signature of a witness. */
export type WaitingLog = { id: number; checkpoint: string; size: number }
/**
 * `size` is the size of the last checkpoint. `cosigned` is the newest checkpoint with enough cosignatures, and `cosignedSize` is
 * its size.
 */
export type CheckpointSizes = { size: number; cosigned: string; cosignedSize: number }

/** Some logs with missing cosignatures, the longest wait first. `witnesses` are the keys of all witnesses that have to sign. */
export function waitingLogs(reader: Reader, witnesses: readonly string[], most: number): Promise<WaitingLog[]> {
  return reader.all(sql`
    SELECT l.id, l.checkpoint, l.checkpoint_size AS size
      FROM ledger_logs l LEFT JOIN ledger_cosigned c ON c.log_id = l.id
     WHERE l.state = ${stateNumbers.written} AND l.checkpoint_size > 0
       AND (SELECT count(*) FROM ledger_cosigners s WHERE s.log_id = l.id AND s.size = l.checkpoint_size
                                                  AND s.vkey IN (${list(witnesses)})) < ${witnesses.length}
     ORDER BY coalesce(c.asked_time, ''), l.id LIMIT ${most}`)
}

/**
 * Logs that have grown since they were signed, and for which too few witnesses have reported their size to this process. Ordered
 * by number, and only those after `after`.
 */
export function logsWithoutSizes(
  reader: Reader,
  { process, after, most }: { process: string; after: number; most: number },
): Promise<WaitingLog[]> {
  return reader.all(sql`
    SELECT l.id, l.checkpoint, l.checkpoint_size AS size
      FROM ledger_logs l LEFT JOIN ledger_cosigned c ON c.log_id = l.id
     WHERE l.state = ${stateNumbers.written} AND l.checkpoint_size > 0 AND l.checkpoint_size < l.size
       AND l.id > ${after} AND coalesce(c.answered_to, '') <> ${process}
     ORDER BY l.id LIMIT ${most}`)
}

export async function cosignedOf(
  reader: Reader,
  log: number,
): Promise<{ checkpoint: string; size: number } | undefined> {
  return reader.get(sql`SELECT checkpoint, size FROM ledger_cosigned WHERE log_id = ${log} AND size > 0`)
}

/** Signed checkpoint of a log, and its size. */
export type CosignedCheckpoint = { log: number; checkpoint: string; size: number }

/** For each log of an organization, the last checkpoint that enough witnesses have signed. */
export async function cosignedCheckpoints(reader: Reader, organization: string): Promise<CosignedCheckpoint[]> {
  return reader.all(sql`
    SELECT c.log_id AS log, c.checkpoint, c.size
      FROM ledger_logs l JOIN ledger_cosigned c ON c.log_id = l.id
     WHERE l.org_uid = ${organization} AND c.size > 0`)
}

/** Last checkpoints of a log. Locks the log until the transaction ends, so that no other server signs the log. */
export async function lockHeads(tx: Tx, log: number): Promise<CheckpointSizes> {
  const row = await tx.get<{ size: number }>(sql`
    SELECT checkpoint_size AS size FROM ledger_logs WHERE id = ${log} ${locking(tx, 'alone')}`)
  const kept = await cosignedOf(tx, log)
  return { size: row!.size, cosigned: kept?.checkpoint ?? '', cosignedSize: kept?.size ?? 0 }
}

/** Sizes of a log that its witnesses have seen. */
export function sizesByWitness(reader: Reader, log: number): Promise<{ vkey: string; size: number }[]> {
  return reader.all(sql`SELECT vkey, size FROM ledger_cosigners WHERE log_id = ${log}`)
}

/**
 * Stores the size of a log that a witness has seen. If the stored size is larger, it is kept, since answers may arrive in another
 * order.
 */
export async function noteWitnessSize(tx: Tx, log: number, vkey: string, size: number): Promise<void> {
  await tx.run(sql`
    INSERT INTO ledger_cosigners (log_id, vkey, size) VALUES (${log}, ${vkey}, ${size})
        ON CONFLICT (log_id, vkey) DO UPDATE SET size = excluded.size WHERE excluded.size > ledger_cosigners.size`)
}

export async function keepCosigned(
  tx: Tx,
  log: number,
  { checkpoint, size, time, answeredTo }: { checkpoint: string; size: number; time: string; answeredTo: string },
): Promise<void> {
  // Servers of the previous release read this time.
  const answeredTime = answeredTo === '' ? '' : time
  await tx.run(sql`
    INSERT INTO ledger_cosigned (log_id, checkpoint, size, asked_time, answered_time, answered_to)
    VALUES (${log}, ${checkpoint}, ${size}, ${time}, ${answeredTime}, ${answeredTo})
        ON CONFLICT (log_id) DO UPDATE
           SET checkpoint = excluded.checkpoint, size = excluded.size, asked_time = excluded.asked_time,
               answered_time = CASE WHEN excluded.answered_to = '' THEN ledger_cosigned.answered_time
                                    ELSE excluded.answered_time END,
               answered_to = CASE WHEN excluded.answered_to = '' THEN ledger_cosigned.answered_to
                                  ELSE excluded.answered_to END`)
}

export type WitnessKey = { vkey: string; privateKey: Uint8Array }

export function findWitnessKey(reader: Reader): Promise<WitnessKey | undefined> {
  return reader.get(sql`SELECT vkey, private_key AS "privateKey" FROM witness_keys WHERE id = 1`)
}

/** Stores the key of this witness. Does nothing if there is a key already. */
export async function keepWitnessKey(tx: Tx, { vkey, privateKey }: WitnessKey, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO witness_keys (id, vkey, private_key, create_time) VALUES (1, ${vkey}, ${privateKey}, ${now})
        ON CONFLICT (id) DO NOTHING`)
}

/** Newest checkpoint of a log that this witness has seen. Its row is locked until the transaction ends. `root` is base64. */
export async function lockHead(tx: Tx, origin: string, empty: string): Promise<{ size: number; root: string }> {
  const row = await tx.get<{ size: number; root: string }>(sql`
    INSERT INTO witnessed_logs (origin, size, root, seen_time) VALUES (${origin}, 0, ${empty}, '')
        ON CONFLICT (origin) DO UPDATE SET size = witnessed_logs.size
    RETURNING size, root`)
  return row!
}

export async function noteHead(
  tx: Tx,
  origin: string,
  { size, root, time }: { size: number; root: string; time: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE witnessed_logs SET size = ${size}, root = ${root}, seen_time = ${time} WHERE origin = ${origin}`)
}
