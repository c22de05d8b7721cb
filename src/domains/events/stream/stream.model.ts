import type { Payload } from '../delivery/deliveries.model.ts'

/** Event with its position in the global order. */
export type OrderedEvent = Payload & { position: number }

export type Feed = {
  /** Throws RESOURCE_EXHAUSTED if the caller has too many streams. */
  follow(caller: string): Follower
  close(): void
}

export type Follower = Disposable & {
  /** Position of the newest event. */
  newest(): Promise<number>
  /**
   * Some of the events after a position, in order. If there is no such event, waits at most `waitMs` milliseconds for one.
   * Rejects if the signal is aborted.
   */
  after(position: number, waitMs: number, signal: AbortSignal): Promise<Some>
}

/** Result of a read. All events up to `upTo` were read. Some events may have expired. */
export type Some = { events: readonly OrderedEvent[]; upTo: number }
