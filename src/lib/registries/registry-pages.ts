// Reader of tag and referrer lists of other registries. Skips entries that are not a tag name or a digest.
import { isDigest } from '../digest.ts'
import type { StreamAnswer } from '../net/outgoing-streams.ts'
import { isTagName } from '../oci-names.ts'
import { nextPage } from './links.ts'
import { UpstreamError } from './upstream-error.ts'

/** Page of tag names. `next` is `lost` if there is a next page whose link cannot be followed. */
export type TagsPage = { names: string[]; next: string | undefined }

/** Reads a page of tags. Undefined for status 404. Throws an UpstreamError if the response is not a list of tags. */
export async function readTags(answer: StreamAnswer): Promise<TagsPage | undefined> {
  if (answer.status === 404) return undefined
  const { tags = [] } = (await bodyOf(answer)) ?? {}
  if (tags !== null && !Array.isArray(tags)) throw new UpstreamError('malformed')
  const names = (tags ?? []).filter((name): name is string => typeof name === 'string' && isTagName(name))
  return { names, next: nextPage(String(answer.headers.link ?? ''), 'tags/list') }
}

export type ReferrersPage = { digests: string[]; next: string | undefined }

/** Reads a page of referrers of a manifest. `undefined` if the response is not a list of them. */
export async function readReferrers(answer: StreamAnswer, subject: string): Promise<ReferrersPage | undefined> {
  if (answer.status === 404) return undefined
  const { manifests } = (await bodyOf(answer)) ?? {}
  if (!Array.isArray(manifests)) return undefined
  const digests = (manifests as ({ digest?: unknown } | null)[]).map((one) => one?.digest)
  return {
    digests: digests.filter((digest): digest is string => typeof digest === 'string' && isDigest(digest)),
    next: nextPage(String(answer.headers.link ?? ''), `referrers/${subject}`),
  }
}

async function bodyOf({ chunks }: StreamAnswer): Promise<{ tags?: unknown; manifests?: unknown } | null> {
  const text = Buffer.concat(await Array.fromAsync(chunks)).toString('utf8')
  try {
    return JSON.parse(text) as { tags?: unknown; manifests?: unknown } | null
  } catch {
    throw new UpstreamError('malformed')
  }
}
