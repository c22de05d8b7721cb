// Reads manifests by tag and digest, and lists referrers.
import type { Call, Work } from '#app.ts'
import type { Reader } from '#db/sql.ts'
import type { RepoRef } from '../repo-ref.model.ts'
import type { Manifest, Referrer } from './manifests.model.ts'
import * as store from './manifests.store.ts'
import { linkedFrom } from './manifests.store.ts'

export type Pulled = { manifest: Manifest; since: string | undefined }

/** Manifest of the tag and the time of its assignment. Returns undefined if there is no such tag. */
export async function pullTag(work: Work, repo: RepoRef, tag: string): Promise<Pulled | undefined> {
  const found = await work.app.tags.of(repo, tag)
  return found && pullFound(work, repo, found)
}

/** Manifest of a digest that the repository was found to have. Returns undefined if the manifest was deleted meanwhile. */
export async function pullFound(
  work: Work,
  repo: RepoRef,
  { digest, since }: { digest: string; since: string },
): Promise<Pulled | undefined> {
  const cached = work.app.manifests.get(repo.id, digest, true)
  const manifest = cached ?? (await load(work, repo, digest))
  return manifest && { manifest, since }
}

export async function pullDigest(work: Work, repo: RepoRef, digest: string): Promise<Pulled | undefined> {
  const manifest = work.app.manifests.get(repo.id, digest, false) ?? (await load(work, repo, digest))
  return manifest && { manifest, since: undefined }
}

async function load({ app }: Work, repo: RepoRef, digest: string): Promise<Manifest | undefined> {
  const epoch = app.manifests.epoch()
  const manifest = await store.findManifest(app.db, repo.id, digest)
  if (manifest && epoch === app.manifests.epoch()) app.manifests.set(repo.id, manifest)
  return manifest
}

/** Most bytes of manifests on one page of referrers. Clients accept no response above the maximum size of a manifest. */
const maxPageBytes = 2 * 1024 * 1024
const maxPage = 500

export type ReferrerPage = { referrers: Referrer[]; more: boolean }

/** Manifests with this subject, by digest. */
export async function listReferrers(work: Work, repo: RepoRef, filter: store.ReferrerFilter): Promise<ReferrerPage> {
  const { db } = work.app
  const rows = await store.listReferrers(db, repo.id, filter, maxPage + 1)
  const page: string[] = []
  let bytes = 0
  for (const { digest, length } of rows) {
    bytes += length
    if (page.length > 0 && (page.length === maxPage || bytes > maxPageBytes)) break
    page.push(digest)
  }
  return { referrers: await store.readReferrers(db, repo.id, page), more: page.length < rows.length }
}

const reposAtOnce = 100

/**
 * Number of manifests in a repository, or in all repositories below a group. Counts page by page, and stops if the request is
 * canceled.
 */
export async function countManifests({ app, signal }: Call, scope: string): Promise<number> {
  let total = 0
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const repos = await store.reposAt(app.db, scope, after, reposAtOnce)
    if (repos.length > 0)
      total += await store.countManifests(
        app.db,
        repos.map(({ id }) => id),
      )
    if (repos.length < reposAtOnce) return total
    after = repos.at(-1)!.uid
  }
}

/** Most indexes that are examined, the oldest first. */
const mostAbove = 64

export async function indexesWith(reader: Reader, repo: number, digest: string): Promise<string[]> {
  return linkedFrom(reader, repo, { digest, kind: 1, most: mostAbove })
}
