// Searches tags of a large repository by a part of their names. Uses the name index, and reads the few tags that are not indexed
// yet.

import type { Call } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import { chunks } from '#lib/chunks.ts'
import { found, invalid } from '#lib/errors.ts'
import { type Listed, listedUpTo, type Page, toListed } from '#lib/lists/paging.ts'
import { repoType } from '../repos/repos.model.ts'
import { findRepoRow } from '../repos/repos.store.ts'
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

/**
 * Tags by name. With `upTo`, the result is complete up to that name, and more tags may follow after it. Without `upTo`, there are
 * no more tags.
 */
export type FoundTags = { tags: Tag[]; upTo: string | undefined }

export type Wanted = { last: string; limit: number }

/** Most tags outside the index that one request reads. If there are more, reading all tags by name is faster. */
const mostNew = 2 * segmentSize
/** Number of sequences that a search uses, the rarest first. More sequences would exclude hardly any names. */
const rarest = 4
const bucketsAtOnce = 128
const mostBuckets = 1024
const namesAtOnce = 200
/** Most names from the index that one request looks up. The index also has the names of deleted tags. */
const mostLookedUp = 10_000

/**
 * Matching tags after `last`, found with the name index. Returns undefined if the repository has no index, or if too many tags
 * are not indexed yet.
 */
async function findByPart(
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
  // If the index was replaced during the read, some of its rows may have been missing.
  if ((await store.indexOf(reader, repo))?.id !== index.id) return undefined
  const reached = upTo === undefined ? news : news.filter(({ name }) => name <= upTo)
  return { tags: merged(tags, reached).slice(0, wanted.limit), upTo }
}

/** Cursors for buckets that may have matching names. */
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

/** Matching tags in the index. Returns at least `limit` tags if there are as many. */
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
    // Buckets that were not read have no names before this one.
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

/**
 * Most names that one page examines in the order of names. A repository may have millions of names, and few of them may match.
 */
const mostNames = 10_000
const mostCharacters = 128

/** Tags of a repository by a prefix and a part of their names. A page with few tags can still have a token for the next page. */
export async function searchTags(
  call: Call,
  repoUid: string,
  page: Page,
  filter: NameFilter,
): Promise<Listed<Tag, number | undefined>> {
  checkFilter(filter)
  const { db } = call.app
  const { id } = found(await findRepoRow(db, { uid: repoUid }), repoType, repoUid)
  const wanted = { last: page.after?.value ?? '', limit: page.skip + page.size + 1 }
  const { desc } = page.order
  // The name index can only be read in ascending order.
  const byPart = filter.part === '' || desc ? undefined : await findByPart(db, id, filter, wanted)
  const matching = byPart ?? (await findByName(db, id, filter, { ...wanted, desc }))
  const tags = matching.tags.slice(page.skip)
  const total = await countTags(db, id, filter)
  if (tags.length > page.size) return toListed(call, page, tags, total)
  // The next page continues after the last name that was examined, even if that name did not match.
  const toSkip = Math.max(0, page.skip - matching.tags.length)
  return listedUpTo(call, page, { items: tags, total, last: matching.upTo, toSkip })
}

/** Matching tags of a repository after `last`, by name. Reads as many rows as one page of a search. */
export async function findTagsWith(
  reader: Reader,
  repo: number,
  filter: NameFilter,
  wanted: Wanted,
): Promise<FoundTags> {
  return (
    (await findByPart(reader, repo, filter, wanted)) ?? findByName(reader, repo, filter, { ...wanted, desc: false })
  )
}

type InOrder = Wanted & { desc: boolean }

async function findByName(reader: Reader, repo: number, filter: NameFilter, wanted: InOrder): Promise<FoundTags> {
  const { last, limit, desc } = wanted
  const end = await store.lastNameOf(reader, repo, filter, { last, desc, most: mostNames })
  if (!end) return { tags: [], upTo: undefined }
  const tags = await store.tagsByName(reader, repo, filter, { last, desc, upTo: end.name, limit })
  return { tags, upTo: end.more ? end.name : undefined }
}

/** Number of matching tags. Undefined if too many tags have the prefix to count them quickly. */
async function countTags(reader: Reader, repo: number, filter: NameFilter): Promise<number | undefined> {
  const end = await store.lastNameOf(reader, repo, filter, { last: '', desc: false, most: mostNames + 1 })
  if (!end) return 0
  return end.more ? undefined : store.countByName(reader, repo, filter)
}

function checkFilter({ prefix, part }: NameFilter): void {
  if (prefix === '' && part === '') throw invalid({ field: 'part', description: 'is required, unless prefix is set' })
  for (const [field, text] of Object.entries({ prefix, part })) {
    if (text.length > mostCharacters) {
      throw invalid({ field, description: `must have at most ${mostCharacters} characters` })
    }
  }
}
