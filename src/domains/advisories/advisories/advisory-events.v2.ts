// Messages of advisory events in version 2. The control methods use the same messages.
import { create } from '@bufbuild/protobuf'
import {
  AdvisoryEventSchema,
  type AdvisoryEvent as EventMessage,
  AdvisoryEvent_FalsePositiveDetermination_Type as FalsePositiveType,
  AdvisoryEvent_FalsePositiveDetermination_TypeSchema as FalsePositiveTypeSchema,
} from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { snakeCase } from '#lib/fields.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type AdvisoryEvent, dataOf, type EventData, moved } from './advisories.model.ts'

export function toEventMessage(event: AdvisoryEvent): EventMessage {
  const { method, ...rest } = event.data
  const value = event.type === 'detection' ? { type: { case: method, value: rest } } : event.data
  return create(AdvisoryEventSchema, {
    uid: event.uid,
    createTime: timestamp(event.createTime),
    author: event.author,
    reviewer: event.reviewer,
    reviewState: event.reviewState as EventMessage['reviewState'],
    ...(event.issue === undefined ? {} : { issue: event.issue }),
    findings: Buffer.from(event.findings, 'base64'),
    ...(event.type === moved ? {} : { type: { case: event.type, value } as never }),
  })
}

/**
 * Reads an event from a request. `path` is the position of the event in the request, which errors contain. Throws
 * INVALID_ARGUMENT if the event has no type.
 */
export function fromEventMessage(message: EventMessage, path = '') {
  const { author, reviewer, issue, findings, type } = message
  if (type.case === undefined) {
    throw invalid({ field: join(path, 'type'), description: 'is required: set exactly one type of event' })
  }
  if (
    type.case === 'falsePositiveDetermination' &&
    !Object.values<number>(FalsePositiveType).includes(type.value.type)
  ) {
    const field = join(path, `${snakeCase(type.case)}.type`)
    throw invalid({ field, description: noKnownValue(FalsePositiveTypeSchema) })
  }
  return {
    author,
    reviewer,
    ...(issue === undefined ? {} : { issue }),
    findings: Buffer.from(findings).toString('base64'),
    type: type.case,
    data: type.case === 'detection' ? dataOfDetection(type.value, path) : dataOf(type.value),
  }
}

function dataOfDetection(
  { type }: Extract<EventMessage['type'], { case: 'detection' }>['value'],
  path: string,
): EventData {
  if (type.case === undefined) {
    throw invalid({ field: join(path, 'detection'), description: 'must have exactly one type' })
  }
  return { method: type.case, ...dataOf(type.value) }
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`
}
