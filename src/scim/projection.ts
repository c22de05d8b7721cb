// Parts of a resource that a request selects: `attributes` and `excludedAttributes` (RFC 7644, 3.9).
import { wrong } from './errors.ts'
import { isObject, type Json, keyOf } from './names.ts'

/** Lower-case names without the schema of the resource. Undefined for all. */
export type Projection = { only: readonly string[] | undefined; without: readonly string[] }

const maxNames = 30
const maxNameLength = 256
/** Members that each response has. */
const always: readonly string[] = ['id', 'schemas']

/** Reads the parameters. Names are separated by commas. Unknown names are ignored. */
export function readProjection(only: string | null, without: string | null, schema: string): Projection {
  const wanted = namesOf('attributes', only, schema)
  return { only: wanted.length === 0 ? undefined : wanted, without: namesOf('excludedAttributes', without, schema) }
}

/** True if the attribute, or a part of it, is shown. */
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

/** Resource with the selected parts. */
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

/** Selects a member of an object, or of each value of a list. */
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

/** Splits a path into a member of the resource and the rest: `name.givenName`, or a schema and its attribute. */
function splitPath(keys: Keys, path: string): Split {
  for (let end = path.length; end > 0; end = Math.max(path.lastIndexOf('.', end - 1), path.lastIndexOf(':', end - 1))) {
    const key = keys.get(path.slice(0, end))
    if (key !== undefined) return [key, path.slice(end + 1)]
  }
  return [undefined, '']
}
