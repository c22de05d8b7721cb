// Client of the REST event stream that reads server-sent events.
import type { Json } from './pinfold.ts'

export type StreamMessage = { id: string; attributes: Record<string, string>; data: string; token: string }
export type EventStream = {
  status: number
  headers: Headers
  /** Error of an answer that is not a stream. */
  error: Json
  /** Messages that contain an event, in order. */
  events: StreamMessage[]
  /** Every message id, including those of messages without an event. */
  ids: string[]
  /** Error with which the stream ended. */
  ending(): Json | undefined
  /** Resolves as soon as the condition is true. Rejects if the stream ends before. */
  until(isTrue: () => boolean): Promise<void>
  /** Resolves at the end of the stream: true if the server ended it, false if the connection broke. */
  ended: Promise<boolean>
  close(): void
  [Symbol.dispose](): void
}

type Options = { query?: string; headers?: Record<string, string> }

/** Resolves with the head of the answer. For a stream, waits for the first message, so that no later event is missed. */
export async function openStream(
  base: string,
  token: string | undefined,
  { query = '', headers = {} }: Options = {},
): Promise<EventStream> {
  const abort = new AbortController()
  const res = await fetch(`${base}/events/v2/stream?${query}`, {
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
    signal: abort.signal,
  })
  const events: StreamMessage[] = []
  const ids: string[] = []
  const wakers = new Set<() => void>()
  let ending: Json | undefined
  const wake = () => {
    for (const waker of wakers) waker()
  }
  const isStream = res.headers.get('content-type') === 'text/event-stream'
  let over = !isStream
  const error = isStream ? {} : (JSON.parse(await res.text()) as Json)

  const take = (block: string): void => {
    const lines = block.split('\n').filter((line) => !line.startsWith(':'))
    const fields = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    )
    if (fields.event === 'status') ending = JSON.parse(fields.data!)
    else {
      ids.push(fields.id!)
      if (fields.data !== undefined) events.push(JSON.parse(fields.data))
    }
  }
  const read = async (): Promise<boolean> => {
    if (!isStream) return true
    let text = ''
    try {
      for await (const chunk of res.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk
        const blocks = text.split('\n\n')
        text = blocks.pop()!
        for (const block of blocks) take(block)
        wake()
      }
      return text === ''
    } catch {
      return false
    } finally {
      over = true
      wake()
    }
  }
  const ended = read()
  const until = (isTrue: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!isTrue() && !over) return
        wakers.delete(look)
        if (isTrue()) resolve()
        else reject(new Error(`the stream ended with ${JSON.stringify(ending)} after ${events.length} events`))
      }
      wakers.add(look)
      look()
    })
  if (isStream) await until(() => ids.length > 0)
  const close = () => abort.abort()
  return {
    status: res.status,
    headers: res.headers,
    error,
    events,
    ids,
    ending: () => ending,
    until,
    ended,
    close,
    [Symbol.dispose]: close,
  }
}
