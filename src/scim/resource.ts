// Conversion of SCIM users (RFC 7643, 4.1). All attributes are stored and returned as the provider sends them. Only userName,
// externalId and active affect this server.

import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import type { GroupOfUser } from '#domains/iam/scim/scim-groups.model.ts'
import { type ScimInput, type ScimResource, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'
import { type ScimKind, userKind } from './kinds.ts'
import { isObject, isOwnName, isSameName, type Json, keyOf, splitName, userSchema } from './names.ts'

/** Longest value of an attribute that affects this server, and largest resource as JSON. Both are in characters. */
const maxText = 512
export const maxResource = 16 * 1024
/** Most levels of nesting in a value. */
const maxDepth = 8

/** True if the server ignores the values of an attribute in requests. */
export function isPassedOver(name: string, { passedOver }: ScimKind): boolean {
  return passedOver.includes(name.toLowerCase())
}

/**
 * Attributes of a complete resource. Names that begin with the schema of the resource lose it, and an object under this schema is
 * merged into the resource. Throws `invalidSyntax` if an attribute is sent twice.
 */
export function readAttributes(given: unknown, kind: ScimKind = userKind): Json {
  if (!isObject(given)) throw wrong('invalidSyntax', 'the body must be a JSON object')
  checkParts(given, kind)
  const resource: Json = {}
  addAttributes(resource, given, kind)
  return resource
}

function addAttributes(resource: Json, given: Json, kind: ScimKind): void {
  for (const [name, value] of Object.entries(given)) {
    const { schema, rest } = splitName(name, kind.schema, value)
    // In SCIM, null means that an attribute has no value (RFC 7643, 2.5).
    if (value === null && (schema !== undefined || rest === '')) continue
    if (schema !== undefined) addExtension(resource, schema, { rest, value, kind })
    else if (rest === '') {
      if (!isObject(value)) throw wrong('invalidValue', `${name}: must be an object`)
      addAttributes(resource, value, kind)
    } else addOnce(resource, rest, value, kind)
  }
}

function addExtension(
  resource: Json,
  schema: string,
  { rest, value, kind }: { rest: string; value: unknown; kind: ScimKind },
): void {
  if (rest === '' && !isObject(value)) throw wrong('invalidValue', `${schema}: must be an object`)
  const key = keyOf(resource, schema) ?? schema
  if (!isObject(resource[key])) resource[key] = {}
  const members = rest === '' ? Object.entries(value as Json) : [[rest, value] as const]
  for (const [name, one] of members) addOnce(resource[key] as Json, name, one, kind)
}

function addOnce(object: Json, name: string, value: unknown, kind: ScimKind): void {
  const [attribute] = name.split(/[.[]/, 1)
  if (attribute !== name && isDecisiveName(attribute!, kind))
    throw wrong('invalidValue', `${name}: has no sub-attributes`)
  // Attributes that affect this server must not be sent twice, even in different spellings.
  const isKnownTwice = isDecisiveName(name, kind) && keyOf(object, name) !== undefined
  if (Object.hasOwn(object, name) || isKnownTwice) throw wrong('invalidSyntax', `${name}: must be given only once`)
  // A plain assignment to `__proto__` would change the prototype instead of adding a member.
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function isDecisiveName(name: string, { decisive, list }: ScimKind): boolean {
  return decisive.some((one) => isSameName(one, name)) || (list !== undefined && isSameName(list, name))
}

/**
 * Attributes to store. Names of attributes that affect this server get the spelling of the specification. Attributes with the
 * value null are left out.
 */
export function attributesToStore(given: Json, kind: ScimKind): Json {
  checkParts(given, kind)
  const givenFields = Object.entries(given).filter(([name, value]) => !isPassedOver(name, kind) && value !== null)
  const spelled = (name: string) => kind.decisive.find((one) => isSameName(one, name)) ?? name
  return Object.fromEntries(givenFields.map(([name, value]) => [spelled(name), value]))
}

export function checkSize(resource: Json): void {
  if (JSON.stringify(resource).length > maxResource) {
    throw new ScimError(413, `a resource must be at most ${maxResource} characters long`)
  }
}

/**
 * Reads and checks a resource. If `active` is missing, uses `before`. Otherwise a request without `active` would enable a
 * disabled account.
 */
export function readResource(given: Json, before = true): ScimInput {
  const resource = attributesToStore(given, userKind)
  const input = {
    userName: textOf(resource, 'userName'),
    externalId: textOf(resource, 'externalId'),
    active: 'active' in resource ? readActive(resource.active) : before,
  }
  if (input.userName === '') throw wrong('invalidValue', 'userName: is required')
  const checked = { ...resource, active: input.active }
  checkSize(checked)
  return { ...input, resource: checked }
}

/**
 * Copy of a stored resource. Leaves out names with the schema of the resource, which an earlier release stored without effect.
 */
export function withoutLiteralNames(resource: ScimResource, { schema }: ScimKind): Json {
  const copy = structuredClone(resource) as Json
  for (const name of Object.keys(copy)) if (isOwnName(name, schema)) delete copy[name]
  return copy
}

/** Replaces a resource. If the request omits `active` or `externalId`, the previous value is kept. */
export function replaceResource(before: ScimResource, given: Json): ScimInput {
  return readResource(withPrevious(before, given, ['active', 'externalId']), before.active === true)
}

/** Attributes of the request. For missing attributes in `names`, the previous values are added. */
export function withPrevious(before: ScimResource, given: Json, names: readonly string[]): Json {
  const isGiven = (name: string) => Object.keys(given).some((one) => isSameName(one, name) && given[one] !== null)
  const kept = names.filter((name) => !isGiven(name) && before[name] !== undefined)
  const others = Object.entries(given).filter(([name]) => !kept.some((one) => isSameName(one, name)))
  return { ...Object.fromEntries(others), ...Object.fromEntries(kept.map((name) => [name, before[name]])) }
}

/** Reads `active`. Entra ID sends texts such as "False". Some versions of Entra ID send a list with one value. */
function readActive(given: unknown): boolean {
  const [only] = Array.isArray(given) && given.length === 1 ? (given as unknown[]) : [given]
  const value = Array.isArray(given) && isObject(only) ? only.value : only
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  if (text !== 'true' && text !== 'false') throw wrong('invalidValue', 'active: must be true or false')
  return text === 'true'
}

export function textOf(resource: Json, name: string): string {
  const value = resource[name] ?? ''
  if (typeof value !== 'string') throw wrong('invalidValue', `${name}: must be a string`)
  if (value.length > maxText) throw wrong('invalidValue', `${name}: must be at most ${maxText} characters long`)
  if (!value.isWellFormed() || /\p{Cc}/u.test(value))
    throw wrong('invalidValue', `${name}: must not have control characters`)
  return value
}

/** Throws if a value has too many parts or too many levels of nesting. Must be called before all other processing. */
export function checkParts(value: unknown, { maxParts }: ScimKind): void {
  let parts = 0
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth + 1) throw wrong('invalidValue', `the values are nested deeper than ${maxDepth} levels`)
    const next: unknown[] = []
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue
      const members = Object.values(one)
      parts += members.length
      if (parts > maxParts) throw wrong('tooMany', `a request must have at most ${maxParts} values`)
      for (const member of members) next.push(member)
    }
    level = next
  }
}

/** SCIM resource of a person, as returned to the identity provider. */
export function resourceOf(user: ScimUser, url: string, groups: readonly GroupOfUser[] = []): ScimResource {
  const { id, provider, resource, createTime, updateTime } = user
  const schemas = Array.isArray(resource.schemas) ? resource.schemas : [userSchema]
  return {
    ...resource,
    schemas,
    id,
    ...(groups.length > 0 && {
      groups: groups.map((one) => ({ value: one.id, display: one.displayName, type: 'direct' })),
    }),
    meta: {
      resourceType: 'User',
      created: createTime,
      lastModified: updateTime,
      location: `${endpointOf(url, provider)}/Users/${id}`,
      version: versionOf(user),
    },
  }
}
