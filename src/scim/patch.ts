// PATCH operations (RFC 7644, 3.5.2), also in the variants that providers send: without paths, with names in any case, and with
// filters such as `emails[type eq "work"].value`.
import type { ScimResource } from '#domains/iam/scim/scim-users.model.ts'
import { ScimError, wrong } from './errors.ts'
import { type ScimKind, userKind } from './kinds.ts'
import { isObject, isSameName, type Json, keyOf, splitName } from './names.ts'
import { checkParts, isPassedOver, maxResource, withoutLiteralNames } from './resource.ts'

const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const maxOperations = 100
const maxPath = 512
/** Most attributes that one request can change. Each is searched for in the whole resource. */
const maxMembers = 200
const maxValues = 1000

/** Target of an operation: an attribute, a sub-attribute, or the entries of a list that match a filter. */
type Path = {
  /** Schema of an extension. Undefined for an attribute of the resource itself. */
  schema: string | undefined
  /** Name of the attribute. Empty for the whole extension. */
  attribute: string
  filter?: { member: string; value: unknown }
  member?: string
}

export type Verb = 'add' | 'replace' | 'remove'
export type Operation = { op: Verb; path: Path; value: unknown }

/**
 * Reads the operations of a PATCH body. Throws if one of them is invalid. Returns a function that applies all operations to a
 * resource.
 */
export function readPatch(body: unknown): (before: ScimResource, id: string) => Json {
  const operations = readOperations(body, userKind)
  return (before, id) => applyOperations(before, changesOf(operations, { id, kind: userKind }), userKind)
}

/** Reads the operations of a PATCH body. An operation without a path becomes one operation for each attribute. */
export function readOperations(body: unknown, kind: ScimKind): Operation[] {
  checkParts(body, kind)
  const schemas = isObject(body) ? memberOf(body, 'schemas') : undefined
  if (!Array.isArray(schemas) || !schemas.some((one) => typeof one === 'string' && isSameName(one, patchSchema))) {
    throw wrong('invalidSyntax', `schemas: must name ${patchSchema}`)
  }
  const given = memberOf(body as Json, 'Operations')
  if (!Array.isArray(given) || given.length === 0) {
    throw wrong('invalidSyntax', 'Operations: must be a list of at least one operation')
  }
  if (given.length > maxOperations) throw wrong('tooMany', `Operations: must have at most ${maxOperations} operations`)
  const operations = given.map((one) => readOperation(one, kind))
  if (operations.reduce((sum, all) => sum + all.length, 0) > maxMembers) {
    throw wrong('tooMany', `Operations: must change at most ${maxMembers} attributes`)
  }
  return operations.flat()
}

/** Applies the operations to a copy of the resource. */
export function applyOperations(before: ScimResource, operations: readonly Operation[], kind: ScimKind): Json {
  const resource = withoutLiteralNames(before, kind)
  for (const { op, path, value } of operations) applyAt(resource, op, path, value)
  return resource
}

/** Value of the member with this name; upper and lower case are the same. */
export function memberOf(object: Json, name: string): unknown {
  return object[keyOf(object, name) ?? '']
}

/** Reads one operation. If it has no path, returns one operation for each attribute of its value. */
function readOperation(given: unknown, kind: ScimKind): Operation[] {
  if (!isObject(given)) throw wrong('invalidSyntax', 'Operations: each must be an object')
  const [rawOp, path, value] = ['op', 'path', 'value'].map((name) => memberOf(given, name))
  const op = typeof rawOp === 'string' ? rawOp.toLowerCase() : ''
  if (op !== 'add' && op !== 'replace' && op !== 'remove') {
    throw wrong('invalidSyntax', 'op: must be add, replace or remove')
  }
  if (path !== undefined && path !== null && typeof path !== 'string') {
    throw wrong('invalidPath', 'path: must be a string')
  }
  if (!path && op === 'remove') throw wrong('noTarget', 'path: is required for remove')
  if (!path && !isObject(value)) throw wrong('invalidValue', 'value: must be an object if there is no path')
  if (op !== 'remove' && value === undefined) throw wrong('invalidValue', 'value: is required')
  return path ? operationsAt(op, path, value, kind) : operationsOf(op, value as Json, kind)
}

function operationsOf(op: Verb, value: Json, kind: ScimKind): Operation[] {
  // Some providers send an object whose keys are paths. Some send an extension as an object under its schema.
  const operations = Object.entries(value).flatMap(([name, one]) => operationsAt(op, name, one, kind))
  if (operations.length === 0) throw wrong('invalidValue', 'value: must not be empty')
  return operations
}

function operationsAt(op: Verb, text: string, value: unknown, kind: ScimKind): Operation[] {
  if (text.length > maxPath) throw wrong('invalidPath', `path: must be at most ${maxPath} characters long`)
  const { schema, rest } = splitName(text, kind.schema, value)
  if (rest === '') {
    if (op !== 'remove' && value !== null && !isObject(value)) throw wrong('invalidValue', `${text}: must be an object`)
    if (schema !== undefined) return [{ op, path: { schema, attribute: '' }, value }]
    if (op === 'remove' || !isObject(value)) {
      throw wrong('noTarget', `path: must name an attribute; send DELETE to delete the whole ${kind.name}`)
    }
    return operationsOf(op, value, kind)
  }
  const path = { schema, ...readPath(rest) }
  if (schema === undefined) checkDecisive(path, op, value, kind)
  return [{ op, path, value }]
}

function checkDecisive({ attribute, filter, member }: Path, op: Verb, value: unknown, kind: ScimKind): void {
  const isOneOf = (names: readonly string[]) => names.some((name) => isSameName(name, attribute))
  if (isOneOf(kind.decisive) && (filter || member !== undefined)) {
    throw wrong('invalidPath', `${attribute}: has no sub-attributes`)
  }
  if ((op !== 'remove' && value !== null) || !isOneOf(kind.requiredNames)) return
  throw wrong('invalidValue', `${attribute}: is required and cannot be removed; leave it out to keep its value`)
}

const name = '[A-Za-z$][A-Za-z0-9_$-]*'
const literal = '"(?:[^"\\\\]|\\\\.)*"|true|false'
const plain = new RegExp(`^(${name})(?:\\.(${name}))?$`)
const filtered = new RegExp(
  `^(${name})\\[\\s*(type|primary|display|value)\\s+eq\\s+(${literal})\\s*\\](?:\\.(${name}))?$`,
  'i',
)

function readPath(path: string): Omit<Path, 'schema'> {
  const [, attribute, member] = plain.exec(path) ?? []
  if (attribute !== undefined) return { attribute, ...(member === undefined ? {} : { member }) }
  const [, list, by, value, sub] = filtered.exec(path) ?? []
  if (list !== undefined) {
    const filter = { member: by!, value: readLiteral(value!) }
    return { attribute: list, filter, ...(sub === undefined ? {} : { member: sub }) }
  }
  throw wrong('invalidPath', 'path: must be an attribute, a sub-attribute, or a filter such as emails[type eq "work"]')
}

function readLiteral(text: string): unknown {
  try {
    return JSON.parse(/^(?:true|false)$/i.test(text) ? text.toLowerCase() : text)
  } catch {
    throw wrong('invalidPath', 'path: the quoted value must be a valid JSON string')
  }
}

/**
 * Operations that change the resource. Leaves out operations on attributes that the server sets. Throws `mutability` if an
 * operation would change the ID. Also throws `mutability` if no operation is left, unless `alsoChanges` is set because the list
 * of members changes.
 */
export function changesOf(
  operations: readonly Operation[],
  { id, kind, alsoChanges = false }: { id: string; kind: ScimKind; alsoChanges?: boolean },
): Operation[] {
  const isOurs = ({ path }: Operation) => path.schema === undefined && isPassedOver(path.attribute, kind)
  const theirs = operations.filter((one) => !isOurs(one))
  const isOther = ({ path, value }: Operation) => isSameName(path.attribute, 'id') && value !== id
  if ((theirs.length === 0 && !alsoChanges) || operations.some((one) => isOurs(one) && isOther(one))) {
    throw wrong('mutability', `${kind.passedOver.join(', ')}: are set by the server and cannot be changed`)
  }
  return theirs
}

function applyAt(resource: Json, op: Verb, path: Path, value: unknown): void {
  if (path.schema === undefined) applyTo(resource, op, path, value)
  else {
    const whole = path.attribute === '' ? undefined : keyOf(resource, `${path.schema}:${path.attribute}`)
    const key = whole ?? keyOf(resource, path.schema) ?? path.schema
    if (whole !== undefined || path.attribute === '') setMember(resource, key, op, value)
    else {
      const object = isObject(resource[key]) ? (resource[key] as Json) : {}
      applyTo(object, op, path, value)
      resource[key] = object
    }
    if (isObject(resource[key]) && Object.keys(resource[key]).length === 0) delete resource[key]
  }
}

function applyTo(resource: Json, op: Verb, { attribute, filter, member }: Path, value: unknown): void {
  const key = keyOf(resource, attribute) ?? attribute
  if (filter) applyToPicked(resource, key, op, { filter, member }, value)
  else if (member === undefined) setMember(resource, key, op, value)
  else {
    const object = isObject(resource[key]) ? (resource[key] as Json) : {}
    setMember(object, keyOf(object, member) ?? member, op, value)
    resource[key] = object
    if (Object.keys(object).length === 0) delete resource[key]
  }
}

function tooLarge(): ScimError {
  return new ScimError(413, `a resource must be at most ${maxResource} characters long`)
}

/**
 * Applies an operation to one attribute. `add` appends missing values to a list. Members of an object are merged into an existing
 * object. Other values are replaced.
 */
function setMember(object: Json, key: string, op: Verb, value: unknown): void {
  // A plain assignment to `__proto__` would change the prototype instead of adding a member.
  const write = (next: unknown) =>
    Object.defineProperty(object, key, { value: next, writable: true, enumerable: true, configurable: true })
  const before = Object.hasOwn(object, key) ? object[key] : undefined
  if (op === 'remove' && Array.isArray(before) && Array.isArray(value) && value.length > 0) {
    // Entra ID sends the values to remove as the value of the operation, instead of a filter in the path.
    const left = before.filter((one) => !value.some((named) => isNamed(one, named)))
    if (left.length === 0) delete object[key]
    else write(left)
  } else if (op === 'remove' || value === null) delete object[key]
  else if (op === 'add' && Array.isArray(before)) {
    const texts = before.map((one) => JSON.stringify(one))
    // Each operation compares all values of the list. So the size of the list is limited before each operation.
    if (texts.reduce((sum, text) => sum + text.length, 0) > maxResource) throw tooLarge()
    const known = new Set(texts)
    const more = (Array.isArray(value) ? value : [value]).filter((one) => !known.has(JSON.stringify(one)))
    if (before.length + more.length > maxValues) throw wrong('tooMany', `${key}: must have at most ${maxValues} values`)
    write([...before, ...more])
  } else if (isObject(before) && isObject(value)) {
    for (const [name, one] of Object.entries(value)) setMember(before, keyOf(before, name) ?? name, 'replace', one)
  } else write(value)
}

/** True if `named` means this value. They are equal, or all members of `named` equal those of the value. */
function isNamed(one: unknown, named: unknown): boolean {
  if (!isObject(one) || !isObject(named)) return JSON.stringify(one) === JSON.stringify(named)
  const given = Object.entries(named).filter(([name]) => !name.startsWith('$'))
  return given.length > 0 && given.every(([name, value]) => isSame(memberOf(one, name), value))
}

/**
 * Applies an operation to the list entries that match the filter. If none matches, adds an entry, since providers set a person's
 * first email address in this way.
 */
function applyToPicked(
  resource: Json,
  key: string,
  op: Verb,
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
    if (list.length >= maxValues) throw wrong('tooMany', `${key}: must have at most ${maxValues} values`)
    const made: Json = { [filter.member]: filter.value }
    list.push(made)
    picked.push(made)
  }
  // In memory, the entries share one value. Serialized, each entry has a copy, so the total size is checked here.
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
  // Stored objects may have a member `toString`, so `String(value)` could fail.
  const lower = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))?.toLowerCase()
  return lower(one) === lower(other)
}
