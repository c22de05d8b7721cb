// The events of an advisory, one by one, and how their review moves.
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

export type NewEvent = Pick<AdvisoryEvent, 'author' | 'reviewer' | 'issue' | 'findings' | 'type' | 'data'>

const approve = capabilityNumber('advisories.approve')

/** Where a review can move from each state. Approved and rejected are final. */
const transitions: Readonly<Record<number, readonly number[]>> = {
  [reviewStates.pending]: [reviewStates.approved, reviewStates.requestChanges, reviewStates.rejected],
  [reviewStates.requestChanges]: [reviewStates.pending],
}

/** Adds an event of now, which waits for its review. */
export async function addEvent(call: Call, parent: string, input: NewEvent): Promise<AdvisoryEvent> {
  const event: AdvisoryEvent = {
    ...input,
    uid: newUid(parent),
    createTime: call.now,
    reviewState: reviewStates.pending,
    imported: false,
  }
  refuseIfAny(eventProblems(event))
  await change(call, parent, (advisory) => {
    if (advisory.events.length >= maxEvents) {
      throw invalid({ field: 'parent', description: `has ${maxEvents} events, as many as an advisory may have` })
    }
    return { ...advisory, events: inOrder([...advisory.events, event]) }
  })
  call.log.info('advisory event created', { uid: event.uid })
  return event
}

/** Moves a review on. The state that it has already is fine too; a final one cannot be left. */
export async function reviewEvent(
  call: Call,
  uid: string,
  { state, reviewer }: { state: number; reviewer: string },
): Promise<AdvisoryEvent> {
  if (!Object.values<number>(reviewStates).includes(state)) {
    throw invalid({ field: 'review_state', description: 'must be a state' })
  }
  if (state === reviewStates.approved && !call.caller.rights.holds(uid, [approve])) {
    throw permissionDenied('only those with advisories.approve approve an event')
  }
  const changed = await change(
    call,
    parentOf(uid),
    (advisory) => {
      const before = advisory.events.find((event) => event.uid === uid)
      if (!before) throw notFound(advisoryEventType, uid)
      checkTransition(before, state)
      const after: AdvisoryEvent = { ...before, reviewState: state, reviewer: reviewer || before.reviewer }
      refuseIfAny(eventProblems(after))
      return { ...advisory, events: advisory.events.map((event) => (event.uid === uid ? after : event)) }
    },
    () => notFound(advisoryEventType, uid),
  )
  call.log.info('advisory event reviewed', { uid, state })
  return changed.events.find((event) => event.uid === uid)!
}

function checkTransition({ uid, reviewState }: AdvisoryEvent, to: number): void {
  if (reviewState === to || transitions[reviewState]?.includes(to)) return
  const final = transitions[reviewState] === undefined
  throw failedPrecondition({
    type: 'REVIEW_STATE',
    subject: uid,
    description: final
      ? 'the review of the event is over'
      : 'the review of the event cannot move to this state from where it is',
  })
}

async function change(
  call: Call,
  uid: string,
  next: (advisory: Advisory) => Advisory,
  missing = () => notFound(advisoryType, uid),
): Promise<Advisory> {
  return call.app.db.tx(async (tx) => {
    const before = await store.findAdvisory(tx, uid)
    if (!before) throw missing()
    const after = { ...next(before.advisory), updateTime: call.now }
    await store.saveAdvisories(tx, [{ before, after, sourceHash: before.sourceHash }])
    return after
  })
}
