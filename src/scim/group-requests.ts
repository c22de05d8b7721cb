// Requests about groups.
import { type ScimGroup, type ScimGroupChange, versionOfGroup } from '#domains/iam/scim/scim-groups.model.ts'
import {
  changeScimGroup,
  createScimGroup,
  deleteScimGroup,
  getScimGroup,
  listScimGroups,
  membersOfScimGroups,
} from '#domains/iam/scim/scim-groups.service.ts'
import { groupFilters } from './filter.ts'
import { groupResourceOf, readGroup, readGroupPatch, readMembers, replaceGroup } from './group-resource.ts'
import { groupKind } from './kinds.ts'
import { isShown } from './projection.ts'
import { createRoutes } from './resource-routes.ts'

export const groupRoutes = createRoutes<ScimGroup, ScimGroupChange>({
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
