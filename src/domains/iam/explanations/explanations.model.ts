/** What a binding does for a capability: `grants` it, or why it does not. */
export type Effect = 'grants' | 'roleLacksIt' | 'notAccepted' | 'aboveHome'

/** A binding of an identity at a place or above it. Uid, role and name of the group are empty where they are not to be shown. */
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

/** Whoever may give a role to others, and by which role on which group. */
export type Grantor = { identityUid: string; name: string; groupUid: string; roleName: string }

export type Explanation = {
  allowed: boolean
  bindings: ExplainedBinding[]
  sufficientRoles: SufficientRole[]
  grantors: Grantor[]
}

/** How much of each an explanation has. */
export const most = { bindings: 100, roles: 10, grantors: 20 } as const
/** Roles that are looked at: the built-in ones and those of the groups above a place. */
export const mostRolesRead = 1000
