// Inputs for the methods of the API: the largest requests over REST and gRPC. They are made from the descriptors, and from one
// valid request of each method.
import { gzipSync } from 'node:zlib'
import { create, type DescMethod, toBinary } from '@bufbuild/protobuf'
import { buildEndpoints, type Endpoint, isStreaming } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { readWhole } from '#api/transcoding/transcode.ts'
import { requestOf, shortName } from '../../reference/run-calls.ts'
import type { Json } from '../pinfold.ts'
import { jsonBodies } from './bodies.ts'
import type { Input } from './input.ts'
import { type Base, freeNumber, largestInputs } from './largest.ts'
import type { Facts } from './server.ts'
import { bytesOf, type Filling, isText, jsonWith, nameOf, type Spot, spotsOf } from './spots.ts'
import { textsFor } from './texts.ts'
import type { Wire } from './wire.ts'

const maxBodyBytes = 4 * 1024 * 1024
const maxQueryBytes = 100 * 1024
const maxPathBytes = 12 * 1024
/** Number of members just below the limit for a request. */
const manyMembers = 19_900
/** Bytes that are reserved for the rest of a request beside the value that fills it. */
const margin = 4096

export const endpoints: readonly Endpoint[] = buildEndpoints(services)

export function methodInputs(base: Base): Input[] {
  return [...largestInputs(base), ...grpcInputs(base), ...restInputs(base)]
}

/**
 * Valid requests, in the order of the reference. Deletions are last, since they delete resources that other requests need. A
 * method that the reference omits is at the end.
 */
export function basesOf(facts: Facts, wire: Wire): Base[] {
  const byName = new Map(endpoints.map((endpoint) => [shortName(endpoint.method.fullName), endpoint]))
  const first = new Map(facts.calls.toReversed().map((call) => [call.method, call]))
  const order = [...new Set([...facts.calls.map(({ method }) => method), ...byName.keys()])]
  return order.flatMap((name) => {
    const endpoint = byName.get(name)
    if (!endpoint?.handler) return []
    const call = first.get(name) ?? { method: name, request: ownRequest(name, facts), token: undefined }
    return [{ endpoint, call, bytes: messageBytes(endpoint.desc.input, call.request), facts, wire }]
  })
}

/** Request of a method that the reference omits. */
function ownRequest(name: string, { organization }: Facts): Json {
  const isOfOrganization = name === 'control.iam.v1.SessionsService/EndOrganizationSession'
  return isOfOrganization ? { organization, sessionUid: 'unknown' } : {}
}

function messageBytes(desc: DescMethod['input'], request: unknown): Buffer {
  return Buffer.from(toBinary(desc, create(desc, readWhole(desc, request).request as never)))
}

type Caller = { name: 'nobody' | 'stranger' | 'owner'; token: string | undefined }

function callersOf({ facts, call }: Base): Caller[] {
  return [
    { name: 'nobody', token: undefined },
    { name: 'stranger', token: facts.tokens.stranger },
    { name: 'owner', token: call.token ?? facts.tokens.operator },
  ]
}

function grpcInputs(base: Base): Input[] {
  const { endpoint, call, bytes, wire } = base
  const { method, desc } = endpoint
  const input = ({ name, token }: Caller, shape: string, more: () => Buffer, isCompressed = false): Input => ({
    ...{ target: `grpc ${method.fullName}`, caller: name, shape },
    isSpecial: method.access.mode === 'open' && isCompressed && name === 'nobody',
    prepare: () => {
      const message = Buffer.concat([bytes, more()])
      const request = { path: `/${method.fullName}`, token, message, isCompressed, isStream: isStreaming(endpoint) }
      return () => wire.grpc(request)
    },
  })
  const budget = maxBodyBytes - bytes.length - margin
  const callers = callersOf(base)
  const generic = callers.flatMap((caller) => [
    input(caller, 'as it is', () => Buffer.alloc(0)),
    input(caller, 'unknown fields, compressed', () => unknownFields(desc.input, budget), true),
    input(caller, 'unknown fields', () => unknownFields(desc.input, budget)),
    input(caller, 'unknown fields, 64 KB', () => unknownFields(desc.input, 64_000 - bytes.length), true),
    input(caller, 'unknown groups', () => unknownGroups(desc.input, budget)),
  ])
  const fields = usefulSpots(desc).flatMap((spot, at) =>
    fillings(spot, { budget, elementBytes: 3, at, base: baseAt(call.request, spot) }).map(([shape, make]) =>
      input(callers[2]!, `${nameOf(spot)}: ${shape}`, () =>
        bytesOf(spot, make(), (value) => elementBytes(spot, value)),
      ),
    ),
  )
  return [...generic, ...fields]
}

function elementBytes({ field }: Spot, value: unknown): Buffer {
  if (!field.message || field.message.typeName.startsWith('google.protobuf.')) return Buffer.from(String(value))
  return messageBytes(field.message, value)
}

function usefulSpots({ input }: DescMethod): Spot[] {
  return spotsOf(input).filter(({ field }) => isText(field) || field.fieldKind === 'list' || field.fieldKind === 'map')
}

type Room = { budget: number; elementBytes: number; at: number; base: unknown }

/** Ways to fill a field: one text, many elements, copies of a valid element, or entries of a map. */
function fillings(spot: Spot, { budget, elementBytes, at, base }: Room): [shape: string, make: () => Filling][] {
  const { field } = spot
  const found: [string, () => Filling][] = []
  if (isText(field)) {
    for (const { name, make } of textsFor(nameOf(spot), budget, at)) {
      found.push([`text of ${name}`, () => ({ kind: 'text', text: make() })])
    }
  }
  const counted = (name: string, bytes: number, fillingOf: (count: number) => Filling): void => {
    const most = Math.max(1, Math.floor(budget / bytes))
    for (const count of new Set([most, Math.min(most, manyMembers)])) {
      found.push([`${count} ${name}`, () => fillingOf(count)])
    }
  }
  if (field.fieldKind === 'list') {
    counted('elements', elementBytes, (count) => ({ kind: 'elements', count }))
    if (Array.isArray(base) && base.length > 0) {
      const [value] = base as unknown[]
      counted('copies', JSON.stringify(value).length + 1, (count) => ({ kind: 'copies', value, count }))
    }
  }
  if (field.fieldKind === 'map') counted('entries', 16, (count) => ({ kind: 'entries', count }))
  return found
}

/** Value of a field in the valid request of the method. */
function baseAt(request: Json, { path, field }: Spot): unknown {
  let at: unknown = request
  for (const step of [...path, field]) {
    at = Array.isArray(at) ? at[0] : at
    at = (at as Json | undefined)?.[step.jsonName]
  }
  return at
}

/** Numbers in a field that the contract does not have. Each takes two bytes. */
function unknownFields(desc: DescMethod['input'], bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % 2), Buffer.from([freeNumber(desc) << 3, 0]))
}

/** Protobuf groups inside of groups, to any depth. */
function unknownGroups(desc: DescMethod['input'], bytes: number): Buffer {
  const number = freeNumber(desc)
  const half = Math.floor(bytes / 2)
  return Buffer.concat([Buffer.alloc(half, (number << 3) | 3), Buffer.alloc(half, (number << 3) | 4)])
}

type Rest = { verb: string; path: string; body?: unknown; isCompressed?: boolean }

function restInputs(base: Base): Input[] {
  const { endpoint, call, wire } = base
  const { method, desc } = endpoint
  const plain = requestOf(desc, call.request)
  if (plain.path === '') return []
  const input = ({ name, token }: Caller, shape: string, make: () => Rest, isSpecial = false): Input => ({
    ...{ target: `rest ${method.fullName}`, caller: name, shape, isSpecial },
    prepare: () => {
      const { verb, path, body, isCompressed } = make()
      const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
      const headers = {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(isCompressed && { 'content-encoding': 'gzip' }),
      }
      return () => wire.http({ verb, path, headers, body: isCompressed ? gzipSync(text) : text })
    },
  })
  const callers = callersOf(base)
  const generic = callers.flatMap((caller) => {
    const bodies = plain.body === undefined ? [] : Object.entries(jsonBodies)
    // A caller without permission gets the same refusal for every body, so one body is enough.
    const some = caller.name === 'owner' ? bodies : bodies.slice(0, 3)
    return [
      input(caller, 'as it is', () => plain),
      ...some.map(([shape, make]) => {
        return input(caller, shape, () => ({ ...plain, body: make() }), method.access.mode === 'open')
      }),
      ...(plain.body === undefined
        ? []
        : [input(caller, 'a compressed body', () => ({ ...plain, body: jsonBodies.blanks!(), isCompressed: true }))]),
      input(caller, 'many parameters', () => ({ ...plain, path: withParameters(plain.path) })),
    ]
  })
  const fields = usefulSpots(desc).flatMap((spot, at) => {
    const budget = budgetOf(desc, call.request, spot)
    if (budget === 0) return []
    // In a query, each element repeats the parameter name. A request may have 1,000 parameters.
    const elementBytes = budget < maxBodyBytes ? 130 : 3
    const isRare = budget === maxPathBytes
    const room = { budget: budget - margin, elementBytes, at, base: baseAt(call.request, spot) }
    return fillings(spot, room).map(([shape, make]): Input => {
      const filled = () => requestOf(desc, jsonWith(call.request, spot, make()))
      // With such a value, the path may belong to another method, or to none.
      return { ...input(callers[2]!, `${nameOf(spot)}: ${shape}`, filled), isRare }
    })
  })
  return [...generic, ...fields]
}

function withParameters(path: string): string {
  const pairs = Array.from({ length: 1900 }, (_, at) => `page_token=${at.toString(36).padStart(40, '0')}`)
  return `${path}${path.includes('?') ? '&' : '?'}${pairs.join('&')}`
}

/**
 * Maximum size of a field's value in bytes, in the part of the request that contains the field. Returns 0 if JSON cannot contain
 * the value.
 */
function budgetOf(desc: DescMethod, request: Json, spot: Spot): number {
  const marker = 'marker0123456789'
  try {
    const { path, body } = requestOf(desc, jsonWith(request, spot, { kind: 'text', text: marker }))
    if (JSON.stringify(body ?? {}).includes(marker)) return maxBodyBytes
    const at = path.indexOf(marker)
    if (at < 0) return 0
    const mark = path.indexOf('?')
    return mark >= 0 && mark < at ? maxQueryBytes : maxPathBytes
  } catch {
    return 0
  }
}
