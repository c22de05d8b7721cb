// Conversion of SCIM users (RFC 7643, 4.1). The provider's attributes are stored and returned unchanged. Only three of them have
// an effect on the server: userName, externalId and active.

import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import type { GroupOfUser } from '#domains/iam/scim/scim-groups.model.ts'
import { type ScimInput, type ScimResource, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'
import { type ScimKind, userKind } from './kinds.ts'
import { isObject, isOwnName, isSameName, type Json, keyOf, splitName, userSchema } from './names.ts'

/** Longest value of an attribute with an effect, and largest resource, in characters of JSON. */
const maxText = 512
export const maxResource = 16 * 1024
/** Most levels of nested values. */
const maxDepth = 8

/** True if an attribute is ignored in requests. */
export function isPassedOver(name: string, { passedOver }: ScimKind): boolean {
  return passedOver.includes(name.toLowerCase())
}

/**
 * Attributes of a complete resource: names with a schema, and objects of its own schema, become plain attributes. Throws
 * `invalidSyntax` if an attribute is given twice.
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
    // null means that there is no value (RFC 7643, 2.5).
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
  // An attribute with an effect must not be given in two spellings.
  const isKnownTwice = isDecisiveName(name, kind) && keyOf(object, name) !== undefined
  if (Object.hasOwn(object, name) || isKnownTwice) throw wrong('invalidSyntax', `${name}: must be given only once`)
  // `__proto__` and the like are ordinary members.
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

function isDecisiveName(name: string, { decisive, list }: ScimKind): boolean {
  return decisive.some((one) => isSameName(one, name)) || (list !== undefined && isSameName(list, name))
}

/** Attributes to store. Attributes with an effect get the spelling of SCIM. null means that there is no value. */
export function keptOf(given: Json, kind: ScimKind): Json {
  checkParts(given, kind)
  const said = Object.entries(given).filter(([name, value]) => !isPassedOver(name, kind) && value !== null)
  const spelled = (name: string) => kind.decisive.find((one) => isSameName(one, name)) ?? name
  return Object.fromEntries(said.map(([name, value]) => [spelled(name), value]))
}

export function checkSize(resource: Json): void {
  if (JSON.stringify(resource).length > maxResource) {
    throw new ScimError(413, `a resource must be at most ${maxResource} characters long`)
  }
}

/** Reads and checks a resource. Without `active`, the value is `before`, so that the omission enables no account. */
export function readResource(given: Json, before = true): ScimInput {
  const resource = keptOf(given, userKind)
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

/** Copy of a stored resource without names that an earlier release stored literally and that had no effect. */
export function withoutLiteralNames(resource: ScimResource, { schema }: ScimKind): Json {
  const copy = structuredClone(resource) as Json
  for (const name of Object.keys(copy)) if (isOwnName(name, schema)) delete copy[name]
  return copy
}

/** Replaces a resource. Keeps `active` and `externalId` if the new one omits them. */
export function replaceResource(before: ScimResource, given: Json): ScimInput {
  return readResource(withKept(before, given, ['active', 'externalId']), before.active === true)
}

/** Given attributes, with the previous values of those in `names` that are not given. */
export function withKept(before: ScimResource, given: Json, names: readonly string[]): Json {
  const isSaid = (name: string) => Object.keys(given).some((one) => isSameName(one, name) && given[one] !== null)
  const kept = names.filter((name) => !isSaid(name) && before[name] !== undefined)
  const others = Object.entries(given).filter(([name]) => !kept.some((one) => isSameName(one, name)))
  return { ...Object.fromEntries(others), ...Object.fromEntries(kept.map((name) => [name, before[name]])) }
}

/** Reads `active`. Entra ID sends texts such as "False", and some of its versions send a list with one value. */
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

/** Throws for a value with more parts, or more levels, than a resource can have. Call it before any other processing. */
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

/** Person in the format of SCIM, for the provider. */
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
