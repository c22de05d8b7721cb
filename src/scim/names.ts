// Names of SCIM attributes. A name may begin with the URN of its schema (RFC 7644, 3.10).
import { wrong } from './errors.ts'

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const enterpriseSchema = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

export type Json = Record<string, unknown>

/**
 * Parts of a name. `schema` is undefined for an attribute of the resource itself. `rest` is empty if the name is that of a whole
 * schema.
 */
export type Split = { schema: string | undefined; rest: string }

/** Schemas of the SCIM specification. An unknown name in such a schema is an error. In another schema, it is an extension. */
const reserved = /^urn:(?:ietf:params:scim:(?:schemas:core|api)|scim:schemas):/i
const urn = /^urn:[A-Za-z0-9:._-]+$/i
/** Name of an attribute with the schema of an extension. The last colon separates them. */
const extended = /^(urn:[A-Za-z0-9:._-]+):([A-Za-z$][A-Za-z0-9_$.-]*)$/i
const extendedCore = /^urn:ietf:params:scim:schemas:extension:.*:(?:User|Group):[^:]+$/i

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Key of a member with this name; upper and lower case are the same (RFC 7643, 2.1). Undefined if there is none. */
export function keyOf(object: Json, name: string): string | undefined {
  if (Object.hasOwn(object, name)) return name
  const lower = name.toLowerCase()
  return Object.keys(object).find((key) => key.toLowerCase() === lower)
}

export function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** True if a name is the schema of the resource, or an attribute whose name begins with this schema. */
export function isOwnName(name: string, own: string): boolean {
  return isSameName(name, own) || isSameName(name.slice(0, own.length + 1), `${own}:`)
}

/**
 * Splits a name into schema and attribute. `own` is the schema of the resource itself. Throws `invalidPath` for an invalid
 * schema.
 */
export function splitName(name: string, own: string, value: unknown): Split {
  if (!/^urn:/i.test(name)) return { schema: undefined, rest: name }
  if (isOwnName(name, own)) return { schema: undefined, rest: name.slice(own.length + 1) }
  if (isOwnName(name, enterpriseSchema)) {
    return { schema: enterpriseSchema, rest: name.slice(enterpriseSchema.length + 1) }
  }
  if (reserved.test(name)) throw wrong('invalidPath', `path: must name an attribute of ${own} or of an extension`)
  const isWhole = /:(?:User|Group)$/i.test(name) || (isObject(value) && !extendedCore.test(name))
  if (isWhole && urn.test(name)) return { schema: name, rest: '' }
  // Only the part before the filter is split, since a filter may contain colons.
  const end = name.includes('[') ? name.indexOf('[') : name.length
  const [, schema, attribute] = extended.exec(name.slice(0, end)) ?? []
  if (schema === undefined) throw wrong('invalidPath', 'path: must be an attribute of a schema')
  return { schema, rest: attribute! + name.slice(end) }
}
