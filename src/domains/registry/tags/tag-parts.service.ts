// Tags of a large repo by a part of their names, from its index of parts and from the few tags that this does not know yet.
import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import {
  bucketsWith,
  type Cursor,
  cursorOf,
  gramsOf,
  justBefore,
  matches,
  merged,
  type NameFilter,
  nextName,
  segmentSize,
  split,
  takeBuckets,
} from './tag-parts.model.ts'
import * as store from './tag-parts.store.ts'
import type { Tag } from './tags.model.ts'

/** Tags by name. With `upTo` there may be more behind that name, and none before it; without it there are none. */
export type FoundTags = { tags: Tag[]; upTo: string | undefined }

export type Wanted = { last: string; limit: number }

/** How many tags one request reads that the index does not know. With more of them the index of names is faster. */
const mostNew = 2 * segmentSize
/** More would hardly leave fewer names to look at. */
const rarest = 4
const bucketsAtOnce = 128
const mostBuckets = 1024
const namesAtOnce = 200
/** An index also has the names of tags that are gone. */
const mostLookedUp = 10_000

/** The tags behind `last` that match; `undefined` where there is no index that could say so. */
export async function findByPart(
  reader: Reader,
  repo: number,
  filter: NameFilter,
  wanted: Wanted,
): Promise<FoundTags | undefined> {
  const index = await store.indexOf(reader, repo)
  if (!index || index.segments === 0) return undefined
  if ((await store.countBeyond(reader, repo, index.upTo, mostNew + 1)) > mostNew) return undefined
  const news = await store.newTagsWith(reader, repo, index.upTo, filter, { ...wanted, most: mostNew })
  const cursors = await cursorsOf(reader, index, filter, wanted.last)
  const { tags, upTo } = await known(reader, { repo, index: index.id }, cursors, filter, wanted)
  // What was made anew meanwhile may have lost rows while they were read.
  if ((await store.indexOf(reader, repo))?.id !== index.id) return undefined
  const reached = upTo === undefined ? news : news.filter(({ name }) => name <= upTo)
  return { tags: merged(tags, reached).slice(0, wanted.limit), upTo }
}

/** Where the index has names that may match. */
async function cursorsOf(
  reader: Reader,
  index: store.PartIndex,
  { part, prefix }: NameFilter,
  last: string,
): Promise<Cursor[]> {
  const grams = gramsOf(part)
  const there = await store.byRarity(reader, index.id, grams)
  if (there.length < grams.length) return []
  const chosen = there.slice(0, rarest)
  const held = new Map<number, Uint8Array[]>()
  for (const one of await store.partsOf(reader, index, chosen)) {
    held.set(one.segment, [...(held.get(one.segment) ?? []), one.held])
  }
  const buckets = new Map<number, number[]>()
  for (const [segment, all] of held) if (all.length === chosen.length) buckets.set(segment, bucketsWith(all))
  const segments = [...buckets].flatMap(([segment, some]) => (some.length > 0 ? [segment] : []))
  if (segments.length === 0) return []
  const rows = await store.fencesOf(reader, index.id, segments)
  return rows.map(({ segment, fences }) => cursorOf(segment, split(fences), buckets.get(segment)!, last, prefix))
}

/** Those that the index knows, `limit` of them at least where there are so many. */
async function known(
  reader: Reader,
  { repo, index }: { repo: number; index: number },
  cursors: readonly Cursor[],
  filter: NameFilter,
  { last, limit }: Wanted,
): Promise<FoundTags> {
  const tags: Tag[] = []
  const matching = new Set<string>()
  for (let [read, lookedUp] = [0, 0]; ; ) {
    const buckets = takeBuckets(cursors, bucketsAtOnce)
    for (const names of buckets.length > 0 ? await store.namesIn(reader, index, buckets) : []) {
      for (const name of split(names)) if (matches(name, last, filter)) matching.add(name)
    }
    read += buckets.length
    // What is left to be read may have names behind this one, and none before it.
    const next = nextName(cursors)
    const reached = [...matching].filter((name) => next === undefined || name < next).sort()
    for (const names of chunks(reached, namesAtOnce)) {
      tags.push(...(await store.visibleTagsNamed(reader, repo, names, filter.asked)))
      lookedUp += names.length
      if (tags.length >= limit || lookedUp >= mostLookedUp) return { tags, upTo: names.at(-1)! }
      for (const name of names) matching.delete(name)
    }
    if (next === undefined) return { tags, upTo: undefined }
    if (read >= mostBuckets && next > last) return { tags, upTo: justBefore(next) }
  }
}
