// How far the clock of this machine is from that of the database, which all servers have in common.
import { type Db, sql } from './sql.ts'

export type Skew = {
  /** By how many milliseconds the database is ahead. */
  offsetMs(): number
  /** The time of the database, as far as it is known. */
  now(): Date
  /** Asks the database. */
  measure(): Promise<void>
}

/** `machine` gives the milliseconds of this machine's clock. An embedded database has the same one. */
export function createSkew(db: Pick<Db, 'engine' | 'get'>, machine: () => number): Skew {
  let offset = 0
  return {
    offsetMs: () => offset,
    now: () => new Date(machine() + offset),
    async measure() {
      if (db.engine === 'sqlite') return
      const sent = machine()
      const row = await db.get<{ now: number }>(sql`
        SELECT CAST(floor(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT) AS now`)
      offset = adjusted(offset, row!.now - machine(), row!.now + 1 - sent)
    },
  }
}

/** What is known is kept while it fits between the bounds of the answer, so that times do not jump with each question. */
export function adjusted(offset: number, least: number, most: number): number {
  if (offset >= least && offset <= most) return offset
  // No difference is the best guess where that fits.
  return least <= 0 && most >= 0 ? 0 : Math.round((least + most) / 2)
}
