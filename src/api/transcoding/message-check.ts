// Checks of a message that was decoded from protobuf. The reader of JSON makes the same checks while it reads.
import type { DescEnum, DescField, DescMessage, Message } from '@bufbuild/protobuf'
import type { FieldMask } from '@bufbuild/protobuf/wkt'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { resourceFieldOf } from './field-mask.ts'
import { fieldNamed, getField, isWellKnown, join, shown, type Values } from './message-fields.ts'

/**
 * Throws INVALID_ARGUMENT for a text with the character U+0000, which databases refuse, and for an enum value that the contract
 * does not have. Ignores fields that an update mask excludes. `bytes` are the encoded message.
 */
export function checkMessage(desc: DescMessage, message: Message, bytes: Uint8Array): void {
  // Only few messages contain a zero byte, so most texts are not searched.
  const check: Check = { texts: bytes.includes(0) }
  if (!check.texts && fieldsWithEnum(desc).length === 0) return
  const resource = resourceFieldOf(desc)
  const mask = resource && ((message as unknown as Values).updateMask as FieldMask | undefined)
  const named = mask?.paths.length && !mask.paths.includes('*') ? fieldsIn(resource!.message!, mask.paths) : undefined
  checkFields(desc, message, check, '', (field, value, at) => {
    if (field !== resource) return checkField(field, value, check, at)
    // Errors name a field of the resource alone, as over REST, where the resource is the body.
    checkFields(resource.message, value as Message, check, '', (inner, innerValue, innerAt) => {
      if (!named || named.has(inner)) checkField(inner, innerValue, check, innerAt)
    })
  })
}

/** `texts` is true if texts are searched for the character U+0000. */
type Check = { texts: boolean }
type CheckField = (field: DescField, value: unknown, at: string) => void

/** Fields of a resource that start the paths of a mask. */
function fieldsIn(desc: DescMessage, paths: readonly string[]): ReadonlySet<DescField | undefined> {
  return new Set(paths.map((path) => fieldNamed(desc, path.split('.', 1)[0]!)))
}

function checkFields(desc: DescMessage, message: Message, { texts }: Check, path: string, each: CheckField): void {
  for (const field of texts ? desc.fields : fieldsWithEnum(desc)) {
    const value = getField(message, field)
    if (value !== undefined) each(field, value, join(path, field.name))
  }
}

function checkField(field: DescField, value: unknown, check: Check, at: string): void {
  if (field.fieldKind === 'list') {
    for (const [index, element] of (value as unknown[]).entries()) checkValue(field, element, check, `${at}[${index}]`)
  } else if (field.fieldKind === 'map') {
    for (const [key, element] of Object.entries(value as Values)) {
      const atKey = `${at}["${shown(key)}"]`
      if (check.texts) checkText(key, atKey)
      checkValue(field, element, check, atKey)
    }
  } else checkValue(field, value, check, at)
}

function checkValue(field: DescField, value: unknown, check: Check, at: string): void {
  if (field.enum) checkEnum(field.enum, value as number, at)
  else if (typeof value === 'string') {
    if (check.texts) checkText(value, at)
  } else if (field.message) {
    const each: CheckField = (inner, innerValue, innerAt) => checkField(inner, innerValue, check, innerAt)
    checkFields(field.message, value as Message, check, at, each)
  }
}

function checkText(text: string, field: string): void {
  if (text.includes('\0')) throw invalid({ field, description: 'must not contain a NUL character' })
}

function checkEnum(desc: DescEnum, value: number, field: string): void {
  if (desc.value[value] === undefined) throw invalid({ field, description: noKnownValue(desc) })
}

const enumFields = new WeakMap<DescMessage, readonly DescField[]>()

/** Fields that are enums, or messages that contain one. */
function fieldsWithEnum(desc: DescMessage): readonly DescField[] {
  let fields = enumFields.get(desc)
  if (!fields) {
    fields = desc.fields.filter((field) => field.enum || (field.message && hasEnum(field.message)))
    enumFields.set(desc, fields)
  }
  return fields
}

/** True if a message has an enum at any depth. A message type may contain itself. */
function hasEnum(desc: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(desc) || isWellKnown(desc)) return false
  seen.add(desc)
  return desc.fields.some((field) => field.enum || (field.message && hasEnum(field.message, seen)))
}
