// Kinds of resources that providers send, with what sets them apart.
import { groupSchema, userSchema } from './names.ts'

export type ScimKind = {
  name: 'user' | 'group'
  schema: string
  /** Path of all resources below the address of the provider. */
  endpoint: 'Users' | 'Groups'
  /** Attributes that the server writes, or that nobody may read: what is sent for them is passed over. */
  passedOver: readonly string[]
  /** Attributes that decide something, so that they have one value, and no parts. */
  decisive: readonly string[]
  /** Attributes that always have a value, which no operation removes; else the removal of `active` would open an account. */
  alwaysThere: readonly string[]
  /** The list of a resource that is kept apart from its other attributes. */
  list?: string
  /** Largest number of values in a request. */
  maxParts: number
}

export const userKind: ScimKind = {
  name: 'user',
  schema: userSchema,
  endpoint: 'Users',
  passedOver: ['id', 'meta', 'password', 'groups'],
  decisive: ['userName', 'externalId', 'active', 'schemas'],
  alwaysThere: ['userName', 'active', 'schemas'],
  maxParts: 2000,
}

export const groupKind: ScimKind = {
  name: 'group',
  schema: groupSchema,
  endpoint: 'Groups',
  passedOver: ['id', 'meta'],
  decisive: ['displayName', 'externalId', 'schemas'],
  alwaysThere: ['displayName', 'schemas'],
  list: 'members',
  maxParts: 10_000,
}
