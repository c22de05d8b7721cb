// Adds single events to an advisory, and changes their review state.
import { isDeepStrictEqual } from 'node:util'
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { failedPrecondition, invalid, notFound, permissionDenied, refuseIfAny } from '#lib/errors.ts'
import { newUid, parentOf } from '#lib/uid.ts'
import {
  type Advisory,
  type AdvisoryEvent,
  advisoryEventType,
  advisoryType,
  inOrder,
  maxEvents,
  reviewStates,
} from './advisories.model.ts'
import * as store from './advisories.store.ts'
import { eventProblems } from './advisory-checks.ts'

export type NewEvent = Pick<AdvisoryEvent, 'author' | 'reviewer' | 'issue' | 'findings' | 'type' | 'data'> & {
  /** Review state of the new event, pending by default. An event can be approved when it is created. */
  reviewState?: number
}

const approve = capabilityNumber('advisories.approve')

/** Allowed changes of the review state. Approved and rejected are final states. */
const transitions: Readonly<Record<number, readonly number[]>> = {
  [reviewStates.pending]: [reviewStates.approved, reviewStates.requestChanges, reviewStates.rejected],
  [reviewStates.requestChanges]: [reviewStates.pending],
}

/**
 * Creates an event with the present time. A new event is pending or approved. Throws for other states, and if the caller is not
 * allowed to approve an event.
 */
export function newEvent(call: Call, parent: string, input: NewEvent): AdvisoryEvent {
  const { pending, approved } = reviewStates
  const reviewState = input.reviewState || pending
  if (reviewState !== pending && reviewState !== approved) {
    throw invalid({ field: 'review_state', description: 'must be empty, PENDING or APPROVED for a new event' })
  }
  checkMayApprove(call, parent, reviewState)
  return { ...input, uid: newUid(parent), createTime: call.now, reviewState, imported: false }
}

/** Adds an event with the present time to an advisory. The event is pending unless the request approves it. */
export async function addEvent(call: Call, parent: string, input: NewEvent): Promise<AdvisoryEvent> {
  const event = newEvent(call, parent, input)
  refuseIfAny(eventProblems(event))
  await changeAdvisory(call, parent, (advisory) => {
    if (advisory.events.length >= maxEvents) {
      throw invalid({
        field: 'parent',
        description: `has ${maxEvents} events, which is the most that an advisory can have`,
      })
    }
    return { ...advisory, events: inOrder([...advisory.events, event]) }
  })
  call.log.info('advisory event created', { uid: event.uid })
  return event
}

/** Lists the events of an advisory, the oldest first. The list is empty if the advisory does not exist. */
export async function listEvents(call: Call, parent: string): Promise<AdvisoryEvent[]> {
  return (await store.findAdvisory(call.app.db, parent))?.advisory.events ?? []
}

/** Changes the review state of an event. A request with the present state changes nothing. A final state cannot be changed. */
export async function reviewEvent(
  call: Call,
  uid: string,
  { state, reviewer }: { state: number; reviewer: string },
): Promise<AdvisoryEvent> {
  if (!Object.values<number>(reviewStates).includes(state)) {
    throw invalid({ field: 'review_state', description: 'must be a review state' })
  }
  checkMayApprove(call, uid, state)
  const event = await changeEvent(call, uid, (before) => {
    checkTransition(before, state)
    return { ...before, reviewState: state, reviewer: reviewer || before.reviewer }
  })
  call.log.info('advisory event reviewed', { uid, state })
  return event
}

/**
 * Replaces an event except for its time, and can change its review state. Without a state in the request, the review state stays.
 * If the state is final, the content must not change.
 */
export async function updateEvent(call: Call, uid: string, input: NewEvent): Promise<AdvisoryEvent> {
  checkMayApprove(call, uid, input.reviewState ?? 0)
  const event = await changeEvent(call, uid, (before) => {
    const { createTime, imported } = before
    const after = { ...input, uid, createTime, imported, reviewState: input.reviewState || before.reviewState }
    checkTransition(before, after.reviewState)
    if (transitions[before.reviewState] === undefined && !isDeepStrictEqual(after, before)) throw reviewFinalError(uid)
    return after
  })
  call.log.info('advisory event updated', { uid, state: event.reviewState })
  return event
}

async function changeEvent(
  call: Call,
  uid: string,
  next: (event: AdvisoryEvent) => AdvisoryEvent,
): Promise<AdvisoryEvent> {
  const changed = await changeAdvisory(
    call,
    parentOf(uid),
    (advisory) => {
      const before = advisory.events.find((event) => event.uid === uid)
      if (!before) throw notFound(advisoryEventType, uid)
      const after = next(before)
      refuseIfAny(eventProblems(after))
      return { ...advisory, events: advisory.events.map((event) => (event.uid === uid ? after : event)) }
    },
    () => notFound(advisoryEventType, uid),
  )
  return changed.events.find((event) => event.uid === uid)!
}

function checkMayApprove({ caller }: Call, uid: string, state: number): void {
  if (state === reviewStates.approved && !caller.rights.holds(uid, [approve])) {
    throw permissionDenied('approving an event needs the capability advisories.approve')
  }
}

function checkTransition({ uid, reviewState }: AdvisoryEvent, to: number): void {
  if (reviewState === to || transitions[reviewState]?.includes(to)) return
  if (transitions[reviewState] === undefined) throw reviewFinalError(uid)
  throw failedPrecondition({
    type: 'REVIEW_STATE',
    subject: uid,
    description:
      'changes to the event were requested; set its review state to PENDING before it is approved or rejected',
  })
}

function reviewFinalError(uid: string) {
  return failedPrecondition({
    type: 'REVIEW_STATE',
    subject: uid,
    description: 'the event was approved or rejected, and this is final; add a new event instead',
  })
}

async function changeAdvisory(
  call: Call,
  uid: string,
  next: (advisory: Advisory) => Advisory,
  missing = () => notFound(advisoryType, uid),
): Promise<Advisory> {
  const changed = await call.app.db.tx(async (tx) => {
    const before = await store.findAdvisory(tx, uid)
    if (!before) throw missing()
    const after = { ...next(before.advisory), updateTime: call.now }
    await store.saveAdvisories(tx, [{ before, after, sourceHash: before.sourceHash }])
    for (const changed of call.app.hooks.advisoriesChanged) await changed(tx, [uid], call.now)
    return after
  })
  return changed
}
