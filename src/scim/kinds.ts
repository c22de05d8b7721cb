// Kinds of resources that providers send, with their differences.
import { groupSchema, userSchema } from './names.ts'

export type ScimKind = {
  name: 'user' | 'group'
  schema: string
  /** Path of all resources below the URL of the provider. */
  endpoint: 'Users' | 'Groups'
  /** Attributes that the server sets or that are write-only. Values in requests are ignored. */
  passedOver: readonly string[]
  /** Attributes with an effect on the server. They have one value, and no parts. */
  decisive: readonly string[]
  /** Attributes that always have a value and that no operation removes. Otherwise removing `active` would enable an account. */
  alwaysThere: readonly string[]
  /** List of a resource that is stored apart from its other attributes. */
  list?: string
  /** Most values in a request. */
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
