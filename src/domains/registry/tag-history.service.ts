import type { Reader } from '#db/sql.ts'
import * as store from './tag-history.store.ts'
import type { TagRepo } from './tags.model.ts'

/** Whether one of these tags ever pointed to the digest, no matter when and where they point now. */
export async function wasEverTagged(
  reader: Reader,
  repo: TagRepo,
  digest: string,
  tags: readonly string[],
): Promise<boolean> {
  return store.wasEverTagged(reader, repo.id, digest, tags)
}
