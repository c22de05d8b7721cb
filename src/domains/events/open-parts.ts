import { performance } from 'node:perf_hooks'
import type { Ground } from '#app.ts'
import { createRegistryEvents } from '#domains/outbox/emit-registry.ts'
import { toPullResource, toPushResource } from '#domains/outbox/registry-events.model.ts'
import { createDropped } from '#lib/batches/dropped.ts'
import { allowedAddresses } from '#lib/net/private-addresses.ts'
import { createSinkClient } from '#lib/net/sink-client.ts'
import { createSignal } from '#lib/signal.ts'
import type { EventsParts } from './parts.ts'
import { createRefusalLog } from './refusals/refusal-log.ts'
import { createFeed } from './stream/feed.ts'
import { createAudience } from './subscriptions/audience.ts'

export function openEvents(ground: Ground, opening: AsyncDisposableStack): EventsParts {
  const { config, db, failures } = ground
  const events = { written: createSignal(), routed: createSignal(), queued: createSignal() }
  const sinks = createSinkClient({
    allowed: allowedAddresses(config, config.sinksPrivate),
    allowHttp: config.allowInsecureSinks,
  })
  const refusals = createRefusalLog(db, (error) => failures.repeated('storing refused requests failed', error))
  return {
    events,
    feed: opening.adopt(createFeed({ db, failures, events }, config.streamsPerCaller), (open) => open.close()),
    sinks: opening.adopt(sinks, (open) => open.close()),
    refusals: opening.adopt(refusals, (open) => open.close()),
    registryEvents: openRegistryEvents(ground, events, opening),
  }
}

/**
 * Opens the writer for events of pulls and refused pushes. These events are emitted only if a subscription or stream requests
 * them.
 */
function openRegistryEvents(ground: Ground, events: EventsParts['events'], opening: AsyncDisposableStack) {
  const { config, db, clock, eventTable, failures, fleet, log, metrics, monotonic, vendor } = ground
  const audienceOf = (type: string) => createAudience(db, type, clock, () => performance.now(), vendor?.token)
  const audiences = {
    pulls: audienceOf(eventTable.find('registry.pull', undefined, toPullResource.kind).type),
    'refused pushes': audienceOf(eventTable.find('registry.push', undefined, toPushResource.kind).type),
  }
  const droppedOf = (what: string, warn: (count: number) => void) => {
    const count = (by: number) => metrics.registryDropped.inc({ what }, by)
    return opening.adopt(createDropped(count, warn, monotonic), (open) => open.close())
  }
  const dropped = {
    pulls: droppedOf('pull_event', (count) => log.warn('pull events dropped', { count })),
    'refused pushes': droppedOf('refused_push_event', (count) => log.warn('refused push events dropped', { count })),
  }
  const perMinute = () => config.registryEventsPerOrganization / fleet.nodes
  const registryEvents = createRegistryEvents({ db, events, eventTable }, audiences, perMinute, {
    failed: (error: unknown) => failures.repeated('storing registry events failed', error),
    dropped: (kind, count) => dropped[kind].add(count),
  })
  return opening.adopt(registryEvents, (open) => open.close())
}
