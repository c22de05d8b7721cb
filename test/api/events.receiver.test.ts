// The example receiver with deliveries of a real server, and with forged and malformed deliveries.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { Webhook } from 'standardwebhooks'
import { createReceiver, type ReceivedEvent } from '../../examples/receiver/receiver.ts'
import { ok } from '../support/expect.ts'
import { startPinfold } from '../support/pinfold.ts'
import { cleanEnv, project } from '../support/process.ts'

const group = 'a'.repeat(40)
const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

async function serve(listener: Parameters<typeof createServer>[1]) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Served = Awaited<ReturnType<typeof serve>>
let issuer: Served
let sign: (
  claims: object,
  over?: { issuer?: string; audience?: string; subject?: string; expires?: number },
) => Promise<string>
let signAsSomebody: typeof sign
before(async () => {
  const signer = async (kid: string) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const by: typeof sign = (claims, { issuer: iss, audience, subject, expires = 60 } = {}) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuer(iss ?? issuer.url)
        .setAudience(audience ?? 'customer')
        .setSubject(subject ?? `webhook:${group}`)
        .setExpirationTime(Math.floor(Date.now() / 1000) + expires)
        .sign(privateKey)
    return { jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' }, by }
  }
  const [ours, theirs] = [await signer('key'), await signer('key')]
  sign = ours.by
  signAsSomebody = theirs.by
  issuer = await serve((_, res) => res.end(JSON.stringify({ keys: [ours.jwk] })))
})
after(() => issuer[Symbol.asyncDispose]())

const digestOf = (body: string) => `sha256:${createHash('sha256').update(body).digest('hex')}`

/** Sends a delivery as a server does, with the given changes; `undefined` leaves a header out. */
async function deliver(
  to: string,
  change: { body?: string; sent?: string; headers?: Record<string, string | undefined> } = {},
) {
  const { body = '{"actor":{},"body":{}}', sent = body, headers = {} } = change
  const now = new Date()
  const id = headers['ce-id'] ?? 'event-1'
  const all = {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': id,
    'ce-type': 'dev.pinfold.api.iam.group.created.v1',
    'ce-source': 'https://pinfold.example/iam/v2/groups',
    'ce-subject': group,
    authorization: `Bearer ${await sign({ webhook: { digest: digestOf(body) } })}`,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
    ...headers,
  }
  const given = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined)
  const res = await fetch(to, { method: 'POST', body: sent, headers: Object.fromEntries(given) })
  await res.text()
  return res.status
}

test('returns a different status for each error, and handles only valid events', async () => {
  const handled: ReceivedEvent[] = []
  const options = { issuer: issuer.url, group, secret, handle: (event: ReceivedEvent) => void handled.push(event) }
  await using receiver = await serve(createReceiver(options))
  const body = '{"actor":{},"body":{}}'
  const claims = { webhook: { digest: digestOf(body) } }
  const bearer = async (token: Promise<string>) => ({ headers: { authorization: `Bearer ${await token}` } })
  const cases: [name: string, status: number, change: Parameters<typeof deliver>[1]][] = [
    ['no CloudEvent', 400, { headers: { 'ce-specversion': undefined } }],
    ['another version', 400, { headers: { 'ce-specversion': '0.3' } }],
    ['no type', 400, { headers: { 'ce-type': undefined } }],
    ['broken encoding', 400, { headers: { 'ce-source': '%zz' } }],
    ['no JSON', 400, { body: 'hello' }],
    ['no bearer', 401, { headers: { authorization: undefined } }],
    ['another scheme', 401, { headers: { authorization: 'Basic eA==' } }],
    ['no token', 403, { headers: { authorization: 'Bearer x.y.z' } }],
    ['another issuer', 403, await bearer(sign(claims, { issuer: 'https://other.example' }))],
    ['another audience', 403, await bearer(sign(claims, { audience: 'supplier' }))],
    ['another group', 403, await bearer(sign(claims, { subject: `webhook:${'b'.repeat(40)}` }))],
    ['an expired token', 403, await bearer(sign(claims, { expires: -600 }))],
    ['another key', 403, await bearer(signAsSomebody(claims))],
    ['no digest', 403, await bearer(sign({}))],
    ['another body', 403, { sent: '{"actor":{},"body":{"uid":"x"}}' }],
    ['no signature', 403, { headers: { 'webhook-signature': undefined } }],
    [
      'another secret',
      403,
      { headers: { 'webhook-signature': new Webhook(btoa('another secret')).sign('event-1', new Date(), body) } },
    ],
    ['an old signature', 403, { headers: { 'webhook-timestamp': '1700000000' } }],
  ]
  for (const [name, status, change] of cases) assert.equal(await deliver(receiver.url, change), status, name)
  assert.deepEqual(handled, [])
  assert.equal(await deliver(receiver.url), 200)
  assert.deepEqual(handled, [
    {
      id: 'event-1',
      type: 'dev.pinfold.api.iam.group.created.v1',
      source: 'https://pinfold.example/iam/v2/groups',
      subject: group,
      group: '',
      data: { actor: {}, body: {} },
    },
  ])
})

test('handles a repeated event once, unless handling it failed before', async () => {
  const handled: string[] = []
  let broken = true
  let waiting = Promise.withResolvers<void>()
  const handle = async ({ id }: ReceivedEvent) => {
    handled.push(id)
    await waiting.promise
    if (broken) throw new Error('the disk is full')
  }
  await using receiver = await serve(createReceiver({ issuer: issuer.url, group, handle }))
  const both = [deliver(receiver.url), deliver(receiver.url)]
  waiting.resolve()
  assert.ok((await Promise.all(both)).includes(500))
  waiting = Promise.withResolvers<void>()
  waiting.resolve()
  broken = false
  const before = handled.length
  for (let i = 0; i < 3; i++) assert.equal(await deliver(receiver.url), 200)
  assert.equal(handled.length, before + 1)
  assert.equal(await deliver(receiver.url, { headers: { 'ce-id': 'event-2' } }), 200)
  assert.equal(handled.at(-1), 'event-2')
})

test('asks for a retry while the keys of the issuer are unavailable', async () => {
  const closed = await serve(() => {})
  await closed[Symbol.asyncDispose]()
  await using receiver = await serve(createReceiver({ issuer: closed.url, group, handle: () => {} }))
  assert.equal(await deliver(receiver.url), 500)
})

test('accepts deliveries signed with the secret of the subscription, and refuses others', async () => {
  // The other test starts a server with the default.
  const signingAlgorithms = ['RS256', 'ES256'] as const
  const sinks = { deliver: true, allowPrivateAddresses: true, allowInsecureSinks: true }
  await using pinfold = await startPinfold({ ...sinks, signingAlgorithms })
  const org = (await pinfold.seed.group()).uid
  const handled: string[] = []
  const statuses: number[] = []
  let receiver: ReturnType<typeof createReceiver> = (_, res) => void res.writeHead(503).end()
  const { promise: done, resolve } = Promise.withResolvers<void>()
  await using front = await serve((req, res) => {
    res.once('finish', () => {
      statuses.push(res.statusCode)
      // After a refused secret, the test sends the correct secret, because further refusals would not end.
      if (res.statusCode === 200 || statuses.filter((status) => status === 403).length > 2) resolve()
    })
    receiver(req, res)
  })
  const subscription = ok(await pinfold.operator.post(`/events/v2/subscriptions/${org}`, { sink: front.url }))
  const rotated = ok(await pinfold.operator.post(`/events/v2/subscriptions/${subscription.uid}:rotateSecret`))
  const handle = ({ subject }: ReceivedEvent) => void handled.push(subject)
  const options = { issuer: pinfold.url, group: org, handle }
  const wrong = createReceiver({ ...options, secret })
  const right = createReceiver({ ...options, secret: rotated.secret })
  receiver = (req, res) => (statuses.includes(403) ? right : wrong)(req, res)
  const repo = await pinfold.seed.repo(org)
  await done
  assert.deepEqual(new Set(statuses.filter((status) => status !== 503)), new Set([403, 200]))
  assert.deepEqual(handled, [repo.uid])
})

test('the example program accepts a delivery from a server', async () => {
  await using pinfold = await startPinfold({ deliver: true, allowPrivateAddresses: true, allowInsecureSinks: true })
  const org = (await pinfold.seed.group()).uid
  const env = cleanEnv({ RECEIVER_ISSUER: pinfold.url, RECEIVER_GROUP: org, RECEIVER_LISTEN: '127.0.0.1:0' })
  const child = spawn('bin/pinfold-node', ['examples/receiver/receiver.ts'], { cwd: project, env, stdio: 'pipe' })
  const lines = linesOf(child.stdout)
  try {
    const [, sink] = /^receiving on (\S+)$/.exec((await lines.next()).value!)!
    ok(await pinfold.operator.post(`/events/v2/subscriptions/${org}`, { sink: sink! }))
    const repo = await pinfold.seed.repo(org, { description: 'späte Grüße' })
    const event = JSON.parse((await lines.next()).value!)
    assert.deepEqual(
      [event.type, event.subject, event.group, event.data.body.description],
      ['dev.pinfold.api.platform.registry.repo.created.v1', repo.uid, org, 'späte Grüße'],
    )
  } finally {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
})

async function* linesOf(stream: NodeJS.ReadableStream): AsyncGenerator<string, undefined> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (text + chunk).split('\n')
    text = lines.pop()!
    yield* lines
  }
  return undefined
}
