// Client for requests to the bucket. Requests are signed, retried after temporary failures, and counted by result.
import { Agent, type IncomingMessage } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBusy } from '#lib/errors.ts'
import { createMemory } from '#lib/scheduling/memory.ts'
import { ContentTooLarge, StoreFull, StoreUnavailable } from '../blobs.ts'
import type { Observe, Operation, results } from '../operations.ts'
import type { Bucket } from './bucket.ts'
import type { CredentialSource } from './credentials.ts'
import { readAll, type Sent, send as sendRequest } from './http.ts'
import { type Credentials, createSigner, encodePath, queryOf, sha256 } from './sign.ts'
import { textOf } from './xml.ts'

export type Ask = {
  operation: Operation
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Key without the prefix of the bucket. Undefined for requests about the bucket itself. */
  key?: string
  query?: readonly (readonly [string, string])[]
  headers?: Record<string, string>
  body?: readonly Buffer[]
  /** SHA-256 of the body, in hex. Computed here if missing. */
  digest?: string
  signal?: AbortSignal | undefined
  /** Most retries after the first attempt. */
  retries?: number
}

export type Answer = { status: number; headers: IncomingMessage['headers']; text: string }

/** Error if the bucket refused the request, so that a retry is useless. */
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

/**
 * Error if a HEAD request was refused. A HEAD response has no body with the reason, and the credentials may have expired. So the
 * next attempt uses new credentials.
 */
class Unexplained extends Error {
  override name = 'Unexplained'
}

export type Client = {
  readonly bucket: Bucket
  /**
   * Sends a request and reads the whole response. Throws Refused if the bucket refuses the request. Throws StoreUnavailable if the
   * bucket is unreachable or denies access.
   */
  ask(ask: Ask): Promise<Answer>
  /**
   * Reserves a connection for reading. Rejects with StoreUnavailable (`TOO_BUSY`) if no connection becomes free in time. Rejects if the
   * signal is aborted.
   */
  turn(pool: Turn['pool'], signal: AbortSignal): Promise<Turn>
  /** Like `ask`, but returns the response with its body unread. The caller reads the body before it frees the connection. */
  open(ask: Ask, turn: Turn): Promise<IncomingMessage>
  /** True if the bucket answered the last request. */
  isUp(): boolean
  /** Time of the store in milliseconds since 1970, computed from its last response. */
  clock(): number
  /**
   * False if the local clock has advanced more than the monotonic clock, for example because the machine was suspended. Then
   * `clock` may be behind.
   */
  isClockReliable(): boolean
  /** Signed URL for reading an object, valid for a number of seconds. Throws StoreUnavailable if there are no credentials. */
  addressOf(key: string, at: Date, seconds: number): Promise<string>
  close(): void
}

export type ClientOptions = {
  observe?: Observe | undefined
  /** Most connections of each pool. */
  connections?: number
  /** Longest wait for a free connection, in milliseconds. */
  waitMs?: number
  /** Milliseconds of a clock that is never adjusted. */
  monotonic?: () => number
}

const retries = 4
const firstPauseMs = 100
const answerBytes = 16 * 1024 * 1024
const mostConnections = 512
/** Longest wait for a free connection, in milliseconds. After that, the request fails with `TOO_BUSY`. */
const connectionWaitMs = 10_000

/** Smaller differences between clocks are ignored, in milliseconds. Date headers have whole seconds and take time to arrive. */
const slackMs = 2000

/** HTTP status codes and error codes after which a request is retried. */
const passing = [408, 429, 500, 502, 503, 504]
const passingCodes = [
  'SlowDown',
  'InternalError',
  'RequestTimeout',
  'ServiceUnavailable',
  'OperationAborted',
  'ConditionalRequestConflict',
]
/** Error codes of a store that is full or has reached a limit. */
const fullCodes = ['QuotaExceeded', 'XMinioStorageFull', 'InsufficientStorage']
/** Error codes of expired credentials or a wrong clock. The request is retried with new credentials. */
const staleCodes = ['ExpiredToken', 'RequestTimeTooSkewed', 'TokenRefreshRequired', 'InvalidToken']

/**
 * Connection pools: for writes, for other requests, for reads of this server, and for reads that are streamed to clients. A full
 * pool does not delay requests of other pools.
 */
type PoolName = 'written' | 'asked' | Turn['pool']

/** Reserved connection for reading. Call `free` once. */
export type Turn = { pool: 'read' | 'streamed'; free(): void }

const isUnexplained = ({ method }: Ask, status: number): boolean => method === 'HEAD' && [400, 403].includes(status)

const isReading = ({ method }: Ask): boolean => method === 'GET' || method === 'HEAD'

/** Connection pools with a limited wait. The HTTP agent alone would wait without a limit, even if the client has disconnected. */
function createPools(isTls: boolean, { connections = mostConnections, waitMs = connectionWaitMs }: ClientOptions) {
  const open = () => ({
    agent: isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true }),
    room: createMemory(connections, {
      waitMs,
      crowded: 'all connections to the bucket are in use; try again',
      refusal: (why) => new StoreUnavailable(why, { reason: 'TOO_BUSY' }),
    }),
  })
  const pools: Record<PoolName, ReturnType<typeof open>> = {
    written: open(),
    asked: open(),
    read: open(),
    streamed: open(),
  }
  return {
    agentOf: (pool: PoolName) => pools[pool].agent,
    async take(pool: PoolName, signal: AbortSignal) {
      signal.throwIfAborted()
      return pools[pool].room.reserve(1, signal)
    },
    close: () => {
      for (const { agent } of Object.values(pools)) agent.destroy()
    },
  }
}

/** Clock of the store, computed from its last response. The local clock may be adjusted at any time. */
function createClock(monotonic: () => number) {
  let told: { time: number; at: number; ours: number } | undefined
  return {
    now: (): number => (told ? told.time + monotonic() - told.at : Date.now()),
    isSure: () => !told || Date.now() - told.ours - (monotonic() - told.at) < slackMs,
    note(header: string | undefined) {
      const [date, ours] = [Date.parse(header ?? ''), Date.now()]
      if (!Number.isNaN(date)) told = { time: Math.abs(date - ours) < slackMs ? ours : date, at: monotonic(), ours }
    },
  }
}

/**
 * Sends single attempts of a request. An attempt throws Refused if a retry is useless, and another error if not. A refused HEAD
 * throws Unexplained, unless it `isSecond`.
 */
function createTries(bucket: Bucket, credentials: CredentialSource, options: ClientOptions) {
  const { monotonic = () => performance.now() } = options
  const signer = createSigner(bucket.region)
  const pools = createPools(bucket.origin.startsWith('https:'), options)
  const { host } = new URL(bucket.origin)
  const clock = createClock(monotonic)
  /** New credentials with which a HEAD request was refused too. So later refusals do not cause another renewal. */
  let inVain: Credentials | undefined

  const pathOf = (key: string | undefined): string =>
    key === undefined ? bucket.path || '/' : encodePath(`${bucket.path}/${bucket.prefix}${key}`)

  const send = async (ask: Ask, given: Credentials, by: PoolName | Turn): Promise<IncomingMessage> => {
    if (typeof by !== 'string') return sendSigned(ask, given, { agent: pools.agentOf(by.pool) })
    const turn = await pools.take(by, ask.signal ?? new AbortController().signal)
    try {
      return await sendSigned(ask, given, { agent: pools.agentOf(by), closed: turn.free })
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
    const headers = signer.headersFor(unsigned, given, digest, new Date(clock.now()))
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
    clock.note(res.headers.date)
    return res
  }

  return {
    take: pools.take,
    async try<T>({ ask, by, take, isSecond }: Try<T>): Promise<T> {
      const given = await credentials.get()
      const res = await send(ask, given, by)
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
    close: pools.close,
  }
}

type Try<T> = { ask: Ask; by: PoolName | Turn; take: (res: IncomingMessage) => Promise<T>; isSecond: boolean }

/**
 * Converts a refusal because of a full store or too large content to the error of all blob stores. Undefined for other refusals.
 */
function toStoreError(refused: Refused): Error | undefined {
  if (refused.status === 507 || fullCodes.includes(refused.code)) {
    return new StoreFull('the blob storage is full', { cause: refused })
  }
  const isLarge = refused.status === 413 || refused.code === 'EntityTooLarge'
  return isLarge ? new ContentTooLarge('the bucket does not accept a blob of this size', { cause: refused }) : undefined
}

export function createClient(bucket: Bucket, credentials: CredentialSource, options: ClientOptions = {}): Client {
  const { observe = () => {} } = options
  const tries = createTries(bucket, credentials, options)
  let up = true

  const run = async <T>(ask: Ask, by: PoolName | Turn, take: (res: IncomingMessage) => Promise<T>): Promise<T> => {
    // While the bucket is unavailable, requests are not retried.
    const most = up ? (ask.retries ?? retries) : 0
    let isSecond = false
    for (let tried = 0; ; tried++) {
      const began = performance.now()
      const ended = (result: (typeof results)[number]) =>
        observe(ask.operation, result, (performance.now() - began) / 1000)
      try {
        const answer = await tries.try({ ask, by, take, isSecond })
        up = true
        ended('ok')
        return answer
      } catch (error) {
        if (error instanceof Refused) {
          const isMissing = error.status === 404 && error.code !== 'NoSuchBucket'
          const isTheirs = isMissing || error.status === 412 || error.status === 416
          const full = toStoreError(error)
          up = isTheirs || (error.status === 400 && ask.method !== 'HEAD') || full !== undefined
          ended(isMissing ? 'missing' : isTheirs ? 'ok' : 'refused')
          if (up) throw full ?? error
          // Our requests are valid, so the credentials, the bucket name or the region must be wrong.
          throw new StoreUnavailable(`the bucket refused the request: ${error.message}`, { cause: error })
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
        throw new StoreUnavailable('the bucket is unavailable', { cause: error })
      }
    }
  }

  return {
    bucket,
    ask: (ask) =>
      run(ask, isReading(ask) ? 'asked' : 'written', async (res) => {
        const text = (await readAll(res, answerBytes)).toString()
        // S3 may send status 200 before it knows the result. Then the body has the error.
        const code = text.includes('<Error>') ? textOf(text, 'Code') : undefined
        if (code !== undefined && ask.operation !== 'DeleteObjects') {
          if (passingCodes.includes(code)) throw new Error(`200 ${code}`)
          throw new Refused(ask.operation, code.startsWith('NoSuch') ? 404 : 400, code)
        }
        return { status: res.statusCode!, headers: res.headers, text }
      }),
    async turn(pool, signal) {
      const began = performance.now()
      try {
        const { free } = await tries.take(pool, signal)
        return { pool, free }
      } catch (error) {
        if (isBusy(error)) observe('GetObject', 'busy', (performance.now() - began) / 1000)
        throw error
      }
    },
    open: (ask, turn) => run(ask, turn, (res) => Promise.resolve(res)),
    isUp: () => up,
    clock: tries.clock.now,
    isClockReliable: tries.clock.isSure,
    addressOf: (key, at, seconds) =>
      tries.addressOf(key, at, seconds).catch((cause: unknown) => {
        throw new StoreUnavailable('there are no credentials for the bucket', { cause })
      }),
    close: tries.close,
  }
}
