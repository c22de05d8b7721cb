// Realm of a challenge: the host name that the client used if it belongs to this server, otherwise the URL.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'
import { codeOf, registryClient, startRegistry } from '../support/registry.ts'

type Headers = Record<string, string>
type Server = { port: number; listenPort: number }

const partsOf = (header: unknown) => /^Bearer realm="([^"]*)",service="([^"]*)"/.exec(String(header))?.slice(1)

/** The realm and the service in the challenge for a request with these headers. */
async function challengeOf({ listenPort }: Server, headers: Headers): Promise<string[] | undefined> {
  const answer = await registryClient(`http://127.0.0.1:${listenPort}`, undefined).call('GET', '', { headers })
  assert.equal(answer.status, 401)
  return partsOf(answer.headers['www-authenticate'])
}

const realmOf = async (server: Server, headers: Headers) => (await challengeOf(server, headers))?.[0]

test('a server on loopback accepts each loopback name, and no other', async () => {
  await using pinfold = await startPinfold()
  const { port } = pinfold
  const ours = new URL(pinfold.url).host
  for (const host of [`localhost:${port}`, `LOCALHOST:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
    assert.deepEqual(await challengeOf(pinfold, { host }), [`http://${host.toLowerCase()}/token`, ours])
  }
  for (const host of [
    'registry.example.com',
    `registry.example.com:${port}`,
    'localhost',
    `localhost:${port + 1}`,
    `evil.localhost:${port}`,
    `localhost:${port}.example.com`,
    `localhost:${port}",x="`,
    '',
  ]) {
    assert.deepEqual(await challengeOf(pinfold, { host }), [`${pinfold.url}/token`, ours], host)
  }
})

test('over HTTP, a token issued for one name works under another, because it is for the service', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage('acme/app', 'v1')
  const host = `localhost:${registry.port}`
  const { body } = await registry.puller.ok(200, 'GET', '/token?scope=repository:acme/app:pull', { headers: { host } })
  const client = registryClient(registry.puller.origin, body.token)
  await client.ok(200, 'GET', 'acme/app/manifests/v1', { headers: { host } })
  await client.ok(200, 'GET', 'acme/app/manifests/v1')
})

test('a URL with another host means a proxy in front, so loopback is not a name of the server', async () => {
  await using pinfold = await startPinfold({ url: 'https://registry.example.com' })
  for (const host of [`localhost:${pinfold.listenPort}`, `127.0.0.1:${pinfold.listenPort}`, 'localhost']) {
    assert.equal(await realmOf(pinfold, { host }), 'https://registry.example.com/token')
  }
  assert.equal(await realmOf(pinfold, { host: 'registry.example.com:443' }), 'https://registry.example.com/token')
})

test('accepts further names from the setting, with their scheme and their subdomains', async () => {
  await using pinfold = await startPinfold({
    url: 'https://registry.example.com',
    hosts: ['mirror.internal:5000', 'http://registry.localhost:8080', 'edge.registry.example.com'],
  })
  const service = 'registry.example.com'
  for (const [host, origin] of [
    ['mirror.internal:5000', 'https://mirror.internal:5000'],
    ['Registry.localhost:8080', 'http://registry.localhost:8080'],
    ['team.registry.localhost:8080', 'http://team.registry.localhost:8080'],
    ['edge.registry.example.com', 'https://edge.registry.example.com'],
    ['team.registry.example.com', 'https://team.registry.example.com'],
    ['mirror.internal', 'https://registry.example.com'],
    ['registry.localhost', 'https://registry.example.com'],
  ] as const) {
    assert.deepEqual(await challengeOf(pinfold, { host }), [`${origin}/token`, service], host)
  }
})

test('a subdomain of a further host name is a folder; the name itself is not, also below the URL', async () => {
  await using registry = await startRegistry({
    url: 'https://example.com',
    hosts: ['edge.example.com', 'mirror.internal'],
  })
  const at = (host: string) => ({ headers: { host } })
  const client = async (uid: string) =>
    registryClient(
      `http://127.0.0.1:${registry.listenPort}`,
      await registry.tokenFor(uid, { audience: 'example.com', issuer: registry.url }),
    )
  const pusher = await client(registry.pusher.uid)
  await pusher.pushImage('acme/team/app', 'v1')
  await pusher.ok(200, 'GET', 'acme/app/manifests/v1', at('team.example.com'))
  await pusher.ok(200, 'GET', 'acme/app/manifests/v1', at('team.mirror.internal'))
  await pusher.ok(200, 'GET', 'acme/app/manifests/v1', at('team.edge.example.com'))
  await pusher.ok(200, 'GET', 'acme/team/app/manifests/v1', at('edge.example.com'))
  assert.equal(codeOf(await pusher.call('GET', 'acme/app/manifests/v1', at('-.mirror.internal'))), 'NAME_INVALID')
})

test('a trusted proxy forwards the host name of the client and TLS', async () => {
  await using pinfold = await startPinfold({ trustedProxies: ['127.0.0.1'] })
  const { port, url } = pinfold
  const ours = `127.0.0.1:${port}`
  for (const [headers, origin] of [
    [{ 'x-forwarded-host': 'registry.example.com', 'x-forwarded-proto': 'https' }, 'https://registry.example.com'],
    [
      { 'x-forwarded-host': 'registry.example.com:8443', 'x-forwarded-proto': 'HTTPS' },
      'https://registry.example.com:8443',
    ],
    [{ 'x-forwarded-host': 'registry.example.com' }, 'http://registry.example.com'],
    [{ 'x-forwarded-proto': 'https' }, `https://${ours}`],
    [{ 'x-forwarded-proto': 'http' }, url],
    [{ 'x-forwarded-proto': 'javascript' }, url],
    // Values from the client come first in the header.
    [{ 'x-forwarded-host': 'evil.example.com, registry.example.com' }, 'http://registry.example.com'],
    [{ 'x-forwarded-host': 'registry.example.com", x="' }, url],
    [{ 'x-forwarded-host': 'a b' }, url],
    [{ 'x-forwarded-host': '' }, url],
  ] as const) {
    const service = new URL(url).host
    assert.deepEqual(
      await challengeOf(pinfold, { host: ours, ...headers }),
      [`${origin}/token`, service],
      JSON.stringify(headers),
    )
  }
})

test('behind TLS the realm is https, whatever protocol the proxy uses', async () => {
  await using pinfold = await startPinfold({ url: 'https://registry.example.com', trustedProxies: ['127.0.0.1'] })
  const headers = { host: 'registry.example.com', 'x-forwarded-proto': 'http' }
  assert.equal(await realmOf(pinfold, headers), 'https://registry.example.com/token')
})

test('ignores forwarded host headers of untrusted clients', async () => {
  for (const trustedProxies of [[], ['203.0.113.1']]) {
    await using pinfold = await startPinfold({ trustedProxies })
    const headers = { 'x-forwarded-host': 'evil.example.com', 'x-forwarded-proto': 'https' }
    assert.equal(await realmOf(pinfold, headers), `${pinfold.url}/token`)
  }
})
