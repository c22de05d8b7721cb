// The streams of calls over gRPC. grpc-js hides them from what serves a call, so each gets a tag among its metadata.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Metadata } from '@grpc/grpc-js'
import type { Caller } from '#app.ts'
import type { Said } from '#edge/arrival.ts'

/** What a client sends under this name is replaced. */
const streamTag = 'x-pinfold-stream'

/** A stream, and what is known of it before its call is served. */
export type OpenStream = {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly said: Said
  /** Who was let in, and by the clock of `performance` when. */
  admitted: { caller: Caller; at: number } | undefined
}

export type Streams = {
  /** Notes a stream until it is closed, and adds the tag to its headers. */
  add(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): OpenStream
  /** The stream of a call; `undefined` once it is closed. */
  of(call: { metadata: Metadata }): OpenStream | undefined
}

export function createStreams(): Streams {
  const open = new Map<string, OpenStream>()
  let last = 0
  return {
    add(stream, headers) {
      const tag = String(++last)
      headers[streamTag] = tag
      const said = saidIn(headers, stream.session?.socket?.remoteAddress ?? '')
      const added: OpenStream = { stream, headers, said, admitted: undefined }
      open.set(tag, added)
      stream.once('close', () => open.delete(tag))
      return added
    },
    of: ({ metadata }) => open.get(String(metadata.get(streamTag)[0])),
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
