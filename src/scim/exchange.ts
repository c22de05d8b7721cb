// Functions for requests and responses of all kinds of resources.

import type { ScimFilter } from '#domains/iam/scim/scim-filter.model.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { jsonLimits, readBody } from '#edge/read-body.ts'
import { jsonProblem } from '#lib/json/json-limits.ts'
import { repeatedMember } from '#lib/json/unique-json.ts'
import { maxBodyBytes, maxResults } from './documents.ts'
import { ScimError, wrong } from './errors.ts'
import { type FilterNames, readFilter } from './filter.ts'
import type { ScimKind } from './kinds.ts'
import { isObject, keyOf } from './names.ts'
import { type Projection, readProjection } from './projection.ts'

export type ScimAnswer = { status: number; text?: string; headers?: Record<string, string> }

/** Request with a valid SCIM token. `path` is the path below the SCIM URL of the provider. */
export type ScimRequest = {
  arrival: HttpArrival
  url: string
  provider: string
  path: string
  search: string
}

/** Parameters of a list or search request. */
export type Search = { skip: number; limit: number; filter: ScimFilter | undefined; shown: Projection }

/** Reads the search parameters from the query of a GET request. */
export function searchOf(asked: ScimRequest, kind: ScimKind, names: FilterNames): Search {
  const query = new URLSearchParams(asked.search)
  const number = (name: string) => readNumber(query.get(name) || undefined, name)
  const page = pageOf(number('startIndex'), number('count'))
  return { ...page, filter: filterOf(query.get('filter'), names), shown: projectionOf(asked, kind) }
}

/** Reads the search parameters from the body of a POST request. */
export async function searchOfBody(asked: ScimRequest, kind: ScimKind, names: FilterNames): Promise<Search> {
  const body = await readJson(asked.arrival)
  if (!isObject(body)) throw wrong('invalidSyntax', 'the body must be a JSON object')
  const member = (name: string) => body[keyOf(body, name) ?? ''] ?? undefined
  const text = (name: string) => {
    const value = member(name)
    if (value !== undefined && typeof value !== 'string') throw wrong('invalidValue', `${name}: must be a string`)
    return value ?? null
  }
  const list = (name: string) => {
    const value = member(name)
    return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(',') : text(name)
  }
  return {
    ...pageOf(readNumber(member('startIndex'), 'startIndex'), readNumber(member('count'), 'count')),
    filter: filterOf(text('filter'), names),
    shown: readProjection(list('attributes'), list('excludedAttributes'), kind.schema),
  }
}

function pageOf(startIndex: number | undefined, count: number | undefined): Pick<Search, 'skip' | 'limit'> {
  return { skip: Math.max(1, startIndex ?? 1) - 1, limit: Math.min(Math.max(0, count ?? maxResults), maxResults) }
}

function filterOf(text: string | null, names: FilterNames): ScimFilter | undefined {
  return text === null || text.trim() === '' ? undefined : readFilter(text, names)
}

export function projectionOf({ search }: ScimRequest, { schema }: ScimKind): Projection {
  const query = new URLSearchParams(search)
  return readProjection(query.get('attributes'), query.get('excludedAttributes'), schema)
}

/** Throws 412 if `If-Match` does not include the current version of the resource. */
export function requireVersion({ arrival }: ScimRequest, version: string, { name }: ScimKind): void {
  const wanted = arrival.req.headers['if-match']
  if (wanted === undefined || namesVersion(wanted, version)) return
  throw new ScimError(
    412,
    `the ${name} was changed by another request; read it again and send its present version as If-Match`,
  )
}

/** True if `If-None-Match` includes the current version, so that 304 is sufficient. */
export function isKnownVersion({ arrival }: ScimRequest, version: string): boolean {
  const known = arrival.req.headers['if-none-match']
  return known !== undefined && namesVersion(known, version)
}

/** True if a list of entity tags includes the version. `W/` is ignored in the comparison. */
function namesVersion(tags: string, version: string): boolean {
  const bare = (tag: string) => tag.trim().replace(/^W\//, '')
  return tags.trim() === '*' || tags.split(',').some((tag) => bare(tag) === bare(version))
}

const mediaTypes = /^application\/(?:scim\+)?json(?:\s*;|$)/i

export async function readJson(arrival: HttpArrival): Promise<unknown> {
  const type = arrival.req.headers['content-type'] ?? 'application/json'
  if (!mediaTypes.test(type))
    throw new ScimError(415, 'the content type must be application/scim+json or application/json')
  const body = await readBody(arrival, maxBodyBytes)
  const problem = jsonProblem(body, jsonLimits)
  if (problem !== undefined) throw wrong('invalidValue', `the body ${problem}`)
  let json: unknown
  try {
    json = JSON.parse(body.toString('utf8'))
  } catch {
    throw wrong('invalidSyntax', 'the body is not valid JSON')
  }
  const repeated = repeatedMember(body, json)
  if (repeated !== undefined) throw wrong('invalidSyntax', `the body ${repeated}`)
  return json
}

function readNumber(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'object' || !/^-?\d{1,9}$/.test(String(value)))
    throw wrong('invalidValue', `${name}: must be an integer`)
  return Number(value)
}

export function ok(body: object): ScimAnswer {
  return { status: 200, text: JSON.stringify(body) }
}

export function listOf(resources: readonly unknown[], totalResults: number, startIndex: number): object {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  }
}
