// Permissions of the user by scope. Buttons without permission are hidden. The server checks each request anyway.
import type { CapabilityJson } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { ask } from './api.ts'
import type { Role, WhoAmI } from './types.ts'

/** Capabilities that buttons need, with their names in custom roles. */
const named = {
  'groups.create': 'CAP_IAM_GROUPS_CREATE',
  'groups.update': 'CAP_IAM_GROUPS_UPDATE',
  'groups.delete': 'CAP_IAM_GROUPS_DELETE',
  'groups.list': 'CAP_IAM_GROUPS_LIST',
  'group_invites.create': 'CAP_IAM_GROUP_INVITES_CREATE',
  'group_invites.list': 'CAP_IAM_GROUP_INVITES_LIST',
  'group_invites.delete': 'CAP_IAM_GROUP_INVITES_DELETE',
  'role_bindings.create': 'CAP_IAM_ROLE_BINDINGS_CREATE',
  'role_bindings.update': 'CAP_IAM_ROLE_BINDINGS_UPDATE',
  'role_bindings.list': 'CAP_IAM_ROLE_BINDINGS_LIST',
  'role_bindings.delete': 'CAP_IAM_ROLE_BINDINGS_DELETE',
  'identity.create': 'CAP_IAM_IDENTITY_CREATE',
  'identity.delete': 'CAP_IAM_IDENTITY_DELETE',
  'identity.list': 'CAP_IAM_IDENTITY_LIST',
  'identity_providers.list': 'CAP_IAM_IDENTITY_PROVIDERS_LIST',
  'identity_providers.update': 'CAP_IAM_IDENTITY_PROVIDERS_UPDATE',
  'identity_providers.delete': 'CAP_IAM_IDENTITY_PROVIDERS_DELETE',
  'identity_providers.create': 'CAP_IAM_IDENTITY_PROVIDERS_CREATE',
  'identity_providers.scim.manage': 'CAP_IAM_SCIM_MANAGE',
  'roles.create': 'CAP_IAM_ROLES_CREATE',
  'roles.update': 'CAP_IAM_ROLES_UPDATE',
  'roles.list': 'CAP_IAM_ROLES_LIST',
  'roles.delete': 'CAP_IAM_ROLES_DELETE',
  'identity.update': 'CAP_IAM_IDENTITY_UPDATE',
  'subscriptions.create': 'CAP_EVENTS_SUBSCRIPTION_CREATE',
  'subscriptions.update': 'CAP_EVENTS_SUBSCRIPTION_UPDATE',
  'subscriptions.list': 'CAP_EVENTS_SUBSCRIPTION_LIST',
  'subscriptions.delete': 'CAP_EVENTS_SUBSCRIPTION_DELETE',
  'repo.create': 'CAP_REPO_CREATE',
  'repo.update': 'CAP_REPO_UPDATE',
  'repo.delete': 'CAP_REPO_DELETE',
  'repo.list': 'CAP_REPO_LIST',
  'tag.list': 'CAP_TAG_LIST',
  'tag.create': 'CAP_TAG_CREATE',
  'tag.delete': 'CAP_TAG_DELETE',
  'registry.settings.update': 'CAP_REGISTRY_SETTINGS_UPDATE',
  'registry.rules.list': 'CAP_REGISTRY_RULES_LIST',
  'audit.list': 'CAP_AUDIT_LIST',
  'manifest.create': 'CAP_MANIFEST_CREATE',
  'manifest.delete': 'CAP_MANIFEST_DELETE',
  'repo.blobs.get': 'CAP_REPO_BLOBS_GET',
  'tag.update': 'CAP_TAG_UPDATE',
  'manifest.list': 'CAP_MANIFEST_LIST',
  'repo.check_policies': 'CAP_REPO_CHECK_POLICIES',
  'policies.policy.create': 'CAP_POLICIES_POLICY_CREATE',
  'policies.policy.update': 'CAP_POLICIES_POLICY_UPDATE',
  'policies.policy.list': 'CAP_POLICIES_POLICY_LIST',
  'policies.policy.delete': 'CAP_POLICIES_POLICY_DELETE',
  'policies.override.create': 'CAP_POLICIES_OVERRIDE_CREATE',
  'policies.override.list': 'CAP_POLICIES_OVERRIDE_LIST',
  'policies.override.delete': 'CAP_POLICIES_OVERRIDE_DELETE',
  'sboms.list': 'CAP_TENANT_SBOMS_LIST',
  'vuln.create': 'CAP_VULN_CREATE',
  'vuln_reports.list': 'CAP_TENANT_VULN_REPORTS_LIST',
  'advisories.list': 'CAP_ADVISORIES_LIST',
  'advisories.update': 'CAP_ADVISORIES_UPDATE',
} as const satisfies Record<string, CapabilityJson>

export type CapabilityName = keyof typeof named

/** Capabilities that custom roles can have, each with its name and its enum name. The server has more. */
export const capabilityNames: readonly (readonly [string, string])[] = Object.entries(named)

type Held = { scope: string; names: ReadonlySet<string> | 'all' }
export type Rights = { held: readonly Held[] }

/** Permissions of the user. */
export async function readRights(): Promise<Rights> {
  const who = await ask<WhoAmI>('GET', '/auth/v1/ok')
  const roles = who.capabilities.some((one) => one.role) ? await builtInRoles() : new Map<string, ReadonlySet<string>>()
  const held = who.capabilities.map(({ group, role, capabilities }): Held => {
    if (role?.name === 'operator') return { scope: '/', names: 'all' }
    const ofRole = role ? (roles.get(role.id) ?? new Set<string>()) : new Set<string>()
    return { scope: group.id, names: new Set([...ofRole, ...capabilities]) }
  })
  return { held }
}

async function builtInRoles(): Promise<Map<string, ReadonlySet<string>>> {
  const query = { 'uidp.inRoot': true, pageSize: 200 }
  const { roles } = await ask<{ roles: Role[] }>('GET', '/iam/v2/roles', { query }).catch(() => ({ roles: [] }))
  return new Map(roles.map(({ uid, capabilities }) => [uid, new Set<string>(capabilities)]))
}

/** Capabilities to read that a capability to change includes. */
const includedBy: Partial<Record<CapabilityName, CapabilityName>> = {
  'audit.list': 'role_bindings.update',
  'registry.rules.list': 'registry.settings.update',
}

/** Checks whether the user has a capability in a scope. Without a scope, checks whether the user has it anywhere. */
export function hasCapability({ held }: Rights, name: CapabilityName, scope?: string): boolean {
  const by = includedBy[name]
  return (
    held.some(({ scope: at, names }) => {
      const isThere = scope === undefined || at === '/' || scope === at || scope.startsWith(`${at}/`)
      return isThere && (names === 'all' || names.has(name) || names.has(named[name]))
    }) ||
    (by !== undefined && hasCapability({ held }, by, scope))
  )
}

/** Checks whether the user has a permission in a group, above it, or anywhere below it. */
export function hasCapabilityWithin(rights: Rights, name: CapabilityName, group: string): boolean {
  const below = rights.held.filter(({ scope }) => scope.startsWith(`${group}/`))
  return hasCapability(rights, name, group) || hasCapability({ held: below }, name)
}
