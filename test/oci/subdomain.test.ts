// A subdomain of the registry host selects a folder between the organization and the rest of the path.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { codeOf, digestOf, type Reply, registryClient, startRegistry, types } from '../support/registry.ts'

const hostOf = ({ url }: { url: string }) => new URL(url).host
const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: types.index,
  manifests: [],
})
const put = (headers: Record<string, string>) => ({
  body: manifest,
  headers: { 'content-type': types.index, ...headers },
})

test('pushes and pulls at a subdomain use its folder, and responses have the path of the client', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, org } = registry
  const host = `team.${hostOf(registry)}`
  const pushed = await pusher.ok(201, 'PUT', 'acme/app/manifests/v1', put({ host }))
  assert.equal(pushed.headers.location, `/v2/acme/app/manifests/${digestOf(manifest)}`)
  for (const [path, headers] of [
    ['acme/app', { host }],
    ['acme/app', { host: host.toUpperCase() }],
    [`${org.uid}/app`, { host }],
    ['acme/team/app', {}],
  ] as const) {
    const { headers: got } = await puller.ok(200, 'GET', `${path}/manifests/v1`, { headers })
    assert.equal(got['docker-content-digest'], digestOf(manifest))
  }
  assert.equal(codeOf(await puller.call('GET', 'acme/app/manifests/v1')), 'NAME_UNKNOWN')
  assert.equal(codeOf(await puller.call('GET', 'acme/team/app/manifests/v1', { headers: { host } })), 'NAME_UNKNOWN')
  assert.deepEqual((await puller.ok(200, 'GET', 'acme/app/tags/list', { headers: { host } })).body, {
    name: 'acme/app',
    tags: ['v1'],
  })
  await puller.ok(200, 'GET', 'acme/team/app/tags/list', { headers: { host: `team.${hostOf(registry)}0` } })
})

test('refuses a host name whose subdomain is not a folder', async () => {
  await using registry = await startRegistry()
  for (const subdomain of ['-', 'a_', '..', 'a b', 'ä', '', 'a/b', "$'", '$&', 'a"b']) {
    const host = `${Buffer.from(subdomain).toString('latin1')}.${hostOf(registry)}`
    const { status } = await registry.puller.call('GET', 'acme/app/manifests/v1', { headers: { host } })
    assert.ok([400, 404].includes(status), `${subdomain}: ${status}`)
    const anonymous = await registry.nobody.call('GET', 'acme/app/manifests/v1', { headers: { host } })
    assert.deepEqual([anonymous.status, codeOf(anonymous)], [400, 'NAME_INVALID'], subdomain)
  }
})

test('a challenge leads to a token for the folder, which is valid for nothing else', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, nobody } = registry
  const host = `team.${hostOf(registry)}`
  await pusher.ok(201, 'PUT', 'acme/app/manifests/v1', put({ host }))
  await pusher.ok(201, 'PUT', 'acme/app/manifests/v1', put({}))
  const asked = await nobody.call('GET', 'acme/app/manifests/v1', { headers: { host } })
  assert.equal(
    asked.headers['www-authenticate'],
    `Bearer realm="http://${host}/token",service="${hostOf(registry)}",scope="repository:acme/app:pull"`,
  )
  const { body } = await puller.ok(200, 'GET', '/token?scope=repository:acme/app:pull', { headers: { host } })
  const client = registryClient(puller.origin, body.token as string)
  const answers: Reply[] = [
    await client.call('GET', 'acme/app/manifests/v1', { headers: { host } }),
    await client.call('GET', 'acme/team/app/manifests/v1'),
    await client.call('GET', 'acme/app/manifests/v1'),
    await client.call('GET', 'acme/app/manifests/v1', { headers: { host: `other.${hostOf(registry)}` } }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 401, 401],
  )
})

test('the registry accepts tokens with a subdomain as audience, and the API refuses them', async () => {
  await using registry = await startRegistry()
  const host = `team.${hostOf(registry)}`
  await registry.pusher.ok(201, 'PUT', 'acme/app/manifests/v1', put({ host }))
  const clientWith = async (audience: string) =>
    registryClient(registry.puller.origin, await registry.tokenFor(registry.puller.uid, { audience }))
  await (await clientWith(host)).ok(200, 'GET', 'acme/app/manifests/v1', { headers: { host } })
  const foreign = await (await clientWith(`team${hostOf(registry)}`)).call('GET', 'acme/team/app/manifests/v1')
  assert.equal(foreign.status, 403)
  const api = registry.withToken(await registry.tokenFor(registry.puller.uid, { audience: host }))
  assert.equal((await api.get('/iam/v2/groups')).status, 401)
})

test('events keep the path of the client, and contain the subdomain', async () => {
  await using registry = await startRegistry()
  const { app, pusher, org, seed } = registry
  await seed.subscription(org.uid)
  const host = `team.${hostOf(registry)}`
  await pusher.ok(201, 'PUT', 'acme/app/manifests/v1', put({ host }))
  await pusher.ok(200, 'GET', 'acme/app/manifests/v1', { headers: { host } })
  await app.registryEvents.flush()
  const rows = await app.db.all<{ type: string; source: string; body: string; extensions: string }>(sql`
    SELECT type, source, body, extensions FROM events_outbox WHERE type LIKE ${'dev.pinfold.registry.p%'} ORDER BY id`)
  assert.deepEqual(
    rows.map(({ type, source, body, extensions }) => {
      const { repository, subdomain, display_name } = JSON.parse(body)
      return [type, source, repository, subdomain, display_name, JSON.parse(extensions).image]
    }),
    [
      ['push', 'acme/team/app'],
      ['pull', undefined],
    ].map(([kind, display]) => [
      `dev.pinfold.registry.${kind}.v1`,
      hostOf(registry),
      'acme/app',
      'team',
      display,
      `${host}/acme/app:v1`,
    ]),
  )
})
