// When a digest has been a tag for long enough. A stay is the time from an assignment of a tag until its next row in the
// ledger. It counts unless it was cut short, withdrawn by a deletion, or undone by a move back to an earlier digest; so
// what was wrong for a few hours is not served a week later, and a short visit ages nothing.
import { timePlus } from './views.model.ts'

export type Stay = {
  tag: string
  digest: string
  begin: string
  /** From when it counts: what an upstream was seen to have, not before its content came here. */
  since: string
  /** Absent while the tag still points there. */
  end?: { time: string; deleted: boolean; digest: string } | undefined
}

/** Why a stay does not count, as far as the stay itself says; whether its end was a move back the ledger knows. */
export function problemOf({ since, end }: Stay, hold: number): 'deleted' | 'short' | undefined {
  if (!end) return undefined
  if (end.deleted) return 'deleted'
  return end.time < timePlus(since, hold) ? 'short' : undefined
}

/** Why an assignment of a tag is passed over. `young`: it counts, but not for long enough yet. */
export type SkipReason = 'young' | 'short' | 'deleted' | 'rolled back' | 'gone'

/** An assignment that was passed over; `eligible` is when that ends, where it does by itself. */
export type Skipped = { digest: string; time: string; reason: SkipReason; eligible?: string }

/** How many more stays are judged for one request; where none is left, what was not looked at is not old enough. */
export type Looks = { left: number }

export function someLooks(): Looks {
  return { left: 3000 }
}
