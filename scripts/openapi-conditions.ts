// Request headers for conditional writes, such as If-Match, in the OpenAPI documents.
import type { DescMethod } from '@bufbuild/protobuf'
import { buildSubjects, isRead } from '#api/conditions/subjects.ts'
import { buildEventTable } from '#api/event-table.ts'
import { buildEndpoints, fullNameOf } from '#api/methods.ts'
import { eventBodies, services } from '#api/services.ts'
import type { Schema } from './schemas.ts'

const endpoints = buildEndpoints(services)
const subjects = buildSubjects(endpoints, buildEventTable(services, eventBodies))
const byName = new Map(endpoints.map((endpoint) => [endpoint.method.fullName, endpoint]))

const header = (name: string, description: string): Schema => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
})

const parameters = {
  IfMatch: header('If-Match', '`ETag` that the resource must have, or `*` for any. Otherwise the answer is 412.'),
  IfNoneMatch: header('If-None-Match', '`*` if the resource must not exist. Otherwise the answer is 412.'),
  IdempotencyKey: header(
    'Idempotency-Key',
    'Key of the request, at most 128 characters. A repeated request with the same key is not executed again.',
  ),
}

export const headers: Record<string, Schema> = {
  ETag: { description: 'Version of the resource.', schema: { type: 'string' } },
}

/** Headers that a method reads. */
export function conditionsOf(method: DescMethod): Schema[] {
  const endpoint = byName.get(fullNameOf(method))
  if (!endpoint?.handler || isRead(endpoint) || endpoint.method.access.mode === 'open') return []
  const subject = subjects.of(endpoint)
  // Methods that create a resource if it is missing, and find it by other fields than its uid.
  const makes = subject && subject.shows.desc.output !== subject.resource
  const { IfMatch, IfNoneMatch, IdempotencyKey } = parameters
  return [...(subject ? [IfMatch] : []), ...(makes ? [IfNoneMatch] : []), IdempotencyKey]
}

/** Description of an answer with an ETag. */
export function answerHeadersOf(method: DescMethod): Schema {
  const endpoint = byName.get(fullNameOf(method))
  if (!endpoint || !subjects.isTagged(endpoint)) return {}
  return { headers: { ETag: { $ref: '#/components/headers/ETag' } } }
}
