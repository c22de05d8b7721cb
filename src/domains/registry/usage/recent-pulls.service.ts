// Recent pulls of a manifest, according to the written counts.
import type { Reader } from '#db/sql.ts'
import * as store from './digest-usage.store.ts'

/** True if the manifest was pulled from the day of `from` on, and before the day of `until`. */
export async function wasPulledBetween(
  reader: Reader,
  { repo, digest }: { repo: number; digest: string },
  { from, until }: { from: string; until: string },
): Promise<boolean> {
  const days = { from: from.slice(0, 10), until: until.slice(0, 10) }
  return days.from < days.until && store.wasPulledOn(reader, { repo, digest }, days)
}
