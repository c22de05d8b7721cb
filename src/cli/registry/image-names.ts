// Search of images by the names that users pull.

import type { RepoJson } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { chunks } from '#lib/chunks.ts'
import { isRepoPath, isTagName } from '#lib/oci-names.ts'
import { isUid, lineage, parentOf } from '#lib/uid.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { type CliError, failure, usageError } from '../framework/cli-error.ts'
import { NameNotFound } from '../framework/names.ts'
import type { Named } from '../framework/outputs.ts'
import { registryOf } from '../framework/session.ts'

export type Repo = Named & RepoJson
type ImageName = { path: string; tag: string | undefined }

/** Parts of an image name `[host/]acme/team/app[:tag]`. A uid may replace the path. */
export function imageNameOf(text: string, registry: string): ImageName {
  const plainPath = text.startsWith(`${registry}/`) ? text.slice(registry.length + 1) : text
  const [, path = '', tag] = /^(.*?)(?::([^/:]*))?$/s.exec(plainPath) ?? []
  const [, image = '', called = ''] = /^([^:]*):(.+)$/s.exec(plainPath) ?? []
  if (isRepoPath(image) && !isTagName(called)) {
    const rule = 'a tag has 1 to 128 letters, digits, _, . and -, and does not begin with . or -'
    throw usageError(`${called} is not a valid tag: ${rule}; for example ${image}:1.0`)
  }
  if (text.includes('@')) {
    throw usageError(
      `${text} contains a digest, but this command takes a repository or a tag, such as acme/app or acme/app:1.0`,
    )
  }
  const small = path.toLowerCase()
  if (path !== small && isRepoPath(small)) {
    throw usageError(`${text} is not a valid image name: names are lowercase; use ${small}`)
  }
  if (!isUid(path) && !isRepoPath(path)) {
    throw usageError(
      `${text} is not a valid image name: give ORG/NAME or ORG/FOLDER/NAME, such as acme/app or acme/app:1.0`,
    )
  }
  return { path, tag }
}

const idsPerRequest = 50

/** Names of the groups and of the repository itself, for each repository. A group that the caller cannot see has no name. */
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

/**
 * Paths of repositories by uid. A group that the caller cannot see is shown by its part of the uid, and such a path is valid too.
 */
export async function pathsOf(api: ApiReader, repos: readonly Repo[]): Promise<Map<string, string>> {
  const parts = await partsOf(api, repos)
  return new Map([...parts].map(([uid, names]) => [uid, names.map((name, i) => name ?? uid.split('/')[i]!).join('/')]))
}

/** Finds the uid of the repository with this path. Throws CliError unless the caller can see exactly one. */
export async function findImage(api: ApiReader, path: string): Promise<string> {
  const found = await findImageIfVisible(api, path)
  if (found !== undefined) return found
  throw new NameNotFound(
    `no image ${path} was found at ${registryOf(api.session)}: it does not exist, or you do not have access to it\npinfold images list lists the images that you can see`,
  )
}

/** Finds the uid of the repository with this path. Returns `undefined` if the caller can see none. */
export async function findImageIfVisible(api: ApiReader, path: string): Promise<string | undefined> {
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
  throw failure(
    `several images may be ${path}, because you cannot see the names of their organizations; give one of these uids instead:\n${uids}`,
  )
}

/** Repository and tag of an image name. Throws CliError unless the caller can see exactly one such repository. */
export async function imageNamed(api: ApiReader, name: unknown) {
  const { path, tag } = imageNameOf(String(name), registryOf(api.session))
  return { path, tag, repo: await findImage(api, path) }
}

/** Query for all tags, including tags that lists hide by default. */
export const everyTag = { include_referrers: 'true', include_dates: 'true', include_epochs: 'true' }

/** Finds a tag of a repository by its name. */
export async function findTag<T extends { digest?: string }>(
  api: ApiReader,
  repo: string,
  name: string,
): Promise<T | undefined> {
  const query = { 'uidp.children_of': repo, name, ...everyTag }
  return (await api.list<T>('/registry/v2/tags', 'tags', query, 1)).items[0]
}

export function noTag(path: string, tag: string): CliError {
  return failure(`${path} has no tag ${tag}\npinfold tags list ${path} lists its tags`)
}
