// Receives the events of a subscription. Run it with
//   RECEIVER_ISSUER=http://127.0.0.1:8080 RECEIVER_GROUP=<uid of the group> bin/pinfold-node examples/receiver/receiver.ts
// Anybody who knows its address can post to it. So it accepts only unchanged events that this server has sent for a
// subscription of this group.
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'

export type ReceivedEvent = { id: string; type: string; source: string; subject: string; group: string; data: unknown }

export type ReceiverOptions = {
  /** URL of the server, which signs events and publishes its keys. */
  issuer: string
  /** uid of the group of the subscription. */
  group: string
  /** The secret of the subscription (whsec_…). Without it only the token is checked, which is enough to know who sent it. */
  secret?: string | undefined
  /** Handles an event. If it throws, the server sends the event again later. */
  handle: (event: ReceivedEvent) => Promise<void> | void
}

/** Response to a request that is not an acceptable event. */
class Refusal extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Algorithms with which a server can sign. Its operator can change the algorithm at any time. */
const algorithms = ['ES256', 'RS256']
const maxBytes = 8 * 1024 * 1024
const maxKnownIds = 10_000

export function createReceiver({ issuer, group, secret, handle }: ReceiverOptions): RequestListener {
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer))
  const webhook = secret === undefined ? undefined : new Webhook(secret)
  // Every event comes at least once. An id stays known while it is handled and afterwards, unless that failed.
  const known = new Map<string, Promise<void>>()

  async function receive(headers: IncomingHttpHeaders, body: Buffer): Promise<void> {
    const event = readEvent(headers, body)
    await checkToken(headers.authorization, body)
    checkSignature(headers, body)
    const before = known.get(event.id)
    if (before) return before

    const handling = Promise.try(handle, event)
    known.set(event.id, handling)
    if (known.size > maxKnownIds) known.delete(known.keys().next().value!)
    await handling.catch((error: unknown) => {
      known.delete(event.id)
      throw error
    })
  }

  /** The token says who sent it (issuer and its keys), to whom (audience and subject), and what (the digest of the body). */
  async function checkToken(authorization: string | undefined, body: Buffer): Promise<void> {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) throw new Refusal(401, 'a bearer token is required')
    const expected = { issuer, audience: 'customer', subject: `webhook:${group}`, algorithms }
    const { payload } = await jwtVerify(token, keys, { ...expected, requiredClaims: ['exp'] }).catch(
      (error: unknown) => {
        // Without the keys nobody can tell, so the event has to come again.
        if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSTimeout) throw error
        throw new Refusal(403, `the token is not accepted: ${error.message}`)
      },
    )
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`
    if (digestOf(payload) !== digest) throw new Refusal(403, 'the token was made for another body')
  }

  function checkSignature(headers: IncomingHttpHeaders, body: Buffer): void {
    try {
      webhook?.verify(body, headers as Record<string, string>)
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error
      throw new Refusal(403, `the signature is not accepted: ${error.message}`)
    }
  }

  return (req, res) => {
    const answer = (status: number, text: string) =>
      res.writeHead(status, { 'content-type': 'text/plain' }).end(`${text}\n`)
    readBody(req)
      .then((body) => receive(req.headers, body))
      .then(
        () => answer(200, 'ok'),
        (error: unknown) => {
          if (error instanceof Refusal) return answer(error.status, error.message)
          process.stderr.write(`${String(error)}\n`)
          return answer(500, 'the event could not be handled')
        },
      )
  }
}

function digestOf({ webhook }: JWTPayload): unknown {
  return (webhook as { digest?: unknown } | undefined)?.digest
}

/** CloudEvents 1.0 in binary mode: the attributes are headers, and the body is the data. */
function readEvent(headers: IncomingHttpHeaders, body: Buffer): ReceivedEvent {
  const attribute = (name: string): string => {
    try {
      return decodeURIComponent(String(headers[`ce-${name}`] ?? ''))
    } catch {
      throw new Refusal(400, `ce-${name} cannot be read`)
    }
  }
  if (attribute('specversion') !== '1.0') throw new Refusal(400, 'not a CloudEvent 1.0 in binary mode')
  const [id, type, source] = [attribute('id'), attribute('type'), attribute('source')]
  if (id === '' || type === '' || source === '') throw new Refusal(400, 'the CloudEvent has no id, type or source')
  try {
    const data: unknown = JSON.parse(body.toString())
    return { id, type, source, subject: attribute('subject'), group: attribute('group'), data }
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(400, 'the data of the CloudEvent is not JSON')
  }
}

async function readBody(req: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of req) {
    size += chunk.length
    if (size > maxBytes) throw new Refusal(413, 'the event is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

if (import.meta.main) {
  const { RECEIVER_ISSUER, RECEIVER_GROUP, RECEIVER_SECRET, RECEIVER_LISTEN = '127.0.0.1:9091' } = process.env
  if (!RECEIVER_ISSUER || !RECEIVER_GROUP) {
    process.stderr.write('set RECEIVER_ISSUER to the URL of the server and RECEIVER_GROUP to the uid of the group\n')
    process.exit(78)
  }
  const handle = (event: ReceivedEvent): void => void process.stdout.write(`${JSON.stringify(event)}\n`)
  const receiver = createReceiver({ issuer: RECEIVER_ISSUER, group: RECEIVER_GROUP, secret: RECEIVER_SECRET, handle })
  const [, host, port] = /^(.*):(\d+)$/.exec(RECEIVER_LISTEN) ?? []
  const server = createServer(receiver).listen(Number(port), host, () => {
    const { address, port: taken } = server.address() as AddressInfo
    process.stdout.write(`receiving on http://${address}:${taken}/\n`)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => server.close())
}
