// Selection of the attributes in a response, by the parameters `attributes` and `excludedAttributes` (RFC 7644, 3.9).
import { wrong } from './errors.ts'
import { isObject, type Json, keyOf } from './names.ts'

/**
 * Attributes to include and to leave out, in lower case and without the schema of the resource. `only` is undefined for all
 * attributes.
 */
export type Projection = { only: readonly string[] | undefined; without: readonly string[] }

const maxNames = 30
const maxNameLength = 256
/** Attributes that every response includes. */
const always: readonly string[] = ['id', 'schemas']

/** Reads the two parameters, which have names separated by commas. Unknown names are ignored. */
export function readProjection(only: string | null, without: string | null, schema: string): Projection {
  const wanted = namesOf('attributes', only, schema)
  return { only: wanted.length === 0 ? undefined : wanted, without: namesOf('excludedAttributes', without, schema) }
}

/** True if the response includes the attribute or a sub-attribute of it. */
export function isShown({ only, without }: Projection, attribute: string): boolean {
  const isPart = (name: string) => name === attribute || name.startsWith(`${attribute}.`)
  return !without.includes(attribute) && (only === undefined || only.some(isPart))
}

function namesOf(parameter: string, text: string | null, schema: string): string[] {
  const names = (text ?? '').split(',').map((name) => name.trim().toLowerCase())
  const given = names.filter((name) => name !== '')
  if (given.length > maxNames) throw wrong('tooMany', `${parameter}: must name at most ${maxNames} attributes`)
  if (given.some((name) => name.length > maxNameLength)) {
    throw wrong('invalidValue', `${parameter}: a name must be at most ${maxNameLength} characters long`)
  }
  const own = `${schema.toLowerCase()}:`
  return given.map((name) => (name.startsWith(own) ? name.slice(own.length) : name))
}

/** Copy of a resource with only the selected attributes. */
export function project(resource: Json, { only, without }: Projection): Json {
  if (only === undefined && without.length === 0) return resource
  const keys = new Map(Object.keys(resource).map((key) => [key.toLowerCase(), key]))
  const kept = only === undefined ? structuredClone(resource) : pickPaths(resource, keys, only)
  for (const path of without) removePath(kept, splitPath(keys, path))
  return kept
}

type Keys = ReadonlyMap<string, string>

function pickPaths(resource: Json, keys: Keys, paths: readonly string[]): Json {
  const kept: Json = {}
  for (const name of always) if (resource[name] !== undefined) kept[name] = resource[name]
  for (const path of paths) {
    const [key, rest] = splitPath(keys, path)
    if (key === undefined || always.includes(key)) continue
    const part = rest === '' ? resource[key] : pickMember(resource[key], rest)
    if (part === undefined) continue
    kept[key] = kept[key] === undefined ? structuredClone(part) : mergeValues(kept[key], part)
  }
  return kept
}

/** Selects one sub-attribute of an object. In a list, selects it in each entry. */
function pickMember(value: unknown, member: string): unknown {
  if (Array.isArray(value)) return value.map((one) => pickMember(one, member) ?? {})
  if (!isObject(value)) return undefined
  const key = keyOf(value, member)
  return key === undefined ? undefined : { [key]: value[key] }
}

function mergeValues(one: unknown, other: unknown): unknown {
  if (Array.isArray(one) && Array.isArray(other)) return one.map((value, i) => mergeValues(value, other[i]))
  return isObject(one) && isObject(other) ? { ...one, ...other } : other
}

function removePath(resource: Json, [key, rest]: Split): void {
  if (key === undefined || always.includes(key)) return
  if (rest === '') delete resource[key]
  else {
    for (const value of [resource[key]].flat()) {
      const member = isObject(value) ? keyOf(value, rest) : undefined
      if (member !== undefined) delete (value as Json)[member]
    }
  }
}

type Split = [key: string | undefined, rest: string]

/**
 * Splits a path into an attribute of the resource and the rest. An example is `name.givenName`, or a schema with its attribute.
 */
function splitPath(keys: Keys, path: string): Split {
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf('.', end - 1), path.lastIndexOf(':', end - 1))) {
    const key = keys.get(path.slice(0, end))
    if (key !== undefined) return [key, path.slice(end + 1)]
  }
  return [undefined, '']
}
