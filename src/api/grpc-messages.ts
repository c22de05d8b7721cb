// Reads the messages of gRPC calls within limits. grpc-js has only one size limit for the whole server, decompresses before a
// handler can refuse, and has no budgets. So each call gets a reader of its own.
import { createGunzip, createInflate } from 'node:zlib'
import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf'
import type { Metadata, ServiceError } from '@grpc/grpc-js'
import { AppError, invalid } from '#lib/errors.ts'
import { countedBytes, type HeldBytes } from '#lib/net/byte-budget.ts'
import { turnBytes, turns } from '#lib/scheduling/turns.ts'
import type { MessageLimits } from './message-limits.ts'
import { checkMessage } from './transcoding/message-check.ts'
import { wireProblem } from './transcoding/wire-limits.ts'

/** Minimum number of bytes that a message counts, since an empty message uses memory too. */
const bytesOfMessage = 1024

/** Part of a grpc-js call that reads its messages. It is private; `grpc.limits.test.ts` detects changes of grpc-js. */
export type ReadingCall = {
  readonly metadata: Metadata
  decoder: { write(data: Buffer): Buffer[]; maxReadMessageLength: number }
  decompressMessage(message: Buffer, encoding: string): Buffer | Promise<Buffer>
  sendStatus(status: ServiceError): void
}

export type MessageRules = {
  limits: MessageLimits
  /** Message type of one of our methods. Undefined for messages that libraries decode. */
  desc: DescMessage | undefined
  held: HeldBytes
  /** Set for calls that libraries serve. Undefined for our methods, whose calls have one message. */
  stream?: MessageStream
  /** Ends the call with the error. */
  refuse: (error: unknown) => void
}

/**
 * Messages of a call that a library serves. The stream may last long, so the bytes of each message are released once the library
 * has it.
 */
export type MessageStream = {
  /** Counts a message. Throws RESOURCE_EXHAUSTED above the limit. */
  count: () => void
}

/** Sets the limits on the messages of a call. Must be called before any bytes of them have arrived. */
export function limitReading(call: ReadingCall, { limits, desc, held, stream, refuse }: MessageRules): void {
  const { decoder } = call
  decoder.maxReadMessageLength = limits.bytes
  let isRefused = false
  /** Bytes that count only because chunks are small. */
  let smallBytes = 0
  const refuseOnce = (error: unknown): void => {
    if (isRefused) return
    isRefused = true
    refuse(error)
  }
  call.decoder = {
    maxReadMessageLength: limits.bytes,
    write(data) {
      if (isRefused) return []
      try {
        const counted = countedBytes(data)
        held.take(counted)
        smallBytes += counted - data.length
        return decoder.write(data)
      } catch (error) {
        // The decoder of grpc-js throws only if a message is too long.
        refuseOnce(error instanceof AppError ? error : tooLong(limits.bytes))
        return []
      }
    },
  }
  call.decompressMessage = async (message, encoding) => {
    try {
      if (isRefused) throw new AppError('CANCELLED', 'the call has ended')
      stream?.count()
      held.take(bytesOfMessage)
      const packed = message.subarray(5)
      const bytes = encoding === 'identity' ? packed : await unpack(packed, encoding, limits.bytes, held)
      if (bytes.length > turnBytes) await turns.next()
      const problem = wireProblem(desc, bytes, limits)
      if (problem !== undefined) throw invalid({ field: 'message', description: problem })
      if (stream) {
        held.giveBack(smallBytes + message.length + bytesOfMessage + (bytes === packed ? 0 : bytes.length))
        smallBytes = 0
      }
      return bytes
    } catch (error) {
      refuseOnce(error)
      // Errors are handled here. If this promise were rejected, grpc-js would send a second response.
      return new Promise<never>(() => {})
    }
  }
}

async function unpack(packed: Buffer, encoding: string, most: number, held: HeldBytes): Promise<Buffer> {
  if (encoding !== 'gzip' && encoding !== 'deflate') {
    throw new AppError('UNIMPLEMENTED', 'unsupported message compression; use identity, gzip or deflate')
  }
  const unpacker = encoding === 'gzip' ? createGunzip() : createInflate()
  unpacker.end(packed)
  const parts: Buffer[] = []
  let length = 0
  try {
    for await (const part of unpacker as AsyncIterable<Buffer>) {
      length += part.length
      if (length > most) throw tooLong(most)
      held.take(part.length)
      parts.push(part)
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw invalid({ field: 'message', description: `is not valid ${encoding} data` })
  }
  return Buffer.concat(parts)
}

function tooLong(most: number): AppError {
  return new AppError('RESOURCE_EXHAUSTED', `the message is too large; at most ${most} bytes are allowed`)
}

/** Placeholder for a message that could not be decoded. The caller gets the error after the check of permissions. */
class UnreadableMessage {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/**
 * Milliseconds for which a message was decoded, if at least `leastMs`. The time is charged later, since there is no request to
 * charge yet.
 */
const readingMs = new WeakMap<Message, number>()
const leastMs = 1

/** Milliseconds for which `readMessage` decoded a message. 0 if that took less than `leastMs`. */
export function readingMsOf(message: Message): number {
  return readingMs.get(message) ?? 0
}

/** Decodes and checks a message, and drops unknown fields. Never throws, since grpc-js would then respond itself without a log line. */
export function readMessage(desc: DescMessage, bytes: Uint8Array): Message {
  const began = performance.now()
  const message = messageOf(desc, bytes)
  const ms = performance.now() - began
  if (ms >= leastMs) readingMs.set(message, ms)
  return message
}

function messageOf(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    const message = fromBinary(desc, bytes, { readUnknownFields: false })
    checkMessage(desc, message, bytes)
    return message
  } catch (error) {
    return new UnreadableMessage(error) as unknown as Message
  }
}

/** Request of a call, decoded by `readMessage`. Throws INVALID_ARGUMENT if decoding failed, or a field has an invalid value. */
export function requestOf({ request }: { request: Message }): Message {
  const read: unknown = request
  if (!(read instanceof UnreadableMessage)) return request
  if (read.error instanceof AppError) throw read.error
  throw invalid({ field: 'message', description: `is not a valid protobuf message: ${(read.error as Error).message}` })
}
