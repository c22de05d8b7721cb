// Roles that an identity has through groups of its identity provider, for explanations of access. Such a role applies only in
// sessions that were started with the provider, and only in the provider's organization.
import type { Call } from '#app.ts'
import { isAtOrBelow, rootOf } from '#lib/uid.ts'
import { capabilityNumber, maskOf, withIncluded } from '../access/capabilities.ts'
import { rolesByUid } from '../roles/roles.store.ts'
import { pushedRoles } from '../scim/scim-groups.store.ts'
import type { Session } from '../sessions/sessions.model.ts'
import { sessionsOf } from '../sessions/sessions.store.ts'
import type { ExplainedGroupRole } from './explanations.model.ts'
import * as store from './explanations.store.ts'

const listBindings = [capabilityNumber('role_bindings.list')]
const listProviders = [capabilityNumber('identity_providers.list')]

type Asked = { uid: string; identityUid: string; capability: number }
/** Role of one session. `holds` is true if the role has the requested capability in this session. */
type Held = { externalGroupId: string; roleUid: string; roleName: string; scope: string; holds: boolean }
type Found = Held & { provider: string; provisioned: boolean }

/** Roles of all current sessions. Roles that grant the capability come first. */
export async function explainGroupRoles(call: Call, asked: Asked): Promise<ExplainedGroupRole[]> {
  const { db } = call.app
  const organization = rootOf(asked.uid)
  const sessions = (await sessionsOf(db, asked.identityUid, organization)).filter(({ endTime }) => endTime > call.now)
  const found = [...(await sentRoles(call, sessions, asked)), ...(await provisionedRoles(call, sessions, asked))]
  const inside = found.filter(({ scope }) => rootOf(scope) === organization && isAtOrBelow(asked.uid, scope))
  const names = await store.groupNames(db, [...new Set(inside.map(({ scope }) => scope))])
  const rows = inside.map((one) => toExplained(call, asked, one, names.get(one.scope) ?? ''))
  const unique = new Map(rows.map((row) => [JSON.stringify(row), row]))
  return [...unique.values()].sort((a, b) => Number(b.effect === 'grants') - Number(a.effect === 'grants'))
}

function toExplained(
  { caller: { rights } }: Call,
  { uid }: Asked,
  { externalGroupId, provider, provisioned, roleUid, roleName, scope, holds }: Found,
  groupName: string,
): ExplainedGroupRole {
  const isSeen = rights.holds(scope, listBindings)
  return {
    ...(rights.holds(scope, listProviders)
      ? { externalGroupId, identityProviderUid: provider }
      : { externalGroupId: '', identityProviderUid: '' }),
    ...(isSeen ? { groupName, roleUid, roleName } : { groupName: '', roleUid: '', roleName: '' }),
    ...{ provisioned, groupUid: scope, inherited: scope !== uid },
    effect: holds ? 'grants' : 'roleLacksIt',
  }
}

/** Roles of the groups that the provider sent at the sign-in. A session keeps the capabilities that these roles had then. */
async function sentRoles({ app }: Call, sessions: readonly Session[], { capability }: Asked): Promise<Found[]> {
  const uids = sessions.flatMap(({ groupRoles }) => groupRoles.map(({ roleUid }) => roleUid))
  const roles = await rolesByUid(app.db, uids)
  const need = maskOf([capability])
  return sessions.flatMap(({ provider, granted, groupRoles }) => {
    const grants = (scope: string) => (withIncluded(granted.get(scope) ?? 0n) & need) === need
    const known = groupRoles.map(({ scope, roleUid, externalGroupId }): Found => {
      const role = roles.get(roleUid)
      const holds = grants(scope) && (withIncluded(maskOf(role?.capabilities ?? [])) & need) === need
      return { externalGroupId, provider, provisioned: false, roleUid, roleName: role?.name ?? '', scope, holds }
    })
    // The capability is from a role that has lost it since the sign-in, or from a session that an earlier build started.
    const unnamed = [...granted.keys()]
      .filter((scope) => grants(scope) && !known.some((one) => one.scope === scope && one.holds))
      .map((scope): Found => {
        return { externalGroupId: '', provider, provisioned: false, roleUid: '', roleName: '', scope, holds: true }
      })
    return [...known, ...unnamed]
  })
}

/** Roles of the groups that the provider has provisioned for the person over SCIM, as of now. */
async function provisionedRoles({ app }: Call, sessions: readonly Session[], { capability }: Asked): Promise<Found[]> {
  const people = new Map(
    sessions
      .filter(({ externalId }) => externalId !== '')
      .map(({ provider, externalId }) => [`${provider} ${externalId}`, { provider, externalId }]),
  )
  const need = maskOf([capability])
  const found: Found[] = []
  for (const { provider, externalId } of people.values()) {
    for (const { capabilities, ...role } of await pushedRoles(app.db, provider, externalId)) {
      const holds = (withIncluded(maskOf(JSON.parse(capabilities) as number[])) & need) === need
      found.push({ ...role, provider, provisioned: true, holds })
    }
  }
  return found
}
