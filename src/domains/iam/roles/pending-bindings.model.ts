import type { Fields } from '#lib/fields.ts'

/** Pending binding, as shown to the person who can accept it. */
export type PendingBinding = {
  uid: string
  /** Names of the organization, the group and the role. */
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
