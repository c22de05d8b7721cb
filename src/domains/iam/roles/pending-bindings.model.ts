import type { Fields } from '#lib/fields.ts'

/** What a person is told of a binding that they have not accepted. */
export type PendingBinding = {
  uid: string
  /** The names of the organisation, of the group in it that the role is given on, and of the role. */
  organization: string
  group: string
  role: string
  /** Whoever made the binding, and what they are called. */
  createdBy: string
  createdByName: string
  createTime: string
}

export const pendingBindingFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<PendingBinding>

/** How many bindings of an organisation may wait for one person. */
export const maxPending = 20
