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
