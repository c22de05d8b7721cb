// The position of a PostgreSQL server in its write-ahead log, which shows that a database went back in time.
import { type Reader, sql } from '../sql.ts'

/** `timeline` changes with each promotion and each recovery; `position` only grows within one. */
export type WalPosition = { timeline: string; position: bigint }

/** Some managed databases do not allow roles to read it, or do not have the function. */
const unknowable = new Set(['42501', '42883', '0A000', '55000'])

/** Returns `undefined` for SQLite, and if the server does not have the position. */
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
