// Finds the HTTP/2 stream of a gRPC call. grpc-js hides streams from handlers. So the metadata of each call gets a tag that
// identifies its stream.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Metadata } from '@grpc/grpc-js'
import type { Caller } from '#caller.ts'
import type { RequestFacts } from '#edge/arrival.ts'
import { Slots } from '#lib/caches/slots.ts'
import type { HeldBytes } from '#lib/net/byte-budget.ts'

/** Metadata key of the tag. If a client sends this key, its value is replaced. */
const streamTag = 'x-pinfold-stream'

/** HTTP/2 stream, with data that is collected before the call reaches its handler. */
export type OpenStream = {
  /** Tag of the stream: its slot in the table, and a unique number. */
  readonly tag: string
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly facts: RequestFacts
  /** Path as sent by the client. In `headers`, the path has the names of the contract. */
  readonly called: string
  /** Caller that was authenticated before the message was read, and the time of that by `performance`. */
  admitted: { caller: Caller; at: number } | undefined
  /** Bytes of its messages in memory. They are released when the stream closes, if not before. */
  held: HeldBytes | undefined
}

export type Streams = {
  /** Adds a stream to the table until the stream closes. Adds the tag to the headers. */
  add(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, called: string): OpenStream
  /** Stream of a call. Undefined if the stream has closed. */
  of(call: { metadata: Metadata }): OpenStream | undefined
}

export function createStreams(): Streams {
  const open = new Slots<OpenStream>()
  let last = 0
  return {
    add(stream, headers, called) {
      const facts = requestFactsOf(headers, stream.session?.socket?.remoteAddress ?? '')
      const added: OpenStream & { tag: string } = {
        tag: '',
        stream,
        headers,
        facts,
        called,
        admitted: undefined,
        held: undefined,
      }
      const slot = open.add(added)
      added.tag = `${slot}.${++last}`
      headers[streamTag] = added.tag
      stream.once('close', () => open.remove(slot, added))
      return added
    },
    of({ metadata }) {
      const tag = String(metadata.get(streamTag)[0])
      const found = open.at(Number.parseInt(tag, 10))
      return found?.tag === tag ? found : undefined
    },
  }
}

/** Connection and headers of a call. */
export function requestFactsOf(headers: IncomingHttpHeaders, peer: string): RequestFacts {
  return {
    peer,
    forwardedFor: headers['x-forwarded-for']?.toString(),
    requestId: headers['x-request-id']?.toString(),
    userAgent: headers['user-agent'],
    authorization: headers.authorization,
    traceparent: headers.traceparent?.toString(),
  }
}
