// Stores the content of a scanner report as a blob in the repository of its image.
import type { Work } from '#app.ts'
import { keepBlob } from '#domains/registry/blobs/uploads.service.ts'
import { type RepoNamed, toRepoRef } from '#domains/registry/repos/paths.service.ts'
import { atRepo } from '#domains/registry/repos/repos.service.ts'
import { digestOf } from '#lib/digest.ts'
import { rootOf } from '#lib/uid.ts'

/**
 * Returns the digest of the content after storing it in the repository. Returns undefined if the repository was deleted. `url` is
 * the address at which clients reach this server.
 */
export async function storeScanReport(
  work: Work,
  row: RepoNamed,
  content: Buffer,
  url: string,
): Promise<string | undefined> {
  const { db, blobs } = work.app
  const repo = await toRepoRef(db, row)
  const digest = digestOf('sha256', content)
  const part = await blobs.begin(content.length, rootOf(row.uid))
  try {
    await part.write([content])
  } catch (error) {
    await part.discard()
    throw error
  }
  const origin = { host: new URL(url).host, subdomain: '', repository: repo.path }
  const kept = await keepBlob(work, atRepo(db, repo), { digest, size: content.length, part }, origin)
  return kept ? digest : undefined
}
