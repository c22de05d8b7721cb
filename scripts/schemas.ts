// Schemas and comments of the contract's fields, for all generators.
import { type AnyDesc, type FileRegistry, ScalarType } from '@bufbuild/protobuf'
import { getComments } from '@bufbuild/protoplugin'
import { camelCase } from '#lib/fields.ts'
import { capabilityNames } from './openapi-annotations.ts'

export type Schema = Record<string, unknown>

export const wellKnown: Record<string, Schema> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?\\d+(\\.\\d{1,9})?s$' },
  'google.protobuf.FieldMask': { type: 'string' },
  'google.protobuf.Value': {},
}

const integers = new Set([ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32])
const unsigned = new Set([ScalarType.UINT32, ScalarType.FIXED32])

export function scalarSchema(type: ScalarType): Schema {
  if (type === ScalarType.STRING) return { type: 'string' }
  if (type === ScalarType.BOOL) return { type: 'boolean' }
  if (type === ScalarType.BYTES) return { type: 'string', contentEncoding: 'base64' }
  if (integers.has(type)) return { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }
  if (unsigned.has(type)) return { type: 'integer', format: 'uint32', minimum: 0, maximum: 2 ** 32 - 1 }
  return { type: 'string', format: 'int64', pattern: '^-?\\d+$' }
}

type Commented = Exclude<AnyDesc, { kind: 'file' | 'extension' }>

/** Comment above an element of the contract, with field names as in JSON. Empty if there is none. */
export function comments(registry: FileRegistry): (desc: Commented) => string {
  const camel = jsonNames(registry)
  return (desc) => camel(getComments(desc).leading?.replace(/^ /gm, '').trim() ?? '')
}

/** First sentence of a comment, up to its end or its colon. */
export function summaryOf(comment = ''): string {
  return comment.replace(/\s+/g, ' ').replace(/[.;:](?: .*)?$/, '')
}

/** Replaces field names in a comment by their JSON names. Names of capabilities look the same and are not replaced. */
export function jsonNames(registry: FileRegistry): (text: string) => string {
  const fields = new Set<string>()
  for (const type of registry)
    if (type.kind === 'message')
      for (const field of type.fields) if (field.jsonName !== field.name) fields.add(field.name)
  return (text) =>
    text.replace(/`([a-z_]+(?:\.[a-z_]+)*)( asc| desc)?`/g, (written, path: string, direction = '') => {
      const names = path.split('.')
      const isPath = names.some((name) => fields.has(name)) && !capabilityNames.has(path)
      return isPath
        ? `\`${names.map((name) => (fields.has(name) ? camelCase(name) : name)).join('.')}${direction}\``
        : written
    })
}
