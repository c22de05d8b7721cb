// Client of a server's event stream. Reads server-sent events, and reconnects after every interruption.
import { setTimeout as sleep } from 'node:timers/promises'
import { codes } from '#lib/errors.ts'
import { plain } from '#lib/terminal/plain-text.ts'
import { ApiError, errorOfStatus, stream } from '../framework/api-client.ts'
import type { Terminal } from '../framework/command.ts'

export type StreamedEvent = { id: string; attributes: Record<string, string>; data: string; token: string }

/** Time without data after which the client reconnects. A server sends heartbeats more often than this. */
const silenceMs = 60_000
const firstWaitMs = 500
const longestWaitMs = 15_000

type FollowOptions = {
  api: string
  query: URLSearchParams
  /** Called for each connection, since a token expires before the stream ends. */
  token: () => Promise<string>
  signal: AbortSignal
}

/** Yields every event once and in order, until the signal is aborted. Throws errors that a retry would not fix. */
export async function* followEvents(terminal: Terminal, options: FollowOptions): AsyncGenerator<StreamedEvent> {
  const { signal } = options
  let last = ''
  let failures = 0
  while (!signal.aborted) {
    try {
      for await (const { id, event } of connect(options, last)) {
        failures = 0
        last = id
        if (event) yield event
      }
      throw new ApiError(codes.UNAVAILABLE.number, `${options.api} closed the event stream`)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof ApiError) || !mayPass(error, failures)) throw error
      if (failures === 0) terminal.say(`pinfold: ${plain(error.message)}; connecting again`)
      const wait = Math.min(firstWaitMs * 2 ** failures++, longestWaitMs)
      await sleep(wait * (1 - Math.random() / 2), undefined, { signal }).catch(() => {})
    }
  }
}

/**
 * An UNAUTHENTICATED error after a successful connection means that the token has expired, so a new token may help. For other
 * refusals, a retry does not help.
 */
function mayPass({ code }: ApiError, failures: number): boolean {
  const away = code === codes.UNAVAILABLE.number || code === codes.DEADLINE_EXCEEDED.number
  return away || (code === codes.UNAUTHENTICATED.number && failures === 0)
}

type Message = { id: string; event: StreamedEvent | undefined }

async function* connect({ api, query, token, signal }: FollowOptions, last: string): AsyncGenerator<Message> {
  const url = new URL(`/events/v2/stream?${query}`, api)
  const bearer = await token()
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new Error(`no data for ${silenceMs / 1000} seconds`)), silenceMs)
  const headers: Record<string, string> = last === '' ? {} : { 'last-event-id': last }
  try {
    let text = ''
    for await (const more of stream(url, bearer, { signal: AbortSignal.any([signal, silence.signal]), headers })) {
      timer.refresh()
      const blocks = (text + more).split('\n\n')
      text = blocks.pop()!
      for (const block of blocks) {
        const { name, id, data } = fieldsOf(block)
        if (name === 'status') throw errorOfStatus(data, `${url.origin}${url.pathname}`, bearer)
        if (id !== '') yield { id, event: data === '' ? undefined : (JSON.parse(data) as StreamedEvent) }
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

/** One block of `field: value` lines; a line that begins with a colon is a comment. */
function fieldsOf(block: string): { name: string; id: string; data: string } {
  const fields = { name: '', id: '', data: [] as string[] }
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^([a-z]+):? ?(.*)$/.exec(line) ?? []
    if (field === 'event') fields.name = value
    else if (field === 'id') fields.id = value
    else if (field === 'data') fields.data.push(value)
  }
  return { ...fields, data: fields.data.join('\n') }
}
