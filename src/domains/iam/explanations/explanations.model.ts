/** Effect of a binding on a capability: `grants` it, or the reason why it does not. */
export type Effect = 'grants' | 'roleLacksIt' | 'notAccepted' | 'aboveHome'

/** Binding of an identity on a group or above it. Uid, role and group name are empty if the caller must not see them. */
export type ExplainedBinding = {
  uid: string
  groupUid: string
  groupName: string
  roleUid: string
  roleName: string
  inherited: boolean
  effect: Effect
}

export type SufficientRole = { uid: string; name: string; capabilityCount: number }

/** Identity that is allowed to give a role to others, with the role and group that allow it. */
export type Grantor = { identityUid: string; name: string; groupUid: string; roleName: string }

export type Explanation = {
  allowed: boolean
  bindings: ExplainedBinding[]
  sufficientRoles: SufficientRole[]
  grantors: Grantor[]
}

/** Most bindings, roles and grantors in an explanation. */
export const most = { bindings: 100, roles: 10, grantors: 20 } as const
/** Most roles that are read: built-in ones and those of the groups above. */
export const mostRolesRead = 1000
