// Mounting: a push that finds the blob in another repository need not send it (distribution specification, "Mounting a
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

/** How many repositories are tried for a client that names none. */
const maxTried = 20

/**
 * `false` when the client has to upload the blob. Throws a challenge when the caller may read it where the client says it
 * is, but this token is not good for that place: with one that is, the mount succeeds. A client that does not say where
 * cannot have asked for such a token, and many follow one challenge only, so without `from` there is none.
 */
export async function mount(visit: Visit, target: Target, digest: string, from: string | null): Promise<boolean> {
  const places = from ? await placeNamed(visit, from) : await placesOf(visit, digest)
  for (const place of places) {
    const source = await sourceAt(place, digest)
    if (source === 'needs a token') {
      if (from) throw challenge(visit, 'push', 'insufficient_scope', [`repository:${from}:pull`])
    } else if (source && (await findWhole(visit.call, source, digest))) {
      if (await mountBlob(visit.call, { target, from: source.id, digest }, originOf(visit))) return true
    }
  }
  return false
}

async function placeNamed(visit: Visit, from: string): Promise<Visit[]> {
  const named = await nameOrNone(visit.registry, visit.prefix, from)
  return named ? [{ ...visit, ...named }] : []
}

async function placesOf(visit: Visit, digest: string): Promise<Visit[]> {
  const places: Visit[] = []
  for (const uid of (await reposWithBlob(visit.call, digest)).slice(0, maxTried)) {
    const { repo } = await visit.registry.app.paths.find(uid)
    if (repo) places.push({ ...visit, name: repo.path, view: undefined, subdomain: '' })
  }
  return places
}

async function sourceAt(visit: Visit, digest: string): Promise<RepoRef | 'needs a token' | undefined> {
  try {
    const repo = await allow(visit, 'blob.read', { digest })
    await checkDigest(visit, repo, 'blob', digest)
    await requireClean(visit, repo, { type: 'blob', digest })
    return repo
  } catch (error) {
    if (!(error instanceof OciError)) throw error
    if (error.code !== 'UNAUTHORIZED') return undefined
    // The caller may look there, so whether the blob is there is no secret; without it another token is of no use.
    const { repo } = await visit.registry.app.paths.find(pathOf(visit))
    return repo && (await findBlob(visit.call, repo, digest)) ? 'needs a token' : undefined
  }
}
