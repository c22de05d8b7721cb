// Mirrors with content on demand: a pull checks the upstream first, and fetches missing content.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { bringsContent } from '#domains/mirrors/follows/follows.model.ts'
import { type Missing, makeFollowed as makeRepo } from '#domains/mirrors/follows/made-repos.service.ts'
import * as service from '#domains/mirrors/follows/pull-through.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { AppError } from '#lib/errors.ts'
import { UpstreamError } from '#lib/registries/upstream-error.ts'
import { OciError } from './errors.ts'
import { originOf } from './respond.ts'
import { idleLimit, type Visit } from './visit.ts'

/** True if missing content may be at the upstream. */
export function isOnDemand({ follow }: RepoRef): boolean {
  return follow !== undefined && bringsContent(follow)
}

const pullingOf = (visit: Visit, repo: RepoRef): service.Pulling => ({
  app: visit.registry.app,
  repo,
  origin: originOf(visit),
})

/** Warning header for a tag that may be older than at the upstream. */
export async function freshen(visit: Visit, repo: RepoRef, tag: string): Promise<Record<string, string>> {
  const warning = await withOciErrors(service.freshenTag(pullingOf(visit, repo), tag))
  return warning === undefined ? {} : { warning: `299 - "${warning.replaceAll(/["\\]/g, '')}"` }
}

export function bringManifest(visit: Visit, repo: RepoRef, digest: string): Promise<boolean> {
  return withOciErrors(service.bringManifest(pullingOf(visit, repo), digest))
}

/** True if the repository was created because an upstream has the image. */
export function makeFollowed(visit: Visit, missing: Missing): Promise<boolean> {
  return withOciErrors(makeRepo(visit.registry.app, missing))
}

export function sizeThere(visit: Visit, repo: RepoRef, digest: string): Promise<number | undefined> {
  return withOciErrors(service.sizeOfBlob(pullingOf(visit, repo), digest))
}

/** Longest stall of a slow client before others stop waiting for it: for one write, and in total. */
const stalledMs = 1_000
const behindMs = 10_000

/**
 * Fetches a blob. With `headers`, streams it to the client and returns `sent`. A client that is too slow got the first `written`
 * bytes, and gets the rest from the blob store.
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
    // The rest is still stored after the client has disconnected.
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
    // The client now waits for the rest, which may take long to arrive.
    if (!keepsUp) visit.req.setTimeout(0)
    return keepsUp
  }
  const begin = (announced: number): void => {
    size = announced
  }
  const tee = headers && { begin, write: send }
  try {
    const result = await withOciErrors(service.bringBlob(pullingOf(visit, repo), digest, tee))
    // An empty blob writes nothing to the client.
    if (!res.headersSent) return result === 'sent' ? 'stored' : result
    if (result !== 'sent') return { written }
    res.end()
    return result
  } catch (error) {
    // The client has a part of the blob and must not take it for all.
    if (res.headersSent) res.destroy()
    throw error
  }
}

/** True if the client accepts more data within the time. False if it has disconnected. */
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
    // The quota of the organization is shown to clients that push, not to clients that pull.
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
