/**
 * Returns the first `most` numbers that are in both sets, in order. Both sets must be sorted. Reads no more of them than needed.
 */
export function firstInBoth(
  some: readonly ReadonlySet<number>[],
  others: readonly ReadonlySet<number>[],
  most: number,
): number[] {
  if (most <= 0) return []
  const sizeOf = (sets: readonly ReadonlySet<number>[]) => sets.reduce((sum, { size }) => sum + size, 0)
  const [fewer, more] = sizeOf(some) < sizeOf(others) ? [some, others] : [others, some]
  const found = new Set<number>()
  for (const set of fewer) {
    let taken = 0
    for (const one of set) {
      if (!more.some((other) => other.has(one))) continue
      found.add(one)
      taken++
      if (taken === most) break
    }
  }
  return [...found].sort((one, other) => one - other).slice(0, most)
}
