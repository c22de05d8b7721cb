// Tag history at two endpoints: our own (behavior 9.6), and the draft of pull request 606 of the distribution specification,
// which includes deletions.
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

/** Serves `/v2/<name>/_svc/history/<tag>`: oldest first, at most 1000 records of the time window. */
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

/** In a view the history ends at the time of the view, minus its age. */
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
 * Serves `/v2/<name>/_oci/tag-history/<tag>`: an index, newest first, with the time and kind of each change in its descriptors.
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
    // Only the digest is known of an image whose history was imported without its content.
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

/** The draft allows 404 only if the endpoint is missing, so a missing repository has an empty history. */
function ignoreUnknownRepo(error: unknown): RepoRef | undefined {
  if (error instanceof OciError && error.code === 'NAME_UNKNOWN') return undefined
  throw error
}

/** Responses that are public can be cached and revalidated. Others are not stored in caches. */
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
