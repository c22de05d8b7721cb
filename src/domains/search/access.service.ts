// The part of the hierarchy that a search covers for each kind of result.
import type { Call } from '#app.ts'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { findGroupUid, groupExists } from '#domains/iam/groups/groups.service.ts'
import { findRepoByUid } from '#domains/registry/repos/paths.service.ts'
import { invalid, notFound, permissionDenied } from '#lib/errors.ts'
import { isAtOrBelow, isUid, top } from '#lib/uid.ts'
import type { Wanted } from './search.model.ts'

const reposList = [capabilityNumber('repo.list')]
const tagsList = [...reposList, capabilityNumber('tag.list')]

/** Capabilities that the caller needs to find something, as for its list. */
export const needs = {
  groups: [capabilityNumber('groups.list')],
  repos: reposList,
  tags: tagsList,
  packages: [...tagsList, capabilityNumber('sboms.list')],
  vulnerabilities: [...tagsList, capabilityNumber('vuln_reports.list')],
  identities: [capabilityNumber('identity.list')],
  persons: [capabilityNumber('role_bindings.list')],
} as const
export type Need = keyof typeof needs

/** Highest groups and repositories in which the caller can find something. They do not contain each other. */
export type Scopes = Readonly<Record<Need, readonly string[]>>

/**
 * Throws PERMISSION_DENIED for a scope in which the caller can find nothing, and then NOT_FOUND for a missing one. In this order,
 * the error does not tell strangers whether the scope exists.
 */
export async function searchScopes(call: Call, scope: string): Promise<Scopes> {
  if (scope !== '' && !isUid(scope)) throw invalid({ field: 'scope_uid', description: 'is not a uid' })
  const within = scope === '' ? top : scope
  const found = Object.entries(needs).map(([need, numbers]) => [
    need,
    narrowed(call.caller.rights.roots(numbers), within),
  ])
  const scopes = Object.fromEntries(found) as Scopes
  if (scope === '') return scopes
  if (Object.values(scopes).every((roots) => roots.length === 0)) throw permissionDenied()
  const { db } = call.app
  if (!(await groupExists(db, scope)) && !(await findRepoByUid(db, scope)))
    throw notFound('iam.pinfold.dev/Group', scope)
  return scopes
}

/** The parts of the scopes that are in a group or repository. */
export function narrowed(scopes: readonly string[], within: string): readonly string[] {
  if (scopes.some((scope) => isAtOrBelow(within, scope))) return [within]
  return scopes.filter((scope) => isAtOrBelow(scope, within))
}

/** Uid of the group before the last slash of the text. Empty if there is no slash, and undefined if there is no such group. */
export async function groupInText({ app: { db } }: Call, { groups }: Wanted): Promise<string | undefined> {
  if (!groups) return ''
  let group: string | undefined = top
  for (const name of groups) {
    group = await findGroupUid(db, group, name)
    if (group === undefined) return undefined
  }
  return group
}
