// Generator of short names for event types, such as `iam.group.created`, which the code uses.
import { readFileSync } from 'node:fs'
import { createFileRegistry, type DescFile, fromBinary, getOption, hasOption } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { emitted, event } from '#gen/pinfold/annotations/annotations_pb.ts'

/** Text of `gen/event-names.ts`. Throws if two event types have the same short name. */
export function eventNames(descriptorSet: string): string {
  const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptorSet))).files
  const types = new Set([...files].flatMap(typesOf))
  const names = new Map<string, string>()
  for (const type of [...types].sort()) {
    const name = type.replace(/^dev\.pinfold\.(?:api\.)?(?:platform\.)?/, '').replace(/\.v1$/, '')
    if (names.has(name)) throw new Error(`${type} and ${names.get(name)} have the same short name`)
    names.set(name, type)
  }
  const lines = [...names].map(([name, type]) => `  '${name}': '${type}',\n`).join('')
  return `// Made by \`npm run gen\` from the events that the contract declares.
/** The types of all events by their short names. */
export const eventTypes = {
${lines}} as const

export type EventName = keyof typeof eventTypes
`
}

function typesOf({ services, messages }: DescFile): string[] {
  const methods = services.flatMap((service) => service.methods).filter((method) => hasOption(method, event))
  const bodies = messages.filter((message) => hasOption(message, emitted))
  return [
    ...methods.map((method) => getOption(method, event).type),
    ...bodies.map((message) => getOption(message, emitted).type),
  ]
}
