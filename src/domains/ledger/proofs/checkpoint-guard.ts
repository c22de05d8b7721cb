// The facts about stored checkpoints that one process keeps in memory.
import type { StoredCheckpoint } from '#blobs/blobs.ts'
import { Newest } from '#lib/caches/newest.ts'

const mostKnown = 10_000

/** Where a database is in its write-ahead log. */
type Position = { timeline: string; position: bigint }

export type CheckpointGuard = {
  /** The checkpoints that this process stored last, by their names. */
  known: Newest<string, StoredCheckpoint>
  /** The log after which the next run of signing begins: 0 unless a run ended before it had seen all logs. */
  signedTo: number
  /** Whether signing waits for the store, so that it is logged once. */
  isWaiting: boolean
  /** Whether the log says that the bucket ignores conditions. */
  isToldOfBucket: boolean
  /** The number of logs for which signing has stopped, as of the last count. */
  suspended: number
  /**
   * Whether all checkpoints are to be compared: in a new process, on another timeline, or at a position below one that this
   * process has seen. Call `compared` with the same position afterwards.
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
    isToldOfBucket: false,
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
