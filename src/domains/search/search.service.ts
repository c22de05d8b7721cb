// Searches names of all kinds. The best matches come first, in order of kind. Each kind and rank is one source after the other.
import type { Call } from '#app.ts'
import { type Listed, listedUpTo, type Page } from '#lib/lists/paging.ts'
import { type Rank, ranks } from '#lib/lists/search-text.ts'
import { groupInText, type Need, narrowed, type Scopes, searchScopes } from './access.service.ts'
import { findDigests, findPackages, findVulnerabilities } from './images-found.service.ts'
import { createNumbers, findNames, findScopeRepos, indexed } from './names-found.service.ts'
import { type Chunk, nothing } from './ranges.service.ts'
import {
  type Bucket,
  bucketsFrom,
  type Kind,
  kinds,
  type Position,
  type Result,
  readQuery,
  type SearchQuery,
  searchMs,
  start,
  type Wanted,
} from './search.model.ts'
import { findTagsByPart, findTagsByStart, reposOfTags } from './tags-found.service.ts'

/** Results of one kind. */
type Source = { kind: Kind; read(rank: Rank, after: string, most: number): Promise<Chunk> }

/** A page of results. `isIncomplete` is true if suggestions may be missing because of the time limit. */
export type Results = Listed<Result, number | undefined> & { isIncomplete: boolean }

export async function search(call: Call, page: Page, query: SearchQuery): Promise<Results> {
  const wanted = readQuery(query, page.after !== undefined || page.skip > 0)
  const scopes = await searchScopes(call, query.scope)
  const until = performance.now() + searchMs
  const all = await sourcesOf(call, wanted, scopes, until)
  const asked = query.kinds.length === 0 ? all : all.filter(({ kind }) => query.kinds.includes(kind))
  return query.perKind > 0 ? suggest(call, asked, query.perKind, until) : searchPage(call, page, asked, until)
}

/** At most `most` results of each kind. */
async function suggest(call: Call, sources: readonly Source[], most: number, until: number): Promise<Results> {
  const found: { rank: number; source: number; result: Result }[] = []
  const left = new Map(sources.map(({ kind }) => [kind, most]))
  let isIncomplete = false
  for (const [source, { kind, read }] of sources.entries()) {
    for (const [rank, name] of ranks.entries()) {
      for (let after: string | undefined = ''; after !== undefined && left.get(kind)! > 0; ) {
        call.signal.throwIfAborted()
        if (performance.now() > until) isIncomplete = true
        if (isIncomplete) break
        const chunk: Chunk = await read(name, after, left.get(kind)!)
        found.push(...chunk.found.map(({ result }) => ({ rank, source, result })))
        left.set(kind, left.get(kind)! - chunk.found.length)
        after = chunk.next
      }
    }
  }
  const items = found.sort((a, b) => a.rank - b.rank || a.source - b.source).map(({ result }) => result)
  return { items, total: undefined, next: '', isIncomplete }
}

async function searchPage(call: Call, page: Page, sources: readonly Source[], until: number): Promise<Results> {
  const items: Result[] = []
  let toSkip = page.skip
  const begin = page.after ? (JSON.parse(page.after.value) as Position) : start
  const seen = () => begin.seen + page.skip - toSkip + items.length
  const pageUpTo = (bucket: Bucket): Results => {
    const last = JSON.stringify({ ...bucket, seen: seen() } satisfies Position)
    return { ...listedUpTo(call, page, { items, total: undefined, last, toSkip }), isIncomplete: false }
  }
  for (const bucket of bucketsFrom(begin, sources.length)) {
    for (let after: string | undefined = bucket.after; after !== undefined; ) {
      call.signal.throwIfAborted()
      if (performance.now() > until) return pageUpTo({ ...bucket, after })
      const wanted = toSkip + page.size - items.length + 1
      const chunk: Chunk = await sources[bucket.source]!.read(ranks[bucket.rank]!, after, Math.min(wanted, mostAtOnce))
      for (const { result, at } of chunk.found) {
        if (toSkip > 0) toSkip--
        else if (items.length === page.size) return pageUpTo({ ...bucket, after })
        else items.push(result)
        after = at
      }
      after = chunk.next
    }
  }
  return { ...listedUpTo(call, page, { items, total: seen(), last: undefined }), isIncomplete: false }
}

/** Most results that one read of a source returns. */
const mostAtOnce = 400

/** Sources in the order of results that match equally well. */
async function sourcesOf(call: Call, wanted: Wanted, scopes: Scopes, until: number): Promise<Source[]> {
  const { db } = call.app
  const numbersIn = createNumbers(db)
  const { text, leaf, digests, given } = wanted
  const group = await groupInText(call, wanted)
  const inGroup = (need: Need) =>
    group === undefined ? [] : group === '' ? scopes[need] : narrowed(scopes[need], group)
  const named = (kind: Kind, of: keyof typeof indexed, need: Need): Source => {
    const [within, part] = need === 'groups' || need === 'repos' ? [inGroup(need), leaf] : [scopes[need], text]
    return {
      kind,
      read: (rank, after, most) =>
        findNames(db, numbersIn, indexed[of], { scopes: within, text: part, rank, after, most }, group),
    }
  }
  const spelled = given.slice(given.lastIndexOf('/') + 1)
  const sources: Source[] = [
    named('organization', 'organizations', 'groups'),
    named('folder', 'folders', 'groups'),
    {
      kind: 'repository',
      read: (rank, after, most) => findScopeRepos(db, { scopes: inGroup('repos'), text: leaf, rank, after, most }),
    },
    named('repository', 'repos', 'repos'),
    await tagSource(call, { ...wanted, given: spelled }, inGroup('tags'), { group, until }),
    {
      kind: 'digest',
      read: async (rank, after, most) =>
        digests.length === 0 ? nothing : findDigests(db, digests, { scopes: scopes.tags, rank, after, most }),
    },
    {
      kind: 'package',
      read: (rank, after, most) => findPackages(db, numbersIn, { scopes: scopes.packages, text, rank, after, most }),
    },
    {
      kind: 'vulnerability',
      read: (rank, after, most) => {
        const year = new Date(call.now).getUTCFullYear()
        return findVulnerabilities(db, { scopes: scopes.vulnerabilities, text, rank, after, most }, year)
      },
    },
    named('member', 'persons', 'persons'),
    named('member', 'identities', 'identities'),
  ]
  return sources.sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
}

/** Tags by the whole text, or by the text after the colon in the repositories before it. */
async function tagSource(
  { app: { db } }: Call,
  { given, tagged }: Wanted,
  scopes: readonly string[],
  { group, until }: { group: string | undefined; until: number },
): Promise<Source> {
  const repos = tagged && group !== undefined ? await reposOfTags(db, scopes, group, tagged.repo) : undefined
  const [within, text] = tagged ? [repos ?? [], tagged.tag] : [scopes, given]
  return {
    kind: 'tag',
    read(rank, after, most) {
      const search = { scopes: within, text, rank, after, most, until }
      return rank === 'part' ? findTagsByPart(db, search) : findTagsByStart(db, search)
    },
  }
}
