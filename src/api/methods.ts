// Table of all methods of the contract, with their permissions and handlers.
import type { DescField, DescMethod, DescService, Message } from '@bufbuild/protobuf'
import type { Access, Handler, Method, Service, StreamHandler } from '#app.ts'
import { iam, iam_scope } from '#gen/pinfold/annotations/annotations_pb.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import type { Version } from '#lib/cause.ts'
import { camelCase } from '#lib/fields.ts'
import { optionOf } from './option-of.ts'

/** A method and its handler. `handler` is undefined if the server does not implement the method. */
export type Endpoint = { method: Method; desc: DescMethod; handler: Handler | StreamHandler | undefined }

/** True if the method responds with a stream of messages instead of one. */
export function isStreaming({ desc }: Pick<Endpoint, 'desc'>): boolean {
  return desc.methodKind === 'server_streaming'
}

/**
 * Builds the table. Throws for a method without a declared permission, or with a scope that its request does not have. A server
 * with such a bug does not start.
 */
export function buildEndpoints(services: readonly Service[]): Endpoint[] {
  const nameOf = shortNames(services)
  return services.flatMap(({ desc: service, handlers }) =>
    service.methods.map((desc): Endpoint => {
      const fullName = fullNameOf(desc)
      if (desc.methodKind !== 'unary' && !isStreaming({ desc })) throw new Error(`${fullName} streams requests`)
      const method = { name: nameOf(desc), fullName, desc, version: versionOf(desc), access: accessOf(desc, fullName) }
      return { method, desc, handler: handlers[desc.localName] }
    }),
  )
}

/**
 * Short names of methods, such as `GetRepo`. If several services of a version have a method of this name, the name of the service
 * comes first: `Groups.Create`. If several services have the same name, all but the largest also have their package in front:
 * `events.Identities.Create`.
 */
function shortNames(services: readonly Service[]): (desc: DescMethod) => string {
  const keyOf = (desc: DescMethod) => `${versionOf(desc)} ${desc.name}`
  const named = Map.groupBy(
    services.flatMap(({ desc }) => desc.methods),
    keyOf,
  )
  return (desc) => {
    const same = named.get(keyOf(desc))!
    if (same.length === 1) return desc.name
    const parents = same.map(({ parent }) => parent)
    const packageName = neededPackage(desc.parent, parents)
    return [packageName ?? [], desc.parent.name, desc.name].flat().join('.')
  }
}

/** Last part of a service's package. Undefined if no other service with the same name has more methods. */
export function neededPackage(service: DescService, services: readonly DescService[]): string | undefined {
  const isSmaller = services.some(
    ({ name, methods }) => name === service.name && methods.length > service.methods.length,
  )
  return isSmaller ? service.typeName.split('.').at(-2) : undefined
}

/** Full name, such as `pinfold.platform.registry.v2.ReposService/GetRepo`. */
export function fullNameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`
}

/**
 * Version of a method. Packages of version 1 have no version in their names. Methods of our own packages, `pinfold.control`,
 * belong to both versions.
 */
export function versionOf({ parent }: DescMethod): Version {
  return versionOfType(parent.typeName)
}

/** Version of a message or service by its full name. */
export function versionOfType(typeName: string): Version {
  const found = /^pinfold\.platform\.[a-z]+(\.v2)?\./.exec(typeName)
  return found ? (found[1] ? 'v2' : 'v1') : undefined
}

function accessOf(desc: DescMethod, fullName: string): Access {
  const { mode } = optionOf(desc, iam)
  if (mode.case === 'disabled') return { mode: 'open' }
  if (mode.case !== 'enabled') throw new Error(`${fullName} does not declare who may call it`)
  const { capabilities, unscoped } = mode.value
  if (unscoped && capabilities.includes(Capability.CAP_INTERNAL)) return { mode: 'everywhere', capabilities }
  if (unscoped || capabilities.length === 0) return { mode: 'unscoped', capabilities }
  const scope = desc.input.fields.find((field) => optionOf(field, iam_scope))
  if (!scope) throw new Error(`${fullName} needs capabilities, but its request has no iam_scope`)
  return { mode: 'scoped', capabilities, scope: scopePath(scope) }
}

function scopePath(field: DescField): string[] {
  return field.fieldKind === 'message' ? [field.name, 'uid'] : [field.name]
}

/** Value of a request field, by its path in the contract. Empty if a message on the path is missing. */
export function scopeOf(request: Message, path: readonly string[]): string {
  let at: unknown = request
  for (const name of path) {
    at = (at as Record<string, unknown> | undefined)?.[camelCase(name)]
  }
  return typeof at === 'string' ? at : ''
}
