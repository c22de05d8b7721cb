// Repositories that follow an upstream on demand: a pull looks there first, and brings what is not here yet.
import { once } from 'node:events'
import { followModes } from '#domains/registry/follows/follows.model.ts'
import * as service from '#domains/registry/follows/pull-through.service.ts'
import type { RepoRef } from '#domains/registry/repos/repos.model.ts'
import { UpstreamError } from '#lib/registries/registry-client.ts'
import { OciError } from './errors.ts'
import { originOf } from './respond.ts'
import { idleLimit, type Visit } from './visit.ts'

/** Whether what is not here may be there. */
export function isOnDemand({ follow }: RepoRef): boolean {
  return follow === followModes.onDemand
}

const pullingOf = (visit: Visit, repo: RepoRef): service.Pulling => ({
  app: visit.registry.app,
  repo,
  origin: originOf(visit),
})

/** The headers of a tag that may be older than that of the upstream. */
export async function freshen(visit: Visit, repo: RepoRef, tag: string): Promise<Record<string, string>> {
  const warning = await asOci(service.freshenTag(pullingOf(visit, repo), tag))
  return warning === undefined ? {} : { warning: `299 - "${warning.replaceAll(/["\\]/g, '')}"` }
}

export function bringManifest(visit: Visit, repo: RepoRef, digest: string): Promise<boolean> {
  return asOci(service.bringManifest(pullingOf(visit, repo), digest))
}

export function sizeThere(visit: Visit, repo: RepoRef, digest: string): Promise<number | undefined> {
  return asOci(service.sizeOfBlob(pullingOf(visit, repo), digest))
}

/** Brings a blob, and answers with it as it comes where `answers`; `sent` when that was done. */
export async function bringBlob(
  visit: Visit,
  repo: RepoRef,
  digest: string,
  headers: Record<string, string> | undefined,
): Promise<'sent' | 'stored' | 'unknown'> {
  const { res } = visit
  let size = 0
  const send = async (chunk: Uint8Array): Promise<void> => {
    // What begins to come goes on to the store, also when the client has gone.
    if (res.destroyed) return
    if (!res.headersSent) {
      idleLimit(visit)
      res.writeHead(200, { ...headers, 'content-type': 'application/octet-stream', 'content-length': size })
    }
    if (!res.write(chunk)) await drained(res)
  }
  const begin = (announced: number): void => {
    size = announced
  }
  const tee = headers && { begin, write: send }
  try {
    const result = await asOci(service.bringBlob(pullingOf(visit, repo), digest, tee))
    // Without a byte nothing was written.
    if (result === 'sent' && !res.headersSent) return 'stored'
    if (result === 'sent') res.end()
    return result
  } catch (error) {
    // The client has a part of it, and must not take that for all.
    if (res.headersSent) res.destroy()
    throw error
  }
}

/** Until there is room for more, or nobody is left to read it. */
async function drained(res: Visit['res']): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(res, 'drain', { signal }), once(res, 'close', { signal })]).catch(() => {})
  over.abort()
}

const later = ['paced', 'paused', 'throttled', 'unavailable']

async function asOci<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const message = `the upstream of the repository cannot be asked: ${error.message}`
    if (!later.includes(error.reason)) throw new OciError('UNAVAILABLE', message, { status: 502, cause: error })
    const seconds = Math.max(1, Math.ceil((error.waitMs ?? 5000) / 1000))
    throw new OciError('UNAVAILABLE', message, { headers: { 'retry-after': String(seconds) }, cause: error })
  }
}
