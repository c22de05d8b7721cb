// Fields of messages by name, for JSON, query strings and field masks. Hides how protobuf-es stores oneofs.
import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf'
import { invalid } from '#lib/errors.ts'

export type Values = Record<string, unknown>
export type MessageField = DescField & { fieldKind: 'message' }
export type ListField = DescField & { fieldKind: 'list' }

type Oneof = { case: string | undefined; value?: unknown }

const tables = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>()

/** Maximum length of a mask path, in characters. A longer path is unknown, and is not split. */
export const maxPathLength = 1000

/** Field with this name, in the spelling of proto or of JSON. */
export function fieldNamed(desc: DescMessage, name: string): DescField | undefined {
  let table = tables.get(desc)
  if (!table) {
    table = new Map([
      ...desc.fields.map((field) => [field.jsonName, field] as const),
      ...desc.fields.map((field) => [field.name, field] as const),
    ])
    tables.set(desc, table)
  }
  return table.get(name)
}

export function getField(message: Message, field: DescField): unknown {
  const values = message as unknown as Values
  if (!field.oneof) return values[field.localName]
  const oneof = values[field.oneof.localName] as Oneof
  return oneof.case === field.localName ? oneof.value : undefined
}

/** Sets a field. Throws if another field of the same oneof is already set. `path` is the path of the message in errors. */
export function setField(message: Message, field: DescField, value: unknown, path: string): void {
  const values = message as unknown as Values
  if (!field.oneof) {
    values[field.localName] = value
    return
  }
  const oneof = values[field.oneof.localName] as Oneof
  if (oneof.case !== undefined && oneof.case !== field.localName) {
    const other = field.oneof.fields.find(({ localName }) => localName === oneof.case)!
    const description = `cannot be combined with ${other.name}; send only one of them`
    throw invalid({ field: join(path, field.name), description })
  }
  values[field.oneof.localName] = { case: field.localName, value }
}

/** Nested message in `field`. Creates the message if it is missing. */
export function childOf(message: Message, field: MessageField, path: string): Message {
  const found = getField(message, field) as Message | undefined
  if (found) return found
  const made = create(field.message)
  setField(message, field, made, path)
  return made
}

/** True for messages of google.protobuf, such as timestamps. Masks and parameters cannot name fields inside them. */
export function isWellKnown(desc: DescMessage): boolean {
  return desc.file.proto.package === 'google.protobuf'
}

export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

const longestShown = 64

/** Shortens a name from the client, for an error message. */
export function shown(name: string): string {
  const short = name.length > longestShown ? `${name.slice(0, longestShown)}…` : name
  return short === '' ? '""' : short.toWellFormed()
}
