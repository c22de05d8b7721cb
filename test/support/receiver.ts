// Receiver of webhook deliveries, written without the server's code. It verifies deliveries with the published keys of the
// issuer. The test sets its answers.
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { Json } from './pinfold.ts'
import { fromVendor } from './vendor.ts'

export type Received = {
  id: string
  type: string
  subject: string
  /** Path and query of the request. */
  path: string
  headers: IncomingHttpHeaders
  /** Body as it was received. `text` has our own names if the request had those of another product. */
  raw: string
  text: string
  json: Json
  /** Status of the receiver's answer. */
  status: number
}
export type Answer = { status: number; headers?: Record<string, string> } | 'nothing' | 'cut'

/** Starts a receiver. `answer` returns the answer to a delivery; the default is 200. With `lean`, long bodies are not stored. */
export async function startReceiver(
  answer: (got: Received, times: number) => Answer | undefined = () => undefined,
  lean = false,
) {
  const got: Received[] = []
  const times = new Map<string, number>()
  const waiters = new Set<() => void>()
  let decide = answer
  let holder: ((release: () => void) => void) | undefined
  let inFlight = 0
  let mostInFlight = 0

  const handler: RequestListener = (req, res) => {
    inFlight++
    mostInFlight = Math.max(mostInFlight, inFlight)
    res.on('close', () => inFlight--)
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const raw = Buffer.concat(chunks).toString()
      const text = fromVendor(raw)
      const { headers } = req as { headers: IncomingHttpHeaders }
      for (const name of ['ce-type', 'ce-bodytype']) headers[name] = fromVendor(String(headers[name]))
      const one: Received = {
        id: String(headers['ce-id']),
        type: String(headers['ce-type']),
        subject: String(headers['ce-subject']),
        path: req.url ?? '',
        headers,
        raw,
        text,
        json: JSON.parse(text) as Json,
        status: 200,
      }
      const count = (times.get(one.id) ?? 0) + 1
      times.set(one.id, count)
      const said = decide(one, count) ?? { status: 200 }
      one.status = typeof said === 'string' ? 0 : said.status
      got.push(lean ? { ...one, headers: {}, raw: '', text: '', json: {} } : one)
      if (said === 'cut') req.socket.destroy()
      else if (said !== 'nothing') {
        const release = () => void res.writeHead(said.status, said.headers ?? {}).end()
        if (holder) holder(release)
        else release()
      }
      for (const look of waiters) look()
    })
  }
  let server = createServer(handler)
  await listen(server, 0)
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    got,
    /** Deliveries with a successful answer. Each is contained once, in the order of the first arrival. */
    accepted: (): Received[] => {
      const seen = new Set<string>()
      return got.filter(({ id, status }) => status >= 200 && status < 300 && !seen.has(id) && seen.add(id))
    },
    mostInFlight: () => mostInFlight,
    answer(next: typeof answer) {
      decide = next
    },
    /** Passes later answers to `next`, instead of sending them. */
    hold(next: (release: () => void) => void) {
      holder = next
    },
    /** Resolves as soon as `enough` returns true for the received deliveries. */
    until(enough: (got: Received[]) => boolean): Promise<void> {
      return new Promise((resolve) => {
        const look = () => {
          if (!enough(got)) return
          waiters.delete(look)
          resolve()
        }
        waiters.add(look)
        look()
      })
    },
    /** Refuses connections until `open` is called. */
    async shut() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
    async open() {
      server = createServer(handler)
      await listen(server, port)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve())
  })
}

/** Throws unless this issuer signed the delivery for a subscription of this group. */
export async function verifyDelivery(one: Received, issuer: string, group: string): Promise<void> {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const [scheme, token = ''] = (one.headers.authorization ?? '').split(' ')
  if (scheme !== 'Bearer') throw new Error('no bearer')
  const { payload } = await jwtVerify(token, keys, { issuer, audience: 'customer', subject: `webhook:${group}` })
  const { digest } = payload.webhook as { digest: string }
  const wanted = `sha256:${createHash('sha256').update(one.raw).digest('hex')}`
  if (digest !== wanted) throw new Error(`the digest is ${digest}, the body has ${wanted}`)
  if ((payload.exp ?? 0) - (payload.iat ?? 0) > 3600) throw new Error('the token lives for too long')
}

/** Settings that allow receivers on this machine, and have short retry intervals. */
export const localSinks = {
  deliver: true,
  allowPrivateAddresses: true,
  allowInsecureSinks: true,
  deliveryRetryMinMs: 20,
  deliveryRetryMaxMs: 100,
  deliveryTimeoutMs: 10_000,
} as const

/** Time limit of `eventually`, in milliseconds. It only ends a test that would never end. */
const eventuallyMs = 120_000

/** Repeats a question until the answer is as expected. */
export async function eventually<T>(ask: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  let last: T | undefined
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Error(`no expected answer within ${eventuallyMs / 1000} s; the last one: ${inspect(last)}`))
  }, eventuallyMs)
  try {
    for (;;) {
      const value = await Promise.race([ask(), late.promise])
      if (wanted(value)) return value
      last = value
      await sleep(10)
    }
  } finally {
    clearTimeout(timer)
  }
}
