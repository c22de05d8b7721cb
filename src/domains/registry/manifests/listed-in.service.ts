// Which indexes list a manifest.
import type { Reader } from '#db/sql.ts'
import { linkedFrom } from './manifests.store.ts'

/** How many are looked at, the oldest first. */
const mostAbove = 64

export async function indexesWith(reader: Reader, repo: number, digest: string): Promise<string[]> {
  return linkedFrom(reader, repo, { digest, kind: 1, most: mostAbove })
}
