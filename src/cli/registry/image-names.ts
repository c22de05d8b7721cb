// Images by the names that people pull them by, found through the lists of the API.

import { chunks } from '#lib/chunks.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { isUid, lineage, parentOf } from '#lib/uid.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import { NothingNamed } from '../framework/names.ts'
import { registryOf } from '../framework/session.ts'

export type Repo = { uid: string; name: string; description: string; updateTime: string }
type ImageName = { path: string; tag: string | undefined }

/** `[host/]acme/team/app[:tag]`, or a uid in place of the path. */
export function imageNameOf(text: string, registry: string): ImageName {
  const plainPath = text.startsWith(`${registry}/`) ? text.slice(registry.length + 1) : text
  const [, path = '', tag] = /^(.*?)(?::([^/:]*))?$/s.exec(plainPath) ?? []
  const [, image = '', called = ''] = /^([^:]*):(.+)$/s.exec(plainPath) ?? []
  if (isRepoPath(image) && !isTagName(called)) {
    const rule = 'a tag has 1 to 128 letters, digits, _, . and -, and begins with none of the last two'
    throw usageError(`${called} is no name of a tag: ${rule}, as in ${image}:1.0`)
  }
  if (text.includes('@')) {
    throw usageError(`${text} names a digest, where a repository is asked for, perhaps with :tag`)
  }
  const small = path.toLowerCase()
  if (path !== small && isRepoPath(small)) {
    throw usageError(`${text} is no image: names have small letters only, as in ${small}`)
  }
  if (!isUid(path) && !isRepoPath(path)) {
    throw usageError(`${text} is no image: name it as acme/app or acme/team/app, perhaps with :tag`)
  }
  return { path, tag }
}

const idsPerRequest = 50

/** The parts of the paths of repos; a group that the caller may not see has no name. */
async function partsOf(api: ApiReader, repos: readonly Repo[]): Promise<Map<string, (string | undefined)[]>> {
  const groups = [...new Set(repos.flatMap(({ uid }) => lineage(parentOf(uid))))]
  const names = new Map<string, string>()
  for (const some of chunks(groups, idsPerRequest)) {
    const found = await api.list<{ uid: string; name: string }>('/iam/v2/groups', 'groups', { 'uidp.ids': some })
    for (const { uid, name } of found.items) names.set(uid, name)
  }
  return new Map(
    repos.map(({ uid, name }) => {
      const above = lineage(parentOf(uid)).reverse()
      return [uid, [...above.map((group) => names.get(group)), name]]
    }),
  )
}

/** Paths of repositories by name. A part that the caller cannot see is shown by its part of the uid, which is valid too. */
export async function pathsOf(api: ApiReader, repos: readonly Repo[]): Promise<Map<string, string>> {
  const parts = await partsOf(api, repos)
  return new Map([...parts].map(([uid, names]) => [uid, names.map((name, i) => name ?? uid.split('/')[i]!).join('/')]))
}

/** The uid of the repo that a path names. Throws CliError when there is none, or not only one, that the caller may see. */
export async function findImage(api: ApiReader, path: string): Promise<string> {
  const found = await lookForImage(api, path)
  if (found !== undefined) return found
  throw new NothingNamed(`there is no image ${path} at ${registryOf(api.session)} that you can see`)
}

/** The same, but `undefined` when there is none. */
export async function lookForImage(api: ApiReader, path: string): Promise<string | undefined> {
  if (isUid(path)) return path
  const wanted = path.split('/')
  const { items } = await api.list<Repo>('/registry/v2/repos', 'repos', { name: wanted.at(-1)! })
  const parts = await partsOf(api, items)
  const fits = (uid: string) => {
    const names = parts.get(uid)!
    return names.length === wanted.length && names.every((name, i) => (name ?? wanted[i]) === wanted[i])
  }
  const [found, ...others] = items.filter(({ uid }) => fits(uid)).map(({ uid }) => uid)
  if (others.length === 0) return found
  const uids = [found, ...others].join('\n')
  throw failure(`${path} may be any of these, whose organisations you cannot see:\n${uids}`)
}

/** All tags, including those that lists hide. */
export const everyTag = { include_referrers: 'true', include_dates: 'true', include_epochs: 'true' }

/** The tag of this name. */
export async function findTag<T extends { digest?: string }>(
  api: ApiReader,
  repo: string,
  name: string,
): Promise<T | undefined> {
  const query = { 'uidp.children_of': repo, name, ...everyTag }
  return (await api.list<T>('/registry/v2/tags', 'tags', query, 1)).items[0]
}
