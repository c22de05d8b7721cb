import type { Fields } from '#lib/fields.ts'
import type { EntryKind } from '#lib/tlog/tag-entry.ts'
import type { Source } from './tags.model.ts'

export const tagHistoryType = 'registry.pinfold.dev/TagHistory'

/** `created`: the first assignment of a tag. `moved`: an assignment of another digest. `deleted`: the deletion. */
export type TagEvent = 'created' | 'moved' | 'deleted'

/** One row of the tag history. The row of a deletion has the last digest of the tag. */
export type HistoryRecord = {
  tag: string
  time: string
  event: TagEvent
  digest: string
  /** Empty if the tag had no digest before. */
  previousDigest: string
  actor: string
  source: Source
}

// The numbers are stored and never change their meaning.
export const eventNumbers = { created: 1, moved: 2, deleted: 3 } as const satisfies Record<TagEvent, number>
export const sourceNumbers = { oci: 1, api: 2, import: 3, sync: 4, upstream: 5 } as const satisfies Record<
  Source,
  number
>
/** Numbers for the origin of an entry of the transparency log. */
export const kindNumbers = { live: 1, import: 2, backfill: 3 } as const satisfies Record<EntryKind, number>

/** Returns `now`, or `last` plus one millisecond if `now` is not later. Times of a tag always increase. */
export function timeAfter(now: string, last: string): string {
  return now > last ? now : new Date(Date.parse(last) + 1).toISOString()
}

/** Sort fields of lists of records. */
export const historyFields = {
  time: { column: 'time', sort: true },
  tag: { column: 'tag', sort: true },
} as const satisfies Fields<HistoryRecord>

/** Most records that are counted for a list. A longer list has no total. */
export const mostCounted = 100_000
