// Events of the contract, and their bodies in each version.
import { type DescMessage, type DescMethod, hasOption, type Message } from '@bufbuild/protobuf'
import type { EventRow, EventTable, Service } from '#app.ts'
import { type EventName, eventTypes } from '#gen/event-names.ts'
import { http } from '#gen/google/api/annotations_pb.ts'
import { Event_Audience, emitted, event } from '#gen/pinfold/annotations/annotations_pb.ts'
import type { Version } from '#lib/cause.ts'
import type { EventBody } from '#lib/events/event-body.ts'
import { fullNameOf, versionOf } from './methods.ts'
import { createCarriers, createMembers } from './naming/members.ts'
import { optionOf } from './option-of.ts'
import { eventText } from './transcoding/json-write.ts'

type Row = EventRow & { version: Version; kind: string }

const names = new Map(Object.entries(eventTypes).map(([name, type]): [string, EventName] => [type, name as EventName]))

/** Builds the table. Throws if the event of a served method has no body, so a server with such a bug does not start. */
export function buildEventTable(services: readonly Service[], bodies: readonly EventBody[]): EventTable {
  const rows = new Map<EventName, Row[]>()
  for (const body of bodies) {
    const { name, row } = rowOf(body)
    const others = rows.get(name) ?? []
    if (others.some(({ version, kind }) => version === row.version && kind === row.kind)) {
      throw new Error(`the event ${name} has two body messages for ${row.kind}`)
    }
    rows.set(name, [...others, row])
  }
  const methods = methodsByEvent(services)
  checkComplete(services, bodies, rows, methods)
  const carries = createCarriers()
  const descs = bodies.map(({ of }) => (of.kind === 'rpc' ? bodyOf(of) : of)).filter(carries)
  const renamed = new Map(descs.map((desc) => [desc.typeName, desc]))

  return {
    find(name, version, kind) {
      const fitting = rows.get(name)?.filter((row) => row.kind === kind) ?? []
      const inVersion = (wanted: Version) => fitting.find((row) => row.version === wanted)
      const row = inVersion(version) ?? inVersion('v2') ?? fitting[0]
      if (!row) throw new Error(`no body is registered for the event ${name} and the resource kind ${kind}`)
      return row
    },
    bodyUnder(token, bodyType, body) {
      const desc = renamed.get(bodyType)
      return desc ? createMembers(token, carries).shown(desc, body) : body
    },
    methods: (name) => methods.get(name)?.map(fullNameOf) ?? [],
    inEveryVersion(fullName) {
      const all = [...methods.values()].find((some) => some.some((one) => fullNameOf(one) === fullName)) ?? []
      const version = all.map((one) => (fullNameOf(one) === fullName ? versionOf(one) : undefined)).find(Boolean)
      return [fullName, ...all.filter((one) => versionOf(one) !== version).map(fullNameOf)]
    },
  }
}

function rowOf({ of, kind, toMessage }: EventBody): { name: EventName; row: Row } {
  const isMethod = of.kind === 'rpc'
  const declared = isMethod ? optionOf(of, event) : optionOf(of, emitted)
  const name = names.get(declared.type)
  if (!name) throw new Error(`${isMethod ? fullNameOf(of) : of.typeName} declares no event`)
  const body = isMethod ? bodyOf(of) : of
  const build = toMessage as (value: unknown) => Message | null
  const row: Row = {
    kind,
    version: isMethod ? versionOf(of) : undefined,
    type: declared.type,
    audience: declared.audience === Event_Audience.INTERNAL ? 'INTERNAL' : 'CUSTOMER',
    extensions: declared.extensions,
    source: isMethod ? collectionPath(of) : declared.source,
    bodyType: body.typeName,
    render(value) {
      const message = build(value)
      return message === null ? 'null' : eventText(body, message)
    },
  }
  return { name, row }
}

function bodyOf({ input, output }: DescMethod): DescMessage {
  return output.typeName === 'google.protobuf.Empty' ? input : output
}

/** Path of the collection, with the verb of a custom method: `/iam/v2/roleBindings:batchCreate`. */
function collectionPath(desc: DescMethod): string {
  const { pattern } = optionOf(desc, http)
  const path = pattern.case === undefined || pattern.case === 'custom' ? '' : pattern.value
  return path.replace(/\/\{[^{}]*\}/g, '')
}

function methodsByEvent(services: readonly Service[]): Map<EventName, DescMethod[]> {
  const all = services.flatMap(({ desc }) => desc.methods).filter((method) => hasOption(method, event))
  return Map.groupBy(all, (method) => names.get(optionOf(method, event).type)!)
}

/**
 * Throws if the event of a method with a handler has no body. Also throws for an event type that has neither a body nor a method.
 */
function checkComplete(
  services: readonly Service[],
  bodies: readonly EventBody[],
  rows: ReadonlyMap<EventName, readonly Row[]>,
  methods: ReadonlyMap<EventName, readonly DescMethod[]>,
): void {
  const registered = new Set(bodies.map(({ of }) => of))
  for (const { desc, handlers } of services) {
    for (const method of desc.methods) {
      const isServed = handlers[method.localName] !== undefined
      if (isServed && hasOption(method, event) && !registered.has(method)) {
        throw new Error(`the API method ${fullNameOf(method)} writes an event, but no event body is registered for it`)
      }
    }
  }
  for (const name of names.values()) {
    if (!rows.has(name) && !methods.has(name)) throw new Error(`${name} has no body`)
  }
}
