// Lists that other registries answer with, read with care: what is not a name or a digest is left out.
import { isDigest } from '../digest.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { isTagName } from '../oci-names.ts'
import { searchOf } from './registry-histories.ts'
import { UpstreamError } from './upstream-error.ts'

export type TagsPage = { names: string[]; next: string | undefined }

export async function readTags({ status, headers, chunks }: StreamAnswer): Promise<TagsPage> {
  // A registry may know nothing of a repository without tags.
  if (status === 404) return { names: [], next: undefined }
  const text = Buffer.concat(await Array.fromAsync(chunks)).toString('utf8')
  let body: { tags?: unknown } | null
  try {
    body = JSON.parse(text) as { tags?: unknown } | null
  } catch {
    throw new UpstreamError('malformed')
  }
  const { tags = [] } = body ?? {}
  if (tags !== null && !Array.isArray(tags)) throw new UpstreamError('malformed')
  const names = (tags ?? []).filter((name): name is string => typeof name === 'string' && isTagName(name))
  return { names, next: nextOf(String(headers.link ?? '')) }
}

function nextOf(link: string): string | undefined {
  const search = searchOf(link)
  return search && `tags/list${search}`
}

/** What refers to a manifest; `undefined` for what is no list of that. */
export async function readReferrers({ status, chunks }: StreamAnswer): Promise<string[] | undefined> {
  if (status === 404) return undefined
  const text = Buffer.concat(await Array.fromAsync(chunks)).toString('utf8')
  let body: { manifests?: unknown } | null
  try {
    body = JSON.parse(text) as { manifests?: unknown } | null
  } catch {
    throw new UpstreamError('malformed')
  }
  if (!Array.isArray(body?.manifests)) return undefined
  const digests = (body.manifests as ({ digest?: unknown } | null)[]).map((one) => one?.digest)
  return digests.filter((digest): digest is string => typeof digest === 'string' && isDigest(digest))
}
