// A stream of messages as server-sent events (HTML, section 9.2). The message's own `id` is the event's, from which a client
// goes on after a break; all of the message is its data.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf'
import { gone, tooSlow } from '#edge/arrival.ts'
import { errorJson, type Rendered } from './errors.ts'
import { jsonText } from './transcoding/json-write.ts'

export const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Asks a proxy not to hold back what is small.
  'x-accel-buffering': 'no',
}

/** The field of the request that the `Last-Event-ID` header stands for. */
const resumeField = 'after'

/** A client that comes back sends the header with the query of its first request, so the header counts. */
export function resumeFrom(req: IncomingMessage, request: Message): void {
  const id = req.headers['last-event-id']
  if (typeof id === 'string' && id !== '' && resumeField in request) Object.assign(request, { [resumeField]: id })
}

export type SendOptions = {
  /** How long the client may take to read what was sent. */
  stallMs: number
  /** The first message is there, and with it the status. */
  onStart: () => void
}

/** Sends message after message, and asks for the next one when the client has room for it. */
export async function sendMessages(
  res: ServerResponse,
  desc: DescMessage,
  messages: AsyncIterable<Message>,
  { stallMs, onStart }: SendOptions,
): Promise<void> {
  for await (const message of messages) {
    if (res.destroyed || res.writableEnded) throw gone()
    if (!res.headersSent) {
      res.writeHead(200, streamHeaders)
      onStart()
    }
    if (!res.write(eventOf(desc, message))) await drained(res, stallMs)
  }
  res.end()
}

/** A message of nothing but its id moves the client's position and is no event. */
function eventOf(desc: DescMessage, message: Message): string {
  const { id } = message as unknown as { id: string }
  const says = desc.fields.some((field) => field.name !== 'id' && isFieldSet(message, field))
  return says ? `id: ${id}\ndata: ${jsonText(desc, message)}\n\n` : `: still here\nid: ${id}\n\n`
}

/** The last event of a stream that ends for a reason. It has a name, so that nobody takes it for a message. */
export function statusEvent(rendered: Rendered): string {
  return `event: status\ndata: ${errorJson(rendered)}\n\n`
}

function drained(res: ServerResponse, stallMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => () => {
      clearTimeout(timer)
      res.off('drain', onDrain)
      res.off('close', onClose)
      then()
    }
    const onDrain = settle(resolve)
    const onClose = settle(() => reject(gone()))
    const timer = setTimeout(
      settle(() => {
        res.destroy()
        reject(tooSlow())
      }),
      stallMs,
    )
    res.once('drain', onDrain)
    res.once('close', onClose)
  })
}
