// How the names of a large repo are kept so that a part of them is found: a segment holds so many names in their order, in buckets,
// and for each one, two or three characters that follow each other in any of them which names these are.
import { shapeOf, type Tag } from './tags.model.ts'

export const segmentSize = 8192
export const bucketSize = 64
export const bucketsPerSegment = segmentSize / bucketSize

const gramSizes = [1, 2, 3] as const
const bitmapBytes = segmentSize / 8
/** What holds more names is shorter as a bit for each name of the segment. */
const mostListed = bitmapBytes / 2

export type Part = { gram: string; held: Uint8Array }
export type Segment = { parts: Part[]; buckets: string[]; fences: string }

const namesBetweenRests = 256
const gramsBetweenRests = 512

/** Of `segmentSize` different names. Others have their turn at each `rest`. */
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

/** No tag has a line break in its name. */
const joined = (names: readonly string[]): string => names.join('\n')
export const split = (names: string): string[] => names.split('\n')

function pack(places: readonly number[]): Uint8Array {
  if (places.length < mostListed) {
    const listed = new Uint8Array(2 * places.length)
    for (const [i, place] of places.entries()) {
      listed[2 * i] = place & 0xff
      listed[2 * i + 1] = place >> 8
    }
    return listed
  }
  const bits = new Uint8Array(bitmapBytes)
  for (const place of places) bits[place >> 3]! |= 1 << (place & 7)
  return bits
}

function bitsOf(held: Uint8Array): Uint8Array {
  if (held.length === bitmapBytes) return held
  const bits = new Uint8Array(bitmapBytes)
  for (let i = 0; i < held.length; i += 2) {
    const place = held[i]! | (held[i + 1]! << 8)
    bits[place >> 3]! |= 1 << (place & 7)
  }
  return bits
}

/** The buckets of a segment with a name that has all of these, in their order. */
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

/** More of a long text would not make the choice of the rarest any better. */
const mostGrams = 12

/** What a name has in it that has the text. */
export function gramsOf(part: string): string[] {
  const text = part.toLowerCase()
  const size = gramSizes.at(-1)!
  if (text.length <= size) return [text]
  const grams = [...new Set(Array.from({ length: text.length - size + 1 }, (_, from) => text.slice(from, from + size)))]
  const step = Math.ceil(grams.length / mostGrams)
  return grams.filter((_, i) => i % step === 0)
}

/** What a name has to begin with, and to have anywhere in it; an empty text bounds nothing. `asked` are the shapes not to hide. */
export type NameFilter = { prefix: string; part: string; asked: number }

export function matches(name: string, last: string, { prefix, part, asked }: NameFilter): boolean {
  return (
    name > last &&
    name.startsWith(prefix) &&
    name.toLowerCase().includes(part.toLowerCase()) &&
    (shapeOf(name) & ~asked) === 0
  )
}

/** Buckets of one segment that may have matches, in their order, and where in them a search is. */
export type Cursor = { segment: number; fences: string[]; buckets: number[]; at: number }

/** Of the buckets those that a page behind `last` can have names of. */
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

/** The first name of the bucket that is next. */
const fenceOf = ({ fences, buckets, at }: Cursor): string => fences[buckets[at]!]!

/** The one whose next bucket begins first; `undefined` once all are through. */
function firstOf(cursors: readonly Cursor[]): Cursor | undefined {
  let first: Cursor | undefined
  for (const cursor of cursors) {
    if (cursor.at < cursor.buckets.length && (!first || fenceOf(cursor) < fenceOf(first))) first = cursor
  }
  return first
}

/** The numbers of the next buckets, in the order of their first names. */
export function takeBuckets(cursors: readonly Cursor[], most: number): number[] {
  const taken: number[] = []
  for (let cursor = firstOf(cursors); cursor && taken.length < most; cursor = firstOf(cursors)) {
    taken.push(cursor.segment * bucketsPerSegment + cursor.buckets[cursor.at]!)
    cursor.at++
  }
  return taken
}

/** Nothing that is left begins before it; `undefined` once nothing is left. */
export function nextName(cursors: readonly Cursor[]): string | undefined {
  const first = firstOf(cursors)
  return first && fenceOf(first)
}

/** Before the name, and behind all that is before it: names are of printable ASCII. */
export function justBefore(name: string): string {
  const end = name.length - 1
  return `${name.slice(0, end)}${String.fromCharCode(name.charCodeAt(end) - 1)}\u007f`
}

/** By name, each once. */
export function merged(some: readonly Tag[], others: readonly Tag[]): Tag[] {
  const byName = new Map([...some, ...others].map((tag) => [tag.name, tag]))
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}
