import { deleteBlob, getBlob } from './blobs.ts'
import { OciError } from './errors.ts'
import { tagHistory, tagHistoryDraft } from './history.ts'
import { listRepositories, listTagNames } from './lists.ts'
import { deleteManifest, getManifest, putManifest } from './manifests.ts'
import { getReferrers } from './referrers.ts'
import { answerWith, version } from './respond.ts'
import { deleteUpload, getUpload, patchUpload, postUpload, putUpload } from './uploads.ts'
import { getResolution } from './views/resolve.ts'
import type { Visit } from './visit.ts'

/** Route of a path below `/v2/`. `reference` is the last part: a tag, a digest, or the id of an upload. */
export type Route = {
  kind:
    | 'base'
    | 'catalog'
    | 'manifest'
    | 'blob'
    | 'uploads'
    | 'upload'
    | 'tags'
    | 'referrers'
    | 'history'
    | 'tag-history'
    | 'resolve'
  name: string
  reference: string
}

/**
 * Finds the route for a path of the distribution specification, "Endpoints", or of the tag history. The search starts at the end,
 * since a repository name may contain the same words. `_token` is an alternative to `_svc` in the path of the tag history. Throws
 * NAME_UNKNOWN if no route matches.
 */
export function routeOf(path: string, token: string | undefined): Route {
  const parts = path.slice('/v2/'.length).split('/')
  if (path === '/v2' || path === '/v2/') return { kind: 'base', name: '', reference: '' }
  if (path === '/v2/_catalog') return { kind: 'catalog', name: '', reference: '' }
  const last = parts.at(-1)!
  const before = parts.at(-2)
  const at = (kind: Route['kind'], dropped: number, reference: string): Route => {
    return { kind, name: parts.slice(0, -dropped).join('/'), reference: decode(reference) }
  }
  if (before === 'uploads' && parts.at(-3) === 'blobs')
    return last === '' ? at('uploads', 3, '') : at('upload', 3, last)
  if (last === 'uploads' && before === 'blobs') return at('uploads', 2, '')
  if (before === 'manifests') return at('manifest', 2, last)
  if (before === 'blobs') return at('blob', 2, last)
  if (before === 'referrers') return at('referrers', 2, last)
  if (before === 'tags' && last === 'list') return at('tags', 2, '')
  const isHistory = parts.at(-3) === '_svc' || (token !== undefined && parts.at(-3) === `_${token}`)
  if (before === 'history' && isHistory) return checkReference(at('history', 3, last))
  if (before === 'resolve' && parts.at(-3) === '_svc') return checkReference(at('resolve', 3, last))
  if (before === 'tag-history' && parts.at(-3) === '_oci') return checkReference(at('tag-history', 3, last))
  throw new OciError('NAME_UNKNOWN', 'the registry has no endpoint with this path')
}

/** Throws MANIFEST_UNKNOWN for control characters. Tags and digests cannot have any, and PostgreSQL does not accept them all. */
function checkReference(route: Route): Route {
  if (!/\p{Cc}/u.test(route.reference)) return route
  throw new OciError('MANIFEST_UNKNOWN', 'tags and digests cannot have control characters')
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new OciError('NAME_INVALID', 'the percent-encoding of the path is invalid')
  }
}

/** Handler of a route. Each handler checks permissions first, for example with `allow`, and then sends the response. */
export type Handler = (visit: Visit, reference: string) => Promise<void>

/** Handlers by kind of route and HTTP method. */
export const handlers: Record<Route['kind'], Record<string, Handler>> = {
  base: { GET: answerBase, HEAD: answerBase },
  catalog: { GET: listRepositories, HEAD: listRepositories },
  manifest: { GET: getManifest, HEAD: getManifest, PUT: putManifest, DELETE: deleteManifest },
  blob: { GET: getBlob, HEAD: getBlob, DELETE: deleteBlob },
  uploads: { POST: postUpload },
  upload: { GET: getUpload, HEAD: getUpload, PATCH: patchUpload, PUT: putUpload, DELETE: deleteUpload },
  tags: { GET: listTagNames, HEAD: listTagNames },
  referrers: { GET: getReferrers, HEAD: getReferrers },
  resolve: { GET: getResolution, HEAD: getResolution },
  history: { GET: tagHistory, HEAD: tagHistory },
  'tag-history': { GET: tagHistoryDraft, HEAD: tagHistoryDraft },
}

/** Answers GET /v2/. Status 200 tells clients that this is a registry and that their token is valid. */
async function answerBase(visit: Visit): Promise<void> {
  answerWith(visit, '{}', version)
}
