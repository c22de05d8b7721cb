import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'

/** A sequence that the seed decides, so that a failure can be repeated. */
export type Random = {
  /** A whole number from 0 up to, and without, `end`. */
  below(end: number): number
}

/** Mulberry32. */
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

/** Seed from `PINFOLD_SEED`, or a new one. The test prints it, so that another run can repeat the same draws. */
export function seedOf(t: TestContext): number {
  const seed = Number(process.env.PINFOLD_SEED ?? randomInt(2 ** 31))
  t.diagnostic(`PINFOLD_SEED=${seed}`)
  return seed
}
