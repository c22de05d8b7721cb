// Search of the page of results. A complete path, digest or vulnerability leads to its own page or list.
import type { SearchResponseJson } from '#gen/pinfold/control/search/v1/search_pb.ts'
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { findGroup, findRepo, namesOfRepo } from '../../data/names.ts'
import type { VulnerableImage, VulnerableImages } from '../../data/types.ts'
import { unscannedText } from '../../ui/scan-words.ts'
import { hrefOf, isKind, type Result } from './results.ts'

export type FoundImage = VulnerableImage & { names: readonly string[] }
export type Found =
  | { kind: 'target'; href: string }
  | { kind: 'vulnerability'; images: readonly FoundImage[]; unknown: number; unscanned: string }
  | { kind: 'names'; q: string; results: readonly Result[]; next: string }

const most = 50
const digestOf = /^(?:(?<names>[^@\s]+)@)?(?<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|[0-9a-f]{64})$/
const vulnerabilityOf = /^(?:CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3}|[A-Z]+-\d{4}-\d+)$/i

/** Finds `host/path@digest`, `path:tag`, a path, a digest or a vulnerability. Searches for all other texts as part of a name. */
export async function find(typed: string, kind: string, signal: AbortSignal): Promise<Found> {
  const q = bareOf(typed)
  if (kind !== '') return findNames(q, kind, '', signal)
  const { names, digest } = digestOf.exec(q)?.groups ?? {}
  if (digest !== undefined) return findDigest(digest.includes(':') ? digest : `sha256:${digest}`, names, signal)
  if (vulnerabilityOf.test(q)) return findVulnerable(/^cve/i.test(q) ? q.toUpperCase() : q, signal)
  const target = q.includes('/') || /^[^:]+:[^:]+$/.test(q) ? await findPath(q) : undefined
  return target === undefined ? findNames(q, '', '', signal) : { kind: 'target', href: target }
}

/** Text without the scheme and the host of this server. */
function bareOf(typed: string): string {
  const bare = typed.trim().replace(/^https?:\/\//, '')
  return (bare.startsWith(`${me.host}/`) ? bare.slice(me.host.length + 1) : bare).slice(0, 128)
}

/** One page of names that contain the text. */
export async function findNames(q: string, kind: string, after: string, signal?: AbortSignal): Promise<Found> {
  if (q === '') return { kind: 'names', q, results: [], next: '' }
  const query = { query: q, kinds: isKind(kind) ? kind : '', pageSize: most, pageToken: after }
  const read = { query, ...(signal && { signal }) }
  const { results = [], nextPageToken = '' } = await ask<SearchResponseJson>('GET', '/registry/v2/search', read)
  return { kind: 'names', q, results: results as Result[], next: nextPageToken }
}

async function findDigest(digest: string, path: string | undefined, signal: AbortSignal): Promise<Found> {
  if (path !== undefined) return { kind: 'target', href: paths.digest(namesIn(path), digest) }
  const found = await findNames(digest, 'digest', '', signal)
  const only = found.kind === 'names' && found.results.length === 1 ? found.results[0] : undefined
  return only ? { kind: 'target', href: hrefOf(only) } : found
}

async function findVulnerable(vulnerability: string, signal: AbortSignal): Promise<Found> {
  type Answer = Pick<VulnerableImages, 'images' | 'unknownImages'> & Partial<Pick<VulnerableImages, 'coverage'>>
  const query = { vulnerability, pageSize: most }
  const answer = await ask<Answer>('GET', '/registry/v2/vulnerableImages', { query, signal })
  const images = await Promise.all(
    answer.images.map(async (image) => ({ ...image, names: await namesOfRepo(image.repoUid) })),
  )
  const unscanned = unscannedText(answer.coverage)
  return { kind: 'vulnerability', images, unknown: answer.unknownImages, unscanned }
}

const namesIn = (path: string): string[] => path.split('/').filter((one) => one !== '')

/** Address of the repository, tag or group with this path. */
async function findPath(q: string): Promise<string | undefined> {
  const [, path = '', tag] = /^(.*?)(?::([^/:]+))?$/.exec(q)!
  const names = namesIn(path)
  if (names.length === 0) return undefined
  const isThere = (asked: Promise<unknown>) =>
    asked.then(
      () => true,
      (error: unknown) => {
        if (error instanceof Refusal && [400, 403, 404].includes(error.status)) return false
        throw error
      },
    )
  if (names.length > 1 && (await isThere(findRepo(names)))) return tag ? paths.tag(names, tag) : paths.repo(names)
  return tag === undefined && (await isThere(findGroup(names))) ? paths.group(names) : undefined
}
