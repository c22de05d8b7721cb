// Position of a PostgreSQL server in its write-ahead log. A lower position than before shows that the database was restored to an
// earlier state.
import { type Reader, sql } from '../sql.ts'

/** `timeline` changes with each promotion and each recovery. Within one timeline, `position` only grows. */
export type WalPosition = { timeline: string; position: bigint }

/** Error codes of managed databases that forbid the function to this role, or do not have it. */
const unknowable = new Set(['42501', '42883', '0A000', '55000'])

/** Returns the position. Undefined for SQLite, and for a server that does not expose it. */
export async function readWalPosition(
  db: Reader & { engine: 'sqlite' | 'postgres' },
): Promise<WalPosition | undefined> {
  if (db.engine === 'sqlite') return undefined
  try {
    const row = await db.get<{ file: string; bytes: string }>(sql`
      SELECT pg_walfile_name(lsn) AS file, CAST(pg_wal_lsn_diff(lsn, '0/0') AS TEXT) AS bytes
        FROM (SELECT pg_current_wal_lsn() AS lsn) AS now`)
    return { timeline: row!.file.slice(0, 8), position: BigInt(row!.bytes) }
  } catch (error) {
    if (unknowable.has(String((error as { code?: unknown }).code))) return undefined
    throw error
  }
}
