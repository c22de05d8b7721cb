// Router of SCIM 2.0 requests, by path and method.
import type { Work } from '#app.ts'
import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import { type ScimGroup, type ScimGroupChange, versionOfGroup } from '#domains/iam/scim/scim-groups.model.ts'
import {
  changeScimGroup,
  createScimGroup,
  deleteScimGroup,
  getScimGroup,
  groupsOfScimUsers,
  listScimGroups,
  membersOfScimGroups,
} from '#domains/iam/scim/scim-groups.service.ts'
import { type ScimInput, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import {
  changeScimUser,
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
} from '#domains/iam/scim/scim-users.service.ts'
import { resourceTypes, schemas, serviceProviderConfig } from './documents.ts'
import { ScimError } from './errors.ts'
import { listOf, ok, type ScimAnswer, type ScimRequest } from './exchange.ts'
import { groupFilters, userFilters } from './filter.ts'
import { groupResourceOf, readGroup, readGroupPatch, readMembers, replaceGroup } from './group-resource.ts'
import { groupKind, userKind } from './kinds.ts'
import { readPatch } from './patch.ts'
import { isShown } from './projection.ts'
import { readResource, replaceResource, resourceOf } from './resource.ts'
import { createRoutes, type Routes } from './resource-routes.ts'

const userRoutes = createRoutes<ScimUser, ScimInput>({
  kind: userKind,
  filters: userFilters,
  versionOf,
  async list(work, provider, { filter, skip, limit }) {
    const { total, users } = await listScimUsers(work, provider, filter, { skip, limit })
    return { total, found: users }
  },
  get: getScimUser,
  create: (work, provider, given) => createScimUser(work, provider, readResource(given)),
  change: changeScimUser,
  delete: deleteScimUser,
  /**
   * If a request omits `active` or `externalId`, the previous value is kept, so that the omission cannot enable a disabled
   * account.
   */
  readReplacement:
    (given) =>
    ({ resource }) =>
      replaceResource(resource, given),
  readPatch(body) {
    const apply = readPatch(body)
    return ({ resource, id }) => readResource(apply(resource, id), resource.active === true)
  },
  async describe(work, users, shown, url) {
    const ids = isShown(shown, 'groups') ? users.map(({ id }) => id) : []
    const groups = await groupsOfScimUsers(work, ids)
    return users.map((user) => resourceOf(user, url, groups.get(user.id)))
  },
})

const groupRoutes = createRoutes<ScimGroup, ScimGroupChange>({
  kind: groupKind,
  filters: groupFilters,
  versionOf: versionOfGroup,
  async list(work, provider, { filter, skip, limit, shown }) {
    const withMembers = isShown(shown, 'members')
    const { total, groups } = await listScimGroups(work, provider, { filter, skip, limit, withMembers })
    return { total, found: groups }
  },
  get: getScimGroup,
  create: (work, provider, given) => createScimGroup(work, provider, readGroup(given), readMembers(given).ids),
  change: changeScimGroup,
  delete: deleteScimGroup,
  readReplacement(given) {
    const members = [readMembers(given)]
    return ({ resource }) => ({ input: replaceGroup(resource, given), members })
  },
  readPatch(body) {
    const { members, apply } = readGroupPatch(body)
    return ({ resource, id }) => ({ input: apply(resource, id), members })
  },
  async describe(work, groups, shown, url) {
    const ids = isShown(shown, 'members') ? groups.map(({ id }) => id) : []
    const members = await membersOfScimGroups(work, ids)
    return groups.map((group) => groupResourceOf(group, members.get(group.id) ?? [], url))
  },
})

const routes: Readonly<Record<string, Routes>> = {
  Users: userRoutes.all,
  User: userRoutes.one,
  Search: userRoutes.search,
  Groups: groupRoutes.all,
  Group: groupRoutes.one,
  GroupSearch: groupRoutes.search,
  ServiceProviderConfig: { GET: (_, asked) => ok(serviceProviderConfig(baseOf(asked))) },
  ResourceTypes: { GET: (_, asked, id) => document(resourceTypes(baseOf(asked)), id) },
  Schemas: { GET: (_, asked, id) => document(schemas(baseOf(asked)), id) },
}

/** Names of the routes, for the log and the metrics. */
export const kinds = [...Object.keys(routes), 'none']

export async function answerTo(work: Work, asked: ScimRequest): Promise<ScimAnswer> {
  const [, head = '', id = '', ...more] = asked.path.split('/')
  const kind = kindOf(head, id)
  const isKnown = more.length === 0 && Object.hasOwn(routes, kind) && (id === '' || kind !== 'ServiceProviderConfig')
  if (!isKnown) {
    asked.arrival.named('none')
    throw new ScimError(
      404,
      'unknown SCIM endpoint; the server has Users, Groups, ServiceProviderConfig, ResourceTypes and Schemas',
    )
  }
  asked.arrival.named(kind)
  const here = routes[kind]!
  const method = asked.arrival.req.method === 'HEAD' ? 'GET' : (asked.arrival.req.method ?? '')
  const route = Object.hasOwn(here, method) ? here[method] : undefined
  if (!route) {
    const allow = Object.keys(here).join(', ')
    throw new ScimError(405, `only ${allow} are allowed`, { headers: { allow } })
  }
  return route(work, asked, decoded(id))
}

/**
 * Name of the route. A search by POST has its own path (RFC 7644, 3.4.3). If this path names no kind of resource, the search is
 * for users.
 */
function kindOf(head: string, id: string): string {
  if ((head === 'Users' && id === '.search') || (head === '.search' && id === '')) return 'Search'
  if (head === 'Groups' && id === '.search') return 'GroupSearch'
  if (id === '') return head
  return { Users: 'User', Groups: 'Group' }[head] ?? head
}

/** Decodes the percent-encoding of an ID. Returns an ID with invalid encoding unchanged; no resource has such an ID. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

function baseOf({ url, provider }: ScimRequest): string {
  return endpointOf(url, provider)
}

function document(all: readonly object[], id: string): ScimAnswer {
  if (id === '') return ok(listOf(all, all.length, 1))
  const found = all.find((one) => (one as { id: string }).id === id)
  if (!found) throw new ScimError(404, `${id} was not found`)
  return ok(found)
}
