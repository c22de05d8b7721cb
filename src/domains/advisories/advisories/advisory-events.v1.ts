// Advisory events in version 1 of the API, with other names for some fields and one more event type.
import { create } from '@bufbuild/protobuf'
import {
  AdvisoryEventSchema,
  type AdvisoryEvent as EventMessage,
  AdvisoryEvent_FalsePositiveDetermination_Type as FalsePositiveType,
  ReviewStatus,
} from '#gen/pinfold/vulnerabilities/v1/advisory_events_pb.ts'
import { invalid } from '#lib/errors.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type AdvisoryEvent, dataOf, type EventData, namedDetection } from './advisories.model.ts'
import { knownNumber } from './advisory-terms.model.ts'
import type { NewEvent } from './reviews.service.ts'

export function toEventMessage(event: AdvisoryEvent): EventMessage {
  const { uid, createTime, author, reviewer, reviewState, issue, findings, type, data } = event
  return create(AdvisoryEventSchema, {
    id: uid,
    timestamp: timestamp(createTime),
    author,
    reviewer,
    status: reviewState as ReviewStatus,
    ...(issue === undefined ? {} : { issue }),
    findings: Buffer.from(findings, 'base64'),
    type: { case: type, value: type === 'detection' ? namedDetection(data) : data } as never,
  })
}

/**
 * Reads an event from a request. `path` is the position of the event in the request, with a dot at the end. Errors contain this
 * path.
 */
export function fromEventMessage(message: EventMessage, path = ''): NewEvent {
  const { author, reviewer, issue, findings, type, status } = message
  if (type.case === undefined) {
    throw invalid({ field: `${path}type`, description: 'is required: set exactly one type of event' })
  }
  if (type.case === 'falsePositiveDetermination') {
    knownNumber(FalsePositiveType, `${path}false_positive_determination.type`, type.value.type)
  }
  return {
    author,
    reviewer,
    ...(issue === undefined ? {} : { issue }),
    findings: Buffer.from(findings).toString('base64'),
    type: type.case,
    data: type.case === 'detection' ? dataOfDetection(type.value.type, path) : dataOf(type.value),
    reviewState: knownNumber(ReviewStatus, `${path}status`, status),
  }
}

type Detection = Extract<EventMessage['type'], { case: 'detection' }>['value']

function dataOfDetection(type: Detection['type'], path: string): EventData {
  if (type.case === undefined) throw invalid({ field: `${path}detection`, description: 'must have exactly one type' })
  if (type.case !== 'scanv1') return { method: type.case, ...dataOf(type.value) }
  const { subpackageName: subpackage, componentName: component, ...rest } = type.value
  return { method: type.case, ...dataOf({ ...rest, subpackage, component }) }
}

/** Names that version 1 uses in errors. */
export const eventFieldNames = {
  review_state: 'status',
  parent: 'parent_id',
  subpackage: 'subpackage_name',
  component: 'component_name',
}
