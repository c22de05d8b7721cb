import { randomUUID } from 'node:crypto'
import type { StreamCall } from '#app.ts'
import type { Caller } from '#caller.ts'
import { requireGroup } from '#domains/iam/groups/groups.service.ts'
import { toPullResource, toPushResource } from '#domains/outbox/registry-events.model.ts'
import { AppError, type FieldViolation, permissionDenied, refuseIfAny } from '#lib/errors.ts'
import { isAtOrBelow, isUid, lineage, top } from '#lib/uid.ts'
import { attributesOf, bodyOf, tokenOf } from '../delivery/cloud-event.ts'
import { matchesType } from '../routing/type-patterns.ts'
import { deleteStream, renewStream, setStream } from '../subscriptions/audience.store.ts'
import type { OrderedEvent } from './stream.model.ts'
import * as store from './stream.store.ts'

export type StreamRequest = {
  /** The stream contains only events of this group and its descendants. Empty for all groups that the caller can see. */
  group: string
  types: readonly string[]
  /** ID of the event after which the stream continues. `0` begins with the oldest event. Empty for new events only. */
  after: string
}

/** Message of a stream. A message without a delivery only reports the position of the stream. */
export type Streamed = { id: string; delivery?: StreamedDelivery }
export type StreamedDelivery = { attributes: Record<string, string>; data: string; token: string }

/** ID for the position before the first event. */
const beginning = '0'
const maxTypes = 100

/** Sends the same events as a subscription would, in the global order. Checks the caller's permission for each event. */
export async function* streamEvents(call: StreamCall, request: StreamRequest): AsyncGenerator<Streamed> {
  const { app, signal } = call
  checkRequest(request)
  if (request.group !== '') {
    if (!sees(call, call.caller, request.group)) throw permissionDenied()
    await requireGroup(app.db, request.group)
  }
  using follower = app.feed.follow(call.caller.uid)
  await using announced = await announce(call, request)
  let at = await startOf(call, request.after, await follower.newest())
  yield { id: at.id }

  let lastSent = performance.now()
  for (;;) {
    await announced.renew()
    const left = Math.max(0, lastSent + app.config.streamIdleMs - performance.now())
    const { events, upTo } = await follower.after(at.position, left, signal)
    for (const event of events) {
      at = { position: event.position, id: event.uuid }
      const group = visibleGroup(call, await call.callerNow(), request, event)
      if (group === undefined) continue
      yield { id: at.id, delivery: await deliveryOf(call, group, event) }
      lastSent = performance.now()
    }
    at.position = upTo
    if (performance.now() - lastSent < app.config.streamIdleMs) continue
    requireSight(call, await call.callerNow(), request)
    yield { id: at.id }
    lastSent = performance.now()
  }
}

function checkRequest({ group, types, after }: StreamRequest): void {
  const problems: FieldViolation[] = []
  if (group !== '' && !isUid(group)) problems.push({ field: 'group', description: 'is not a uid' })
  if (types.length > maxTypes) problems.push({ field: 'types', description: `must have at most ${maxTypes} patterns` })
  if (!types.every((type) => /^[a-z0-9_.*]{1,255}$/.test(type))) {
    problems.push({ field: 'types', description: 'must be event types; * matches any text' })
  }
  if (after !== '' && after !== beginning && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(after)) {
    problems.push({ field: 'after', description: 'must be the ID of an event' })
  }
  refuseIfAny(problems)
}

async function startOf({ app }: StreamCall, after: string, newest: number): Promise<{ position: number; id: string }> {
  if (after === beginning) return { position: 0, id: beginning }
  // If the newest event has expired, all stored events will come later, so the stream begins with the first one.
  if (after === '') return { position: newest, id: (await store.eventIdAt(app.db, newest)) ?? beginning }
  const position = await store.positionOf(app.db, after)
  if (position === undefined) {
    throw new AppError(
      'OUT_OF_RANGE',
      'the event after which the stream should resume is no longer stored, so later events may be missing, too; start a stream without it',
      {
        reason: 'EVENT_NOT_KEPT',
      },
    )
  }
  return { position, id: after }
}

function sees({ method: { access } }: StreamCall, { rights }: Caller, group: string): boolean {
  return access.mode === 'unscoped' && rights.holds(group, access.capabilities)
}

/** Throws PERMISSION_DENIED if the caller cannot see the requested group any more. */
function requireSight(call: StreamCall, caller: Caller, { group }: StreamRequest): void {
  if (group !== '' && !sees(call, caller, group)) throw permissionDenied()
}

/** Group whose subscription would receive the event. Undefined if the caller must not receive the event. */
function visibleGroup(
  call: StreamCall,
  caller: Caller,
  request: StreamRequest,
  event: OrderedEvent,
): string | undefined {
  requireSight(call, caller, request)
  if (event.audience !== 'CUSTOMER' || !matchesType(request.types, event.type, call.app.vendor?.token)) return undefined
  if (request.group !== '') return isAtOrBelow(event.group, request.group) ? request.group : undefined
  const groups = event.group === top ? [top] : [top, ...lineage(event.group).reverse()]
  return groups.find((group) => sees(call, caller, group))
}

async function deliveryOf({ app, url }: StreamCall, group: string, event: OrderedEvent): Promise<StreamedDelivery> {
  const data = bodyOf(event)
  const token = await tokenOf(app, url, group, data, app.clock().getTime())
  return { attributes: attributesOf(url, event), data, token }
}

/**
 * Limit on the groups for which a stream is announced. A stream for more groups gets only events of pulls that others have
 * requested.
 */
const maxGroups = 1000
const leastRenewMs = 30_000
const writes = { isolation: 'rowLocks', durability: 'later' } as const

export type Announced = AsyncDisposable & {
  /** Renews the announcement. The caller must renew at least as often as the stream reports its position. */
  renew(): Promise<void>
}

/**
 * Announces a stream for the types that it requests and the groups that the caller can see. Without an announcement, events of
 * pulls and refused pushes are not written.
 */
export async function announce(
  call: StreamCall,
  { group, types }: { group: string; types: readonly string[] },
): Promise<Announced> {
  const { db, config, vendor, clock, eventTable, log } = call.app
  const pull = eventTable.find('registry.pull', undefined, toPullResource.kind)
  const push = eventTable.find('registry.push', undefined, toPushResource.kind)
  if (![pull, push].some(({ type }) => matchesType(types, type, vendor?.token))) {
    return { renew: async () => {}, [Symbol.asyncDispose]: async () => {} }
  }
  const stream = randomUUID()
  const renewMs = Math.max(config.streamIdleMs, leastRenewMs)
  let lastGroups = ''
  let lastSent = 0

  const groupsNow = async (): Promise<readonly string[]> => {
    if (group !== '') return [group]
    const { access } = call.method
    const { rights } = await call.callerNow()
    return access.mode === 'unscoped' ? rights.roots(access.capabilities).slice(0, maxGroups) : []
  }
  const say = async (): Promise<void> => {
    lastSent = performance.now()
    const now = await groupsNow()
    const until = new Date(clock().getTime() + 3 * renewMs + config.requestTimeoutMs).toISOString()
    const same = lastGroups === now.join()
    lastGroups = now.join()
    await db.tx(async (tx) => {
      if (same && (await renewStream(tx, stream, until)) > 0) return
      await setStream(tx, stream, now, until)
    }, writes)
  }
  await say()
  return {
    async renew() {
      if (performance.now() - lastSent >= renewMs) await say()
    },
    async [Symbol.asyncDispose]() {
      // If the deletion fails, the row of the announcement expires later.
      await db
        .tx((tx) => deleteStream(tx, stream), writes)
        .catch((error: unknown) => {
          log.warn('removing an ended event stream failed', { error })
        })
    },
  }
}
