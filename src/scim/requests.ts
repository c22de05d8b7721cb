// The requests of SCIM 2.0, and what each is answered.

import type { Work } from '#app.ts'
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
import type { ScimResource, ScimUser } from '#domains/iam/scim/scim-users.model.ts'
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
import { readPatch } from './patch.ts'
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
export const kinds = ['Users', 'User', 'ServiceProviderConfig', 'ResourceTypes', 'Schemas', 'none']

type Route = (work: Work, asked: Asked, id: string) => Promise<Answer> | Answer

const routes: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
  Users: { GET: list, POST: create },
  User: { GET: read, PUT: replace, PATCH: patch, DELETE: remove },
  ServiceProviderConfig: { GET: (_, asked) => ok(serviceProviderConfig(baseOf(asked))) },
  ResourceTypes: { GET: (_, asked, id) => document(resourceTypes(baseOf(asked)), id) },
  Schemas: { GET: (_, asked, id) => document(schemas(baseOf(asked)), id) },
}

export async function answerTo(work: Work, asked: Asked): Promise<Answer> {
  const [, head = '', id = '', ...more] = asked.path.split('/')
  const kind = head === 'Users' && id !== '' ? 'User' : head
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

async function list(work: Work, { url, provider, search }: Asked): Promise<Answer> {
  const query = new URLSearchParams(search)
  const start = Math.max(1, readNumber(query, 'startIndex') ?? 1)
  const limit = Math.min(Math.max(0, readNumber(query, 'count') ?? maxResults), maxResults)
  const text = query.get('filter')
  const filter = text === null ? {} : readFilter(text)
  const page = { skip: start - 1, limit }
  const { total, users } =
    filter === 'nobody' ? { total: 0, users: [] } : await listScimUsers(work, provider, filter, page)
  return ok(
    listOf(
      users.map((user) => resourceOf(user, url)),
      total,
      start,
    ),
  )
}

async function create(work: Work, { arrival, url, provider }: Asked): Promise<Answer> {
  const user = await createScimUser(work, provider, readResource(readAttributes(await readJson(arrival))))
  return { ...one(user, url, 201), headers: { location: `${endpointOf(url, provider)}/Users/${user.id}` } }
}

async function read(work: Work, { url, provider }: Asked, id: string): Promise<Answer> {
  return one(await getScimUser(work, provider, id), url)
}

/** What is not said of `active` and `externalId` stays as it is: a replacement that knows neither opens no door. */
async function replace(work: Work, { arrival, url, provider }: Asked, id: string): Promise<Answer> {
  const given = readAttributes(await readJson(arrival))
  return one(await changeScimUser(work, provider, id, (before) => replaceResource(before, given)), url)
}

async function patch(work: Work, { arrival, url, provider }: Asked, id: string): Promise<Answer> {
  const apply = readPatch(await readJson(arrival))
  const change = (before: ScimResource) => readResource(apply(before, id), before.active === true)
  return one(await changeScimUser(work, provider, id, change), url)
}

async function remove(work: Work, { provider }: Asked, id: string): Promise<Answer> {
  await deleteScimUser(work, provider, id)
  return { status: 204 }
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

function readNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^-?\d{1,9}$/.test(text)) throw wrong('invalidValue', `${name}: must be a whole number`)
  return Number(text)
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

function one(user: ScimUser, url: string, status = 200): Answer {
  return { status, text: JSON.stringify(resourceOf(user, url)) }
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
