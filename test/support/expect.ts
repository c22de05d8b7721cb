// Assertions about errors of the API, and about the events of a change.
import assert from 'node:assert/strict'
import { sql } from '#db/sql.ts'
import type { Answer, Json, Pinfold } from './pinfold.ts'

const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

export function assertTimes(resource: Json, ...names: string[]): void {
  for (const name of names) assert.match(resource[name], timePattern, name)
}

/** Asserts the whole error: status, code, ErrorInfo, and the details after it. */
export function assertError(answer: Answer, http: number, code: number, reason: string, ...details: Json[]): void {
  assert.equal(answer.status, http, answer.text)
  assert.equal(answer.body.code, code)
  const [info, ...others] = answer.body.details as Json[]
  assert.equal(info!['@type'], 'type.googleapis.com/google.rpc.ErrorInfo')
  assert.equal(info!.reason, reason)
  assert.equal(info!.domain, 'pinfold.dev')
  assert.deepEqual(
    others,
    details.map(({ type, ...members }) => ({ '@type': `type.googleapis.com/google.rpc.${type}`, ...members })),
  )
}

const inSnakeCase = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()

/**
 * Asserts INVALID_ARGUMENT for exactly these fields, in this order. The message starts with the first field. It spells all fields
 * as in the request.
 */
export function assertInvalid(answer: Answer, ...fields: string[]): void {
  const violations: Json[] = answer.body.details?.[1]?.fieldViolations ?? []
  assert.deepEqual(
    violations.map((violation) => violation.field),
    fields,
    answer.text,
  )
  for (const { description } of violations) assert.ok(description.length > 0)
  assertError(answer, 400, 3, 'INVALID_ARGUMENT', { type: 'BadRequest', fieldViolations: violations })
  const { message } = answer.body as { message: string }
  assert.equal(inSnakeCase(message), inSnakeCase(`Invalid argument: ${fields[0]}: ${violations[0]!.description}`))
}

export function assertDenied(answer: Answer): void {
  assertError(answer, 403, 7, 'PERMISSION_DENIED')
}

export function assertNotFound(answer: Answer, resourceType: string, resourceName: string): void {
  const info = { type: 'ResourceInfo', resourceType, resourceName, owner: '', description: '' }
  assertError(answer, 404, 5, 'NOT_FOUND', info)
}

export function assertTaken(answer: Answer, resourceType: string, resourceName: string): void {
  const description = answer.body.details?.[1]?.description
  assert.ok(description, answer.text)
  const info = { type: 'ResourceInfo', resourceType, resourceName, owner: '', description }
  assertError(answer, 409, 6, 'ALREADY_EXISTS', info)
}

/** Asserts FAILED_PRECONDITION with one violation of each of these types, about `subject`. */
export function assertBlocked(answer: Answer, subject: string, ...types: string[]): void {
  const violations: Json[] = answer.body.details?.[1]?.violations ?? []
  assert.deepEqual(
    violations.map((violation) => [violation.type, violation.subject]),
    types.map((type) => [type, subject]),
    answer.text,
  )
  for (const { description } of violations) assert.ok(description.length > 0)
  assertError(answer, 400, 9, 'FAILED_PRECONDITION', { type: 'PreconditionFailure', violations })
}

/** Asserts that a call succeeds, and returns its answer. */
export function ok(answer: Answer): Json {
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

/** Returns the events that `work` causes, oldest first. */
export async function eventsOf(pinfold: Pinfold, work: () => Promise<unknown>): Promise<Json[]> {
  const { db } = pinfold.app
  const last = await db.get<{ id: number }>(sql`SELECT coalesce(max(id), 0) AS id FROM events_outbox`)
  await work()
  const rows = await db.all<Json>(sql`
    SELECT type, subject, event_group AS "group", audience, actor, body_type AS "bodyType", body
      FROM events_outbox WHERE id > ${last!.id} ORDER BY id`)
  return rows.map((row) => ({ ...row, actor: JSON.parse(row.actor).subject, body: JSON.parse(row.body) }))
}

/** Converts a resource to the form of an event's body, where every member is in snake_case. */
export function snake(value: any): any {
  if (Array.isArray(value)) return value.map(snake)
  if (value === null || typeof value !== 'object') return value
  const name = (text: string) => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [name(key), snake(member)]))
}
