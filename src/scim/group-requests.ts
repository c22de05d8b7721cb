// The requests about groups.
import type { Work } from '#app.ts'
import {
  type MemberChange,
  type ScimGroup,
  type ScimGroupInput,
  versionOfGroup,
} from '#domains/iam/scim/scim-groups.model.ts'
import {
  changeScimGroup,
  createScimGroup,
  deleteScimGroup,
  getScimGroup,
  listScimGroups,
  membersOfScimGroups,
} from '#domains/iam/scim/scim-groups.service.ts'
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
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
import { groupFilters } from './filter.ts'
import { groupResourceOf, readGroup, readGroupPatch, readMembers, replaceGroup } from './group-resource.ts'
import { groupKind } from './kinds.ts'
import { isShown, type Projection, project } from './projection.ts'
import { readAttributes } from './resource.ts'

export const groupRoutes = {
  Groups: { GET: list, POST: create },
  GroupSearch: { POST: search },
  Group: { GET: read, PUT: replace, PATCH: patch, DELETE: remove },
}

async function list(work: Work, asked: Asked): Promise<Answer> {
  return find(work, asked, searchOf(asked, groupKind, groupFilters))
}

async function search(work: Work, asked: Asked): Promise<Answer> {
  return find(work, asked, await searchOfBody(asked, groupKind, groupFilters))
}

async function find(work: Work, { url, provider }: Asked, { filter, skip, limit, shown }: Search): Promise<Answer> {
  const withMembers = isShown(shown, 'members')
  const { total, groups, members } = await listScimGroups(work, provider, { filter, skip, limit, withMembers })
  const resources = groups.map((group) => {
    return project({ ...groupResourceOf(group, members.get(group.id) ?? [], url) }, shown)
  })
  return ok(listOf(resources, total, skip + 1))
}

async function create(work: Work, asked: Asked): Promise<Answer> {
  const { arrival, url, provider } = asked
  const shown = projectionOf(asked, groupKind)
  const given = readAttributes(await readJson(arrival), groupKind)
  const group = await createScimGroup(work, provider, readGroup(given), readMembers(given).ids)
  const answer = await one(work, group, { url, shown, status: 201 })
  const location = `${endpointOf(url, provider)}/Groups/${group.id}`
  return { ...answer, headers: { ...answer.headers, location } }
}

async function read(work: Work, asked: Asked, id: string): Promise<Answer> {
  const shown = projectionOf(asked, groupKind)
  const group = await getScimGroup(work, asked.provider, id)
  const version = versionOfGroup(group)
  if (isKnownVersion(asked, version)) return { status: 304, headers: { etag: version } }
  return one(work, group, { url: asked.url, shown })
}

async function replace(work: Work, asked: Asked, id: string): Promise<Answer> {
  const given = readAttributes(await readJson(asked.arrival), groupKind)
  const members = [readMembers(given)]
  return change(work, asked, id, (before) => ({ input: replaceGroup(before.resource, given), members }))
}

async function patch(work: Work, asked: Asked, id: string): Promise<Answer> {
  const { members, apply } = readGroupPatch(await readJson(asked.arrival))
  return change(work, asked, id, ({ resource }) => ({ input: apply(resource, id), members }))
}

type Change = { input: ScimGroupInput; members: readonly MemberChange[] }

async function change(work: Work, asked: Asked, id: string, apply: (before: ScimGroup) => Change): Promise<Answer> {
  const shown = projectionOf(asked, groupKind)
  const group = await changeScimGroup(work, asked.provider, id, (before) => {
    requireVersion(asked, versionOfGroup(before), groupKind)
    return apply(before)
  })
  return one(work, group, { url: asked.url, shown })
}

async function remove(work: Work, asked: Asked, id: string): Promise<Answer> {
  await deleteScimGroup(work, asked.provider, id, (before) => {
    requireVersion(asked, versionOfGroup(before), groupKind)
  })
  return { status: 204 }
}

async function one(
  work: Work,
  group: ScimGroup,
  { url, shown, status = 200 }: { url: string; shown: Projection; status?: number },
): Promise<Answer> {
  const members = isShown(shown, 'members') ? await membersOfScimGroups(work, [group.id]) : undefined
  const text = JSON.stringify(project({ ...groupResourceOf(group, members?.get(group.id) ?? [], url) }, shown))
  return { status, text, headers: { etag: versionOfGroup(group) } }
}
