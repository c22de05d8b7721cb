// Whether somebody has pulled something lately, as far as that is written: the last half minute may not be.
import type { Reader } from '#db/sql.ts'
import * as store from './digest-usage.store.ts'

/** In so many days before the one at hand, and on it. */
export async function wasPulledWithin(
  reader: Reader,
  { repo, digest, now }: { repo: number; digest: string; now: string },
  days: number,
): Promise<boolean> {
  const since = new Date(Date.parse(now) - days * 86_400_000).toISOString().slice(0, 10)
  return store.wasPulledSince(reader, { repo, digest, day: since })
}
