// Search of the console. The form of the typed text determines the requests.
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { findGroup, findRepo, namesOfGroup, namesOfRepo, parentOf } from '../../data/names.ts'
import type { Group, Identity, Repo, Tag, VulnerableImage, VulnerableImages } from '../../data/types.ts'
import { unscannedText } from '../../ui/scan-words.ts'
import { type FoundTag, withNames } from './start.tsx'

export type FoundImage = VulnerableImage & { names: readonly string[] }
export type FoundResource = {
  uid: string
  kind: 'group' | 'repo' | 'person'
  label: string
  href: string
  about: string
}
export type Found = {
  kind: 'digest' | 'vulnerability' | 'path' | 'word'
  tags: readonly FoundTag[]
  images: readonly FoundImage[]
  resources: readonly FoundResource[]
  /** Number of images that were not scanned completely. */
  unknown: number
  /** Summary of the content that was not compared with the vulnerability. Empty if all content was compared. */
  unscanned: string
  /** Address of the result, if only one result is possible. */
  target?: string
}

const nothing = { tags: [], images: [], resources: [], unknown: 0, unscanned: '' }
const most = 50
const digestOf = /^(?:(?<names>[^@\s]+)@)?(?<digest>sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}|[0-9a-f]{64})$/
const vulnerabilityOf = /^(?:CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3}|[A-Z]+-\d{4}-\d+)$/i

export const targetOf = ({ target }: Found): string | undefined => target

/** Finds `host/path@digest`, `path:tag`, a path, a digest, a vulnerability or a name. */
export async function find(typed: string, signal: AbortSignal): Promise<Found> {
  const bare = typed.trim().replace(/^https?:\/\//, '')
  const q = bare.startsWith(`${me.host}/`) ? bare.slice(me.host.length + 1) : bare
  const { names, digest } = digestOf.exec(q)?.groups ?? {}
  if (digest !== undefined) return findDigest(digest.includes(':') ? digest : `sha256:${digest}`, names, signal)
  if (vulnerabilityOf.test(q)) return findVulnerable(/^cve/i.test(q) ? q.toUpperCase() : q, signal)
  if (q.includes('/') || /^[^:]+:[^:]+$/.test(q)) {
    const target = await findPath(q)
    return target === undefined ? { ...nothing, kind: 'path' } : { ...nothing, kind: 'path', target }
  }
  return findWord(q, signal)
}

async function findDigest(digest: string, path: string | undefined, signal: AbortSignal): Promise<Found> {
  if (path !== undefined) return { ...nothing, kind: 'digest', target: paths.digest(namesIn(path), digest) }
  const { items } = await readPage<Tag>('/registry/v2/tags', 'tags', { size: most, query: { digest }, signal })
  const tags = await Promise.all(items.map((tag) => withNames(tag, signal)))
  const repos = new Set(tags.map(({ uid }) => parentOf(uid)))
  const target = repos.size === 1 && items.length < most ? paths.digest(tags[0]!.names, digest) : undefined
  return { ...nothing, kind: 'digest', tags, ...(target !== undefined && { target }) }
}

async function findVulnerable(vulnerability: string, signal: AbortSignal): Promise<Found> {
  type Answer = Pick<VulnerableImages, 'images' | 'unknownImages'> & Partial<Pick<VulnerableImages, 'coverage'>>
  const query = { vulnerability, pageSize: most }
  const answer = await ask<Answer>('GET', '/registry/v2/vulnerableImages', { query, signal })
  const images = await Promise.all(
    answer.images.map(async (image) => ({ ...image, names: await namesOfRepo(image.repoUid) })),
  )
  const unscanned = unscannedText(answer.coverage)
  return { ...nothing, kind: 'vulnerability', images, unknown: answer.unknownImages, unscanned }
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

async function findWord(name: string, signal: AbortSignal): Promise<Found> {
  const by = { size: most, query: { name }, signal }
  const [groups, repos, tags, people] = await Promise.all([
    readOrNone(readPage<Group>('/iam/v2/groups', 'groups', by)),
    readOrNone(readPage<Repo>('/registry/v2/repos', 'repos', by)),
    readOrNone(readPage<Tag>('/registry/v2/tags', 'tags', { ...by, size: 20 })),
    readOrNone(readPage<Identity>('/iam/v2/identities', 'identities', by)),
  ])
  const resources = await Promise.all([
    ...groups.map(async ({ uid, description }): Promise<FoundResource> => {
      const names = await namesOfGroup(uid)
      return { uid, kind: 'group', label: labelOf(names, name), href: paths.group(names), about: description }
    }),
    ...repos.map(async ({ uid, description }): Promise<FoundResource> => {
      const names = await namesOfRepo(uid)
      return { uid, kind: 'repo', label: labelOf(names, name), href: paths.repo(names), about: description }
    }),
    ...people.map(async ({ uid, name, description }): Promise<FoundResource> => {
      const home = parentOf(uid)
      const names = home === '' ? [] : await namesOfGroup(home)
      const href = `${names.length > 0 ? paths.group(names, 'members') : paths.organizations}?identity=${uid}`
      return { uid, kind: 'person', label: name, href, about: description }
    }),
  ])
  return { ...nothing, kind: 'word', resources, tags: await Promise.all(tags.map((tag) => withNames(tag, signal))) }
}

const labelOf = (names: readonly string[], name: string): string =>
  names.some((one) => one.startsWith('uid:')) ? name : names.join('/')

/** Returns an empty list if the user has no permission. */
async function readOrNone<T>(asked: Promise<{ items: T[] }>): Promise<T[]> {
  try {
    return (await asked).items
  } catch (error) {
    if (error instanceof Refusal && [400, 403].includes(error.status)) return []
    throw error
  }
}
