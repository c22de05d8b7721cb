import { countRows } from '#db/bulk.ts'
import { list, type Reader, raw, sql, type Tx } from '#db/sql.ts'

export { readWalPosition } from '#db/postgres/wal-position.ts'

import { type LedgerLog, stateNumbers } from './logs.model.ts'
import { logColumns } from './logs.store.ts'

/** Condition with a literal number, so that both databases use the partial index. */
const isSuspended = raw(`state = ${stateNumbers.suspended}`)

/** Records that the blob store may have checkpoints of the present sizes of these logs. */
export async function noteStored(tx: Tx, logs: readonly number[]): Promise<void> {
  await tx.run(sql`
    UPDATE ledger_logs SET stored_size = size WHERE id IN (${list(logs)}) AND stored_size < size`)
}

export async function sizeOf(reader: Reader, log: number): Promise<number> {
  return (await reader.get<{ size: number }>(sql`SELECT size FROM ledger_logs WHERE id = ${log}`))?.size ?? 0
}

/** Locks the log until the transaction ends. Returns false if the log is suspended or ended. */
export async function lockWritten(tx: Tx, log: number): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE ledger_logs SET size = size WHERE id = ${log} AND state = ${stateNumbers.written}`)
  return changed > 0
}

export async function suspendLog(tx: Tx, log: number): Promise<void> {
  await tx.run(sql`UPDATE ledger_logs SET state = ${stateNumbers.suspended} WHERE id = ${log}`)
}

/** Logs that have not ended and may have a stored checkpoint, ordered by number. */
export function storedLogs(reader: Reader, after: number, most: number): Promise<LedgerLog[]> {
  return reader.all(sql`
    SELECT ${logColumns} FROM ledger_logs
     WHERE id > ${after} AND state <> ${stateNumbers.ended} AND size > 0 ORDER BY id LIMIT ${most}`)
}

export async function countSuspended(reader: Reader): Promise<number> {
  return countRows(reader, sql`FROM ledger_logs WHERE ${isSuspended}`)
}
