// The largest requests that each method accepts. They must reach the handler.
import type { DescMethod } from '@bufbuild/protobuf'
import { limitsOf } from '#api/message-limits.ts'
import { type Endpoint, isStreaming } from '#api/methods.ts'
import { requestOf } from '../../reference/run-calls.ts'
import type { Input } from './input.ts'
import type { Facts, PlayedCall } from './server.ts'
import type { Wire } from './wire.ts'

/** Valid request of a method. */
export type Base = { endpoint: Endpoint; call: PlayedCall; bytes: Buffer; facts: Facts; wire: Wire }

const maxBodyBytes = 4 * 1024 * 1024
const maxHeaderBytes = 14_000

/**
 * The largest inputs that the server accepts: the valid request, filled up with an unknown field, blanks or a header. They must
 * reach the handler.
 */
export function largestInputs({ endpoint, call, bytes, facts, wire }: Base): Input[] {
  const { method, desc } = endpoint
  const token = call.token ?? facts.tokens.operator
  const { bytes: most } = limitsOf(method, maxBodyBytes)
  const input = (way: string, isSpecial: boolean, prepare: Input['prepare']): Input => {
    const handler = method.fullName
    return { target: `${way} ${handler}`, caller: 'owner', shape: 'the largest accepted', handler, isSpecial, prepare }
  }
  const { verb, path, body } = requestOf(desc, call.request)
  // The short version sends one of the two.
  const isRest = path !== '' && (path.length + method.fullName.length) % 2 === 0
  const overGrpc = input('grpc', !isRest, () => {
    const message = Buffer.concat([bytes, unknownText(desc.input, most - bytes.length)])
    const request = { path: `/${method.fullName}`, token, message, isStream: isStreaming(endpoint) }
    return () => wire.grpc(request)
  })
  if (path === '') return [overGrpc]
  const overRest = input('rest', isRest, () => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const filler = body === undefined ? { 'x-filler': 'a'.repeat(maxHeaderBytes) } : {}
    const headers = { authorization: `Bearer ${token}`, ...filler }
    const blanks = ' '.repeat(body === undefined ? 0 : most - Buffer.byteLength(text))
    return () => wire.http({ verb, path, headers, body: `${text}${blanks}` })
  })
  return [overGrpc, overRest]
}

/** Text in a field that the contract does not have, of `size` bytes in all. */
function unknownText(desc: DescMethod['input'], size: number): Buffer {
  const head = [(freeNumber(desc) << 3) | 2]
  // The length always takes four bytes.
  const length = size - 5
  for (let at = 0; at < 4; at++) head.push(((length >> (7 * at)) & 0x7f) | (at < 3 ? 0x80 : 0))
  return Buffer.concat([Buffer.from(head), Buffer.alloc(length, 'a')])
}

/** Number below 16 that no field of the message has. */
export function freeNumber({ fields }: DescMethod['input']): number {
  for (let number = 15; number > 0; number--) if (fields.every((field) => field.number !== number)) return number
  throw new Error('the contract has a message without a free number below 16')
}
