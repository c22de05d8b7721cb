// A person as SCIM writes them (RFC 7643, 4.1). The provider's words are kept and said again, whatever they are; three of
// them mean something: userName, externalId and active.
import { endpointOf } from '#domains/iam/scim/scim-settings.model.ts'
import { type ScimInput, type ScimResource, type ScimUser, versionOf } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'
import { isObject, isOwnName, isSameName, type Json, keyOf, splitName, userSchema } from './names.ts'

/** The longest text of an attribute that means something, and the largest resource, in characters of JSON. */
const maxText = 512
export const maxResource = 16 * 1024
/** How deep values nest, and how many of them there are, those within others included. */
const maxDepth = 8
const maxParts = 2000

/** Attributes that the server writes, or that nobody may read: what is sent for them is passed over. */
const passedOver: readonly string[] = ['id', 'meta', 'password', 'groups']

/** Whether an attribute is one of those that are passed over. */
export function isPassedOver(name: string): boolean {
  return passedOver.includes(name.toLowerCase())
}

/**
 * The attributes of a resource that is sent as a whole: names with a schema and objects of the schema of users become plain
 * attributes. Throws `invalidSyntax` where an attribute is given twice.
 */
export function readAttributes(given: unknown, own = userSchema): Json {
  if (!isObject(given)) throw wrong('invalidSyntax', 'the body must be a JSON object')
  checkParts(given)
  const resource: Json = {}
  addAttributes(resource, given, own)
  return resource
}

function addAttributes(resource: Json, given: Json, own: string): void {
  for (const [name, value] of Object.entries(given)) {
    const { schema, rest } = splitName(name, own, value)
    // null means that there is no value (RFC 7643, 2.5).
    if (value === null && (schema !== undefined || rest === '')) continue
    if (schema !== undefined) addExtension(resource, schema, rest, value)
    else if (rest === '') {
      if (!isObject(value)) throw wrong('invalidValue', `${name}: must be an object`)
      addAttributes(resource, value, own)
    } else addOnce(resource, rest, value)
  }
}

function addExtension(resource: Json, schema: string, rest: string, value: unknown): void {
  if (rest === '' && !isObject(value)) throw wrong('invalidValue', `${schema}: must be an object`)
  const key = keyOf(resource, schema) ?? schema
  if (!isObject(resource[key])) resource[key] = {}
  const members = rest === '' ? Object.entries(value as Json) : [[rest, value] as const]
  for (const [name, one] of members) addOnce(resource[key] as Json, name, one)
}

function addOnce(object: Json, name: string, value: unknown): void {
  if (/^(?:userName|externalId|active|schemas)[.[]/i.test(name)) throw wrong('invalidValue', `${name}: has no parts`)
  if (Object.hasOwn(object, name) || isKnownTwice(object, name)) {
    throw wrong('invalidSyntax', `${name}: must be given once`)
  }
  // `__proto__` and the like are members as any other.
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

/** Whether an attribute that decides something is given in two spellings. */
function isKnownTwice(object: Json, name: string): boolean {
  return spelling.has(name.toLowerCase()) && keyOf(object, name) !== undefined
}

/** What the resource says, checked. Where it says nothing of `active`, that is as `before`, so that silence opens no account. */
export function readResource(given: Json, before = true): ScimInput {
  checkParts(given)
  // null means that there is no value (RFC 7643, 2.5).
  const said = Object.entries(given).filter(([name, value]) => !isPassedOver(name) && value !== null)
  const resource: Json = Object.fromEntries(
    said.map(([name, value]) => [spelling.get(name.toLowerCase()) ?? name, value]),
  )
  const input = {
    userName: textOf(resource, 'userName'),
    externalId: textOf(resource, 'externalId'),
    active: 'active' in resource ? readActive(resource.active) : before,
  }
  if (input.userName === '') throw wrong('invalidValue', 'userName: is required')
  const checked = { ...resource, active: input.active }
  if (JSON.stringify(checked).length > maxResource) {
    throw new ScimError(413, `a resource must be at most ${maxResource} characters long`)
  }
  return { ...input, resource: checked }
}

/** A stored resource without names that an earlier release kept literally and that decided nothing. */
export function withoutLiteralNames(resource: ScimResource): Json {
  const copy = structuredClone(resource) as Json
  for (const name of Object.keys(copy)) if (isOwnName(name, userSchema)) delete copy[name]
  return copy
}

/** A whole resource in place of another; it keeps `active` and `externalId` where it says nothing of them. */
export function replaceResource(before: ScimResource, given: Json): ScimInput {
  const isSaid = (name: string) => Object.keys(given).some((one) => isSameName(one, name) && given[one] !== null)
  const kept = ['active', 'externalId'].filter((name) => !isSaid(name) && before[name] !== undefined)
  const others = Object.entries(given).filter(([name]) => !kept.some((one) => isSameName(one, name)))
  const merged = { ...Object.fromEntries(others), ...Object.fromEntries(kept.map((name) => [name, before[name]])) }
  return readResource(merged, before.active === true)
}

const spelling = new Map(['userName', 'externalId', 'active', 'schemas'].map((name) => [name.toLowerCase(), name]))

/** Entra ID sends texts such as "False", and some of its versions a list with one value. */
function readActive(given: unknown): boolean {
  const [only] = Array.isArray(given) && given.length === 1 ? (given as unknown[]) : [given]
  const value = Array.isArray(given) && isObject(only) ? only.value : only
  if (typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value.toLowerCase() : ''
  if (text !== 'true' && text !== 'false') throw wrong('invalidValue', 'active: must be true or false')
  return text === 'true'
}

function textOf(resource: Json, name: string): string {
  const value = resource[name] ?? ''
  if (typeof value !== 'string') throw wrong('invalidValue', `${name}: must be a text`)
  if (value.length > maxText) throw wrong('invalidValue', `${name}: must be at most ${maxText} characters long`)
  if (!value.isWellFormed() || /\p{Cc}/u.test(value)) throw wrong('invalidValue', `${name}: holds control characters`)
  return value
}

/** Throws where a value has more parts, or nests deeper, than anything about a person does; before anything is done with it. */
export function checkParts(value: unknown): void {
  let parts = 0
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth + 1) throw wrong('invalidValue', `values nest at most ${maxDepth} levels deep`)
    const next: unknown[] = []
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue
      const members = Object.values(one)
      parts += members.length
      if (parts > maxParts) throw wrong('tooMany', `a request holds at most ${maxParts} values`)
      for (const member of members) next.push(member)
    }
    level = next
  }
}

/** The person as the provider gets to see them again. */
export function resourceOf(user: ScimUser, url: string): ScimResource {
  const { id, provider, resource, createTime, updateTime } = user
  const schemas = Array.isArray(resource.schemas) ? resource.schemas : [userSchema]
  return {
    ...resource,
    schemas,
    id,
    meta: {
      resourceType: 'User',
      created: createTime,
      lastModified: updateTime,
      location: `${endpointOf(url, provider)}/Users/${id}`,
      version: versionOf(user),
    },
  }
}
