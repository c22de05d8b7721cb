import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { type Lookup, OutgoingError } from './outgoing.ts'
import { allPrivateAddresses, privateAddresses } from './private-addresses.ts'
import { createSinkClient } from './sink-client.ts'

async function serve(listener: RequestListener) {
  let connections = 0
  const server = createServer(listener).on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}/`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function open(options: Partial<Parameters<typeof createSinkClient>[0]> = {}) {
  const client = createSinkClient({ allowed: allPrivateAddresses, allowHttp: true, ...options })
  return Object.assign(client, { [Symbol.dispose]: () => client.close() })
}
const reasonOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof OutgoingError, String(error))
  return error.reason
}

test('returns the status and Retry-After of a POST, and keeps the connection open', async () => {
  const seen: string[] = []
  await using server = await serve((req, res) => {
    req.setEncoding('utf8').on('data', (text: string) => seen.push(`${req.method} ${req.headers['x-own']} ${text}`))
    req.on('end', () => res.writeHead(429, { 'retry-after': '7' }).end('slow down'))
  })
  using client = open()
  for (let i = 0; i < 3; i++) {
    assert.deepEqual(await client.post(server.url, { 'X-Own': 'yes' }, 'ä', 5000), { status: 429, retryAfter: '7' })
  }
  assert.deepEqual(seen, ['POST yes ä', 'POST yes ä', 'POST yes ä'])
  assert.equal(server.connections(), 1)
})

test('returns a redirect as a response, and ignores errors after the status', async () => {
  await using server = await serve((req, res) => {
    if (req.url === '/long') res.write('x'.repeat(1024 * 1024))
    else if (req.url === '/cut') res.writeHead(200).write('half', () => res.destroy())
    else res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
  })
  using client = open()
  assert.equal((await client.post(server.url, {}, '', 5000)).status, 302)
  assert.equal((await client.post(`${server.url}long`, {}, '', 5000)).status, 200)
  assert.equal((await client.post(`${server.url}cut`, {}, '', 5000)).status, 200)
})

test('sends again if the other side closed a kept connection', async () => {
  let requests = 0
  await using server = await serve((req, res) => {
    requests++
    if (requests === 2) req.socket.destroy()
    else res.end()
  })
  using client = open()
  assert.equal((await client.post(server.url, {}, '', 5000)).status, 200)
  assert.equal((await client.post(server.url, {}, '', 5000)).status, 200)
  assert.equal(requests, 3)
})

test('reports a timeout, a refused connection and a disconnect before the status as failures', async () => {
  await using server = await serve((req) => {
    if (req.url === '/cut') req.socket.destroy()
  })
  using client = open()
  assert.equal(await reasonOf(client.post(`${server.url}silent`, {}, '', 50)), 'timeout')
  assert.equal(await reasonOf(client.post(`${server.url}cut`, {}, '', 5000)), 'unreachable')
  assert.equal(await reasonOf(client.post('http://127.0.0.1:1/', {}, '', 5000)), 'unreachable')
})

test('checks the address at connection time, whatever the name resolved to before', async () => {
  await using server = await serve((_req, res) => void res.end())
  const answers = ['93.184.215.14', '127.0.0.1', '10.0.0.1', '::1', '169.254.169.254']
  for (const address of answers.slice(1)) {
    const lookup: Lookup = (_name, _options, done) => done(null, [{ address, family: address.includes(':') ? 6 : 4 }])
    using client = open({ allowed: privateAddresses([]), lookup })
    const url = `http://hooks.example.com:${server.port}/`
    assert.equal(client.problemOf(url), undefined)
    assert.equal(await reasonOf(client.post(url, {}, '', 5000)), 'private-address')
  }
  // One public address does not help if others are private.
  const mixed: Lookup = (_name, _options, done) =>
    done(
      null,
      answers.slice(0, 2).map((address) => ({ address, family: 4 })),
    )
  using client = open({ allowed: privateAddresses([]), lookup: mixed })
  assert.equal(await reasonOf(client.post(`http://hooks.example.com:${server.port}/`, {}, '', 5000)), 'private-address')
  assert.equal(server.connections(), 0)
})

test('reports a forbidden URL at once', () => {
  using strict = open({ allowed: privateAddresses([]), allowHttp: false })
  const problems: Record<string, string | undefined> = {
    'https://hooks.example.com/a?b=c': undefined,
    'http://hooks.example.com/': 'insecure',
    'https://localhost/': 'private-address',
    'https://127.0.0.1/': 'private-address',
    'https://user@hooks.example.com/': 'bad-url',
    'ftp://hooks.example.com/': 'bad-url',
    '': 'bad-url',
  }
  for (const [url, problem] of Object.entries(problems)) assert.equal(strict.problemOf(url), problem, url)
  using free = open()
  assert.equal(free.problemOf('http://localhost:8080/'), undefined)
})
