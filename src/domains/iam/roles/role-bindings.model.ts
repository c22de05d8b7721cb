import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Gives the capabilities of a role to an identity, on a group and everything below it. */
export type RoleBinding = {
  /** Its parent is the group that the binding applies to. */
  uid: string
  identityUid: string
  roleUid: string
  /** False while the binding has no effect, until the person has accepted the organization; see `consent.service.ts`. */
  accepted: boolean
  /** Uid of the creator. Empty if it was not recorded. */
  createdBy: string
  createTime: string
  updateTime: string
}

/** A binding with identity, group and role, so that clients need no second request. */
export type HydratedBinding = RoleBinding & {
  /** Only `uid` is set for a person who has not signed up or not accepted yet. */
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
