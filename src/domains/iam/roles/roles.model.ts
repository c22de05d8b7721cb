import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'

/** A named set of capabilities. Custom roles can be used in their group and below; built-in roles can be used anywhere. */
export type Role = {
  uid: string
  name: string
  description: string
  /** Numbers of the contract's Capability, ascending. */
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
