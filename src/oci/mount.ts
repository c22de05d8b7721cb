// Mounts a blob of another repository, so that the client need not push it (distribution specification, "Mounting a blob from
// another repository").
import { findBlob, findIntactBlob, mountBlob, reposWithBlob } from '#domains/registry/blobs/blobs.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { allow, type Target } from './access.ts'
import { challenge } from './challenge.ts'
import { OciError } from './errors.ts'
import { originOf } from './respond.ts'
import { checkDigest, requireClean } from './views/checks.ts'
import { nameOrNone } from './views/names.ts'
import { pathOf, type Visit } from './visit.ts'

/** Most repositories that are tried if the client does not name one. */
const maxTried = 20

/**
 * Mounts a blob. Returns false if the client has to upload it. Throws a challenge if the caller has access to the blob at `from`,
 * but the token lacks that repository. Without `from` there is no challenge: the client could not know which repository to
 * request, and many clients follow only one challenge.
 */
export async function mount(visit: Visit, target: Target, digest: string, from: string | null): Promise<boolean> {
  const candidates = from ? await findNamedSource(visit, from) : await findSources(visit, digest)
  for (const candidate of candidates) {
    const source = await findSource(candidate, digest)
    if (source === 'needs a token') {
      if (from) throw challenge(visit, 'push', 'insufficient_scope', [`repository:${from}:pull`])
    } else if (source && (await findIntactBlob(visit.call, source, digest))) {
      if (await mountBlob(visit.call, { target, from: source.id, digest }, originOf(visit))) return true
    }
  }
  return false
}

async function findNamedSource(visit: Visit, from: string): Promise<Visit[]> {
  const named = await nameOrNone(visit.registry, visit.prefix, from)
  return named ? [{ ...visit, ...named }] : []
}

async function findSources(visit: Visit, digest: string): Promise<Visit[]> {
  const candidates: Visit[] = []
  for (const uid of (await reposWithBlob(visit.call, digest)).slice(0, maxTried)) {
    const { repo } = await visit.registry.app.paths.find(uid)
    if (repo) candidates.push({ ...visit, name: repo.path, view: undefined, subdomain: '' })
  }
  return candidates
}

async function findSource(visit: Visit, digest: string): Promise<RepoRef | 'needs a token' | undefined> {
  try {
    const repo = await allow(visit, 'blob.read', { digest })
    await checkDigest(visit, repo, 'blob', digest)
    await requireClean(visit, repo, { type: 'blob', digest })
    return repo
  } catch (error) {
    if (!(error instanceof OciError)) throw error
    if (error.code !== 'UNAUTHORIZED') return undefined
    // The caller has access to this repository, so the answer may reveal whether the blob exists. A challenge is useful only if
    // it does.
    const { repo } = await visit.registry.app.paths.find(pathOf(visit))
    return repo && (await findBlob(visit.call, repo, digest)) ? 'needs a token' : undefined
  }
}
