// Reads query parameters into the fields of a request. The rules are as strict as those of JSON.
import type { DescField, DescMessage, DescMethod, Message } from '@bufbuild/protobuf'
import { create, ScalarType } from '@bufbuild/protobuf'
import { comma_separated, query_form } from '#gen/pinfold/annotations/annotations_pb.ts'
import { UIDPFilterSchema } from '#gen/pinfold/common/uidp_filter_pb.ts'
import { type AppError, invalid } from '#lib/errors.ts'
import { optionOf } from '../option-of.ts'
import { readEnum, readScalar, textFormOf } from './json-scalars.ts'
import {
  childOf,
  fieldNamed,
  getField,
  isWellKnown,
  join,
  type MessageField,
  setField,
  shown,
} from './message-fields.ts'

/** Maximum number of values in one list, and of parameters in total. */
const maxRepeats = 1000
const maxParameters = 2000

type Target = { owner: Message; ownerPath: string; field: DescField; at: string }

/** Paging parameters that older clients send. They are ignored, since lists of version 1 are always complete. */
const olderPaging = new Set(['offset', 'page', 'limit'])

/** True if the response of a method is a list of version 1. */
export function isOlderList({ output }: DescMethod): boolean {
  return fieldNamed(output, 'items')?.fieldKind === 'list'
}

/**
 * Reads the parameters of `search` into `request`. `bound` returns true for fields that come from the path or the body, and so
 * cannot be parameters.
 */
export function bindQuery(
  desc: DescMessage,
  request: Message,
  search: string,
  bound: (at: string) => boolean,
  { olderPages = false } = {},
): void {
  const text = search.startsWith('?') ? search.slice(1) : search
  if (text === '') return
  const pairs = text.split('&', maxParameters + 1)
  if (pairs.length > maxParameters) throw invalidField('query', `has more than ${maxParameters} parameters`)

  const seen = new Map<string, number>()
  for (const pair of pairs) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals < 0 ? pair : pair.slice(0, equals), 'query')
    if (olderPages && olderPaging.has(name) && !fieldNamed(desc, name)) continue
    const { owner, ownerPath, field, at } = targetOf(desc, request, name, bound)
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1), at)
    const times = (seen.get(at) ?? 0) + 1
    seen.set(at, times)
    if (field.fieldKind === 'list') {
      if (times > maxRepeats) throw invalidField(at, `must be given at most ${maxRepeats} times`)
      const list = getField(owner, field) as unknown[]
      const elements = elementsOf(field, value)
      if (elements.length === 0 && !olderPages) refuseEmptyScope(owner, at)
      for (const element of elements) list.push(readValue(field, element, at))
      continue
    }
    if (times > 1) throw invalidField(at, 'must be given only once')
    if (value === '' && field.scalar === ScalarType.STRING && !olderPages) refuseEmptyScope(owner, at)
    setField(owner, field, readValue(field, value, at), ownerPath)
  }
}

/**
 * Throws for an empty part of the filter by position, such as from an unset variable of a script. Without this error, the script
 * would get all resources instead of those of one group.
 */
function refuseEmptyScope(owner: Message, at: string): void {
  if (owner.$typeName !== UIDPFilterSchema.typeName) return
  throw invalidField(at, 'must not be empty; to list all resources that you can see, remove the parameter')
}

function invalidField(field: string, description: string): AppError {
  return invalid({ field, description })
}

/** Finds the field of a parameter, and the message that contains it. Creates the message if it is missing. */
function targetOf(desc: DescMessage, request: Message, name: string, bound: (at: string) => boolean): Target {
  const names = name.split('.')
  let [owner, ownerDesc, ownerPath] = [request, desc, '']
  for (const [i, part] of names.entries()) {
    const field = fieldNamed(ownerDesc, part)
    if (!field) break
    const at = join(ownerPath, field.name)
    if (bound(at)) throw invalidField(at, 'is already set in the path or the body; remove the parameter')
    if (i === names.length - 1) return { owner, ownerPath, field, at }
    if (field.fieldKind !== 'message' || isWellKnown(field.message)) break
    owner = childOf(owner, field as MessageField, ownerPath)
    ownerDesc = field.message
    ownerPath = at
  }
  throw invalidField(shown(name), 'is not a known parameter')
}

function elementsOf(field: DescField, value: string): string[] {
  return optionOf(field, comma_separated) ? value.split(',').filter((element) => element !== '') : [value]
}

function readValue(field: DescField, text: string, at: string): unknown {
  if (field.enum && field.fieldKind !== 'map')
    return readEnum(field.enum, /^\d{1,10}$/.test(text) ? Number(text) : text, at)
  if (field.fieldKind === 'message') {
    const read = textFormOf(field.message)
    // In a query, + means a space. Before the offset of a timestamp, only + is possible, so it may be sent unencoded.
    if (read) return read(text.replace(/ (\d\d:\d\d)$/, '+$1'), at)
  }
  if (field.fieldKind === 'list' && field.listKind === 'message') {
    const form = optionOf(field, query_form)
    if (form.head !== '') return readForm(field.message, form, text, at)
  }
  if (field.message || field.fieldKind === 'map')
    throw invalidField(at, 'cannot be set as one parameter; set its fields, such as field.subfield=value')
  if (field.scalar !== ScalarType.BOOL) return readScalar(field.scalar as ScalarType, text, at)
  if (text !== 'true' && text !== 'false') throw invalidField(at, 'must be true or false')
  return text === 'true'
}

/** Reads a message from one text: the value of one field, a colon, and the elements of the other field. */
function readForm(
  desc: DescMessage,
  { head, list }: { head: string; list: string },
  text: string,
  at: string,
): Message {
  const colon = text.indexOf(':')
  const first = colon < 0 ? text : text.slice(0, colon)
  const elements = colon < 0 ? [] : text.slice(colon + 1).split(',')
  if (first === '' || elements.includes('')) {
    throw invalidField(at, `must be <${head}>[:<${list}>], with commas between ${list}`)
  }
  const message = create(desc)
  setField(message, fieldNamed(desc, head)!, readScalar(ScalarType.STRING, first, at), at)
  const values = getField(message, fieldNamed(desc, list)!) as unknown[]
  for (const element of elements) values.push(readScalar(ScalarType.STRING, element, at))
  return message
}

function decode(text: string, at: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalidField(at, 'has invalid percent-encoding')
  }
}
