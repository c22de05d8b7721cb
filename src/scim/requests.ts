// The requests of SCIM 2.0, and what each is answered.

import type { Work } from '#app.ts'
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
import { type ScimInput, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import {
  changeScimUser,
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
} from '#domains/iam/scim/scim-users.service.ts'
import type { HttpArrival } from '#edge/doors.ts'
import { jsonLimits, readBody } from '#edge/read-body.ts'
import { jsonProblem } from '#lib/json/json-limits.ts'
import { maxBodyBytes, maxResults, resourceTypes, schemas, serviceProviderConfig } from './documents.ts'
import { ScimError, wrong } from './errors.ts'
import { readFilter } from './filter.ts'
import { isObject, keyOf } from './names.ts'
import { readPatch } from './patch.ts'
import { type Projection, project, readProjection } from './projection.ts'
import { readAttributes, readResource, replaceResource, resourceOf } from './resource.ts'

export type Answer = { status: number; text?: string; headers?: Readonly<Record<string, string>> }

/** One request whose token was good. `path` is what follows the provider; `named` says what is asked for, for the log. */
export type Asked = {
  arrival: HttpArrival
  url: string
  provider: string
  path: string
  search: string
  named(kind: string): void
}

/** What can be asked for. */
export const kinds = ['Users', 'User', 'Search', 'ServiceProviderConfig', 'ResourceTypes', 'Schemas', 'none']

type Route = (work: Work, asked: Asked, id: string) => Promise<Answer> | Answer

const routes: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  Users: { GET: list, POST: create },
  Search: { POST: search },
  User: { GET: read, PUT: replace, PATCH: patch, DELETE: remove },
  ServiceProviderConfig: { GET: (_, asked) => ok(serviceProviderConfig(baseOf(asked))) },
  ResourceTypes: { GET: (_, asked, id) => document(resourceTypes(baseOf(asked)), id) },
  Schemas: { GET: (_, asked, id) => document(schemas(baseOf(asked)), id) },
}

export async function answerTo(work: Work, asked: Asked): Promise<Answer> {
  const [, head = '', id = '', ...more] = asked.path.split('/')
  const kind = kindOf(head, id)
  const isKnown = more.length === 0 && Object.hasOwn(routes, kind) && (id === '' || kind !== 'ServiceProviderConfig')
  if (!isKnown) {
    asked.named('none')
    throw new ScimError(404, 'only Users, ServiceProviderConfig, ResourceTypes and Schemas are served; no Groups')
  }
  asked.named(kind)
  const here = routes[kind]!
  const method = asked.arrival.req.method === 'HEAD' ? 'GET' : (asked.arrival.req.method ?? '')
  const route = Object.hasOwn(here, method) ? here[method] : undefined
  if (!route) {
    const allow = Object.keys(here).join(', ')
    throw new ScimError(405, `only ${allow}`, { headers: { allow } })
  }
  return route(work, asked, decoded(id))
}

/** Searches by POST have a path of their own (RFC 7644, 3.4.3); all that is searched are people. */
function kindOf(head: string, id: string): string {
  if ((head === 'Users' && id === '.search') || (head === '.search' && id === '')) return 'Search'
  return head === 'Users' && id !== '' ? 'User' : head
}

async function list(work: Work, asked: Asked): Promise<Answer> {
  const query = new URLSearchParams(asked.search)
  const number = (name: string) => readNumber(query.get(name) || undefined, name)
  return find(work, asked, {
    startIndex: number('startIndex'),
    count: number('count'),
    filter: query.get('filter'),
    shown: projectionOf(asked),
  })
}

async function search(work: Work, asked: Asked): Promise<Answer> {
  const body = await readJson(asked.arrival)
  if (!isObject(body)) throw wrong('invalidSyntax', 'the body must be a JSON object')
  const member = (name: string) => body[keyOf(body, name) ?? ''] ?? undefined
  const text = (name: string) => {
    const value = member(name)
    if (value !== undefined && typeof value !== 'string') throw wrong('invalidValue', `${name}: must be a text`)
    return value ?? null
  }
  const names = (name: string) => {
    const value = member(name)
    return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(',') : text(name)
  }
  return find(work, asked, {
    startIndex: readNumber(member('startIndex'), 'startIndex'),
    count: readNumber(member('count'), 'count'),
    filter: text('filter'),
    shown: readProjection(names('attributes'), names('excludedAttributes')),
  })
}

type Search = { startIndex: number | undefined; count: number | undefined; filter: string | null; shown: Projection }

async function find(
  work: Work,
  { url, provider }: Asked,
  { startIndex, count, filter, shown }: Search,
): Promise<Answer> {
  const start = Math.max(1, startIndex ?? 1)
  const limit = Math.min(Math.max(0, count ?? maxResults), maxResults)
  const condition = filter === null || filter.trim() === '' ? undefined : readFilter(filter)
  const { total, users } = await listScimUsers(work, provider, condition, { skip: start - 1, limit })
  const resources = users.map((user) => project({ ...resourceOf(user, url) }, shown))
  return ok(listOf(resources, total, start))
}

async function create(work: Work, asked: Asked): Promise<Answer> {
  const { arrival, url, provider } = asked
  const shown = projectionOf(asked)
  const user = await createScimUser(work, provider, readResource(readAttributes(await readJson(arrival))))
  const answer = one(user, url, shown, 201)
  const location = `${endpointOf(url, provider)}/Users/${user.id}`
  return { ...answer, headers: { ...answer.headers, location } }
}

async function read(work: Work, asked: Asked, id: string): Promise<Answer> {
  const user = await getScimUser(work, asked.provider, id)
  const answer = one(user, asked.url, projectionOf(asked))
  const known = asked.arrival.req.headers['if-none-match']
  const isKnown = known !== undefined && namesVersion(known, versionOf(user))
  return isKnown ? { status: 304, headers: answer.headers ?? {} } : answer
}

/** What is not said of `active` and `externalId` stays as it is: a replacement that knows neither opens no door. */
async function replace(work: Work, asked: Asked, id: string): Promise<Answer> {
  const given = readAttributes(await readJson(asked.arrival))
  return change(work, asked, id, ({ resource }) => replaceResource(resource, given))
}

async function patch(work: Work, asked: Asked, id: string): Promise<Answer> {
  const apply = readPatch(await readJson(asked.arrival))
  return change(work, asked, id, ({ resource }) => readResource(apply(resource, id), resource.active === true))
}

async function change(work: Work, asked: Asked, id: string, apply: (before: ScimUser) => ScimInput): Promise<Answer> {
  const shown = projectionOf(asked)
  const user = await changeScimUser(work, asked.provider, id, (before) => {
    requireVersion(asked, before)
    return apply(before)
  })
  return one(user, asked.url, shown)
}

async function remove(work: Work, asked: Asked, id: string): Promise<Answer> {
  await deleteScimUser(work, asked.provider, id, (before) => requireVersion(asked, before))
  return { status: 204 }
}

/** Throws 412 where the request is for another version of the person. */
function requireVersion({ arrival }: Asked, user: ScimUser): void {
  const wanted = arrival.req.headers['if-match']
  if (wanted === undefined || namesVersion(wanted, versionOf(user))) return
  throw new ScimError(412, 'the user was changed meanwhile: read it again, and send its present version as If-Match')
}

/** Whether a list of entity tags names the version. Versions are weak, and compare without the mark of that. */
function namesVersion(tags: string, version: string): boolean {
  const bare = (tag: string) => tag.trim().replace(/^W\//, '')
  return tags.trim() === '*' || tags.split(',').some((tag) => bare(tag) === bare(version))
}

function projectionOf({ search }: Asked): Projection {
  const query = new URLSearchParams(search)
  return readProjection(query.get('attributes'), query.get('excludedAttributes'))
}

const mediaTypes = /^application\/(?:scim\+)?json(?:\s*;|$)/i

async function readJson(arrival: HttpArrival): Promise<unknown> {
  const type = arrival.req.headers['content-type'] ?? 'application/json'
  if (!mediaTypes.test(type)) throw new ScimError(415, 'the body must be application/scim+json')
  const body = await readBody(arrival, maxBodyBytes)
  const problem = jsonProblem(body, jsonLimits)
  if (problem !== undefined) throw wrong('invalidValue', `the body ${problem}`)
  try {
    return JSON.parse(body.toString('utf8')) as unknown
  } catch {
    throw wrong('invalidSyntax', 'the body is not JSON')
  }
}

function readNumber(value: unknown, name: string): number | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'object' || !/^-?\d{1,9}$/.test(String(value)))
    throw wrong('invalidValue', `${name}: must be a whole number`)
  return Number(value)
}

/** What is no text of a URL is no id either. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

function baseOf({ url, provider }: Asked): string {
  return endpointOf(url, provider)
}

function one(user: ScimUser, url: string, shown: Projection, status = 200): Answer {
  const text = JSON.stringify(project({ ...resourceOf(user, url) }, shown))
  return { status, text, headers: { etag: versionOf(user) } }
}

function ok(body: object): Answer {
  return { status: 200, text: JSON.stringify(body) }
}

function document(all: readonly object[], id: string): Answer {
  if (id === '') return ok(listOf(all, all.length, 1))
  const found = all.find((one) => (one as { id: string }).id === id)
  if (!found) throw new ScimError(404, `${id} is not there`)
  return ok(found)
}

function listOf(resources: readonly unknown[], totalResults: number, startIndex: number): object {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  }
}
