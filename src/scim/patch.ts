// PATCH of RFC 7644, 3.5.2, in the dialects that providers speak: paths or none, names without regard to case, and value
// filters of the shape `emails[type eq "work"].value`.
import type { ScimResource } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'
import { checkParts, isObject, isPassedOver, type Json, keyOf, maxResource, userSchema } from './resource.ts'

const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const maxOperations = 100
const maxPath = 512
/** Those of values without a path included: each is looked for among all that is there. */
const maxMembers = 200
const maxValues = 1000

/** Where an operation works: an attribute, a member of it, or the members of a list that a filter picks. */
type Path = {
  attribute: string
  filter?: { member: string; value: unknown }
  member?: string
  /** A member of that member, as extensions have them. */
  inner?: string
}

type Operation = { op: 'add' | 'replace' | 'remove'; path: Path | undefined; value: unknown }

/** The operations of a body, checked as a whole: nothing is applied of a request of which a part is wrong. */
export function readPatch(body: unknown): (before: ScimResource) => Json {
  checkParts(body)
  const schemas = isObject(body) ? body[keyOf(body, 'schemas') ?? ''] : undefined
  if (!Array.isArray(schemas) || !schemas.includes(patchSchema)) {
    throw wrong('invalidSyntax', `schemas: must name ${patchSchema}`)
  }
  const given = (body as Json)[keyOf(body as Json, 'Operations') ?? '']
  if (!Array.isArray(given) || given.length === 0) throw wrong('invalidSyntax', 'Operations: must be a list')
  if (given.length > maxOperations) throw wrong('tooMany', `Operations: must be at most ${maxOperations}`)
  const operations = given.map(readOperation)
  const members = operations.map(({ path, value }) => (path ? 1 : Object.keys(value as Json).length))
  if (members.reduce((sum, count) => sum + count, 0) > maxMembers) {
    throw wrong('tooMany', `Operations: must change at most ${maxMembers} attributes`)
  }
  return (before) => {
    const resource = structuredClone(before) as Json
    for (const operation of operations) apply(resource, operation)
    return resource
  }
}

function readOperation(given: unknown): Operation {
  if (!isObject(given)) throw wrong('invalidSyntax', 'Operations: must hold objects')
  const { op: rawOp, path: rawPath, value } = given
  const op = typeof rawOp === 'string' ? rawOp.toLowerCase() : ''
  if (op !== 'add' && op !== 'replace' && op !== 'remove') {
    throw wrong('invalidSyntax', 'op: must be add, replace or remove')
  }
  if (rawPath !== undefined && rawPath !== null && typeof rawPath !== 'string') {
    throw wrong('invalidPath', 'path: must be a text')
  }
  const path = rawPath ? readPath(rawPath) : undefined
  if (!path && op === 'remove') throw wrong('noTarget', 'path: is required to remove something')
  if (!path && !isObject(value)) throw wrong('invalidValue', 'value: must be an object where there is no path')
  if (op !== 'remove' && value === undefined) throw wrong('invalidValue', 'value: is required')
  return { op, path, value }
}

const name = '[A-Za-z$][A-Za-z0-9_$-]*'
const literal = '"(?:[^"\\\\]|\\\\.)*"|true|false'
const plain = new RegExp(`^(${name})(?:\\.(${name}))?$`)
const filtered = new RegExp(
  `^(${name})\\[\\s*(type|primary|display|value)\\s+eq\\s+(${literal})\\s*\\](?:\\.(${name}))?$`,
  'i',
)
/** A schema and its attribute; the last colon parts them. */
const ofExtension = /^(urn:[A-Za-z0-9:._-]+):([A-Za-z$][A-Za-z0-9_$-]*)(?:\.([A-Za-z$][A-Za-z0-9_$-]*))?$/i

function readPath(text: string): Path {
  if (text.length > maxPath) throw wrong('invalidPath', `path: must be at most ${maxPath} characters long`)
  const core = `${userSchema}:`
  const path = text.toLowerCase().startsWith(core.toLowerCase()) ? text.slice(core.length) : text
  const [, attribute, member] = plain.exec(path) ?? []
  if (attribute !== undefined) return { attribute, ...(member === undefined ? {} : { member }) }
  const [, list, by, value, sub] = filtered.exec(path) ?? []
  if (list !== undefined) {
    const filter = { member: by!, value: readLiteral(value!) }
    return { attribute: list, filter, ...(sub === undefined ? {} : { member: sub }) }
  }
  const [, schema, extended, inner] = ofExtension.exec(path) ?? []
  if (schema !== undefined) return { attribute: schema, member: extended!, ...(inner === undefined ? {} : { inner }) }
  throw wrong('invalidPath', 'path: is neither an attribute, nor a member of one, nor one picked by eq')
}

function readLiteral(text: string): unknown {
  try {
    return JSON.parse(/^(?:true|false)$/i.test(text) ? text.toLowerCase() : text)
  } catch {
    throw wrong('invalidPath', 'path: the text in quotes is not one of JSON')
  }
}

function apply(resource: Json, { op, path, value }: Operation): void {
  if (path) {
    applyAt(resource, op, path, value)
    return
  }
  for (const [key, one] of Object.entries(value as Json)) {
    // Some providers write paths as the names of members, and extensions as objects under their schema.
    const isSchema = /^urn:/i.test(key) && isObject(one)
    applyAt(resource, op, isSchema ? { attribute: key } : readPath(key), one)
  }
}

function applyAt(resource: Json, op: Operation['op'], path: Path, value: unknown): void {
  if (isPassedOver(path.attribute)) return
  const { attribute, filter, member, inner } = path
  const key = keyOf(resource, attribute) ?? attribute
  if (filter) applyToPicked(resource, key, op, { filter, member }, value)
  else if (member === undefined) setMember(resource, key, op, value)
  else {
    const object = isObject(resource[key]) ? (resource[key] as Json) : {}
    setMember(object, keyOf(object, member) ?? member, op, inner === undefined ? value : { [inner]: value })
    resource[key] = object
    if (Object.keys(object).length === 0) delete resource[key]
  }
}

function tooLarge(): ScimError {
  return new ScimError(413, `a resource must be at most ${maxResource} characters long`)
}

/** Adding to a list adds what is not in it; to an object, its members; else it replaces. */
function setMember(object: Json, key: string, op: Operation['op'], value: unknown): void {
  // `__proto__` and the like are members as any other.
  const write = (next: unknown) =>
    Object.defineProperty(object, key, { value: next, writable: true, enumerable: true, configurable: true })
  const before = Object.hasOwn(object, key) ? object[key] : undefined
  if (op === 'remove' || value === null) delete object[key]
  else if (op === 'add' && Array.isArray(before)) {
    const texts = before.map((one) => JSON.stringify(one))
    // Each operation of a request looks through the list again, so the list may not be larger than what is kept in the end.
    if (texts.reduce((sum, text) => sum + text.length, 0) > maxResource) throw tooLarge()
    const known = new Set(texts)
    const more = (Array.isArray(value) ? value : [value]).filter((one) => !known.has(JSON.stringify(one)))
    if (before.length + more.length > maxValues) throw wrong('tooMany', `${key}: must hold at most ${maxValues} values`)
    write([...before, ...more])
  } else if (isObject(before) && isObject(value)) write({ ...before, ...value })
  else write(value)
}

/** An item that the filter picks, or one made by it: that is how providers set the first e-mail address of a person. */
function applyToPicked(
  resource: Json,
  key: string,
  op: Operation['op'],
  { filter, member }: { filter: { member: string; value: unknown }; member: string | undefined },
  value: unknown,
): void {
  const list = Array.isArray(resource[key]) ? (resource[key] as unknown[]) : []
  const isPicked = (item: unknown): boolean => {
    const at = isObject(item) ? keyOf(item, filter.member) : undefined
    return at !== undefined && isSame((item as Json)[at], filter.value)
  }
  if (op === 'remove') {
    if (member === undefined) resource[key] = list.filter((item) => !isPicked(item))
    for (const item of list) if (member !== undefined && isPicked(item)) setMember(item as Json, member, 'remove', null)
    if ((resource[key] as unknown[] | undefined)?.length === 0) delete resource[key]
    return
  }
  const picked = list.filter(isPicked) as Json[]
  if (picked.length === 0) {
    if (list.length >= maxValues) throw wrong('tooMany', `${key}: must hold at most ${maxValues} values`)
    const made: Json = { [filter.member]: filter.value }
    list.push(made)
    picked.push(made)
  }
  // All of them refer to the one value until they are written.
  if (picked.length * JSON.stringify(value).length > maxResource) {
    throw tooLarge()
  }
  for (const item of picked) {
    if (member !== undefined) setMember(item, keyOf(item, member) ?? member, op, value)
    else if (isObject(value)) for (const [name, one] of Object.entries(value)) setMember(item, name, 'replace', one)
    else throw wrong('invalidValue', `${key}: the value must be an object`)
  }
  resource[key] = list
}

function isSame(one: unknown, other: unknown): boolean {
  const lower = (value: unknown) => String(value).toLowerCase()
  return lower(one) === lower(other)
}
