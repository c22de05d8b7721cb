import type { Payload } from '../delivery/deliveries.model.ts'

/** An event with its position in the one order of all events. */
export type OrderedEvent = Payload & { position: number }

export type Feed = {
  /** Throws RESOURCE_EXHAUSTED when the caller follows too often already. */
  follow(caller: string): Follower
  close(): void
}

export type Follower = Disposable & {
  /** The place of the newest event. */
  newest(): Promise<number>
  /** Some of the events behind a place, in order. Waits for one, but not longer than `waitMs`; the signal makes it reject. */
  after(position: number, waitMs: number, signal: AbortSignal): Promise<Some>
}

/** `upTo` is the place that has been reached, also when what was there is not kept any more. */
export type Some = { events: readonly OrderedEvent[]; upTo: number }
