// Descriptions of MCP tools. Titles and texts come from the comments of the contract, and schemas from its messages.
import { readFileSync } from 'node:fs'
import {
  createFileRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  getOption,
  type ScalarType,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { isSecret } from '#api/mcp/secrets.ts'
import { annotationsOf, isTool, type ToolText, type ToolTexts, toolName } from '#api/mcp/tools.ts'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { resourceFieldOf } from '#api/transcoding/field-mask.ts'
import { tool } from '#gen/pinfold/annotations/annotations_pb.ts'
import { version as release } from '#version.ts'
import { behaviourOf } from './openapi-annotations.ts'
import { comments, type Schema, scalarSchema, wellKnown } from './schemas.ts'

/** Descriptions of all tools. `file` is a descriptor set with source information. */
export function mcpTools(file: string): ToolTexts {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)))
  const commentOf = comments(registry)
  const describe = (desc: Parameters<typeof commentOf>[0]): Schema => {
    const description = commentOf(desc).replace(/\s+/g, ' ')
    return description ? { description } : {}
  }

  const inputOf = (method: DescMethod): Schema => {
    const resource = resourceFieldOf(method.input)
    const objectOf = (desc: DescMessage, updated: boolean): Schema => {
      const known = wellKnown[desc.typeName]
      if (known) return known
      // Fields that the server sets are not inputs, except the uid of an updated resource.
      const isKey = (field: DescField) => updated && field.name === 'uid'
      const fields = desc.fields.filter((field) => isKey(field) || !behaviourOf(field).readOnly)
      const required = fields.filter((field) => (updated ? isKey(field) : behaviourOf(field).isRequired))
      const properties = fields.map((field) => {
        const value = fieldSchema(field, (message) => objectOf(message, field === resource), enumOf)
        return [field.jsonName, { ...value, ...describe(field) }]
      })
      return {
        type: 'object',
        properties: Object.fromEntries(properties),
        ...(required.length > 0 ? { required: required.map((field) => field.jsonName) } : {}),
        additionalProperties: false,
      }
    }
    return objectOf(method.input, false)
  }

  const described = (method: DescMethod): ToolText => ({
    title: method.name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').replace(/ [A-Z]/g, (start) => start.toLowerCase()),
    description: getOption(method, tool).description || commentOf(method).replace(/\s+/g, ' '),
    inputSchema: inputOf(method),
    outputSchema: outputOf(method.output, []),
    annotations: annotationsOf(method),
  })

  // The generated descriptors of the server have no comments, so the comments are read from the file.
  const tools = buildEndpoints(services).filter(isTool)
  const texts = tools.map(({ desc: { parent, localName } }) => {
    const method = registry.getService(parent.typeName)!.method[localName]!
    return [toolName(method), described(method)]
  })
  return { version: release, tools: Object.fromEntries(texts) }
}

function enumOf(desc: DescEnum): Schema {
  return { type: 'string', enum: desc.values.filter(({ number }) => number !== 0).map(({ name }) => name) }
}

/** Output schemas have only the names of members. The inputs and the reference pages explain what they mean. */
function outputOf(desc: DescMessage, within: readonly DescMessage[]): Schema {
  const known = wellKnown[desc.typeName]
  if (known) return known
  if (within.includes(desc)) return { type: 'object' }
  const inner = (message: DescMessage) => outputOf(message, [...within, desc])
  const shown = desc.fields.filter((field) => !isSecret(field))
  const properties = shown.map((field) => [field.jsonName, fieldSchema(field, inner, () => ({ type: 'string' }))])
  return { type: 'object', properties: Object.fromEntries(properties) }
}

function fieldSchema(
  field: DescField,
  messageOf: (desc: DescMessage) => Schema,
  enumSchema: (desc: DescEnum) => Schema,
): Schema {
  const { message, enum: choice, scalar } = field
  const value = message ? messageOf(message) : choice ? enumSchema(choice) : shortSchema(scalar!)
  if (field.fieldKind === 'list') return { type: 'array', items: value }
  if (field.fieldKind === 'map') return { type: 'object', additionalProperties: value }
  return value
}

/**
 * Agents read the whole schema, so ranges of numbers are left out. The contract's numbers are far from the limits of their types.
 */
function shortSchema(type: ScalarType): Schema {
  const schema = scalarSchema(type)
  return schema.type === 'integer' ? { type: 'integer' } : schema
}
