// Update masks. They are converted to the paths of the fields to change before the handler runs.
import { create, type DescField, type DescMessage, type DescMethod, isFieldSet, type Message } from '@bufbuild/protobuf'
import { type FieldMask, FieldMaskSchema } from '@bufbuild/protobuf/wkt'
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.ts'
import { invalid } from '#lib/errors.ts'
import type { Members } from '../naming/members.ts'
import { optionOf } from '../option-of.ts'
import { isJsonObject } from './json-read.ts'
import {
  fieldNamed,
  getField,
  isWellKnown,
  type MessageField,
  maxPathLength,
  shown,
  type Values,
} from './message-fields.ts'

type Path = readonly DescField[]

const resourceFields = new WeakMap<DescMessage, MessageField | false>()

/** Field of an update request that contains the resource. It is the only message field besides `update_mask`. */
export function resourceFieldOf(input: DescMessage): MessageField | undefined {
  const found = resourceFields.get(input) ?? findResourceField(input)
  resourceFields.set(input, found)
  return found || undefined
}

function findResourceField(input: DescMessage): MessageField | false {
  if (fieldNamed(input, 'update_mask')?.message?.typeName !== FieldMaskSchema.typeName) return false
  const messages = input.fields.filter((field) => field.fieldKind === 'message' && !isWellKnown(field.message))
  return messages.length === 1 ? (messages[0] as MessageField) : false
}

/**
 * Replaces the update mask of a request by the proto paths of the fields to change. Does nothing for other requests. `bodyKeys`
 * are the members of the JSON body, or undefined over gRPC. `members` converts a vendor's names.
 */
export function resolveMask(
  method: DescMethod,
  request: Message,
  bodyKeys: string[] | undefined,
  members?: Pick<Members, 'readPaths'>,
): void {
  const resource = resourceFieldOf(method.input)
  if (!resource) return
  const mask = getField(request, fieldNamed(method.input, 'update_mask')!) as FieldMask | undefined
  const value = getField(request, resource) as Message | undefined
  const given = mask && members ? members.readPaths(resource.message, mask.paths) : mask?.paths

  const paths = pathsOf(resource.message, value, new Set(given), bodyKeys)
  const changeable = paths.filter(
    (path) => !path.some((field) => has(field, FieldBehavior.OUTPUT_ONLY)) && !isUid(path),
  )
  const names = namesOf(changeable, value)
  ;(request as unknown as Values).updateMask = create(FieldMaskSchema, { paths: names })
}

/**
 * Removes members that the mask does not name from the JSON of a resource. So these members are not validated: they may have any
 * type, and may be unknown.
 */
export function maskedJson(desc: DescMessage, json: unknown, paths: readonly string[]): unknown {
  if (!isJsonObject(json) || paths.includes('*')) return json
  const named = new Map<DescField, string[]>()
  for (const path of paths) {
    const dot = path.indexOf('.')
    const field = fieldNamed(desc, dot < 0 ? path : path.slice(0, dot))
    if (!field) continue
    const below = named.get(field) ?? []
    below.push(dot < 0 ? '*' : path.slice(dot + 1))
    named.set(field, below)
  }
  const kept: [string, unknown][] = []
  for (const [name, value] of Object.entries(json)) {
    const field = fieldNamed(desc, name)
    const below = field && named.get(field)
    if (below) kept.push([name, field.message ? maskedJson(field.message, value, below) : value])
  }
  return Object.fromEntries(kept)
}

function pathsOf(
  desc: DescMessage,
  value: Message | undefined,
  given: ReadonlySet<string>,
  bodyKeys: string[] | undefined,
): Path[] {
  if (given.has('*')) {
    if (given.size > 1) throw invalid({ field: 'update_mask', description: 'must not combine * with other paths' })
    return desc.fields.filter((field) => isReplaced(field, value)).map((field) => [field])
  }
  if (given.size > 0) return [...given].map((path) => resolvePath(desc, path))
  if (bodyKeys) return bodyKeys.map((key) => [fieldNamed(desc, key)!])
  return value ? desc.fields.filter((field) => isFieldSet(value, field)).map((field) => [field]) : []
}

/** True if the mask `*` includes the field. In a oneof, `*` includes only the field that is set, which clears the others. */
function isReplaced(field: DescField, value: Message | undefined): boolean {
  if (has(field, FieldBehavior.IMMUTABLE)) return false
  return !field.oneof || (value !== undefined && isFieldSet(value, field))
}

function resolvePath(desc: DescMessage, path: string): Path {
  const fields: DescField[] = []
  let at: DescMessage | undefined = desc
  const names = path.length > maxPathLength ? [path] : path.split('.')
  for (const name of names) {
    const field: DescField | undefined = at && fieldNamed(at, name)
    if (!field) throw invalid({ field: 'update_mask', description: `${shown(path)} is not a known field` })
    fields.push(field)
    at = field.fieldKind === 'message' && !isWellKnown(field.message) ? field.message : undefined
  }
  return fields
}

/** Paths as text. Leaves out paths that another path already includes. */
function namesOf(paths: readonly Path[], value: Message | undefined): string[] {
  const byName = new Map(paths.map((path) => [nameOf(path), path]))
  return [...byName.entries()].filter(([, path]) => !isCovered(path, byName, value)).map(([name]) => name)
}

function isCovered(path: Path, byName: ReadonlyMap<string, Path>, value: Message | undefined): boolean {
  if (path.some((_, i) => i > 0 && byName.has(nameOf(path.slice(0, i))))) return true
  // Leaves out unset fields of a oneof if the mask also names the set one. Applying them later would clear the set one again.
  const field = path.at(-1)!
  let owner = value
  for (const step of path.slice(0, -1)) owner = owner && (getField(owner, step) as Message | undefined)
  const set = owner && field.oneof?.fields.find((member) => isFieldSet(owner, member))
  return set !== undefined && set !== field && byName.has(nameOf([...path.slice(0, -1), set]))
}

function nameOf(path: Path): string {
  return path.map((field) => field.name).join('.')
}

function isUid(path: Path): boolean {
  return path.length === 1 && path[0]!.name === 'uid'
}

function has(field: DescField, behavior: FieldBehavior): boolean {
  return optionOf(field, field_behavior).includes(behavior)
}
