import type { RegistryEvents } from '#domains/outbox/registry-events.model.ts'
import type { SinkClient } from '#lib/net/sink-client.ts'
import type { Signal } from '#lib/signal.ts'
import type { RefusalLog } from './refusals/refusal-log.ts'
import type { Feed } from './stream/stream.model.ts'

/** Caches, signals and clients of the events domain, which live as long as the process. */
export type EventsParts = {
  /**
   * Signals. `written`: an event is in the outbox, or will be there after the next commit. `routed`: events got their position.
   * `queued`: deliveries were added or removed without routing.
   */
  events: { written: Signal; routed: Signal; queued: Signal }
  /** The newest events, for streams. */
  feed: Feed
  /** HTTP client for the sinks of subscriptions. */
  sinks: SinkClient
  /** Refused requests of the registry that are not in the table yet. */
  refusals: RefusalLog
  /** Pulls and refused pushes that are not in the outbox yet. */
  registryEvents: RegistryEvents
}
