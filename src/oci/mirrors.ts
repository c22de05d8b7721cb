// Pull-through mirrors. A pull by tag checks the upstream first, and missing content is fetched.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { bringsContent } from '#domains/mirrors/follows/follows.model.ts'
import { type Missing, makeFollowed as makeRepo } from '#domains/mirrors/follows/on-demand-repos.service.ts'
import * as service from '#domains/mirrors/follows/pull-through.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { AppError } from '#lib/errors.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { OciError } from './errors.ts'
import { originOf } from './respond.ts'
import { idleLimit, type Visit } from './visit.ts'

/** True if the repository is a mirror that fetches missing content when it is pulled. */
export function isOnDemand({ follow }: RepoRef): boolean {
  return follow !== undefined && bringsContent(follow)
}

const pullingOf = (visit: Visit, repo: RepoRef): service.Pulling => ({
  app: visit.registry.app,
  repo,
  origin: originOf(visit),
})

/**
 * Checks the upstream for the current digest of a tag. Returns a warning header if the tag here may be older than at the
 * upstream.
 */
export async function refreshTag(visit: Visit, repo: RepoRef, tag: string): Promise<Record<string, string>> {
  const warning = await withOciErrors(service.refreshTag(pullingOf(visit, repo), tag))
  return warning === undefined ? {} : { warning: `299 - "${warning.replaceAll(/["\\]/g, '')}"` }
}

export function bringManifest(visit: Visit, repo: RepoRef, digest: string): Promise<boolean> {
  return withOciErrors(service.pullManifestThrough(pullingOf(visit, repo), digest))
}

/** Creates the missing repository as a mirror if an upstream has the image. Returns false if none has it. */
export function makeFollowed(visit: Visit, missing: Missing): Promise<boolean> {
  return withOciErrors(makeRepo(visit.registry.app, missing))
}

export function sizeAtUpstream(visit: Visit, repo: RepoRef, digest: string): Promise<number | undefined> {
  return withOciErrors(service.sizeOfBlob(pullingOf(visit, repo), digest))
}

/**
 * Longest wait for a slow client, in milliseconds: in one write, and in all writes of a blob. After that, the fetch continues
 * without this client, since other clients may wait for the blob too.
 */
const stalledMs = 1_000
const behindMs = 10_000

/**
 * Fetches a blob and stores it. With `headers`, also streams it to the client and returns `sent`. For a client that is too slow,
 * returns the number of bytes `written`. The caller sends the rest from the blob store.
 */
export async function bringBlob(
  visit: Visit,
  repo: RepoRef,
  digest: string,
  headers: Record<string, string> | undefined,
): Promise<'sent' | 'stored' | 'unknown' | { written: number }> {
  const { res } = visit
  let [size, written, patienceMs] = [0, 0, behindMs]
  const send = async (chunk: Uint8Array): Promise<boolean> => {
    // If the client disconnects, the blob is still fetched and stored.
    if (res.destroyed) return false
    if (!res.headersSent) {
      idleLimit(visit)
      res.writeHead(200, { ...headers, 'content-type': 'application/octet-stream', 'content-length': size })
    }
    written += chunk.length
    if (res.write(chunk)) return true
    const began = performance.now()
    const keepsUp = await waitForDrain(res, Math.min(stalledMs, patienceMs))
    patienceMs -= performance.now() - began
    // From here on the client waits until the blob is stored, so the idle timeout is off.
    if (!keepsUp) visit.req.setTimeout(0)
    return keepsUp
  }
  const begin = (announced: number): void => {
    size = announced
  }
  const tee = headers && { begin, write: send }
  try {
    const result = await withOciErrors(service.pullBlobThrough(pullingOf(visit, repo), digest, tee))
    // Without headers sent, the client has received nothing: the blob is empty, or was not streamed.
    if (!res.headersSent) return result === 'sent' ? 'stored' : result
    if (result !== 'sent') return { written }
    res.end()
    return result
  } catch (error) {
    // The client has received a part of the blob. The closed connection shows the client that the blob is incomplete.
    if (res.headersSent) res.destroy()
    throw error
  }
}

/** Waits until the client accepts more data. Returns false if the client disconnects or the time is over. */
async function waitForDrain(res: Visit['res'], ms: number): Promise<boolean> {
  const over = new AbortController()
  const { signal } = over
  const room = once(res, 'drain', { signal }).then(() => true)
  const none = Promise.race([once(res, 'close', { signal }), sleep(Math.max(ms, 0), undefined, { signal })])
  try {
    return await Promise.race([room, none.then(() => false)])
  } catch {
    return false
  } finally {
    over.abort()
  }
}

const later = ['paced', 'paused', 'throttled', 'unavailable']

async function withOciErrors<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    // The exceeded quota belongs to the organization. Details of the quota are for clients that push, not for clients that pull.
    if (error instanceof AppError && error.reason === 'RESOURCE_LIMIT_EXCEEDED') {
      throw new OciError(
        'DENIED',
        'the image cannot be mirrored, because a quota of the organization is exceeded; ask one of its owners',
        { cause: error },
      )
    }
    if (!(error instanceof UpstreamError)) throw error
    const message = `the image cannot be fetched from the upstream of the mirror: ${error.message}`
    if (!later.includes(error.reason)) throw new OciError('UNAVAILABLE', message, { status: 502, cause: error })
    const seconds = Math.max(1, Math.ceil((error.waitMs ?? 5000) / 1000))
    throw new OciError('UNAVAILABLE', message, { headers: { 'retry-after': String(seconds) }, cause: error })
  }
}
