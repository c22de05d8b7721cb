// OpenAPI 3.1 document for each version of the API. Paths come from google.api.http, schemas from messages, and descriptions from
// comments.
import { readFileSync } from 'node:fs'
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type ScalarType,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { neededPackage, versionOf, versionOfType } from '#api/methods.ts'
import { services as allServices } from '#api/services.ts'
import { isPlainMessage } from '#api/transcoding/json-write.ts'
import { camelCase } from '#lib/fields.ts'
import { version as release } from '#version.ts'
import { behaviourOf, extensionsOf, hasQueryForm, httpOf } from './openapi-annotations.ts'
import { answerHeadersOf, conditionsOf, headers } from './openapi-conditions.ts'
import { comments, jsonNames, type Schema, scalarSchema, summaryOf, wellKnown } from './schemas.ts'

const errorStatus = 'google.rpc.Status'
/** All objects have names, since generators of clients would each invent a different name for an object without one. */
const objects: Record<string, Schema> = {
  'google.protobuf.Empty': { type: 'object' },
  'google.protobuf.Any': { type: 'object', properties: { '@type': { type: 'string' } }, required: ['@type'] },
}
/** Schema of a message that is the text of one query parameter. The description explains the form of the text. */
const formSchema: Schema = { type: 'string', pattern: '^[^:]+(:[^,]+(,[^,]+)*)?$' }
/** Header that a client of server-sent events sends when it reconnects. */
const lastEventId: Schema = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'Id of the last received event, as in `after`. It has priority over `after`.',
  schema: { type: 'string' },
}

/** Packages without a second version: their first version is part of both documents. */
const ofBoth = /^pinfold\.platform\.(?:auth|oidc)\./

/**
 * Document of one API version. `file` is a descriptor set with source information. Services of our own packages are part of
 * version 2.
 */
export function openApi(file: string, version: 'v1' | 'v2'): Schema {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)))
  const services = allServices
    .map(({ desc }) => registry.getService(desc.typeName)!)
    .filter(({ typeName, methods }) => ofBoth.test(typeName) || (versionOf(methods[0]!) ?? 'v2') === version)
  const titles = titlesOf(services)
  const schemas: Record<string, Schema> = {}

  const camel = jsonNames(registry)
  const commentOf = comments(registry)
  const describe = (desc: Parameters<typeof commentOf>[0]): Schema => {
    const description = commentOf(desc)
    return description ? { description } : {}
  }
  const reference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

  const enumSchema = (desc: DescEnum): Schema => {
    schemas[desc.typeName] ??= { type: 'string', enum: desc.values.map((value) => value.name), ...describe(desc) }
    return reference(desc.typeName)
  }
  const valueSchema = (of: { message?: DescMessage; enum?: DescEnum; scalar?: ScalarType }, suffix: string): Schema => {
    if (of.message) return messageSchema(of.message, suffix)
    return of.enum ? enumSchema(of.enum) : scalarSchema(of.scalar!)
  }
  const fieldSchema = (field: DescField, suffix: string): Schema => {
    const value = valueSchema(field as never, suffix)
    if (field.fieldKind === 'map') {
      // Suffix of map entries in protobuf, so no message has the same name.
      const name = `${field.parent.typeName}.${capitalised(field.jsonName)}Entry${suffix}`
      schemas[name] = { type: 'object', additionalProperties: value }
      return reference(name)
    }
    return field.fieldKind === 'list' ? { type: 'array', items: value } : value
  }
  /** Name of a message's schema. The suffix `Patch` is for the body of an update, where no member is required. */
  const messageSchema = (desc: DescMessage, suffix = ''): Schema => {
    const known = wellKnown[desc.typeName]
    if (known) return known
    const object = objects[desc.typeName]
    const name = object ? desc.typeName : `${desc.typeName}${suffix}`
    if (object) schemas[name] = object
    if (schemas[name]) return reference(name)
    const properties: Record<string, Schema> = {}
    schemas[name] = { type: 'object', properties, additionalProperties: false, ...describe(desc) }
    const required: string[] = []
    for (const field of desc.fields) {
      const { readOnly, writeOnly, isRequired } = behaviourOf(field)
      // Version 1 sends `null` for messages that are not set.
      const isNullable = versionOfType(desc.typeName) === 'v1' && isPlainMessage(field)
      const value = fieldSchema(field, suffix)
      properties[field.jsonName] = {
        ...(isNullable ? { anyOf: [value, { type: 'null' }] } : value),
        ...describe(field),
        ...(readOnly ? { readOnly } : {}),
        ...(writeOnly ? { writeOnly } : {}),
      }
      if (isRequired && !readOnly && suffix === '') required.push(field.jsonName)
    }
    if (required.length > 0) schemas[name].required = required
    return reference(name)
  }

  /**
   * Query parameters: all fields that are neither in the path nor in the body. Fields of nested messages have names with dots.
   */
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
    if (method.output.typeName === 'google.protobuf.Empty') return { description: 'Success, with an empty body.' }
    const schema = messageSchema(method.output)
    if (method.methodKind === 'unary') {
      return { description: 'Success.', ...answerHeadersOf(method), content: { 'application/json': { schema } } }
    }
    return {
      description:
        'Stream of server-sent events. The data of each event is one message. The data of the event `status` is an error.',
      content: { 'text/event-stream': { schema } },
    }
  }

  const operationOf = (
    service: DescService,
    method: DescMethod,
    path: string,
    names: readonly string[],
    body: string,
    operationId: string,
  ): Schema => {
    const fields = [...path.matchAll(variable)].map((match) => match[1]!)
    const tops = new Set(fields.map((field) => field.split('.')[0]!))
    const bound = (name: string) => body === '*' || name === body || tops.has(name)
    const suffix = httpOf(method)[0]?.httpMethod === 'patch' ? 'Patch' : ''
    const bodyField = method.input.fields.find((field) => field.name === body)
    const bodySchema = body === '*' ? messageSchema(method.input, suffix) : bodyField && fieldSchema(bodyField, suffix)
    const about = describe(method)
    return {
      operationId,
      tags: [titles.get(service)!],
      summary: summaryOf(about.description as string | undefined),
      ...about,
      parameters: [
        ...names.map((name, i) => ({
          name,
          in: 'path',
          required: true,
          description: camel(`Field \`${fields[i]}\` of the request. Slashes need no percent-encoding.`),
          schema: { type: 'string' },
        })),
        ...parametersOf(method.input, bound),
        ...(method.methodKind === 'server_streaming' ? [lastEventId] : []),
        ...conditionsOf(method),
      ],
      ...(bodySchema
        ? { requestBody: { required: true, content: { 'application/json': { schema: bodySchema } } } }
        : {}),
      responses: { 200: okOf(method), default: { $ref: '#/components/responses/Error' } },
      ...extensionsOf(method),
    }
  }

  const bindings = services.flatMap((service) => {
    return service.methods.flatMap((method) => {
      // The second path of a method is a separate operation, so it needs its own name.
      const id = (i: number) => `${titles.get(service)}_${method.name}${i === 0 ? '' : i + 1}`
      return httpOf(method).map((http, i) => ({ service, method, operationId: id(i), ...http }))
    })
  })
  const namesOf = variableNames(
    bindings.map(({ path }) => path),
    version === 'v1' ? 'id' : 'uid',
  )
  const paths: Record<string, Schema> = {}
  for (const { service, method, httpMethod, path, body, operationId } of bindings) {
    const names = namesOf(path)
    let next = 0
    const plain = path.replace(variable, () => `{${names[next++]}}`)
    paths[plain] = { ...paths[plain], [httpMethod]: operationOf(service, method, path, names, body, operationId) }
  }
  const tags = services.map((service) => ({ name: titles.get(service)!, ...describe(service) }))
  const status = registry.getMessage(errorStatus)!
  messageSchema(status)

  return {
    openapi: '3.1.0',
    info: {
      title: `Pinfold management API ${version}`,
      description: spellings,
      version: release,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags,
    paths,
    components: {
      schemas,
      headers,
      responses: {
        Error: {
          description: 'Error (AIP-193).',
          content: { 'application/json': { schema: reference(errorStatus) } },
        },
      },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
    security: [{ bearer: [] }],
  }
}

const spellings =
  'Names are in camelCase. Query parameters, fields of bodies and paths in field masks can also be in snake_case, such as `page_size` for `pageSize`.'

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Names of services. If two services have the same name, the one with fewer methods gets the name of its package. */
function titlesOf(services: readonly DescService[]): ReadonlyMap<DescService, string> {
  return new Map(
    services.map((service) => [service, capitalised(neededPackage(service, services) ?? '') + service.name]),
  )
}

const variable = /\{([^=}]+)(?:=[^}]*)?\}/g

/** For OpenAPI, paths that differ only in names of variables are the same path. So these variables get one common name. */
function variableNames(paths: readonly string[], shared: string): (path: string) => string[] {
  const shapeOf = (path: string) => path.replace(variable, '{}')
  const byShape = new Map<string, string[]>()
  for (const path of paths) {
    const names = [...path.matchAll(variable)].map((match) => camelCase(match[1]!.split('.').at(-1)!))
    const known = byShape.get(shapeOf(path)) ?? names
    byShape.set(
      shapeOf(path),
      names.map((name, i) => (known[i] === name ? name : shared)),
    )
  }
  return (path) => byShape.get(shapeOf(path))!
}
