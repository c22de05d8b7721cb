// Mounting: the blob is already in another repository, so the client need not push it (distribution specification, "Mounting a
// blob from another repository").
import { findBlob, findWhole, mountBlob, reposWithBlob } from '#domains/registry/blobs/blobs.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { allow, type Target } from './access.ts'
import { challenge } from './challenge.ts'
import { OciError } from './errors.ts'
import { originOf } from './respond.ts'
import { checkDigest, requireClean } from './views/checks.ts'
import { nameOrNone } from './views/names.ts'
import { pathOf, type Visit } from './visit.ts'

/** Most repositories that are tried for a client that names none. */
const maxTried = 20

/**
 * Mounts a blob. Returns false if the client has to upload it. Throws a challenge if the caller is allowed to read the blob at
 * `from`, but the token does not cover that repository. Without `from` there is no challenge: the client cannot have requested
 * such a token, and many clients follow one challenge only.
 */
export async function mount(visit: Visit, target: Target, digest: string, from: string | null): Promise<boolean> {
  const places = from ? await findNamedPlace(visit, from) : await findPlaces(visit, digest)
  for (const place of places) {
    const source = await findSource(place, digest)
    if (source === 'needs a token') {
      if (from) throw challenge(visit, 'push', 'insufficient_scope', [`repository:${from}:pull`])
    } else if (source && (await findWhole(visit.call, source, digest))) {
      if (await mountBlob(visit.call, { target, from: source.id, digest }, originOf(visit))) return true
    }
  }
  return false
}

async function findNamedPlace(visit: Visit, from: string): Promise<Visit[]> {
  const named = await nameOrNone(visit.registry, visit.prefix, from)
  return named ? [{ ...visit, ...named }] : []
}

async function findPlaces(visit: Visit, digest: string): Promise<Visit[]> {
  const places: Visit[] = []
  for (const uid of (await reposWithBlob(visit.call, digest)).slice(0, maxTried)) {
    const { repo } = await visit.registry.app.paths.find(uid)
    if (repo) places.push({ ...visit, name: repo.path, view: undefined, subdomain: '' })
  }
  return places
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
    // The caller is allowed to read there, so the existence of the blob is no secret. If it is missing, another token does not
    // help.
    const { repo } = await visit.registry.app.paths.find(pathOf(visit))
    return repo && (await findBlob(visit.call, repo, digest)) ? 'needs a token' : undefined
  }
}
