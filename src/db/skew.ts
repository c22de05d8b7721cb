// How far the clock of this machine is from that of the database, which all servers have in common.
import { type Db, sql } from './sql.ts'

export type Skew = {
  /** By how many milliseconds the database is ahead. */
  offsetMs(): number
  /** The time of the database, as far as it is known. */
  now(): Date
  /** Asks the database. */
  measure(): Promise<void>
  /** Tells how far off the other servers are that live. */
  compare(others: readonly number[]): void
  /** Whether it is the database whose clock is wrong: of it and all servers most agree with this one on the time. */
  isDatabaseOff(): boolean
}

/** Clocks that are this close agree. */
const likeMs = 2000

/** `machine` gives the milliseconds of this machine's clock. An embedded database has the same one. */
export function createSkew(db: Pick<Db, 'engine' | 'get'>, machine: () => number): Skew {
  let offset = 0
  let others: readonly number[] = []
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
    compare(now) {
      others = now
    },
    isDatabaseOff() {
      const like = others.filter((other) => Math.abs(other - offset) <= likeMs).length
      return Math.abs(offset) > likeMs && like + 1 > others.length - like + 1
    },
  }
}

/** What is known is kept while it fits between the bounds of the answer, so that times do not jump with each question. */
export function adjusted(offset: number, least: number, most: number): number {
  if (offset >= least && offset <= most) return offset
  // No difference is the best guess where that fits.
  return least <= 0 && most >= 0 ? 0 : Math.round((least + most) / 2)
}
