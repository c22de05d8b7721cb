// Limits on the bytes of request bodies in memory, for each client address and in total. Each entry point has them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { roleUids } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'
import { connectRaw, type RawConnection } from '../support/raw-http.ts'
import { digestOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { openEndpoint } from '../support/scim.ts'

/**
 * Bodies of 60,000 bytes fit three times into the limit of an address, which is at least two bodies of 64 KiB and 64 KiB more.
 * They fit four times into the limit of all addresses.
 */
const limits = { maxBodyBytes: 65_536, messageBytesPerSource: 65_536, messageBytes: 262_144 }
const sent = 60_000
const whole = 65_536

let issuer: FakeIssuer
let registry: TestRegistry
/** Requests with a body, as the start of their head, by entry point. */
let heads: Record<string, string>
before(async () => {
  issuer = await startIssuer()
  const settings = { ...limits, trustedProxies: ['127.0.0.1'], allowInsecureIssuers: true, allowPrivateAddresses: true }
  registry = await startRegistry(settings)
  const { org, seed, pusher, operator } = registry
  const owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const scim = await openEndpoint(registry, owner, org.uid, issuer.url)
  const json = (token: string | undefined) => `authorization: Bearer ${token}\r\ncontent-type: application/json\r\n`
  heads = {
    rest: `POST /registry/v2/repos/${org.uid} HTTP/1.1\r\n${json(operator.token)}`,
    mcp: `POST /mcp HTTP/1.1\r\n${json(operator.token)}`,
    scim: `POST ${new URL(scim.endpoint).pathname}/Users HTTP/1.1\r\n${json(scim.token)}`,
    registry: `PUT /v2/acme/app/manifests/1.0 HTTP/1.1\r\nauthorization: Bearer ${pusher.token}\r\ncontent-type: ${types.image}\r\n`,
  }
})
after(async () => {
  await registry[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const figure = async (name: string, labels = ''): Promise<number> => {
  const text = await registry.app.metrics.registry.metrics()
  return Number(new RegExp(`^${name}${labels} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
}
const inMemory = () => figure('pinfold_request_body_bytes')
const refusedOf = (transport: string) => figure('pinfold_request_body_refusals_total', `\\{transport="${transport}"\\}`)

/** Waits until the server counts this number of bytes. */
async function counted(bytes: number): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if ((await inMemory()) === bytes) return
    await sleep(10)
  }
  assert.equal(await inMemory(), bytes)
}

/** Sends the start of a request with a body of `whole` bytes. */
async function begin(head: string, from: string, bytes = sent): Promise<RawConnection> {
  const connection = await connectRaw(registry.port)
  connection.write(`${head}host: 127.0.0.1\r\nx-forwarded-for: ${from}\r\ncontent-length: ${whole}\r\n\r\n`)
  connection.write(Buffer.alloc(bytes, ' '))
  return connection
}

/** Runs `work` while three bodies of one address fill the limit of this address. */
async function whileFull(from: string, work: () => Promise<void>): Promise<void> {
  const open: RawConnection[] = []
  try {
    for (let i = 1; i <= 3; i++) {
      open.push(await begin(Object.values(heads)[i - 1]!, from))
      await counted(i * sent)
    }
    await work()
  } finally {
    for (const connection of open) connection[Symbol.dispose]()
    await counted(0)
  }
}

test('all entry points share one limit on the bytes of bodies in memory', async () => {
  await whileFull('192.0.2.1', async () => {
    for (const [name, head] of Object.entries(heads)) {
      using connection = await begin(head, '192.0.2.1', whole)
      const [answer] = await connection.take(/HTTP\/1\.1 \d+[\s\S]*?\r\n\r\n[\s\S]*?\}/)
      assert.match(answer, /^HTTP\/1\.1 429 /, name)
      assert.match(answer, /\r\nretry-after: 1\r\n/i, name)
      assert.match(answer, /too many request bytes/, name)
      if (name === 'rest') assert.match(answer, /"code":8/)
      if (name === 'registry') assert.match(answer, /TOOMANYREQUESTS/)
      assert.equal(await refusedOf(name), 1, name)
    }
  })
})

test('gRPC shares the limit with the other entry points', async () => {
  using grpc = openGrpc(registry.port)
  // One unknown field of 60,000 bytes.
  const message = Buffer.concat([Buffer.from('fa3fe0d403', 'hex'), Buffer.alloc(60_000)])
  const call = (from: string) => {
    const [token, metadata] = [registry.operator.token, { 'x-forwarded-for': from }]
    return grpc.send(`/${GroupsService.typeName}/ListGroups`, message, { token, metadata })
  }
  await whileFull('192.0.2.1', async () => {
    const { code, details } = await call('192.0.2.1')
    assert.equal(code, 8)
    assert.match(JSON.stringify(details), /RetryInfo/)
    assert.equal(await refusedOf('grpc'), 1)
    assert.equal((await call('192.0.2.2')).code, 0, 'another address has its own limit')
  })
})

test('limits the bytes of all addresses together', async () => {
  await whileFull('192.0.2.1', async () => {
    using other = await begin(heads.rest!, '192.0.2.2')
    await counted(4 * sent)
    using third = await begin(heads.rest!, '192.0.2.3')
    const [, status] = await third.take(/HTTP\/1\.1 (\d+)/)
    assert.equal(status, '429')
    assert.equal(other.received(), '')
  })
})

test('serves requests without a token while bodies of callers with a token reach the limit', async () => {
  await whileFull('192.0.2.1', async () => {
    const form = 'content-type: application/x-www-form-urlencoded\r\n'
    using connection = await begin(`POST /oauth/token HTTP/1.1\r\n${form}`, '192.0.2.1', whole)
    const [, status] = await connection.take(/HTTP\/1\.1 (\d+)/)
    assert.equal(status, '400')
  })
})

test('accepts uploads of blobs while other bodies reach the limit', async () => {
  const blob = Buffer.alloc(1024 * 1024, 'x')
  await whileFull('192.0.2.1', async () => {
    const path = `/v2/acme/app/blobs/uploads/?digest=${digestOf(blob)}`
    const headers = { 'x-forwarded-for': '192.0.2.1' }
    const { status } = await registry.pusher.call('POST', path, { body: blob, headers })
    assert.equal(status, 201)
    assert.equal(await inMemory(), 3 * sent)
  })
})

test('counts the buffers of uploads up to half of the limits, and accepts uploads above that', async () => {
  const blob = Buffer.alloc(whole, ' ')
  const path = `/v2/acme/app/blobs/uploads/?digest=${digestOf(blob)}`
  const head = `POST ${path} HTTP/1.1\r\nauthorization: Bearer ${registry.pusher.token}\r\n`
  const finish = async (connection: RawConnection) => {
    connection.write(Buffer.alloc(whole - 20_000, ' '))
    const [, status] = await connection.take(/HTTP\/1\.1 (\d+)/)
    assert.equal(status, '201')
  }
  using first = await begin(head, '192.0.2.1', 20_000)
  await counted(20_000)
  using second = await begin(head, '192.0.2.1', 20_000)
  using other = await begin(head, '192.0.2.2', 20_000)
  await counted(40_000)
  await finish(second)
  assert.equal(await refusedOf('registry'), 1, 'only the manifest of an earlier test was refused')
  await finish(first)
  await finish(other)
  await counted(0)
})

test('accepts a manifest that is larger than the limit if no other body is in memory', async () => {
  const config = await registry.pusher.pushBlob('acme/app', '{}', types.config)
  const filling = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`com.example.${i}`, 'x'.repeat(50_000)]))
  const manifest = { schemaVersion: 2, mediaType: types.image, config, layers: [], annotations: filling }
  await registry.pusher.pushManifest('acme/app', manifest)
  await counted(0)
})
