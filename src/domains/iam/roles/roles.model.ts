import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields, maxNameLength, namePattern } from '#lib/fields.ts'

/** A named set of capabilities. Custom roles belong to a group and serve there and below; built-in ones serve anywhere. */
export type Role = {
  uid: string
  name: string
  description: string
  /** Numbers of the contract's Capability, ascending. */
  capabilities: readonly number[]
  createTime: string
  updateTime: string
}

export const aRole = kindOf<Role>('role')

export const roleType = 'iam.pinfold.dev/Role'

export const roleFields = {
  uid: { column: 'uid', sort: true },
  name: { column: 'name', sort: true, update: true, required: true, pattern: namePattern, maxLength: maxNameLength },
  description: { column: 'description', update: true, pattern: descriptionPattern },
  capabilities: { column: 'capabilities', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Role>
