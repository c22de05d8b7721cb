import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'

/** Gives the capabilities of a role to an identity, on a group and everything below it. */
export type RoleBinding = {
  /** Its parent is the group that it applies to. */
  uid: string
  identityUid: string
  roleUid: string
  /** Whether it counts. One of a person counts once they have accepted the organisation; see `consent.service.ts`. */
  accepted: boolean
  /** Whoever made it; empty where that was not recorded. */
  createdBy: string
  createTime: string
  updateTime: string
}

/** A binding with what it refers to, so that a client needs no second look-up. */
export type HydratedBinding = RoleBinding & {
  /** Only `uid` is set for a person who has not signed up, or has not accepted yet. */
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

export const aBinding = kindOf<HydratedBinding>('binding')
export const someBindings = kindOf<readonly HydratedBinding[]>('bindings')

export const roleBindingType = 'iam.pinfold.dev/RoleBinding'

export const roleBindingFields = {
  uid: { column: 'uid', sort: true },
  identityUid: { column: 'identity_uid', update: true },
  roleUid: { column: 'role_uid', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<RoleBinding>

/** How many bindings one batch may create. */
export const maxBatch = 25
