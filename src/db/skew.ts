// Difference between the clock of this machine and the clock of the database. All servers use the clock of the database.
import { performance } from 'node:perf_hooks'
import { type Db, sql } from './sql.ts'

/** Clocks of a machine, in milliseconds. `time` is the wall clock, which can be set. `passed` is a monotonic clock. */
export type Clocks = { time(): number; passed(): number }

export const ownClocks: Clocks = { time: () => Date.now(), passed: () => performance.now() }

export type Skew = {
  /**
   * Milliseconds by which the database's clock was ahead of this machine's at the last measurement. Negative if it was behind.
   */
  offsetMs(): number
  /**
   * Time of the database, calculated from the last measurement and the monotonic clock. Setting the clock of the machine does not
   * change it.
   */
  now(): Date
  /** Reads the clock of the database. */
  measure(): Promise<void>
  /** Sets the clock offsets of the other live servers. */
  compare(others: readonly number[]): void
  /**
   * True if the clock of the database is wrong. It then differs from this server's clock, and most other servers have the same
   * difference.
   */
  isDatabaseOff(): boolean
}

/** Largest difference in milliseconds of two clocks that agree. */
const likeMs = 2000

/** For SQLite, the clock of the database is that of the machine. */
export function createSkew(db: Pick<Db, 'engine' | 'get' | 'quick'>, { time, passed }: Clocks = ownClocks): Skew {
  let offset = 0
  /**
   * Time of the database at the zero of the monotonic clock. The monotonic clock stops while the machine sleeps, so this value is
   * wrong from then until the next measurement.
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
      // The time is read first: a pause between these two lines then makes the bounds wider, never wrong.
      const here = time()
      const received = passed()
      began = adjusted(began, row!.now - received, row!.now + 1 - sent, here - received)
      // Uses the present time of the machine, since the clock may have been set during the measurement.
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

/**
 * Keeps the known difference if it is between the two bounds of the measurement, so that times do not jump with each measurement.
 */
export function adjusted(known: number | undefined, least: number, most: number, guess = 0): number {
  const fits = (one: number): boolean => one >= least && one <= most
  if (known !== undefined && fits(known)) return known
  // If the known difference is outside of the bounds, uses `guess` if it is between them, else the middle. By default, the guess
  // is that the clocks agree.
  return fits(guess) ? guess : Math.round((least + most) / 2)
}
