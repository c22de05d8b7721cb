// The streams of calls over gRPC. grpc-js hides them from what serves a call, so each gets a tag among its metadata.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Metadata } from '@grpc/grpc-js'
import type { Caller } from '#caller.ts'
import type { Said } from '#edge/arrival.ts'
import { Slots } from '#lib/caches/slots.ts'
import type { HeldBytes } from '#lib/net/byte-budget.ts'

/** What a client sends under this name is replaced. */
const streamTag = 'x-pinfold-stream'

/** A stream, and what is known of it before its call is served. */
export type OpenStream = {
  /** Its slot among those that are open, and a number that no other has. */
  readonly tag: string
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly said: Said
  /** The path as the client wrote it; that of the headers is the contract's. */
  readonly called: string
  /** Who was let in, and by the clock of `performance` when. */
  admitted: { caller: Caller; at: number } | undefined
  /** The bytes of its messages. They are released when the stream closes, or earlier. */
  held: HeldBytes | undefined
}

export type Streams = {
  /** Notes a stream until it is closed, and adds the tag to its headers. */
  add(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, called: string): OpenStream
  /** The stream of a call; `undefined` once it is closed. */
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

/** What a client says of itself in the headers of its call. */
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
