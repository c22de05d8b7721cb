// Name index of a large repository, for searches by a part of a name. A segment holds a fixed number of names in order, divided
// into buckets. For each sequence of one, two or three characters, a segment has the positions of the names that contain it.
import { shapeOf, type Tag } from './tags.model.ts'

export const segmentSize = 8192
const bucketSize = 64
export const bucketsPerSegment = segmentSize / bucketSize

const gramSizes = [1, 2, 3] as const
const bitmapBytes = segmentSize / 8
/** Longest list of positions. A longer list would take more space than a bitmap with one bit for each name of the segment. */
const mostListed = bitmapBytes / 2

export type Part = { gram: string; held: Uint8Array }
export type Segment = { parts: Part[]; buckets: string[]; fences: string }

const namesBetweenRests = 256
const gramsBetweenRests = 512

/** Builds a segment from `segmentSize` different names. Calls `rest` regularly, so that other work can run. */
export async function segmentOf(names: readonly string[], rest: () => Promise<unknown>): Promise<Segment> {
  const sorted = [...names].sort()
  const held = new Map<string, number[]>()
  for (const [at, name] of sorted.entries()) {
    const text = name.toLowerCase()
    for (const size of gramSizes)
      for (let from = 0; from + size <= text.length; from++) note(held, text, from, size, at)
    if (at % namesBetweenRests === 0) await rest()
  }
  const parts: Part[] = []
  for (const [gram, at] of held) {
    parts.push({ gram, held: pack(at) })
    if (parts.length % gramsBetweenRests === 0) await rest()
  }
  const buckets = Array.from({ length: bucketsPerSegment }, (_, i) => {
    return sorted.slice(i * bucketSize, (i + 1) * bucketSize)
  })
  return { parts, buckets: buckets.map(joined), fences: joined(buckets.map(([first]) => first!)) }
}

function note(held: Map<string, number[]>, text: string, from: number, size: number, at: number): void {
  const gram = text.slice(from, from + size)
  const list = held.get(gram)
  if (!list) held.set(gram, [at])
  else if (list.at(-1) !== at) list.push(at)
}

/** Joins names with line breaks, which tag names cannot contain. */
const joined = (names: readonly string[]): string => names.join('\n')
export const split = (names: string): string[] => names.split('\n')

function pack(buckets: readonly number[]): Uint8Array {
  if (buckets.length < mostListed) {
    const listed = new Uint8Array(2 * buckets.length)
    for (const [i, bucket] of buckets.entries()) {
      listed[2 * i] = bucket & 0xff
      listed[2 * i + 1] = bucket >> 8
    }
    return listed
  }
  const bits = new Uint8Array(bitmapBytes)
  for (const bucket of buckets) bits[bucket >> 3]! |= 1 << (bucket & 7)
  return bits
}

function bitsOf(held: Uint8Array): Uint8Array {
  if (held.length === bitmapBytes) return held
  const bits = new Uint8Array(bitmapBytes)
  for (let i = 0; i < held.length; i += 2) {
    const bucket = held[i]! | (held[i + 1]! << 8)
    bits[bucket >> 3]! |= 1 << (bucket & 7)
  }
  return bits
}

/** Buckets of a segment, in order, with at least one name that is in all of these sets. */
export function bucketsWith(all: readonly Uint8Array[]): number[] {
  const bits = all.map(bitsOf)
  const bytesPerBucket = bucketSize / 8
  return Array.from({ length: bucketsPerSegment }, (_, bucket) => bucket).filter((bucket) => {
    for (let at = bucket * bytesPerBucket; at < (bucket + 1) * bytesPerBucket; at++) {
      if (bits.reduce((left, one) => left & one[at]!, 0xff) !== 0) return true
    }
    return false
  })
}

/** Most sequences of a text that are considered. More sequences would not improve the choice of the rarest ones. */
const mostGrams = 12

/** Sequences of characters that every name with this text contains. */
export function gramsOf(part: string): string[] {
  const text = part.toLowerCase()
  const size = gramSizes.at(-1)!
  if (text.length <= size) return [text]
  const grams = [...new Set(Array.from({ length: text.length - size + 1 }, (_, from) => text.slice(from, from + size)))]
  const step = Math.ceil(grams.length / mostGrams)
  return grams.filter((_, i) => i % step === 0)
}

/**
 * Filter for names: a required prefix, and a part that names must contain. Empty texts match every name. `asked` has the shapes
 * of names that are not hidden.
 */
export type NameFilter = { prefix: string; part: string; asked: number }

export function matches(name: string, last: string, { prefix, part, asked }: NameFilter): boolean {
  return (
    name > last &&
    name.startsWith(prefix) &&
    name.toLowerCase().includes(part.toLowerCase()) &&
    (shapeOf(name) & ~asked) === 0
  )
}

/** Search in one segment: the buckets that may have matches, in order, and the current position. */
export type Cursor = { segment: number; fences: string[]; buckets: number[]; at: number }

/** Creates a cursor. Leaves out buckets that cannot have names after `last`. */
export function cursorOf(
  segment: number,
  fences: string[],
  buckets: readonly number[],
  last: string,
  prefix: string,
): Cursor {
  const from = last < prefix ? prefix : last
  const wanted = buckets.filter((bucket) => {
    const [first, next] = [fences[bucket]!, fences[bucket + 1]]
    return (next === undefined || next > from) && (first <= prefix || first.startsWith(prefix))
  })
  return { segment, fences, buckets: wanted, at: 0 }
}

/** First name of the next bucket of a cursor. */
const fenceOf = ({ fences, buckets, at }: Cursor): string => fences[buckets[at]!]!

/** Cursor whose next bucket comes first by name. Returns undefined if all cursors are at their end. */
function firstOf(cursors: readonly Cursor[]): Cursor | undefined {
  let first: Cursor | undefined
  for (const cursor of cursors) {
    if (cursor.at < cursor.buckets.length && (!first || fenceOf(cursor) < fenceOf(first))) first = cursor
  }
  return first
}

/** Advances the cursors. Returns the numbers of the next buckets, ordered by their first names. */
export function takeBuckets(cursors: readonly Cursor[], most: number): number[] {
  const taken: number[] = []
  for (let cursor = firstOf(cursors); cursor && taken.length < most; cursor = firstOf(cursors)) {
    taken.push(cursor.segment * bucketsPerSegment + cursor.buckets[cursor.at]!)
    cursor.at++
  }
  return taken
}

/** First name of all remaining buckets. Returns undefined if no buckets remain. */
export function nextName(cursors: readonly Cursor[]): string | undefined {
  const first = firstOf(cursors)
  return first && fenceOf(first)
}

/** Text that sorts directly before the name and after all names before it. Names are printable ASCII. */
export function justBefore(name: string): string {
  const end = name.length - 1
  return `${name.slice(0, end)}${String.fromCharCode(name.charCodeAt(end) - 1)}\u007f`
}

/** Merges two lists of tags by name. A tag in both lists appears once. */
export function merged(some: readonly Tag[], others: readonly Tag[]): Tag[] {
  const byName = new Map([...some, ...others].map((tag) => [tag.name, tag]))
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
