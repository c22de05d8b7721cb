// Requests to the bucket: signed, tried again when that can help, and each with the one word that says how it ended.
import { Agent, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBusy } from '#lib/errors.ts'
import { createMemory } from '#lib/turns/memory.ts'
import { ContentTooLarge, StoreAway, StoreFull } from '../blobs.ts'
import type { Observe, Operation, results } from '../operations.ts'
import type { Bucket } from './bucket.ts'
import type { CredentialSource } from './credentials.ts'
import { readAll, type Sent, send as sendRequest } from './http.ts'
import { type Credentials, createSigner, encodePath, queryOf, sha256 } from './sign.ts'
import { textOf } from './xml.ts'

export type Ask = {
  operation: Operation
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Below the prefix; nothing for the bucket itself. */
  key?: string
  query?: readonly (readonly [string, string])[]
  headers?: Record<string, string>
  body?: readonly Buffer[]
  /** Of the body, in hex; it is made of that when it is not known. */
  digest?: string
  signal?: AbortSignal | undefined
  /** Further tries after the first. */
  retries?: number
}

export type Answer = { status: number; headers: IncomingMessage['headers']; text: string }

/** The bucket said no, in a way that trying again does not change. */
export class Refused extends Error {
  override name = 'Refused'
  readonly status: number
  readonly code: string

  constructor(operation: Operation, status: number, code: string) {
    super(`${operation} was refused: ${status} ${code}`)
    this.status = status
    this.code = code
  }
}

/** A HEAD was refused, whose answer has no body to say why. Its credentials may have ended; next time it is sent with new ones. */
class Unexplained extends Error {
  override name = 'Unexplained'
}

export type Client = {
  readonly bucket: Bucket
  /** The whole answer. Throws Refused, or StoreAway when the bucket cannot be reached or does not let us in. */
  ask(ask: Ask): Promise<Answer>
  /** The same, with a body that has not been read. */
  open(ask: Ask): Promise<IncomingMessage>
  /** Whether the last thing asked for could be had. */
  isUp(): boolean
  /** Milliseconds since 1970 by the clock of the store, as of its last answer. */
  clock(): number
  /** An address from which whoever has it can read the object for so many seconds. Throws StoreAway without credentials. */
  addressOf(key: string, at: Date, seconds: number): Promise<string>
  close(): void
}

export type ClientOptions = {
  observe?: Observe | undefined
  /** How many there may be in each lane. */
  connections?: number
  /** How long one is waited for. */
  waitMs?: number
  /** Milliseconds of a clock that never steps. */
  monotonic?: () => number
}

const retries = 4
const firstPauseMs = 100
const answerBytes = 16 * 1024 * 1024
const mostConnections = 512
/** Who gets none for so long is told to come again. */
const connectionWaitMs = 10_000

/** Answers that say to try again, by their status or by the code in them. */
const passing = [408, 429, 500, 502, 503, 504]
const passingCodes = ['SlowDown', 'InternalError', 'RequestTimeout', 'ServiceUnavailable', 'OperationAborted']
/** Of stores that have a limit. */
const fullCodes = ['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage']
/** New credentials, or the right time, may help. */
const staleCodes = ['ExpiredToken', 'RequestTimeTooSkewed', 'TokenRefreshRequired', 'InvalidToken']

/** What is written, what is asked and read at once, and what is read as slowly as whoever it is for. None waits for another. */
type Lane = 'written' | 'asked' | 'streamed'

const isUnexplained = ({ method }: Ask, status: number): boolean => method === 'HEAD' && [400, 403].includes(status)

const isReading = ({ method }: Ask): boolean => method === 'GET' || method === 'HEAD'

/** Who waits for one is not left to the agent, which has no end to that and keeps those who have gone away. */
function createConnections(isTls: boolean, most: number, waitMs: number) {
  const agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true })
  const room = createMemory(most, {
    waitMs,
    crowded: 'all connections to the bucket are in use; try again',
    refusal: (why) => new StoreAway(why, { reason: 'TOO_BUSY' }),
  })
  return { agent, take: (signal: AbortSignal) => room.reserve(1, signal) }
}

/**
 * One try: signed with the credentials that are given. Throws Refused, what is to be tried again as a plain Error, and unless
 * it `isSecond`, Unexplained.
 */
function createTries(bucket: Bucket, credentials: CredentialSource, options: ClientOptions) {
  const { connections = mostConnections, waitMs = connectionWaitMs, monotonic = () => performance.now() } = options
  const signer = createSigner(bucket.region)
  const open = () => createConnections(bucket.origin.startsWith('https:'), connections, waitMs)
  const lanes: Record<Lane, ReturnType<typeof open>> = { written: open(), asked: open(), streamed: open() }
  const { host } = new URL(bucket.origin)
  /** The time of the store as of its last answer, and when that came. Our own clock may be set at any time. */
  let told: { time: number; at: number } | undefined
  /** Those that were refused a HEAD when they were new: others would be, too. */
  let inVain: Credentials | undefined

  const clock = (): number => (told ? told.time + monotonic() - told.at : Date.now())
  const pathOf = (key: string | undefined): string =>
    key === undefined ? bucket.path || '/' : encodePath(`${bucket.path}/${bucket.prefix}${key}`)

  const send = async (ask: Ask, given: Credentials, lane: Lane): Promise<IncomingMessage> => {
    const { signal = new AbortController().signal } = ask
    signal.throwIfAborted()
    const { agent, take } = lanes[lane]
    const turn = await take(signal)
    try {
      return await sendSigned(ask, given, { agent, closed: turn.free })
    } catch (error) {
      turn.free()
      throw error
    }
  }
  const sendSigned = async (ask: Ask, given: Credentials, by: Pick<Sent, 'agent' | 'closed'>) => {
    const { method, key, query = [], body = [] } = ask
    const length = body.reduce((sum, chunk) => sum + chunk.length, 0)
    const digest = ask.digest ?? (body.length === 0 ? sha256('') : sha256(Buffer.concat(body)))
    const unsigned = { method, host, path: pathOf(key), query, headers: ask.headers ?? {} }
    const headers = signer.headersFor(unsigned, given, digest, new Date(clock()))
    if (!isReading(ask)) headers['content-length'] = String(length)
    const url = `${bucket.origin}${unsigned.path}${query.length > 0 ? `?${queryOf(query)}` : ''}`
    const res = await sendRequest({
      url,
      method,
      headers,
      body,
      timeoutMs: bucket.timeoutMs,
      signal: ask.signal,
      ...by,
    })
    const [date, ours] = [Date.parse(res.headers.date ?? ''), Date.now()]
    // Dates are in whole seconds, and take a while to come.
    if (!Number.isNaN(date)) told = { time: Math.abs(date - ours) < 2000 ? ours : date, at: monotonic() }
    return res
  }

  return {
    async try<T>({ ask, lane, take, isSecond }: Try<T>): Promise<T> {
      const given = await credentials.get()
      const res = await send(ask, given, lane)
      const status = res.statusCode!
      if (status >= 200 && status < 300) return take(res)
      const text = (await readAll(res, answerBytes)).toString()
      const code = textOf(text, 'Code') ?? ''
      if (staleCodes.includes(code)) {
        credentials.forget(given)
        throw new Error(`${status} ${code}`)
      }
      if (isUnexplained(ask, status) && given !== inVain) {
        if (!isSecond) {
          credentials.forget(given)
          throw new Unexplained()
        }
        inVain = given
      }
      if (passing.includes(status) || passingCodes.includes(code)) throw new Error(`${status} ${code}`.trim())
      throw new Refused(ask.operation, status, code)
    },
    clock,
    async addressOf(key: string, at: Date, seconds: number): Promise<string> {
      const path = pathOf(key)
      const unsigned = { method: 'GET', host: new URL(bucket.publicOrigin).host, path, query: [], headers: {} }
      return `${bucket.publicOrigin}${path}?${signer.queryFor(unsigned, await credentials.get(), seconds, at)}`
    },
    close: () => {
      for (const { agent } of Object.values(lanes)) agent.destroy()
    },
  }
}

type Try<T> = { ask: Ask; lane: Lane; take: (res: IncomingMessage) => Promise<T>; isSecond: boolean }

/** What a store says that takes no more, or nothing so large, as all stores of ours say it. */
function whyNoRoom(refused: Refused): Error | undefined {
  if (refused.status === 507 || fullCodes.includes(refused.code)) {
    return new StoreFull('there is no room for more blobs', { cause: refused })
  }
  const isLarge = refused.status === 413 || refused.code === 'EntityTooLarge'
  return isLarge ? new ContentTooLarge('the store takes no blob of this size', { cause: refused }) : undefined
}

export function createClient(bucket: Bucket, credentials: CredentialSource, options: ClientOptions = {}): Client {
  const { observe = () => {} } = options
  const tries = createTries(bucket, credentials, options)
  let up = true

  const run = async <T>(ask: Ask, lane: Lane, take: (res: IncomingMessage) => Promise<T>): Promise<T> => {
    // While the bucket is away, nobody waits for what is not going to help.
    const most = up ? (ask.retries ?? retries) : 0
    let isSecond = false
    for (let tried = 0; ; tried++) {
      const began = performance.now()
      const ended = (result: (typeof results)[number]) =>
        observe(ask.operation, result, (performance.now() - began) / 1000)
      try {
        const answer = await tries.try({ ask, lane, take, isSecond })
        up = true
        ended('ok')
        return answer
      } catch (error) {
        if (error instanceof Refused) {
          const isMissing = error.status === 404 && error.code !== 'NoSuchBucket'
          const isTheirs = isMissing || error.status === 412 || error.status === 416
          const full = whyNoRoom(error)
          up = isTheirs || (error.status === 400 && ask.method !== 'HEAD') || full !== undefined
          ended(isMissing ? 'missing' : isTheirs ? 'ok' : 'refused')
          if (up) throw full ?? error
          // Nothing that a client did: the credentials, the bucket or the region are not right.
          throw new StoreAway(`the bucket lets nobody in: ${error.message}`, { cause: error })
        }
        if (isBusy(error)) {
          ended('busy')
          throw error
        }
        if (ask.signal?.aborted) throw error
        if (error instanceof Unexplained) {
          ended('retried')
          isSecond = true
          continue
        }
        if (tried < most) {
          ended('retried')
          await sleep(firstPauseMs * 2 ** tried * (0.5 + Math.random()), undefined, { signal: ask.signal })
          continue
        }
        ended('away')
        up = false
        throw new StoreAway('the bucket cannot be reached now', { cause: error })
      }
    }
  }

  return {
    bucket,
    ask: (ask) =>
      run(ask, isReading(ask) ? 'asked' : 'written', async (res) => {
        const text = (await readAll(res, answerBytes)).toString()
        // Some answers begin before it is known how they end.
        const code = text.includes('<Error>') ? textOf(text, 'Code') : undefined
        if (code !== undefined && ask.operation !== 'DeleteObjects') {
          if (passingCodes.includes(code)) throw new Error(`200 ${code}`)
          throw new Refused(ask.operation, code.startsWith('NoSuch') ? 404 : 400, code)
        }
        return { status: res.statusCode!, headers: res.headers, text }
      }),
    open: (ask) => run(ask, 'streamed', (res) => Promise.resolve(res)),
    isUp: () => up,
    clock: tries.clock,
    addressOf: (key, at, seconds) =>
      tries.addressOf(key, at, seconds).catch((cause: unknown) => {
        throw new StoreAway('there are no credentials for the bucket now', { cause })
      }),
    close: tries.close,
  }
}
