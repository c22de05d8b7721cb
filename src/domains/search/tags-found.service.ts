// Finds tags: by the start of their names in the lists of tags, and by a part of their names in the repositories that have its
// character sequences.

import type { Reader } from '#db/sql.ts'
import { listReposNamed } from '#domains/registry/repos/repos.store.ts'
import { findTagsWith } from '#domains/registry/tags/tag-parts.service.ts'
import { shapes, type Tag, visibleShapes } from '#domains/registry/tags/tags.model.ts'
import { foldText, type Rank, rankOf } from '#lib/lists/search-text.ts'
import { isAtOrBelow, parentOf, rootOf, top } from '#lib/uid.ts'
import * as store from './names.store.ts'
import { pathsOf } from './names-found.service.ts'
import { groupNumbers } from './parts.store.ts'
import {
  type Chunk,
  type Found,
  type IndexRow,
  nothing,
  type Range,
  readRange,
  rowsOfScopes,
} from './ranges.service.ts'
import { type Result, spellingsOf } from './search.model.ts'
import { gramsOf, rarestGram, reposWithGram, reposWithGrams } from './tag-grams.store.ts'

export type TagSearch = {
  scopes: readonly string[]
  text: string
  rank: Rank
  after: string
  most: number
  until: number
}

/** Tags of referrers are not found. They are named by the digest of another image. */
const asked = shapes.dates | shapes.epochs
const shownShapes = visibleShapes(asked)
const scopesAtOnce = 20

/** Tags that are equal to the text, or begin with it. */
export async function findTagsByStart(reader: Reader, { scopes, text, rank, after, most }: TagSearch): Promise<Chunk> {
  if (scopes.length === 0 || (rank !== 'exact' && rank !== 'prefix')) return nothing
  const spellings = text === '' ? [''] : spellingsOf(text)
  const kind = { shapes: shownShapes, names: apart(spellings), isWhole: rank === 'exact' }
  if (rank === 'exact' && text === '') return nothing
  const range: Range<IndexRow & { id: number }> = {
    rows: (from, limit) =>
      rowsOfScopes(scopes, { atOnce: scopesAtOnce, most: limit }, (some) =>
        store.tagKeys(reader, some, kind, from, limit),
      ),
    async load(rows) {
      const ids = rows.map(({ id }) => id)
      const tags = new Map((ids.length > 0 ? await store.tagsOf(reader, ids) : []).map((tag) => [tag.id, tag]))
      const paths = await pathsOf(
        reader,
        [...tags.values()].map(({ repo }) => repo),
      )
      return rows.map(({ id }) => {
        const tag = tags.get(id)
        if (!tag || rankOf([tag.name], foldText(text)) !== rank) return undefined
        return toResult(tag, rank, paths.get(tag.repo)!)
      })
    },
  }
  return readRange(range, after, most)
}

/** Texts that do not begin with each other. Otherwise a name would be in several ranges. */
const apart = (texts: readonly string[]): string[] =>
  texts.filter((one) => !texts.some((other) => other !== one && one.startsWith(other)))

type Named = Pick<Tag, 'uid' | 'name' | 'digest' | 'updateTime'>

function toResult({ uid, name, digest, updateTime }: Named, match: Rank, repo: string): Result {
  const path = `${repo}:${name}`
  return { kind: 'tag', match, name, path, uid, repoUid: parentOf(uid), digest, detail: '', updateTime }
}

/** Position in a search by part: the organization, the number of the repository, and the last tag in it. */
type Position = { organization: string; before: number; repo: number; last: string }

const atOnce = 100
/** In a scope with more repositories, the search begins with the repositories that have the sequences. */
const mostScoped = 1000

/** Tags that contain the text anywhere but at their start. Stops at the time limit. */
export async function findTagsByPart(reader: Reader, search: TagSearch): Promise<Chunk> {
  const grams = gramsOf(search.text)
  if (search.rank !== 'part' || search.scopes.length === 0 || grams.length === 0) return nothing
  const begin = search.after === '' ? undefined : (JSON.parse(search.after) as Position)
  const found: Found[] = []
  for await (const organization of organizationsOf(reader, search.scopes, begin?.organization)) {
    const from = begin?.organization === organization ? begin : startIn(organization)
    if (performance.now() > search.until) return { found, next: JSON.stringify(from) }
    const next = await addFrom(reader, search, grams, from, found)
    if (next) return { found, next: JSON.stringify(next) }
  }
  return { found, next: undefined }
}

const startIn = (organization: string): Position => {
  return { organization, before: Number.MAX_SAFE_INTEGER, repo: 0, last: '' }
}

/** Organizations of the scopes from one on, in order. */
async function* organizationsOf(reader: Reader, scopes: readonly string[], from = ''): AsyncGenerator<string> {
  if (!scopes.includes(top)) {
    yield* [...new Set(scopes.map(rootOf))].sort().filter((one) => one >= from)
    return
  }
  if (from !== '') yield from
  for (let after = from; ; ) {
    const some = await store.organizationsAfter(reader, after, atOnce)
    yield* some
    if (some.length < atOnce) return
    after = some.at(-1)!
  }
}

/** Adds tags of one organization. Returns the position to continue at, or undefined at the end of the organization. */
async function addFrom(
  reader: Reader,
  search: TagSearch,
  grams: readonly string[],
  from: Position,
  found: Found[],
): Promise<Position | undefined> {
  const { organization } = from
  const scopes = search.scopes.filter((scope) => scope === top || isAtOrBelow(scope, organization))
  for await (const repo of reposIn(reader, organization, scopes, grams, from.before)) {
    if (!scopes.some((scope) => isAtOrBelow(repo.uid, scope))) continue
    const last = repo.id === from.repo ? from.last : ''
    const here = (name: string): Position => ({ organization, before: repo.id + 1, repo: repo.id, last: name })
    if (performance.now() > search.until) return here(last)
    const next = await addTags(reader, search, repo, last, found)
    if (next !== undefined) return here(next)
  }
  return undefined
}

type RepoHere = { id: number; uid: string }

/** Repositories that may have a matching tag, the newest first. */
async function* reposIn(
  reader: Reader,
  organization: string,
  scopes: readonly string[],
  grams: readonly string[],
  from: number,
): AsyncGenerator<RepoHere> {
  const number = (await groupNumbers(reader, [organization])).get(organization)
  if (number === undefined) return
  const rarest = await rarestGram(reader, number, grams, mostScoped + 1)
  if (rarest.total === 0) return
  const inScopes = rarest.total > mostScoped ? await fewReposIn(reader, scopes, organization) : undefined
  const scoped = inScopes?.filter((id) => id < from).sort((a, b) => b - a)
  for (let before = from, at = 0; ; at += atOnce) {
    const ids = scoped
      ? scoped.slice(at, at + atOnce)
      : await reposWithGram(reader, { organization: number, gram: rarest.gram }, before, atOnce)
    const having = await reposWithGrams(reader, ids, grams)
    if (having.size > 0) yield* await store.repoUids(reader, [...having])
    if (ids.length < atOnce) return
    before = ids.at(-1)!
  }
}

/** Repositories in the scopes. Undefined if there are too many. */
async function fewReposIn(
  reader: Reader,
  scopes: readonly string[],
  organization: string,
): Promise<number[] | undefined> {
  const ids: number[] = []
  for (const scope of scopes) {
    if (scope === top || scope === organization) return undefined
    ids.push(...(await store.reposBelow(reader, scope, mostScoped + 1 - ids.length)))
    if (ids.length > mostScoped) return undefined
  }
  return ids
}

/** Adds tags of one repository. Returns the name to continue after, or undefined at the end of the repository. */
async function addTags(
  reader: Reader,
  { text, most }: TagSearch,
  repo: RepoHere,
  last: string,
  found: Found[],
): Promise<string | undefined> {
  const spellings = spellingsOf(text)
  const limit = most - found.length
  const { tags, upTo } = await findTagsWith(reader, repo.id, { prefix: '', part: text, asked }, { last, limit })
  const path = (await pathsOf(reader, [repo.uid])).get(repo.uid)!
  for (const tag of tags) {
    // Tags that begin with the text were found before.
    if (!spellings.some((one) => tag.name.startsWith(one))) {
      const position: Position = { organization: rootOf(repo.uid), before: repo.id + 1, repo: repo.id, last: tag.name }
      found.push({ result: toResult(tag, rankOf([tag.name], foldText(text))!, path), at: JSON.stringify(position) })
    }
    if (found.length === most) return tag.name
  }
  return tags.length >= limit ? tags.at(-1)!.name : upTo
}

/** Tags of the repositories of a name, for a text such as `app:1.0`. */
export async function reposOfTags(
  reader: Reader,
  scopes: readonly string[],
  group: string,
  name: string,
): Promise<string[]> {
  const found: string[] = []
  for (const scope of scopes) {
    const rows = await listReposNamed(reader, scope, name, mostNamed - found.length)
    found.push(...rows.map(({ uid }) => uid).filter((uid) => group === '' || parentOf(uid) === group))
    if (found.length >= mostNamed) break
  }
  return found
}

const mostNamed = 20
