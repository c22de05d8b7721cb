// Finds images by the start of their digest, packages by name, and vulnerabilities by their id.

import type { Reader } from '#db/sql.ts'
import { imagesOfList } from '#domains/registry/images/image-lists.store.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { listsOf } from '#domains/scanning/images/images.store.ts'
import { ownSource } from '#domains/scanning/own-advisories/own-advisories.service.ts'
import { compareTexts } from '#lib/lists/paging.ts'
import { type Rank, rankOf } from '#lib/lists/search-text.ts'
import { rootOf, top } from '#lib/uid.ts'
import * as store from './names.store.ts'
import { pathsOf, type ScopeNumbers } from './names-found.service.ts'
import { readParts, searchKinds } from './parts.store.ts'
import {
  type Chunk,
  type IndexRow,
  isFirstPart,
  isIn,
  nothing,
  partRangeOf,
  type Range,
  readRange,
} from './ranges.service.ts'
import { type Result, spellingsOf } from './search.model.ts'

export type ImageSearch = { scopes: readonly string[]; text: string; rank: Rank; after: string; most: number }

/** Tags of an image that a result shows. */
const mostTags = 3
const wholeLengths: Readonly<Record<string, number>> = { sha256: 64, sha512: 128 }

/** Images whose digest is equal to one of the texts, or begins with it. */
export async function findDigests(
  reader: Reader,
  starts: readonly string[],
  { scopes, rank, after, most }: Omit<ImageSearch, 'text'>,
): Promise<Chunk> {
  if (scopes.length === 0) return nothing
  const isWhole = (one: string) => wholeLengths[one.slice(0, one.indexOf(':'))] === one.length - one.indexOf(':') - 1
  const chosen = starts.filter((one) => isWhole(one) === (rank === 'exact'))
  if (chosen.length === 0 || (rank !== 'exact' && rank !== 'prefix')) return nothing
  const range: Range<store.ManifestRow> = {
    async rows(from, limit) {
      const rows: store.ManifestRow[] = []
      for (const start of chosen) {
        const isPast = from !== undefined && from.key >= `${start}g`
        const cursor = from && from.key >= start ? from : undefined
        if (!isPast) rows.push(...(await store.manifestsFrom(reader, start, cursor, limit - rows.length)))
        if (rows.length >= limit) break
      }
      return rows
    },
    async load(rows) {
      const seen = rows.map(({ repo }) => (isIn(repo, scopes) ? repo : ''))
      const paths = await pathsOf(
        reader,
        seen.filter((uid) => uid !== ''),
      )
      return Promise.all(
        rows.map(async ({ key: digest, tie, mediaType, createTime }, i) => {
          const repo = seen[i]!
          if (repo === '') return undefined
          const tags = await namesWith(reader, { id: tie, uid: repo }, digest, mostTags)
          const detail = tags.length > 0 ? tags.sort().join(', ') : mediaType
          const path = `${paths.get(repo)}@${digest}`
          const result: Result = {
            ...{ kind: 'digest', match: rank, name: digest, path, uid: '', repoUid: repo, digest, detail },
            updateTime: createTime,
          }
          return result
        }),
      )
    },
  }
  return readRange(range, after, most)
}

/** Packages that an image in the scopes contains. */
export async function findPackages(
  reader: Reader,
  numbersIn: ScopeNumbers,
  { scopes, text, rank, after, most }: ImageSearch,
): Promise<Chunk> {
  if (scopes.length === 0) return nothing
  const organizations = [...new Set(scopes.filter((one) => one !== top).map(rootOf))]
  const numbers = await numbersIn(scopes.includes(top) ? [top] : organizations)
  const index = partRangeOf(text, rank)
  const range: Range<IndexRow & { tie: number }> = {
    async rows(from, limit) {
      const cursor = from && { part: from.key, id: Number(from.tie) }
      const few = numbers.slice(0, mostOrganizations)
      const rows = await readParts(reader, searchKinds.packages, few, index, { after: cursor, most: limit })
      return rows.map(({ part: key, id: tie }) => ({ key, tie }))
    },
    async load(rows) {
      const ids = [...new Set(rows.map(({ tie }) => tie))]
      const found = ids.length > 0 ? await store.packageNames(reader, ids) : []
      const names = new Map(found.map(({ id, name }) => [id, name]))
      const results: (Result | undefined)[] = []
      for (const { key, tie } of rows) {
        const name = names.get(tie)
        const isMatch = name !== undefined && rankOf([name], text) === rank && isFirstPart([name], index, key)
        results.push(isMatch ? await packageIn(reader, name, scopes, organizations, rank) : undefined)
      }
      return results
    },
  }
  return readRange(range, after, most)
}

const mostOrganizations = 100

const imagesAtOnce = 200

/** The package with one image in the scopes that contains it. Undefined if none was found among some images. */
async function packageIn(
  reader: Reader,
  name: string,
  scopes: readonly string[],
  organizations: readonly string[],
  match: Rank,
): Promise<Result | undefined> {
  const lists = await store.listsWithPackage(reader, organizations, name)
  const keys = new Map(
    (await listsOf(reader, [...new Set(lists.map(({ listNo }) => listNo))])).map((one) => [one.listNo, one.key]),
  )
  for (const { listNo, ecosystem, version } of lists) {
    const key = keys.get(listNo)
    const images = key ? await imagesOfList(reader, key, { repo: 0, digest: '' }, imagesAtOnce) : []
    const image = images.find(({ repoUid }) => isIn(repoUid, scopes))
    if (!image) continue
    const { repoUid, digest } = image
    const detail = [ecosystem, version].filter((one) => one !== '').join(' ')
    return { kind: 'package', match, name, path: '', uid: '', repoUid, digest, detail, updateTime: '' }
  }
  return undefined
}

/** First and last year of CVE numbers that a search for a number tries. */
const firstYear = 1999

/** Starts of the ids of vulnerabilities that match a text with this rank. */
export function vulnerabilityStarts(text: string, rank: Rank, year: number): string[] {
  if (rank === 'exact' || rank === 'prefix') return [...spellingsOf(text), ...ghsaOf(text)]
  if (rank !== 'word') return []
  if (/^\d{4}-\d*$/.test(text)) return [`CVE-${text}`]
  if (!/^\d{3,}$/.test(text)) return []
  const years = Array.from({ length: year + 2 - firstYear }, (_, i) => firstYear + i)
  return [`CVE-${text}-`, ...years.map((one) => `CVE-${one}-${text}`)]
}

/** Ids of GitHub are upper case in front and lower case after it. */
const ghsaOf = (text: string): string[] => (text.startsWith('ghsa-') ? [`GHSA-${text.slice(5)}`] : [])

/** Vulnerabilities of the data sources, and of the advisories of the organizations in the scopes. */
export async function findVulnerabilities(
  reader: Reader,
  { scopes, text, rank, after, most }: ImageSearch,
  year: number,
): Promise<Chunk> {
  const starts = vulnerabilityStarts(text, rank, year).sort(compareTexts)
  if (scopes.length === 0 || starts.length === 0) return nothing
  const organizations = [...new Set(scopes.filter((one) => one !== top).map(rootOf))].slice(0, mostOrganizations)
  const range: Range<IndexRow> = {
    async rows(from, limit) {
      const names = new Set<string>()
      for (const start of starts) {
        if (from && from.key >= `${start}\u{10ffff}`) continue
        const some = await store.vulnerabilityNames(reader, start, from?.key ?? '', limit - names.size)
        for (const name of some) names.add(name)
        if (names.size >= limit) break
      }
      return [...names].map((key) => ({ key, tie: '' }))
    },
    async load(rows) {
      const names = rows.map(({ key }) => key)
      const own = { own: ownSource, organizations, isAll: scopes.includes(top) }
      const records = names.length > 0 ? await store.summariesOf(reader, names, own) : []
      const found = Map.groupBy(records, ({ name }) => name)
      return names.map((name) => {
        const known = found.get(name)
        if (!known || rankOf([name], text) !== rank) return undefined
        const detail = known.find(({ summary }) => summary !== '')?.summary ?? ''
        const nowhere = { path: '', uid: '', repoUid: '', digest: '', updateTime: '' }
        return { kind: 'vulnerability', match: rank, name, detail, ...nowhere }
      })
    },
  }
  return readRange(range, after, most)
}
