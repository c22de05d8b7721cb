/** Effect of a binding: it `grants` the capability, or the value is the reason why it does not. */
export type Effect = 'grants' | 'roleLacksIt' | 'notAccepted' | 'aboveHome'

/** Binding of an identity on a group or above. Uid, role and group name are empty if the caller is not allowed to see them. */
export type ExplainedBinding = {
  uid: string
  groupUid: string
  groupName: string
  roleUid: string
  roleName: string
  inherited: boolean
  effect: Effect
}

/**
 * Role that the identity has in a current session through a group of its identity provider. `provisioned` is true if the provider
 * has provisioned the group over SCIM, and false if it has sent the group at the sign-in. Names and uids are empty if the caller is
 * not allowed to see them. The role is empty if it has been deleted or changed since the sign-in.
 */
export type ExplainedGroupRole = {
  externalGroupId: string
  identityProviderUid: string
  provisioned: boolean
  groupUid: string
  groupName: string
  roleUid: string
  roleName: string
  inherited: boolean
  effect: Effect
}

export type SufficientRole = { uid: string; name: string; capabilityCount: number }

/** Identity that can grant a role with the capability, and the role and group that allow this. */
export type Grantor = { identityUid: string; name: string; groupUid: string; roleName: string }

export type Explanation = {
  allowed: boolean
  bindings: ExplainedBinding[]
  groupRoles: ExplainedGroupRole[]
  sufficientRoles: SufficientRole[]
  grantors: Grantor[]
}

/** Most bindings, roles of external groups, roles and grantors in one explanation. */
export const most = { bindings: 100, groupRoles: 100, roles: 10, grantors: 20 } as const
/** Most roles that are read: built-in roles, and custom roles of the groups above. */
export const mostRolesRead = 1000
