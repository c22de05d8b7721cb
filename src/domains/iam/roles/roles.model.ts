import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'

/** Named set of capabilities. A custom role can be granted on its group and below. Built-in roles can be granted everywhere. */
export type Role = {
  uid: string
  name: string
  description: string
  /** Numbers of capabilities in the contract, in ascending order. */
  capabilities: readonly number[]
  createTime: string
  updateTime: string
}

export const toRoleResource = kindOf<Role>('role')

export const roleType = 'iam.pinfold.dev/Role'

export const roleFields = {
  ...namedFields,
  capabilities: { column: 'capabilities', update: true },
} as const satisfies Fields<Role>
