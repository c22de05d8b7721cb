// The requests about people.
import type { Work } from '#app.ts'
import type { GroupOfUser } from '#domains/iam/scim/scim-groups.model.ts'
import { groupsOfScimUsers } from '#domains/iam/scim/scim-groups.service.ts'
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
import { type ScimInput, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import {
  changeScimUser,
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
} from '#domains/iam/scim/scim-users.service.ts'
import {
  type Answer,
  type Asked,
  isKnownVersion,
  listOf,
  ok,
  projectionOf,
  readJson,
  requireVersion,
  type Search,
  searchOf,
  searchOfBody,
} from './exchange.ts'
import { userFilters } from './filter.ts'
import { userKind } from './kinds.ts'
import { readPatch } from './patch.ts'
import { isShown, type Projection, project } from './projection.ts'
import { readAttributes, readResource, replaceResource, resourceOf } from './resource.ts'

export const userRoutes = {
  Users: { GET: list, POST: create },
  Search: { POST: search },
  User: { GET: read, PUT: replace, PATCH: patch, DELETE: remove },
}

async function list(work: Work, asked: Asked): Promise<Answer> {
  return find(work, asked, searchOf(asked, userKind, userFilters))
}

async function search(work: Work, asked: Asked): Promise<Answer> {
  return find(work, asked, await searchOfBody(asked, userKind, userFilters))
}

async function find(work: Work, { url, provider }: Asked, { filter, skip, limit, shown }: Search): Promise<Answer> {
  const { total, users } = await listScimUsers(work, provider, filter, { skip, limit })
  const groups = await groupsShown(work, users, shown)
  const resources = users.map((user) => project({ ...resourceOf(user, url, groups.get(user.id)) }, shown))
  return ok(listOf(resources, total, skip + 1))
}

async function create(work: Work, asked: Asked): Promise<Answer> {
  const { arrival, url, provider } = asked
  const shown = projectionOf(asked, userKind)
  const user = await createScimUser(work, provider, readResource(readAttributes(await readJson(arrival))))
  const answer = await one(work, user, { url, shown, status: 201 })
  const location = `${endpointOf(url, provider)}/Users/${user.id}`
  return { ...answer, headers: { ...answer.headers, location } }
}

async function read(work: Work, asked: Asked, id: string): Promise<Answer> {
  const user = await getScimUser(work, asked.provider, id)
  const answer = await one(work, user, { url: asked.url, shown: projectionOf(asked, userKind) })
  return isKnownVersion(asked, versionOf(user)) ? { status: 304, headers: answer.headers ?? {} } : answer
}

/** Keeps `active` and `externalId` if the request leaves them out, so that it cannot open a closed account by omission. */
async function replace(work: Work, asked: Asked, id: string): Promise<Answer> {
  const given = readAttributes(await readJson(asked.arrival))
  return change(work, asked, id, ({ resource }) => replaceResource(resource, given))
}

async function patch(work: Work, asked: Asked, id: string): Promise<Answer> {
  const apply = readPatch(await readJson(asked.arrival))
  return change(work, asked, id, ({ resource }) => readResource(apply(resource, id), resource.active === true))
}

async function change(work: Work, asked: Asked, id: string, apply: (before: ScimUser) => ScimInput): Promise<Answer> {
  const shown = projectionOf(asked, userKind)
  const user = await changeScimUser(work, asked.provider, id, (before) => {
    requireVersion(asked, versionOf(before), userKind)
    return apply(before)
  })
  return one(work, user, { url: asked.url, shown })
}

async function remove(work: Work, asked: Asked, id: string): Promise<Answer> {
  await deleteScimUser(work, asked.provider, id, (before) => requireVersion(asked, versionOf(before), userKind))
  return { status: 204 }
}

async function groupsShown(
  work: Work,
  users: readonly ScimUser[],
  shown: Projection,
): Promise<ReadonlyMap<string, readonly GroupOfUser[]>> {
  if (!isShown(shown, 'groups')) return new Map()
  return groupsOfScimUsers(
    work,
    users.map(({ id }) => id),
  )
}

async function one(
  work: Work,
  user: ScimUser,
  { url, shown, status = 200 }: { url: string; shown: Projection; status?: number },
): Promise<Answer> {
  const groups = await groupsShown(work, [user], shown)
  const text = JSON.stringify(project({ ...resourceOf(user, url, groups.get(user.id)) }, shown))
  return { status, text, headers: { etag: versionOf(user) } }
}
