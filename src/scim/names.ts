// Names of SCIM attributes, with or without the URN of their schema (RFC 7644, 3.10).
import { wrong } from './errors.ts'

export const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group'
const enterpriseSchema = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

export type Json = Record<string, unknown>

/** A name without its schema. `schema` is undefined for attributes of the resource; `rest` is empty for a whole schema. */
export type Split = { schema: string | undefined; rest: string }

/** Schemas of SCIM itself. An unknown name in one of them is an error, not an extension. */
const reserved = /^urn:(?:ietf:params:scim:(?:schemas:core|api)|scim:schemas):/i
const urn = /^urn:[A-Za-z0-9:._-]+$/i
/** Schema of an extension and its attribute, separated by the last colon. */
const extended = /^(urn:[A-Za-z0-9:._-]+):([A-Za-z$][A-Za-z0-9_$.-]*)$/i
const extendedCore = /^urn:ietf:params:scim:schemas:extension:.*:(?:User|Group):[^:]+$/i

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Member of this name, without regard to case (RFC 7643, 2.1). */
export function keyOf(object: Json, name: string): string | undefined {
  if (Object.hasOwn(object, name)) return name
  const lower = name.toLowerCase()
  return Object.keys(object).find((key) => key.toLowerCase() === lower)
}

export function isSameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** True if a name is the schema of the resource, or an attribute with this schema. */
export function isOwnName(name: string, own: string): boolean {
  return isSameName(name, own) || isSameName(name.slice(0, own.length + 1), `${own}:`)
}

/** Splits a name into schema and attribute. `own` is the schema of the resource. Throws `invalidPath` for an invalid schema. */
export function splitName(name: string, own: string, value: unknown): Split {
  if (!/^urn:/i.test(name)) return { schema: undefined, rest: name }
  if (isOwnName(name, own)) return { schema: undefined, rest: name.slice(own.length + 1) }
  if (isOwnName(name, enterpriseSchema)) {
    return { schema: enterpriseSchema, rest: name.slice(enterpriseSchema.length + 1) }
  }
  if (reserved.test(name)) throw wrong('invalidPath', `path: must name an attribute of ${own} or of an extension`)
  const isWhole = /:(?:User|Group)$/i.test(name) || (isObject(value) && !extendedCore.test(name))
  if (isWhole && urn.test(name)) return { schema: name, rest: '' }
  // A filter may contain colons itself.
  const end = name.includes('[') ? name.indexOf('[') : name.length
  const [, schema, attribute] = extended.exec(name.slice(0, end)) ?? []
  if (schema === undefined) throw wrong('invalidPath', 'path: must be an attribute of a schema')
  return { schema, rest: attribute! + name.slice(end) }
}
