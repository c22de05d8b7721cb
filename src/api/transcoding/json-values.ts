// Conversion of google.protobuf.Value, a message that can contain any JSON.
import { create, type DescMessage } from '@bufbuild/protobuf'
import { ListValueSchema, NullValue, StructSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt'
import { invalid } from '#lib/errors.ts'

/** Maximum depth of nested lists and objects. */
const maxDepth = 64

export const isValue = (desc: DescMessage | undefined): boolean => desc?.typeName === ValueSchema.typeName

/**
 * Reads a value. Throws INVALID_ARGUMENT for text that cannot be stored, for numbers that are too large, and for too deep
 * nesting.
 */
export function readValue(json: unknown, at: string, depth: number): Value {
  if (depth > maxDepth) throw invalid({ field: at, description: 'is nested too deeply' })
  return create(ValueSchema, { kind: kindOf(json, at, depth) })
}

function kindOf(json: unknown, at: string, depth: number): Value['kind'] {
  if (json === null) return { case: 'nullValue', value: NullValue.NULL_VALUE }
  if (typeof json === 'boolean') return { case: 'boolValue', value: json }
  if (typeof json === 'number') return { case: 'numberValue', value: requireFinite(json, at) }
  if (typeof json === 'string') return { case: 'stringValue', value: requireWellFormed(json, at) }
  if (Array.isArray(json)) {
    const values = json.map((element, index) => readValue(element, `${at}[${index}]`, depth + 1))
    return { case: 'listValue', value: create(ListValueSchema, { values }) }
  }
  const struct = create(StructSchema)
  for (const [key, member] of Object.entries(json as object)) {
    const value = readValue(member, at, depth + 1)
    // A plain assignment to `__proto__` would change the prototype instead.
    const descriptor = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(struct.fields, requireWellFormed(key, at), descriptor)
  }
  return { case: 'structValue', value: struct }
}

function requireFinite(number: number, at: string): number {
  if (!Number.isFinite(number)) throw invalid({ field: at, description: 'has a number that is too large' })
  return number
}

function requireWellFormed(text: string, at: string): string {
  if (text.includes('\0')) throw invalid({ field: at, description: 'must not contain a NUL character' })
  if (!text.isWellFormed())
    throw invalid({ field: at, description: 'must be valid Unicode (it has an unpaired surrogate)' })
  return text
}

/** JSON text of a value. Numbers that JSON cannot represent, and values that are not set, become null. */
export function writeValue({ kind }: Value): string {
  switch (kind.case) {
    case 'listValue':
      return `[${kind.value.values.map(writeValue).join(',')}]`
    case 'structValue':
      return `{${Object.entries(kind.value.fields)
        .map(([key, value]) => `${JSON.stringify(key)}:${writeValue(value)}`)
        .join(',')}}`
    case 'numberValue':
    case 'stringValue':
    case 'boolValue':
      return JSON.stringify(kind.value)
    default:
      return 'null'
  }
}
