// Requests about people.
import { groupsOfScimUsers } from '#domains/iam/scim/scim-groups.service.ts'
import { type ScimInput, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import {
  changeScimUser,
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
} from '#domains/iam/scim/scim-users.service.ts'
import { userFilters } from './filter.ts'
import { userKind } from './kinds.ts'
import { readPatch } from './patch.ts'
import { isShown } from './projection.ts'
import { readResource, replaceResource, resourceOf } from './resource.ts'
import { createRoutes } from './resource-routes.ts'

export const userRoutes = createRoutes<ScimUser, ScimInput>({
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
  /** Keeps `active` and `externalId` if the request leaves them out, so that it cannot open a closed account by omission. */
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
