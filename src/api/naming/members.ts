// Conversion of JSON members whose names contain the product name, for a vendor's clients. Only messages with such members are
// converted.
import type { DescField, DescFile, DescMessage } from '@bufbuild/protobuf'
import { fieldNamed, isWellKnown, type Values } from '../transcoding/message-fields.ts'

const own = 'pinfold'

export type Members = {
  /** Converts JSON text of a message to the vendor's names. */
  shown(desc: DescMessage, text: string): string
  /** Converts parsed JSON to our names. Accepts both kinds of names. */
  read(desc: DescMessage, json: unknown): unknown
  /** Converts paths of a mask to our names. Accepts both kinds of names. */
  readPaths(resource: DescMessage, paths: readonly string[]): readonly string[]
}

/** Creates the conversion. The token must have passed `checkToken`. */
export function createMembers(token: string, carries = createCarriers()): Members {
  const inPath = new RegExp(`(?<=^|\\.)${token}(?=\\.|$)`)
  const toVendor = (_: DescMessage, key: string): string => (key === own ? token : key)
  // If a member is present under both names, ours is used. The other one is then refused as unknown.
  const toOurs = (desc: DescMessage, key: string, json: Values): string =>
    key === token && fieldNamed(desc, own) && !(own in json) ? own : key
  return {
    shown: (desc, text) => (carries(desc) ? JSON.stringify(renamed(desc, JSON.parse(text), toVendor, carries)) : text),
    read: (desc, json) => (carries(desc) ? renamed(desc, json, toOurs, carries) : json),
    readPaths: (resource, paths) => (carries(resource) ? paths.map((path) => path.replace(inPath, own)) : paths),
  }
}

/** Throws if a message has members of both names, ours and the vendor's. They would be ambiguous. */
export function checkToken(files: Iterable<DescFile>, token: string): void {
  for (const desc of [...files].flatMap(({ messages }) => messages)) {
    if (fieldNamed(desc, own) && fieldNamed(desc, token)) {
      throw new Error(`PINFOLD_COMPAT_VENDOR must not be ${token}, because ${desc.typeName} has a field of this name`)
    }
  }
}

/** Converts an OpenAPI document to the vendor's names. */
export function renameDocument(json: string, token: string): string {
  return json.replaceAll(`"${own}":`, `"${token}":`)
}

type Rename = (desc: DescMessage, key: string, json: Values) => string
type HasVendorName = (desc: DescMessage) => boolean

function renamed(desc: DescMessage, json: unknown, rename: Rename, carries: HasVendorName): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json
  const values = json as Values
  const entries = Object.keys(values).map((key) => {
    const field = fieldNamed(desc, rename(desc, key, values)) ?? fieldNamed(desc, key)
    return [rename(desc, key, values), field ? inField(field, values[key], rename, carries) : values[key]]
  })
  return Object.fromEntries(entries)
}

function inField(field: DescField, json: unknown, rename: Rename, carries: HasVendorName): unknown {
  const { message } = field
  if (!message || !carries(message)) return json
  if (field.fieldKind === 'list')
    return Array.isArray(json) ? json.map((one) => renamed(message, one, rename, carries)) : json
  if (field.fieldKind !== 'map') return renamed(message, json, rename, carries)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json
  return Object.fromEntries(Object.entries(json).map(([key, one]) => [key, renamed(message, one, rename, carries)]))
}

/** Creates a function that returns true if a message has such a member at any depth. Results are cached. */
export function createCarriers(): HasVendorName {
  const known = new Map<DescMessage, boolean>()
  const find = (desc: DescMessage, seen: Set<DescMessage>): boolean => {
    if (seen.has(desc) || isWellKnown(desc)) return false
    seen.add(desc)
    return desc.fields.some((field) => field.name === own || (field.message && find(field.message, seen)))
  }
  return (desc) => {
    let found = known.get(desc)
    if (found === undefined) {
      found = find(desc, new Set())
      known.set(desc, found)
    }
    return found
  }
}
