// Streams of messages as server-sent events (HTML, section 9.2). The data of an event is the JSON of the whole message. The `id`
// of an event is that of the message. After a disconnection, the client continues from the last `id`.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf'
import { gone, tooSlow } from '#edge/arrival.ts'
import { errorJson, type Rendered } from './errors.ts'
import { jsonText } from './transcoding/json-write.ts'

export const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // Makes proxies send small events at once instead of buffering them.
  'x-accel-buffering': 'no',
}

/** Request field that the `Last-Event-ID` header overrides. */
const resumeField = 'after'

/**
 * Sets the position from the header. The header has priority over the query, since a client that reconnects repeats its first
 * query.
 */
export function resumeFrom(req: IncomingMessage, request: Message): void {
  const id = req.headers['last-event-id']
  if (typeof id === 'string' && id !== '' && resumeField in request) Object.assign(request, { [resumeField]: id })
}

export type SendOptions = {
  /** Longest time for the client to read the sent data, in milliseconds. */
  stallMs: number
  /** Called when the first message is sent. The status of the response is then known. */
  onStart: () => void
}

/** Sends messages one by one. Takes the next message only when the client can receive it. */
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
    if (!res.write(eventOf(desc, message))) await waitForDrain(res, stallMs)
  }
  res.end()
}

/** Text of an event. A message that has only an ID moves the client's position, and is sent as a comment. */
function eventOf(desc: DescMessage, message: Message): string {
  const { id } = message as unknown as { id: string }
  const says = desc.fields.some((field) => field.name !== 'id' && isFieldSet(message, field))
  return says ? `id: ${id}\ndata: ${jsonText(desc, message)}\n\n` : `: still here\nid: ${id}\n\n`
}

/** Last event of a stream that ends with an error. The name of the event distinguishes it from messages. */
export function statusEvent(rendered: Rendered): string {
  return `event: status\ndata: ${errorJson(rendered)}\n\n`
}

function waitForDrain(res: ServerResponse, stallMs: number): Promise<void> {
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
