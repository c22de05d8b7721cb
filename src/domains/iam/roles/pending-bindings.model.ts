import type { Fields } from '#lib/fields.ts'

/** Binding that waits for a person, as shown to them. */
export type PendingBinding = {
  uid: string
  /** Names of the organization, of the group of the binding, and of the role. */
  organization: string
  group: string
  role: string
  /** Uid and name of the creator of the binding. */
  createdBy: string
  createdByName: string
  createTime: string
}

export const pendingBindingFields = {
  uid: { column: 'uid', sort: true },
} as const satisfies Fields<PendingBinding>

/** Most bindings of an organization that can wait for one person. */
export const maxPending = 20
