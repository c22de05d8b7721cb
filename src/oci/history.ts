// Tag history. One endpoint is our own (behavior 9.6). The other is the draft of pull request 606 of the distribution
// specification, which includes deletions.
import { hash } from 'node:crypto'
import { timePlus } from '#domains/policy/views/views.model.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { historyText, isInHistory, listHistory } from '#domains/registry/tags/tag-history.service.ts'
import { allow, isPublic } from './access.ts'
import { OciError } from './errors.ts'
import { digestOf, nextLink, numberOf, timeOf } from './parameters.ts'
import { questionOf } from './views/pulls.ts'
import type { Visit } from './visit.ts'

const maxRecords = 1000

/** Serves `/v2/<name>/_svc/history/<tag>`: at most 1000 records of the requested time window, the oldest first. */
export async function tagHistory(visit: Visit, tag: string): Promise<void> {
  const repo = await allow(visit, 'history.read', { tag })
  const { db } = visit.call.app
  const window = { from: timeOf(visit, 'start', 'up'), before: findEnd(visit, timeOf(visit, 'end', 'up')) }
  const records = await historyText(db, repo, tag, window, maxRecords)
  if (records === '' && !(await isInHistory(db, repo, tag))) {
    throw new OciError('MANIFEST_UNKNOWN', 'the repository has never had this tag; check its name', { detail: { tag } })
  }
  send(visit, 'application/json', `{"history":[${records}]}`)
}

/** End of the time window. In a view, it is not after the time of the view, minus the age of the view. */
function findEnd(visit: Visit, before: string | undefined): string | undefined {
  if (!visit.view) return before
  const { until, age } = questionOf(visit, visit.view)
  const cutoff = timePlus(until, 1 - (age?.ms ?? 0))
  return before === undefined || cutoff < before ? cutoff : before
}

const indexType = 'application/vnd.oci.image.index.v1+json'
const defaultEntries = 100
const annotation = 'org.opencontainers.distribution.tag'

/**
 * Serves `/v2/<name>/_oci/tag-history/<tag>`: an OCI image index, the newest change first. The annotations of each descriptor
 * have the time and the kind of a change.
 */
export async function tagHistoryDraft(visit: Visit, tag: string): Promise<void> {
  const { app } = visit.call
  if (!app.config.ociTagHistory606) {
    throw new OciError(
      'UNSUPPORTED',
      'this extension is off on this server; the operator can turn it on with PINFOLD_OCI_TAG_HISTORY_606',
      { status: 404 },
    )
  }
  const repo = await allow(visit, 'history.read', { tag }).catch(ignoreUnknownRepo)
  const size = Math.min(numberOf(visit, 'n') ?? defaultEntries, maxRecords)
  const window = {
    after: timeOf(visit, 'since', 'down'),
    before: findEnd(visit, timeOf(visit, 'before', 'up')),
    digest: digestOf(visit),
  }
  const found = repo && size > 0 ? await listHistory(app.db, repo, tag, window, size + 1) : []

  const entries = found.slice(0, size).map(({ mediaType, size: bytes, digest, time, event }) => ({
    // Imported tag history can name digests without content here. Then the media type is unknown.
    mediaType: mediaType || 'application/octet-stream',
    size: bytes,
    digest,
    annotations: {
      [`${annotation}.timestamp`]: time,
      [`${annotation}.event`]: event === 'deleted' ? 'deleted' : 'created',
    },
  }))
  const path = `/v2/${visit.written}/_oci/tag-history/${encodeURIComponent(tag)}`
  const more = found.length > size && size > 0
  const link = more ? nextLink(visit, path, { n: String(size), before: found[size - 1]!.time }) : undefined
  send(visit, indexType, JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: entries }), link)
}

/**
 * Ignores NAME_UNKNOWN, so that a missing repository has an empty history. In the draft, 404 means that the registry lacks the
 * endpoint.
 */
function ignoreUnknownRepo(error: unknown): RepoRef | undefined {
  if (error instanceof OciError && error.code === 'NAME_UNKNOWN') return undefined
  throw error
}

/**
 * Sends the response. Caches may store responses about public images and must revalidate them. Caches must not store other
 * responses.
 */
function send(visit: Visit, type: string, text: string, link?: string): void {
  const { req, res } = visit
  const etag = isPublic(visit) ? `"${hash('sha256', text, 'base64url')}"` : undefined
  const headers = {
    'content-type': type,
    ...(etag === undefined ? { 'cache-control': 'no-store' } : { 'cache-control': 'no-cache', etag }),
    ...(link === undefined ? {} : { link }),
  }
  const known = etag !== undefined && (req.headers['if-none-match'] ?? '').split(/, */).includes(etag)
  res.writeHead(known ? 304 : 200, known ? headers : { ...headers, 'content-length': Buffer.byteLength(text) })
  res.end(known || req.method === 'HEAD' ? undefined : text)
}
