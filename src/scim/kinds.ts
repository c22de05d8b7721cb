// Kinds of SCIM resources, and the differences between them.
import { groupSchema, userSchema } from './names.ts'

export type ScimKind = {
  name: 'user' | 'group'
  schema: string
  /** Path of the resources, below the SCIM URL of the provider. */
  endpoint: 'Users' | 'Groups'
  /** Attributes that the server sets or never stores. Their values in requests are ignored. */
  passedOver: readonly string[]
  /** Attributes that the server uses. None has sub-attributes, and all but `schemas` have a single value. */
  decisive: readonly string[]
  /** Attributes that no operation can remove. Without this rule, removing `active` could enable an account. */
  requiredNames: readonly string[]
  /** Name of the list that is stored separately from the other attributes. */
  list?: string
  /** Most values that one request can have. */
  maxParts: number
}

export const userKind: ScimKind = {
  name: 'user',
  schema: userSchema,
  endpoint: 'Users',
  passedOver: ['id', 'meta', 'password', 'groups'],
  decisive: ['userName', 'externalId', 'active', 'schemas'],
  requiredNames: ['userName', 'active', 'schemas'],
  maxParts: 2000,
}

export const groupKind: ScimKind = {
  name: 'group',
  schema: groupSchema,
  endpoint: 'Groups',
  passedOver: ['id', 'meta'],
  decisive: ['displayName', 'externalId', 'schemas'],
  requiredNames: ['displayName', 'schemas'],
  list: 'members',
  maxParts: 10_000,
}
