/** Splits the items in order into groups of at most `size`. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
}

/**
 * Splits the items in order into groups of at most `most.items` items and `most.bytes` bytes. A single item may have more bytes.
 */
export function* chunksByBytes<T>(
  items: readonly T[],
  most: { items: number; bytes: number },
  bytesOf: (item: T) => number,
): Generator<T[]> {
  let some: T[] = []
  let bytes = 0
  for (const item of items) {
    const more = bytesOf(item)
    if (some.length > 0 && (some.length === most.items || bytes + more > most.bytes)) {
      yield some
      some = []
      bytes = 0
    }
    some.push(item)
    bytes += more
  }
  if (some.length > 0) yield some
}
