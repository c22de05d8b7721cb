// What reading JSON, query strings and field masks have in common: fields by name, and oneofs as protobuf-es keeps them.
import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf'
import { invalid } from '#lib/errors.ts'

export type Values = Record<string, unknown>
export type MessageField = DescField & { fieldKind: 'message' }
export type ListField = DescField & { fieldKind: 'list' }

type Oneof = { case: string | undefined; value?: unknown }

const tables = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>()

/** No path of a mask is longer; a longer one is not taken apart. */
export const maxPathLength = 1000

/** The field with this proto or JSON name. */
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

/** Throws when another member of the field's oneof is set already. `path` is where the message stands. */
export function setField(message: Message, field: DescField, value: unknown, path: string): void {
  const values = message as unknown as Values
  if (!field.oneof) {
    values[field.localName] = value
    return
  }
  const oneof = values[field.oneof.localName] as Oneof
  if (oneof.case !== undefined && oneof.case !== field.localName) {
    throw invalid({ field: join(path, field.oneof.name), description: 'takes only one of its members' })
  }
  values[field.oneof.localName] = { case: field.localName, value }
}

/** The message in `field`, made when there is none. */
export function childOf(message: Message, field: MessageField, path: string): Message {
  const found = getField(message, field) as Message | undefined
  if (found) return found
  const made = create(field.message)
  setField(message, field, made, path)
  return made
}

/** Messages that have a text form; their own fields cannot be named. */
export function isWellKnown(desc: DescMessage): boolean {
  return desc.file.proto.package === 'google.protobuf'
}

export function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

const longestShown = 64

/** A name of the caller's making, fit to be shown in an error. */
export function shown(name: string): string {
  const short = name.length > longestShown ? `${name.slice(0, longestShown)}…` : name
  return short === '' ? '""' : short.toWellFormed()
}
