// The OpenAPI 3.1 document, made from the descriptors of the contract: paths from google.api.http, schemas from messages,
// descriptions from comments.
import { readFileSync } from 'node:fs'
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  ScalarType,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { getComments } from '@bufbuild/protoplugin'
import { services } from '#api/services.ts'
import { version } from '#config.ts'
import { behaviourOf, extensionsOf, hasQueryForm, httpOf } from './openapi-annotations.ts'

type Schema = Record<string, unknown>

const errorStatus = 'google.rpc.Status'
const wellKnown: Record<string, Schema> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?\\d+(\\.\\d{1,9})?s$' },
  'google.protobuf.FieldMask': { type: 'string' },
  'google.protobuf.Empty': { type: 'object' },
  'google.protobuf.Any': { type: 'object', properties: { '@type': { type: 'string' } }, required: ['@type'] },
}
/** A message as the text of one query parameter; the description says what stands for what. */
const formSchema: Schema = { type: 'string', pattern: '^[^:]+(:[^,]+(,[^,]+)*)?$' }
/** What a client of server-sent events sends when it comes back. */
const lastEventId: Schema = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The same as `after`, and counts before it.',
  schema: { type: 'string' },
}
const integers = new Set([ScalarType.INT32, ScalarType.SINT32, ScalarType.SFIXED32])
const unsigned = new Set([ScalarType.UINT32, ScalarType.FIXED32])

/** `file` is a descriptor set with source information. */
export function openApi(file: string): Schema {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)))
  const schemas: Record<string, Schema> = {}

  const describe = (desc: Parameters<typeof getComments>[0]): Schema => {
    const text = getComments(desc).leading?.replace(/^ /gm, '').trim()
    return text ? { description: text } : {}
  }
  const reference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

  const enumSchema = (desc: DescEnum): Schema => {
    schemas[desc.typeName] ??= { type: 'string', enum: desc.values.map((value) => value.name), ...describe(desc) }
    return reference(desc.typeName)
  }
  const scalarSchema = (type: ScalarType): Schema => {
    if (type === ScalarType.STRING) return { type: 'string' }
    if (type === ScalarType.BOOL) return { type: 'boolean' }
    if (type === ScalarType.BYTES) return { type: 'string', contentEncoding: 'base64' }
    if (integers.has(type)) return { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 }
    if (unsigned.has(type)) return { type: 'integer', format: 'uint32', minimum: 0, maximum: 2 ** 32 - 1 }
    return { type: 'string', format: 'int64', pattern: '^-?\\d+$' }
  }
  const valueSchema = (of: { message?: DescMessage; enum?: DescEnum; scalar?: ScalarType }, suffix: string): Schema => {
    if (of.message) return messageSchema(of.message, suffix)
    return of.enum ? enumSchema(of.enum) : scalarSchema(of.scalar!)
  }
  const fieldSchema = (field: DescField, suffix: string): Schema => {
    const value = valueSchema(field as never, suffix)
    if (field.fieldKind === 'map') return { type: 'object', additionalProperties: value }
    return field.fieldKind === 'list' ? { type: 'array', items: value } : value
  }
  /** `suffix` is `Patch` for the body of an update, where nothing is required. */
  const messageSchema = (desc: DescMessage, suffix = ''): Schema => {
    const known = wellKnown[desc.typeName]
    if (known) return known
    const name = `${desc.typeName}${suffix}`
    if (schemas[name]) return reference(name)
    const properties: Record<string, Schema> = {}
    schemas[name] = { type: 'object', properties, additionalProperties: false, ...describe(desc) }
    const required: string[] = []
    for (const field of desc.fields) {
      const { readOnly, writeOnly, isRequired } = behaviourOf(field)
      properties[field.jsonName] = {
        ...fieldSchema(field, suffix),
        ...describe(field),
        ...(readOnly ? { readOnly } : {}),
        ...(writeOnly ? { writeOnly } : {}),
      }
      if (isRequired && !readOnly && suffix === '') required.push(field.jsonName)
    }
    if (required.length > 0) schemas[name].required = required
    return reference(name)
  }

  /** Query parameters: what neither the path nor the body fills; nested messages with dots. */
  const parametersOf = (desc: DescMessage, bound: (name: string) => boolean, prefix = ''): Schema[] =>
    desc.fields.flatMap((field) => {
      if (prefix === '' && bound(field.name)) return []
      const isMessage = field.fieldKind === 'message' && !wellKnown[field.message.typeName]
      if (isMessage) return parametersOf(field.message, bound, `${prefix}${field.jsonName}.`)
      const isMessages = field.fieldKind === 'list' && field.listKind === 'message'
      if (isMessages && !hasQueryForm(field)) return []
      const { isRequired } = behaviourOf(field)
      const name = `${prefix}${field.jsonName}`
      const schema = isMessages ? { type: 'array', items: formSchema } : fieldSchema(field, '')
      return [{ name, in: 'query', required: isRequired, schema, ...describe(field) }]
    })

  const okOf = (method: DescMethod): Schema => {
    if (method.output.typeName === 'google.protobuf.Empty') return { description: 'Done; the body is empty.' }
    const schema = messageSchema(method.output)
    if (method.methodKind === 'unary') return { description: 'Done.', content: { 'application/json': { schema } } }
    return {
      description: 'Server-sent events without an end; the data of each is one message, and of `status` an error.',
      content: { 'text/event-stream': { schema } },
    }
  }

  const operationOf = (
    service: DescService,
    method: DescMethod,
    path: string,
    names: readonly string[],
    body: string,
  ): Schema => {
    const fields = [...path.matchAll(variable)].map((match) => match[1]!)
    const tops = new Set(fields.map((field) => field.split('.')[0]!))
    const bound = (name: string) => body === '*' || name === body || tops.has(name)
    const suffix = httpOf(method)[0]?.httpMethod === 'patch' ? 'Patch' : ''
    const bodyField = method.input.fields.find((field) => field.name === body)
    const bodySchema =
      body === '*'
        ? messageSchema(method.input, suffix)
        : bodyField?.message && messageSchema(bodyField.message, suffix)
    return {
      operationId: `${service.name}_${method.name}`,
      tags: [service.name],
      ...describe(method),
      parameters: [
        ...names.map((name, i) => ({
          name,
          in: 'path',
          required: true,
          description: `The request's \`${fields[i]}\`; slashes may be written as they are.`,
          schema: { type: 'string' },
        })),
        ...parametersOf(method.input, bound),
        ...(method.methodKind === 'server_streaming' ? [lastEventId] : []),
      ],
      ...(bodySchema
        ? { requestBody: { required: true, content: { 'application/json': { schema: bodySchema } } } }
        : {}),
      responses: { 200: okOf(method), default: { $ref: '#/components/responses/Error' } },
      ...extensionsOf(method),
    }
  }

  const bindings = services.flatMap(({ desc }) => {
    const service = registry.getService(desc.typeName)!
    return service.methods.flatMap((method) => httpOf(method).map((http) => ({ service, method, ...http })))
  })
  const namesOf = variableNames(bindings.map(({ path }) => path))
  const paths: Record<string, Schema> = {}
  for (const { service, method, httpMethod, path, body } of bindings) {
    const names = namesOf(path)
    let next = 0
    const plain = path.replace(variable, () => `{${names[next++]}}`)
    paths[plain] = { ...paths[plain], [httpMethod]: operationOf(service, method, path, names, body) }
  }
  const tags = services.map(({ desc }) => {
    const service = registry.getService(desc.typeName)!
    return { name: service.name, ...describe(service) }
  })
  const status = registry.getMessage(errorStatus)!
  messageSchema(status)

  return {
    openapi: '3.1.0',
    info: { title: 'Pinfold management API', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    tags,
    paths,
    components: {
      schemas,
      responses: {
        Error: {
          description: 'The call failed (AIP-193).',
          content: { 'application/json': { schema: reference(errorStatus) } },
        },
      },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
    security: [{ bearer: [] }],
  }
}

const variable = /\{([^=}]+)(?:=[^}]*)?\}/g

/** Paths that differ only in the names of their variables are one path to OpenAPI; such a variable is called `uid`. */
function variableNames(paths: readonly string[]): (path: string) => string[] {
  const shapeOf = (path: string) => path.replace(variable, '{}')
  const byShape = new Map<string, string[]>()
  for (const path of paths) {
    const names = [...path.matchAll(variable)].map((match) => match[1]!.split('.').at(-1)!)
    const known = byShape.get(shapeOf(path)) ?? names
    byShape.set(
      shapeOf(path),
      names.map((name, i) => (known[i] === name ? name : 'uid')),
    )
  }
  return (path) => byShape.get(shapeOf(path))!
}
