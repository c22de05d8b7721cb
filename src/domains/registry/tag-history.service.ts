import type { Reader } from '#db/sql.ts'
import * as store from './tag-history.store.ts'
import type { TagRepo } from './tags.model.ts'

export type TagMove = store.TagMove

/** Where a tag came to point between two times, both included, the oldest first; `most` of them. */
export async function movesBetween(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  range: { from: string; to: string; most: number },
): Promise<TagMove[]> {
  return store.movesBetween(reader, repo.id, tag, range)
}

/** Where a tag came to point before a time, the newest first; `most` of them. */
export async function movesBefore(
  reader: Reader,
  repo: TagRepo,
  tag: string,
  range: { before: string; most: number },
): Promise<TagMove[]> {
  return store.movesBefore(reader, repo.id, tag, range)
}

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
