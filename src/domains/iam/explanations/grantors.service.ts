// People whom the members of an organization can ask for access.
import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import { rootOf, top } from '#lib/uid.ts'
import { operatorRole } from '../access/built-in-roles.ts'
import { capabilityNumber, maskOf } from '../access/capabilities.ts'
import { findOrganization } from '../groups/groups.service.ts'
import * as store from './explanations.store.ts'

export type Grantor = { name: string; email: string; roleName: string }

const grants = maskOf([capabilityNumber('role_bindings.create')])
const most = { read: 50, shown: 10 }

/** Empty if the caller has no role in the organization, and if the organization does not exist. */
export async function lookupGrantors({ app, caller }: Call, organization: string): Promise<Grantor[]> {
  if (organization === '') throw invalid({ field: 'organization', description: 'is required' })
  const { db } = app
  const group = await findOrganization(db, organization)
  const scopes = [...caller.rights.grants().keys()]
  const isMember = group !== undefined && scopes.some((scope) => scope === top || rootOf(scope) === group.uid)
  if (!isMember) return []
  const roles = (await store.rolesAt(db, [group.uid, top])).filter(({ uid, capabilities }) => {
    return uid !== operatorRole.uid && (maskOf(JSON.parse(capabilities) as number[]) & grants) === grants
  })
  const people = await store.holdersOf(
    db,
    [group.uid],
    roles.map(({ uid }) => uid),
    { limit: most.read, peopleOnly: true },
  )
  const unique = new Map(people.map((one) => [one.identityUid, one]))
  return [...unique.values()].slice(0, most.shown).map(({ name, email, roleName }) => ({ name, email, roleName }))
}
