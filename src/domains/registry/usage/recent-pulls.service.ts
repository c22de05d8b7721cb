// Whether somebody has pulled something on certain days, as far as that is written.
import type { Reader } from '#db/sql.ts'
import * as store from './digest-usage.store.ts'

/** On the day of one moment or later, and before that of another. */
export async function wasPulledBetween(
  reader: Reader,
  { repo, digest }: { repo: number; digest: string },
  { from, until }: { from: string; until: string },
): Promise<boolean> {
  const days = { from: from.slice(0, 10), until: until.slice(0, 10) }
  return days.from < days.until && store.wasPulledOn(reader, { repo, digest }, days)
}
