// State that one process keeps in memory about stored checkpoints.
import type { StoredCheckpoint } from '#blobs/blobs.ts'
import { Newest } from '#lib/caches/newest.ts'

const mostKnown = 10_000

/** Position of a database in its write-ahead log. */
type Position = { timeline: string; position: bigint }

export type CheckpointGuard = {
  /** Checkpoints that this process stored last, by their names in the blob store. */
  known: Newest<string, StoredCheckpoint>
  /** Number of the log after which the next signing run begins. It is 0, unless a run ended before it had processed all logs. */
  signedTo: number
  /** True while signing waits for the blob store. Prevents repeated log messages about this. */
  isWaiting: boolean
  /** True if a log message has reported that the bucket ignores conditional writes. */
  hasWarnedOfBucket: boolean
  /** Number of logs whose signing is suspended, as of the last count. */
  suspended: number
  /**
   * True if all checkpoints have to be compared. This is so in a new process, on another timeline of PostgreSQL, or at a position
   * before one that this process has seen. Call `compared` with the same position afterwards.
   */
  isComparisonDue(now: Position | undefined): boolean
  compared(at: Position | undefined): void
}

export function createCheckpointGuard(): CheckpointGuard {
  let seen: { at: Position | undefined } | undefined
  return {
    known: new Newest(mostKnown),
    signedTo: 0,
    isWaiting: false,
    hasWarnedOfBucket: false,
    suspended: 0,
    isComparisonDue(now) {
      if (!seen) return true
      const { at } = seen
      const isBack = now && at && (now.timeline !== at.timeline || now.position < at.position)
      if (!isBack) seen = { at: now ?? at }
      return Boolean(isBack)
    },
    compared(at) {
      seen = { at }
    },
  }
}
