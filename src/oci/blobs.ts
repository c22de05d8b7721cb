// /v2/<name>/blobs/<digest> (distribution specification, "Pulling blobs", "Deleting Blobs").

import type { IncomingMessage } from 'node:http'
import type { Content, Range } from '#blobs/blobs.ts'
import type { Blob } from '#domains/registry/blobs/blobs.model.ts'
import * as service from '#domains/registry/blobs/blobs.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { isAtOrBelow } from '#lib/net/hosts.ts'
import { allow } from './access.ts'
import { OciError } from './errors.ts'
import { bringBlob, isOnDemand, sizeAtUpstream } from './mirrors.ts'
import { observePull } from './observe.ts'
import { answer, type Headers, isUnchanged, originOf, requireDigest } from './respond.ts'
import { checkDigest, requireClean } from './views/checks.ts'
import { idleLimit, type Visit } from './visit.ts'

/** Serves GET and HEAD of a blob. */
export async function getBlob(visit: Visit, reference: string): Promise<void> {
  const digest = requireDigest(reference)
  await observePull(visit, { type: 'blob', digest }, async () => {
    const repo = await allow(visit, 'blob.read', { digest })
    const isHead = visit.req.method === 'HEAD'
    // After a successful HEAD, clients do not push the blob, so garbage collection must keep it for a while.
    const look = isHead ? service.protectBlob : service.findBlob
    const etag = `"${digest}"`
    const headers = { 'docker-content-digest': digest, etag, 'accept-ranges': 'bytes' }
    const here = await look(visit.call, repo, digest)
    if (here || isOnDemand(repo)) await checkDigest(visit, repo, 'blob', digest)
    // HEAD works for quarantined blobs too. Clients send it before a push, and images that are not quarantined may have the same
    // blob.
    if (!isHead) await requireClean(visit, repo, { type: 'blob', digest })
    if (!here && (await answerFromUpstream(visit, repo, digest, headers))) return { repo, digest }
    const blob = here ?? (await look(visit.call, repo, digest))
    if (!blob) throw createUnknownBlob(digest)
    if (isUnchanged(visit, etag)) {
      visit.res.writeHead(304, headers)
      visit.res.end()
      return { repo, digest }
    }
    const address = isHead ? undefined : await findRedirect(visit, blob)
    if (address) {
      visit.res.writeHead(307, { ...headers, location: address, 'cache-control': 'no-store', 'content-length': 0 })
      visit.res.end()
      return { repo, digest }
    }
    const range = readRange(visit.req, blob.size, etag)
    const reading = { range, client: visit.call.signal }
    const content = isHead || blob.size === 0 ? undefined : await service.openBlob(visit.call, repo, blob, reading)
    if (!isHead && blob.size > 0 && !content) throw createUnknownBlob(digest)
    writeHead(visit, blob, range, { ...headers, 'content-type': 'application/octet-stream' })
    if (content) return { repo, digest, send: () => send(visit, content) }
    visit.res.end()
    return { repo, digest }
  })
}

/**
 * Answers from the upstream of a mirror. Returns true if the response was sent. Returns false if the blob is now stored here, or
 * if the upstream does not have it.
 */
async function answerFromUpstream(
  visit: Visit,
  repo: RepoRef,
  digest: string,
  headers: Record<string, string>,
): Promise<boolean> {
  if (!isOnDemand(repo)) return false
  if (visit.req.method === 'HEAD') {
    const size = await sizeAtUpstream(visit, repo, digest)
    if (size === undefined) return false
    visit.res.writeHead(200, { ...headers, 'content-type': 'application/octet-stream', 'content-length': size })
    visit.res.end()
    return true
  }
  // For a range request, the whole blob is fetched and stored first.
  const whole = visit.req.headers.range === undefined ? headers : undefined
  const brought = await bringBlob(visit, repo, digest, whole)
  if (typeof brought === 'string') return brought === 'sent'
  await sendRest(visit, repo, digest, brought.written)
  return true
}

/**
 * Sends the rest of a blob to a client that has received the first `from` bytes. On failure, closes the connection, so that the
 * client notices that the blob is incomplete.
 */
async function sendRest(visit: Visit, repo: RepoRef, digest: string, from: number): Promise<void> {
  const blob = await service.findBlob(visit.call, repo, digest)
  const rest = blob && { range: { start: from, end: blob.size - 1 }, client: visit.call.signal }
  const content = blob && (await service.openBlob(visit.call, repo, blob, rest))
  if (content) await send(visit, content)
  else visit.res.destroy()
}

function writeHead({ res }: Visit, { size }: Blob, range: Range | undefined, headers: Headers): void {
  if (!range) {
    res.writeHead(200, { ...headers, 'content-length': size })
    return
  }
  const { start, end } = range
  res.writeHead(206, {
    ...headers,
    'content-length': end - start + 1,
    'content-range': `bytes ${start}-${end}/${size}`,
  })
}

async function send(visit: Visit, content: Content): Promise<void> {
  idleLimit(visit)
  try {
    await content.sendTo(visit.res)
  } catch (error) {
    // The client disconnected, which is no error.
    if (!visit.res.destroyed) throw error
  }
}

export async function deleteBlob(visit: Visit, reference: string): Promise<void> {
  const digest = requireDigest(reference)
  const repo = await allow(visit, 'blob.delete', { digest })
  const result = await service.deleteBlob(visit.call, repo, digest, originOf(visit))
  if (result === 'unknown') throw createUnknownBlob(digest)
  if (result.usedBy.length > 0) {
    throw new OciError(
      'DENIED',
      'the blob cannot be deleted, because manifests of the repository need it; delete them first',
      {
        status: 409,
        detail: { manifests: result.usedBy },
      },
    )
  }
  answer(visit, 202)
}

function createUnknownBlob(digest: string): OciError {
  return new OciError('BLOB_UNKNOWN', 'the repository does not have this blob; check its digest', {
    detail: { digest },
  })
}

/**
 * Range of a request (RFC 9110, 14.2), or undefined to send the whole blob. Several ranges, and ranges in other units than bytes,
 * are ignored. Throws 416 for a range outside of the blob.
 */
function readRange({ method, headers }: IncomingMessage, size: number, etag: string): Range | undefined {
  const { range } = headers
  if (range === undefined || method !== 'GET') return undefined
  const condition = headers['if-range']
  if (condition !== undefined && condition !== etag) return undefined
  const match = /^bytes=(\d*)-(\d*)$/.exec(range.trim())
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const [, first, last] = match
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (start > end || start >= size) {
    throw new OciError('SIZE_INVALID', `the range is outside of the blob, which has ${size} bytes`, {
      status: 416,
      headers: { 'content-range': `bytes */${size}` },
    })
  }
  return { start, end }
}

/** Blobs up to this size, in bytes, are not redirected, since an additional request would take longer. */
const smallBytes = 64 * 1024

/**
 * Signed URL in the bucket, if the client is to download the blob from there. Returns undefined if this server sends the blob.
 */
async function findRedirect({ registry, call, origin }: Visit, blob: Blob): Promise<string | undefined> {
  const { blobs, blobRedirects } = registry.app
  if (blob.size <= smallBytes || !blobs.addressOf || !blobRedirects.has(call.cause.source)) return undefined
  const address = await blobs.addressOf(blob)
  if (address === undefined) return undefined
  // Clients keep the Authorization header in a redirect to the same host or its subdomain. Buckets refuse requests with this
  // header.
  return isAtOrBelow(new URL(address).hostname, new URL(origin).hostname) ? undefined : address
}
