import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

/** Random numbers that depend only on the seed, so that a failure can be repeated. */
export type Random = {
  /** A whole number that is at least 0 and below `end`. */
  below(end: number): number
}

/** The generator Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return {
    below(end) {
      state = (state + 0x6d2b79f5) >>> 0
      let mixed = Math.imul(state ^ (state >>> 15), state | 1)
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
      return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
    },
  }
}

export function oneOf<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)]!
}

/** Seed from `PINFOLD_SEED`, or a new one. The test prints the seed, so that another run can use the same numbers. */
export function seedOf(t: TestContext): number {
  const seed = Number(process.env.PINFOLD_SEED ?? randomInt(2 ** 31))
  t.diagnostic(`PINFOLD_SEED=${seed}`)
  return seed
}
