// Difference between the clock of this machine and that of the database, which all servers share.
import { performance } from 'node:perf_hooks'
import { type Db, sql } from './sql.ts'

/** Clocks of a machine, in milliseconds: its time, which can be set, and the time passed, which cannot. */
export type Clocks = { time(): number; passed(): number }

export const ownClocks: Clocks = { time: () => Date.now(), passed: () => performance.now() }

export type Skew = {
  /** By how many milliseconds the database was ahead when it was asked last. */
  offsetMs(): number
  /** Time of the database, as far as it is known. The clock of the machine may be set meanwhile. */
  now(): Date
  /** Asks the database. */
  measure(): Promise<void>
  /** Takes the clock offsets of the other live servers. */
  compare(others: readonly number[]): void
  /** True if the clock of the database is wrong: of the database and all servers, most agree with this one on the time. */
  isDatabaseOff(): boolean
}

/** Clocks with at most this difference in milliseconds agree. */
const likeMs = 2000

/** An embedded database uses the clock of its machine, and follows its changes. */
export function createSkew(db: Pick<Db, 'engine' | 'get' | 'quick'>, { time, passed }: Clocks = ownClocks): Skew {
  let offset = 0
  /**
   * Time of the database when the clock of passed time began. That clock stops while the machine sleeps, until the database is
   * read again.
   */
  let began: number | undefined
  let others: readonly number[] = []
  return {
    offsetMs: () => offset,
    now: () => new Date(began === undefined ? time() : began + passed()),
    async measure() {
      if (db.engine === 'sqlite') return
      const sent = passed()
      const row = await (db.quick ?? db).get<{ now: number }>(sql`
        SELECT CAST(floor(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT) AS now`)
      // The order matters: a pause between these two lines then only widens the bounds.
      const here = time()
      const received = passed()
      began = adjusted(began, row!.now - received, row!.now + 1 - sent, here - received)
      // In the time that the machine has now: it may have been set while the database was asked.
      offset = adjusted(offset, row!.now - here, row!.now + 1 - here + (received - sent))
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

/** Keeps the known difference while it is between the bounds of the answer, so that times do not jump with each measurement. */
export function adjusted(known: number | undefined, least: number, most: number, guess = 0): number {
  const fits = (one: number): boolean => one >= least && one <= most
  if (known !== undefined && fits(known)) return known
  // The best guess is that the clocks agree, if it is between the bounds.
  return fits(guess) ? guess : Math.round((least + most) / 2)
}
