// Finds the quarantine that blocks a pull: a quarantine of the digest itself, or of all manifests that contain it.
import type { Work } from '#app.ts'
import { linkedFrom } from '#domains/registry/manifests/manifests.store.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { type Mark, quarantineOf } from './retention.model.ts'

/** Most manifests that are checked for one digest. If all of these are in quarantine, the pull is refused. */
const mostAbove = 200

export type Wanted = { type: 'manifest' | 'blob'; digest: string }

/**
 * Quarantine that blocks a pull of the digest. An untagged digest is also blocked if all manifests that contain it are in
 * quarantine. Does not query the database if the repository has no quarantine.
 */
export async function quarantinedAs(
  { app }: Pick<Work, 'app'>,
  repo: Pick<RepoRef, 'id' | 'uid'>,
  { type, digest }: Wanted,
): Promise<Mark | undefined> {
  const contentRules = await app.contentRules.of(app.db, repo.uid)
  const here = contentRules.quarantined.filter(({ scopeUid }) => isAtOrBelow(repo.uid, scopeUid))
  if (here.length === 0) return undefined
  let looked = 0
  const known = new Map<string, Mark | undefined>()

  async function ofManifest(one: string): Promise<Mark | undefined> {
    if (known.has(one)) return known.get(one)
    const own = quarantineOf(contentRules, repo.uid, one)
    const mark = own ?? ((await isTagged(one)) ? undefined : await above(one, 1))
    known.set(one, mark)
    return mark
  }

  const isTagged = async (one: string): Promise<boolean> => (await namesWith(app.db, repo, one, 1)).length > 0

  /**
   * Quarantine of all manifests that need the digest. Returns undefined if there is no such manifest, or if one of them can be
   * pulled.
   */
  async function above(one: string, kind?: 1): Promise<Mark | undefined> {
    let mark: Mark | undefined
    for (const manifest of await linkedFrom(app.db, repo.id, { digest: one, kind, most: mostAbove })) {
      mark = ++looked > mostAbove ? here[0] : await ofManifest(manifest)
      if (!mark) return undefined
    }
    return mark
  }

  return type === 'blob' ? above(digest) : ofManifest(digest)
}
