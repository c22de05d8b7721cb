// Streams of gRPC calls. grpc-js hides them from handlers, so the metadata of each call has a tag.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Metadata } from '@grpc/grpc-js'
import type { Caller } from '#caller.ts'
import type { Said } from '#edge/arrival.ts'
import { Slots } from '#lib/caches/slots.ts'
import type { HeldBytes } from '#lib/net/byte-budget.ts'

/** Metadata key of the tag. A client's value is replaced. */
const streamTag = 'x-pinfold-stream'

/** A stream, and its data before the call is served. */
export type OpenStream = {
  /** Slot of the open stream, and a unique number. */
  readonly tag: string
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly said: Said
  /** Path as sent by the client. The headers have that of the contract. */
  readonly called: string
  /** Admitted caller, and time of the admission by the clock of `performance`. */
  admitted: { caller: Caller; at: number } | undefined
  /** Bytes of its messages. They are released when the stream closes, or earlier. */
  held: HeldBytes | undefined
}

export type Streams = {
  /** Adds a stream until it is closed, and its tag to the headers. */
  add(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, called: string): OpenStream
  /** Stream of a call. Undefined once it is closed. */
  of(call: { metadata: Metadata }): OpenStream | undefined
}

export function createStreams(): Streams {
  const open = new Slots<OpenStream>()
  let last = 0
  return {
    add(stream, headers, called) {
      const said = saidIn(headers, stream.session?.socket?.remoteAddress ?? '')
      const added: OpenStream & { tag: string } = {
        tag: '',
        stream,
        headers,
        said,
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

/** Data in the headers of a call. */
export function saidIn(headers: IncomingHttpHeaders, peer: string): Said {
  return {
    peer,
    forwardedFor: headers['x-forwarded-for']?.toString(),
    requestId: headers['x-request-id']?.toString(),
    userAgent: headers['user-agent'],
    authorization: headers.authorization,
    traceparent: headers.traceparent?.toString(),
  }
}
