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

/** Whether the tag is there or ever was. */
export async function isInHistory(reader: Reader, repo: TagRepo, tag: string): Promise<boolean> {
  return (await store.lastTime(reader, repo.id, tag)) !== ''
}

/** What the tag pointed to in a window, as the members of a JSON list, oldest first; empty for nothing. */
export async function historyText(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  window: store.Window,
  limit: number,
): Promise<string> {
  return store.historyText(reader, repo.id, tag, window, limit)
}

/** The rows of a tag in a window, deletions too, newest first. */
export async function listHistory(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  window: store.Window,
  limit: number,
): Promise<store.DescribedRecord[]> {
  return store.listHistory(reader, repo.id, tag, window, limit)
}
