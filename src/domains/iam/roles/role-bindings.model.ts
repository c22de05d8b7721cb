import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Grants a role to an identity, on a group and everything below it. */
export type RoleBinding = {
  /** Uid, below the uid of the group on which the role is granted. */
  uid: string
  identityUid: string
  roleUid: string
  /** False while the binding has no effect, because the person has not accepted it yet (`consent.service.ts`). */
  accepted: boolean
  /** Uid of the creator. Empty if unknown. */
  createdBy: string
  createTime: string
  updateTime: string
}

/** Binding with details of its identity, group and role, so that clients need no further request. */
export type HydratedBinding = RoleBinding & {
  /** Only `uid` is set if the person has not signed up, or has not accepted the binding. */
  identity: {
    uid: string
    name: string
    description: string
    subject: string
    issuer: string
    email: string
    emailUnverified: string
  }
  group: { uid: string; name: string; description: string }
  role: { uid: string; name: string; description: string }
}

export const toBindingResource = kindOf<HydratedBinding>('binding')
export const someBindings = kindOf<readonly HydratedBinding[]>('bindings')

export const roleBindingType = 'iam.pinfold.dev/RoleBinding'

export const roleBindingFields = {
  uid: { column: 'uid', sort: true },
  identityUid: { column: 'identity_uid', update: true },
  roleUid: { column: 'role_uid', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<RoleBinding>

/** Most bindings that one batch can create. */
export const maxBatch = 25
