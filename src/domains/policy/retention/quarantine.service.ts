// What nobody is to pull: a digest in quarantine, and what nothing but it leads to.
import type { Work } from '#app.ts'
import { linkedFrom } from '#domains/registry/manifests/manifests.store.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { namesWith } from '#domains/registry/tags/tags.store.ts'
import { isAtOrBelow } from '#lib/uid.ts'
import { type Mark, quarantineOf } from './retention.model.ts'

/** So many manifests that lead to a digest are looked at in all; where none of them is found to be clean, it is not served. */
const mostAbove = 200

export type Wanted = { type: 'manifest' | 'blob'; digest: string }

/**
 * The quarantine that keeps the digest from being pulled in the repo: its own, or that of all that leads to it, where it
 * has no tag of its own. Asks the database nothing where nothing is in quarantine.
 */
export async function quarantinedAs(
  { app }: Pick<Work, 'app'>,
  repo: Pick<RepoRef, 'id' | 'uid'>,
  { type, digest }: Wanted,
): Promise<Mark | undefined> {
  const law = await app.laws.of(app.db, repo.uid)
  const here = law.quarantined.filter(({ scopeUid }) => isAtOrBelow(repo.uid, scopeUid))
  if (here.length === 0) return undefined
  let looked = 0
  const known = new Map<string, Mark | undefined>()

  async function ofManifest(one: string): Promise<Mark | undefined> {
    if (known.has(one)) return known.get(one)
    const own = quarantineOf(law, repo.uid, one)
    const mark = own ?? ((await isTagged(one)) ? undefined : await above(one, 1))
    known.set(one, mark)
    return mark
  }

  const isTagged = async (one: string): Promise<boolean> => (await namesWith(app.db, repo, one, 1)).length > 0

  /** Of what needs it: nothing where there is no such manifest, or where one of them may be pulled. */
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
