import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { codeOf, registryClient, startRegistry } from '../support/registry.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const hostOf = (pinfold: Pinfold) => new URL(pinfold.url).host

async function ask(pinfold: Pinfold, query: string, authorization?: string) {
  return pinfold.anonymous.call('GET', `/token${query}`, undefined, authorization ? { authorization } : {})
}

/** Repositories and actions in the token of a response. */
function accessOf(answer: { body: { token?: string } }) {
  return decodeJwt<{ access: unknown }>(answer.body.token!).access
}

async function scene(pinfold: Pinfold) {
  const org = await pinfold.seed.group('', { name: 'acme' })
  await pinfold.seed.repo(org.uid, { name: 'app' })
  const puller = await pinfold.seed.member(org.uid, roleUids.pull)
  const pusher = await pinfold.seed.member(org.uid, roleUids.push)
  const registryToken = (uid: string) => pinfold.tokenFor(uid, { audience: hostOf(pinfold) })
  return { org, puller, pusher, registryToken }
}

test('a request without a token gets a challenge with the token endpoint', async () => {
  await using pinfold = await startPinfold()
  const host = hostOf(pinfold)
  const answer = await pinfold.anonymous.get('/v2/')
  assert.equal(answer.status, 401)
  assert.equal(answer.headers.get('www-authenticate'), `Bearer realm="${pinfold.url}/token",service="${host}"`)
  assert.equal(answer.body.errors[0].code, 'UNAUTHORIZED')

  const about = async (method: string, path: string) => {
    const { headers } = await pinfold.anonymous.call(method, path)
    return /scope="([^"]*)"/.exec(headers.get('www-authenticate') ?? '')?.[1]
  }
  assert.equal(await about('GET', '/v2/acme/app/manifests/latest'), 'repository:acme/app:pull')
  assert.equal(await about('POST', '/v2/acme/app/blobs/uploads/'), 'repository:acme/app:pull,push')
  assert.equal(await about('DELETE', '/v2/acme/team/app/manifests/v1'), 'repository:acme/team/app:pull,push,delete')
  // The response does not repeat a name that could break out of the header.
  assert.equal(await about('GET', '/v2/acme/"x/manifests/latest'), undefined)
})

test('exchanges an access token for the registry for a token with the allowed actions of its identity', async () => {
  await using pinfold = await startPinfold()
  const { puller, pusher, registryToken } = await scene(pinfold)
  const scope = '?service=x&scope=repository:acme/app:pull,push'

  const pull = await ask(pinfold, scope, basic('_token', await registryToken(puller.uid)))
  assert.equal(pull.status, 200, pull.text)
  assert.deepEqual(accessOf(pull), [{ type: 'repository', name: 'acme/app', actions: ['pull'] }])
  assert.equal(pull.body.access_token, pull.body.token)
  assert.equal(pull.body.expires_in, 300)
  assert.equal(pull.headers.get('cache-control'), 'no-store')

  const push = await ask(pinfold, scope, `Bearer ${await registryToken(pusher.uid)}`)
  assert.deepEqual(accessOf(push), [{ type: 'repository', name: 'acme/app', actions: ['pull', 'push'] }])
  const both = '?scope=repository:acme/app:pull&scope=repository:acme/new/one:pull,push%20repository:acme/app:*'
  assert.deepEqual(accessOf(await ask(pinfold, both, basic('_token', await registryToken(pusher.uid)))), [
    { type: 'repository', name: 'acme/app', actions: ['pull'] },
    { type: 'repository', name: 'acme/new/one', actions: ['pull', 'push'] },
    { type: 'repository', name: 'acme/app', actions: ['pull', 'push', 'delete'] },
  ])
  const ok = await pinfold.withToken(pull.body.token).get('/v2/')
  assert.equal(ok.status, 200)
  assert.equal(ok.headers.get('docker-distribution-api-version'), 'registry/2.0')
})

test('the registry refuses a token for another audience with 403 at each endpoint', async () => {
  await using pinfold = await startPinfold()
  const { puller } = await scene(pinfold)
  const forApi = await pinfold.tokenFor(puller.uid)
  const answers = [
    await ask(pinfold, '?scope=repository:acme/app:pull', basic('_token', forApi)),
    await ask(pinfold, '?scope=repository:acme/app:pull', `Bearer ${forApi}`),
    await pinfold.withToken(forApi).get('/v2/'),
    await pinfold.withToken(forApi).get('/v2/acme/app/manifests/latest'),
    await pinfold.withToken(forApi).get('/v2/acme/app/_svc/history/latest'),
  ]
  for (const { status, body } of answers) {
    assert.equal(status, 403)
    assert.equal(body.errors[0].code, 'DENIED')
  }
})

test('returns 401 for an invalid token, and refuses to exchange a registry token again', async () => {
  await using pinfold = await startPinfold()
  const { puller, registryToken } = await scene(pinfold)
  const good = await registryToken(puller.uid)
  const late = await pinfold.tokenFor(puller.uid, { audience: hostOf(pinfold), now: new Date(Date.now() - 7_200_000) })
  const { token } = (await ask(pinfold, '?scope=repository:acme/app:pull', basic('_token', good))).body
  const wrong = [
    basic('_token', `${good}x`),
    basic('_token', ''),
    basic('somebody', good),
    basic(puller.uid, good),
    'Basic !!',
    'Bearer',
    `Bearer ${late}`,
    `Bearer ${token}`,
    basic('_token', token),
  ]
  for (const authorization of wrong) {
    const answer = await ask(pinfold, '?scope=repository:acme/app:pull', authorization)
    assert.equal(answer.status, 401, authorization.slice(0, 20))
    assert.doesNotMatch(answer.text, /eyJ/)
  }
  assert.equal((await pinfold.withToken(token).get('/auth/v1/ok')).status, 401, 'the API does not take it')
  const answer = await pinfold.anonymous.call('POST', '/token', undefined, { authorization: basic('_token', good) })
  assert.equal(answer.status, 405)
})

test('a token of an identity without rights names the identity, and gives no access', async () => {
  await using pinfold = await startPinfold()
  const { org, registryToken } = await scene(pinfold)
  const stranger = await pinfold.seed.identity(org.uid)
  const answer = await ask(
    pinfold,
    '?scope=repository:acme/app:pull',
    basic('_token', await registryToken(stranger.uid)),
  )
  assert.deepEqual(accessOf(answer), [{ type: 'repository', name: 'acme/app', actions: [] }])
  const login = await ask(pinfold, '', basic('_token', await registryToken(stranger.uid)))
  assert.deepEqual([login.status, accessOf(login)], [200, []])
})

test('a pull token is a password of its identity with the lifetime of the identity', async () => {
  await using pinfold = await startPinfold()
  await using issuer = await startIssuer()
  const { org } = await scene(pinfold)
  const staticKeys = {
    issuer: issuer.url,
    subject: 'puller',
    issuerKeys: JSON.stringify(issuer.jwks()),
    expirationTime: new Date(Date.now() + 86_400_000).toISOString(),
  }
  const identity = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  const binding = await pinfold.seed.binding(org.uid, identity.uid, roleUids.pull)
  const password = await issuer.token({ sub: 'puller', aud: hostOf(pinfold) })
  const query = '?scope=repository:acme/app:pull'

  const answer = await ask(pinfold, query, basic(identity.uid, password))
  assert.deepEqual(accessOf(answer), [{ type: 'repository', name: 'acme/app', actions: ['pull'] }])
  assert.equal(issuer.requests.length, 0, 'the keys are in the identity')
  const elsewhere = await issuer.token({ sub: 'puller', aud: 'registry.example.com' })
  assert.equal((await ask(pinfold, query, basic(identity.uid, elsewhere))).status, 401)
  assert.equal((await ask(pinfold, query, basic(org.uid, password))).status, 401)

  await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`)
  assert.deepEqual(accessOf(await ask(pinfold, query, basic(identity.uid, password))), [
    { type: 'repository', name: 'acme/app', actions: [] },
  ])
  await pinfold.operator.delete(`/iam/v2/identities/${identity.uid}`)
  assert.equal((await ask(pinfold, query, basic(identity.uid, password))).status, 401)
})

test('anonymous clients get a token only for the public organization', async () => {
  await using pinfold = await startPinfold()
  await scene(pinfold)
  const org = await pinfold.seed.group('', { name: 'public' })
  await pinfold.seed.repo(org.uid, { name: 'web' })
  const free = await ask(pinfold, '?scope=repository:public/web:pull,push')
  assert.deepEqual(accessOf(free), [{ type: 'repository', name: 'public/web', actions: ['pull'] }])
  for (const query of [
    '',
    '?scope=repository:acme/app:pull',
    '?scope=repository:public/web:pull&scope=repository:acme/app:pull',
  ]) {
    const answer = await ask(pinfold, query)
    assert.equal(answer.status, 401, query)
    assert.match(answer.headers.get('www-authenticate')!, /^Bearer realm=/)
  }
  const many = await ask(pinfold, `?${'scope=repository:public/web:pull&'.repeat(33)}`)
  assert.equal(many.status, 400)
})

test('leaves out a scope that is not a repository', async () => {
  await using pinfold = await startPinfold()
  const { puller, registryToken } = await scene(pinfold)
  const query = '?scope=registry:other:*&scope=repository:UPPER/x:pull&scope=repository:acme:pull&scope=nonsense'
  const answer = await ask(pinfold, query, basic('_token', await registryToken(puller.uid)))
  assert.deepEqual([answer.status, accessOf(answer)], [200, []])
})

test('a registry token is limited and expires like the token that was exchanged for it', async () => {
  const now = new Date('2026-08-01T12:00:00.000Z')
  await using registry = await startRegistry({ clock: () => now })
  const { org, pusher, port } = registry
  await registry.registryOperator.pushImage('acme/app', 'old')
  await registry.registryOperator.pushImage('acme/team/other', 'old')
  const { uid: team } = (await registry.operator.get('/iam/v2/groups?name=team')).body.groups[0]
  const allowed = ['manifest.list', 'tag.list', 'repo.blobs.get', 'manifest.create', 'tag.create', 'repo.create']
  const cap = { [org.uid]: allowed.map(capabilityNumber), [team]: ['manifest.list', 'tag.list'].map(capabilityNumber) }
  const shown = await registry.tokenFor(pusher.uid, { audience: hostOf(registry), cap, lifetime: 120 })
  const traded = await ask(registry, '?scope=repository:acme/app:*', `Bearer ${shown}`)
  assert.equal(traded.body.expires_in, 120)
  const claims = decodeJwt(traded.body.token)
  assert.deepEqual([claims.cap, claims.exp], [decodeJwt(shown).cap, decodeJwt(shown).exp])

  const client = registryClient(`http://127.0.0.1:${port}`, traded.body.token)
  const image = await client.pushImage('acme/app', 'new')
  const manifest = (await client.ok(200, 'GET', `acme/app/manifests/${image.digest}`)).bytes
  const headers = { 'content-type': image.mediaType }
  const moved = await client.call('PUT', 'acme/app/manifests/old', { body: manifest, headers })
  assert.deepEqual([moved.status, codeOf(moved)], [403, 'DENIED'])
  // The identity has the permission, but the token is narrowed.
  await pusher.ok(201, 'PUT', 'acme/app/manifests/old', { body: manifest, headers })
})

test('a token that outlives registry tokens is exchanged for a token of five minutes', async () => {
  const now = new Date('2026-08-01T12:00:00.000Z')
  await using registry = await startRegistry({ clock: () => now })
  const lasting = await ask(registry, '', `Bearer ${registry.pusher.token}`)
  assert.equal(lasting.body.expires_in, 300)
  assert.equal(decodeJwt(lasting.body.token).exp, now.getTime() / 1000 + 300)
})

test('a token allows push to an existing repository, or to one that the caller can create', async () => {
  await using pinfold = await startPinfold()
  const { org, registryToken } = await scene(pinfold)
  const push = ['manifest.create', 'tag.create', 'manifest.list', 'tag.list']
  const offered = async (capabilities: string[]) => {
    const { uid: role } = await pinfold.seed.role(org.uid, capabilities)
    const { uid } = await pinfold.seed.member(org.uid, role)
    const scopes = ['acme/app', 'acme/new', 'acme/folder/new', 'nowhere/new']
    const query = scopes.map((name) => `scope=repository:${name}:push`).join('&')
    const answer = await ask(pinfold, `?${query}`, basic('_token', await registryToken(uid)))
    return (accessOf(answer) as { name: string; actions: string[] }[])
      .filter(({ actions }) => actions.includes('push'))
      .map(({ name }) => name)
  }
  assert.deepEqual(await offered(push), ['acme/app'])
  assert.deepEqual(await offered([...push, 'repo.create']), ['acme/app', 'acme/new'])
  assert.deepEqual(await offered([...push, 'groups.create']), ['acme/app'])
  assert.deepEqual(await offered([...push, 'repo.create', 'groups.create']), [
    'acme/app',
    'acme/new',
    'acme/folder/new',
  ])
})

test('a registry token of a narrowed access token stays narrowed, and refusals state this', async () => {
  await using registry = await startRegistry()
  const { uid } = await registry.seed.member(registry.org.uid, roleUids.pull)
  const cap = { [registry.org.uid]: ['manifest.list', 'repo.blobs.get', 'tag.list'].map(capabilityNumber) }
  await registry.pusher.pushImage('acme/app', 'v1')
  for (const [options, hint] of [
    [{}, false],
    [{ cap }, true],
  ] as const) {
    const token = await registry.tokenFor(uid, { audience: hostOf(registry), ...options })
    const query = '?scope=repository:acme/app:pull,push,delete'
    const traded = (await ask(registry, query, basic('_token', token))).body.token as string
    const client = registryClient(`http://127.0.0.1:${registry.port}`, traded)
    const refused = await client.call('DELETE', 'acme/app/manifests/v1')
    assert.equal(refused.status, 403, `${hint} ${JSON.stringify(refused.body)}`)
    const { message } = refused.body.errors[0]
    assert.equal(message.includes('or your token does not include it'), hint, message)
  }
})
