// Explains why an identity has a capability on a group, or why not. Uses the same bindings, sessions and rules as real requests.
import type { Call } from '#app.ts'
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { isAtOrBelow, isUid, lineage, parentOf, top } from '#lib/uid.ts'
import { operatorRole } from '../access/built-in-roles.ts'
import { capabilities, capabilityNumber, maskOf, withIncluded } from '../access/capabilities.ts'
import { holdsByBindings } from '../roles/grants.ts'
import {
  type Effect,
  type ExplainedBinding,
  type Explanation,
  most,
  type SufficientRole,
} from './explanations.model.ts'
import * as store from './explanations.store.ts'
import { explainGroupRoles } from './group-roles.service.ts'

const listBindings = [capabilityNumber('role_bindings.list')]
const listRoles = [capabilityNumber('roles.list')]
const binds = capabilityNumber('role_bindings.create')

type Question = { uid: string; identityUid: string; capability: number }

export async function explainAccess(call: Call, asked: Question): Promise<Explanation> {
  checkRequest(asked)
  const { uid, identityUid, capability } = asked
  const { db } = call.app
  const scopes = lineage(uid)
  const rows = await store.bindingsAt(db, identityUid, scopes, most.bindings)
  const home = parentOf(identityUid)
  const exists = (await call.app.grants.of(identityUid)) !== undefined
  const bindings = (exists ? rows : [])
    .map(({ scope, accepted, capabilities: held, ...row }): ExplainedBinding => {
      const shown = call.caller.rights.holds(scope, listBindings) ? row : hidden
      const effect = effectOf({ holds: holds(held, [capability]), accepted: accepted === 1, scope, home })
      return { ...shown, groupUid: scope, inherited: scope !== uid, effect }
    })
    .sort((a, b) => Number(b.effect === 'grants') - Number(a.effect === 'grants'))
  const groupRoles = exists ? await explainGroupRoles(call, asked) : []
  // The result considers all bindings, even if the explanation shows only the first ones.
  const isBound = await holdsByBindings(db, identityUid, uid, [capability])
  const allowed = isBound || groupRoles.some(({ effect }) => effect === 'grants')
  const remedies = allowed ? { sufficientRoles: [], grantors: [] } : await findRemedies(call, asked)
  return { allowed, bindings, groupRoles: groupRoles.slice(0, most.groupRoles), ...remedies }
}

const hidden = { uid: '', groupName: '', roleUid: '', roleName: '' }

function checkRequest({ identityUid, capability }: Question): void {
  const problems: FieldViolation[] = []
  if (identityUid === '') problems.push({ field: 'identity_uid', description: 'is required' })
  else if (!isUid(identityUid)) problems.push({ field: 'identity_uid', description: 'is not a uid' })
  if (capability === 0) problems.push({ field: 'capability', description: 'is required' })
  else if (!capabilities.has(capability)) problems.push({ field: 'capability', description: 'is not a capability' })
  refuseIfAny(problems)
}

function effectOf(binding: { holds: boolean; accepted: boolean; scope: string; home: string }): Effect {
  if (!binding.holds) return 'roleLacksIt'
  if (!binding.accepted) return 'notAccepted'
  return isAtOrBelow(binding.scope, binding.home) ? 'grants' : 'aboveHome'
}

function holds(held: string, wanted: readonly number[]): boolean {
  const need = maskOf(wanted)
  return (withIncluded(maskOf(JSON.parse(held) as number[])) & need) === need
}

/**
 * Roles that would grant the capability, and identities that can grant such a role. These identities hold the capability and can
 * create bindings.
 */
async function findRemedies(call: Call, asked: Question): Promise<Pick<Explanation, 'sufficientRoles' | 'grantors'>> {
  const { uid, identityUid, capability } = asked
  const { rights } = call.caller
  const scopes = lineage(uid)
  const seen = [...scopes.filter((scope) => rights.holds(scope, listRoles)), top]
  const roles = (await store.rolesAt(call.app.db, seen)).filter((role) => role.uid !== operatorRole.uid)
  // An identity cannot have permissions above its own group.
  const reachable = isAtOrBelow(uid, parentOf(identityUid))
  const sufficient = reachable ? roles.filter((role) => holds(role.capabilities, [capability])) : []
  const counted = sufficient.map(({ uid: role, name, capabilities: held }): SufficientRole => {
    return { uid: role, name, capabilityCount: (JSON.parse(held) as number[]).length }
  })
  const giving = sufficient.filter((role) => holds(role.capabilities, [capability, binds])).map((role) => role.uid)
  const visible = scopes.filter((scope) => rights.holds(scope, listBindings))
  const holders =
    giving.length === 0 ? [] : await store.holdersOf(call.app.db, visible, giving, { limit: most.grantors })
  return {
    sufficientRoles: counted.sort((a, b) => a.capabilityCount - b.capabilityCount).slice(0, most.roles),
    grantors: holders.map(({ name, email, ...holder }) => ({ ...holder, name: name || email })),
  }
}
