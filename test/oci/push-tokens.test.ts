// Push tokens: creation, rights and end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { sql } from '#db/sql.ts'
import { sweepPushTokens } from '#domains/iam/push-tokens/push-tokens.store.ts'
import { isPushSecret, newPushSecret } from '#lib/crypto/push-secret.ts'
import { assertDenied, assertError, assertInvalid, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids } from '../support/pinfold.ts'
import { registryClient, startRegistry } from '../support/registry.ts'
import { startSignInScene } from '../support/sign-in.ts'
import { noMinutePasses } from '../support/times.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const day = 24 * 60 * 60 * 1000

type Made = { token: Json; user: string; secret: string }

async function make(client: Client, group: string, body: Json = {}): Promise<Made> {
  const { pushToken, secret } = ok(await client.post(`/control/v1/pushTokens/${group}`, { name: 'laptop', ...body }))
  return { token: pushToken, user: pushToken.userName, secret }
}

function ask(pinfold: Pinfold, { user, secret }: Pick<Made, 'user' | 'secret'>, scope: string): Promise<Answer> {
  const query = scope === '' ? '' : `?scope=${scope}`
  return pinfold.anonymous.call('GET', `/token${query}`, undefined, { authorization: basic(user, secret) })
}

async function actions(pinfold: Pinfold, made: Made, path: string): Promise<string[]> {
  const answer = await ask(pinfold, made, `repository:${path}:pull,push,delete`)
  assert.equal(answer.status, 200, answer.text)
  return decodeJwt<{ access: Json[] }>(answer.body.token!).access[0]!.actions
}

async function client(pinfold: Pinfold, made: Made, path: string) {
  const { token } = (await ask(pinfold, made, `repository:${path}:pull,push`)).body
  return registryClient(`http://127.0.0.1:${pinfold.port}`, token as string)
}

/** Creates a person with an account and the role in a group. */
async function person(pinfold: Pinfold, group: string, role: string): Promise<{ uid: string; client: Client }> {
  const { uid } = await pinfold.seed.person()
  await pinfold.seed.binding(group, uid, role)
  return { uid, client: await pinfold.as(uid) }
}

test('a push token pushes and pulls in its scope, and records name its creator and the token', async () => {
  await using registry = await startRegistry()
  const { org } = registry
  const team = await registry.seed.group(org.uid, { name: 'team' })
  const { uid, client: mine } = await person(registry, org.uid, roleUids.owner)
  const made = await make(mine, team.uid, { push: true })
  assert.match(made.user, /^pt-[2-9b-z]{8}$/)
  assert.match(made.secret, /^pinfold_pt_[0-9A-Za-z]{36}$/)
  assert.equal(made.token.uid.slice(0, -17), uid)

  assert.deepEqual(await actions(registry, made, 'acme/team/app'), ['pull', 'push'])
  assert.deepEqual(await actions(registry, made, 'acme/other'), [])
  const pushed = await (await client(registry, made, 'acme/team/app')).pushImage('acme/team/app', 'v1')
  const repo = ok(await mine.get('/registry/v2/repos')).repos.find((one: Json) => one.name === 'app')
  const { records } = ok(await mine.get(`/registry/v2/repos/${repo.uid}/tagHistory?tag=v1`))
  assert.deepEqual([records[0].actor, records[0].digest], [made.token.uid, pushed.digest])
  const rows = await registry.app.db.all<{ type: string; actor: string }>(
    sql`SELECT type, actor FROM events_outbox WHERE type LIKE '%registry.push.v1' OR type LIKE '%push_token%' ORDER BY id`,
  )
  const [created, push] = rows.map(({ actor }) => JSON.parse(actor) as Json)
  assert.equal(created!.subject, uid)
  assert.deepEqual(push!.act, { iss: 'push-token', sub: made.token.uid, aud: made.user, name: 'laptop' })
  assert.equal(push!.subject, uid)

  const listed = ok(await mine.get('/control/v1/pushTokens'))
  assert.equal(listed.totalCount, '1')
  const [one] = listed.pushTokens
  assert.deepEqual([one.uid, one.push, one.group, one.lastUsedFrom], [made.token.uid, true, team.uid, '127.0.0.1'])
  assert.ok(one.lastUsedTime >= one.createTime)
  const stored = await registry.app.db.all<Json>(sql`SELECT * FROM push_tokens`)
  assert.ok(!JSON.stringify(stored).includes(made.secret.slice(11)), 'the secret is kept nowhere')
  assert.ok(!listed.text?.includes(made.secret))
  const log = ok(await mine.get(`/events/v2/audit?subject=${made.token.uid}`)).auditEntries as Json[]
  assert.ok(log.some(({ type, subject }) => type.includes('push_token.created') && subject === made.token.uid))
  assert.ok(!JSON.stringify(log).includes(made.secret))
})

test('a token without push can only pull, and a token with repositories can use only these', async () => {
  await using registry = await startRegistry()
  const { org, pusher } = registry
  await pusher.pushImage('acme/app', 'v1')
  await pusher.pushImage('acme/other', 'v1')
  const { client: mine } = await person(registry, org.uid, roleUids.owner)
  const reading = await make(mine, org.uid)
  assert.deepEqual(await actions(registry, reading, 'acme/app'), ['pull'])
  const reader = await client(registry, reading, 'acme/app')
  await reader.ok(200, 'GET', 'acme/app/manifests/v1')
  assert.equal((await reader.call('POST', 'acme/app/blobs/uploads/')).status, 403)

  const { repos } = ok(await mine.get('/registry/v2/repos'))
  const app = repos.find(({ name }: Json) => name === 'app').uid
  const cut = await make(mine, org.uid, { push: true, repoUids: [app] })
  assert.deepEqual(await actions(registry, cut, 'acme/app'), ['pull', 'push'])
  assert.deepEqual(await actions(registry, cut, 'acme/other'), [])
  assert.deepEqual(await actions(registry, cut, 'acme/new'), [])
  const inside = await client(registry, cut, 'acme/app')
  const { digest } = await inside.pushImage('acme/app', 'v2')
  assert.equal((await inside.call('DELETE', `acme/app/manifests/${digest}`)).status, 403)
  assert.equal((await inside.call('DELETE', 'acme/app/manifests/v2')).status, 403)
  // The catalog shows the repositories that the token can reach.
  const { token } = (await ask(registry, cut, 'registry:catalog:*')).body
  const catalog = await registryClient(inside.origin, token as string).ok(200, 'GET', '_catalog')
  assert.deepEqual(catalog.body.repositories, ['acme/app'])
})

test('a token never has more rights than its creator has now, and ends with the creator', async () => {
  await using registry = await startRegistry()
  const { org, operator } = registry
  await registry.seed.repo(org.uid, { name: 'app' })
  const { uid } = await registry.seed.person()
  const mine = await registry.as(uid)
  const push = await registry.seed.binding(org.uid, uid, roleUids.push)
  const made = await make(mine, org.uid, { push: true })
  const kept = await client(registry, made, 'acme/app')
  await kept.ok(202, 'POST', 'acme/app/blobs/uploads/')
  const pull = await registry.seed.binding(org.uid, uid, roleUids.pull)
  ok(await operator.delete(`/iam/v2/roleBindings/${push.uid}`))
  assert.deepEqual(await actions(registry, made, 'acme/app'), ['pull'])
  assert.equal((await kept.call('POST', 'acme/app/blobs/uploads/')).status, 403)
  ok(await operator.delete(`/iam/v2/roleBindings/${pull.uid}`))
  assert.deepEqual(await actions(registry, made, 'acme/app'), [])
  await registry.seed.binding(org.uid, uid, roleUids.pull)
  assert.deepEqual(await actions(registry, made, 'acme/app'), ['pull'])
  ok(await operator.delete(`/iam/v2/identities/${uid}`))
  assert.equal((await ask(registry, made, 'repository:acme/app:pull')).status, 401)
  assert.equal((await kept.call('GET', 'acme/app/tags/list')).status, 401)
  // A person who registers the same account again gets none of the former passwords.
  const rows = await registry.app.db.all(sql`SELECT uid FROM push_tokens`)
  assert.deepEqual(rows, [])
})

test('refuses a revoked or expired token, and the tokens issued for it, at once', async () => {
  let time = Date.now()
  await using registry = await startRegistry({ clock: () => new Date(time) })
  const { org } = registry
  await registry.seed.repo(org.uid, { name: 'app' })
  const { uid, client: mine } = await person(registry, org.uid, roleUids.push)
  const made = await make(mine, org.uid)
  const given = await client(registry, made, 'acme/app')
  await given.ok(200, 'GET', 'acme/app/tags/list')
  ok(await mine.delete(`/control/v1/pushTokens/${made.token.uid}`))
  assert.equal((await given.call('GET', 'acme/app/tags/list')).status, 401)
  assert.equal((await ask(registry, made, 'repository:acme/app:pull')).status, 401)
  assert.equal((await mine.delete(`/control/v1/pushTokens/${made.token.uid}`)).status, 404)
  assert.equal(ok(await mine.get('/control/v1/pushTokens')).pushTokens.length, 0)

  const brief = await make(mine, org.uid, { ttl: '3600s' })
  time += 3_600_000 - 60_000
  const last = (await ask(registry, brief, 'repository:acme/app:pull')).body
  assert.ok(last.expires_in <= 60, 'what it is traded for does not outlive it')
  const late = registryClient(`http://127.0.0.1:${registry.port}`, last.token as string)
  await late.ok(200, 'GET', 'acme/app/tags/list')
  time += 59_999
  assert.equal((await ask(registry, brief, 'repository:acme/app:pull')).status, 200)
  time += 1
  assert.equal((await ask(registry, brief, 'repository:acme/app:pull')).status, 401)
  time += 1000
  assert.equal((await late.call('GET', 'acme/app/tags/list')).status, 401)
  const again = await registry.as(uid)
  assert.equal(ok(await again.get('/control/v1/pushTokens')).pushTokens.length, 1)
  await registry.app.db.tx((tx) => sweepPushTokens(tx, new Date(time - 30 * day).toISOString(), 100))
  assert.equal(ok(await again.get('/control/v1/pushTokens')).pushTokens.length, 1)
  await registry.app.db.tx((tx) => sweepPushTokens(tx, new Date(time).toISOString(), 100))
  assert.equal(ok(await again.get('/control/v1/pushTokens')).pushTokens.length, 0)
})

test('requires user name and secret together for the registry, and refuses both for the API', async () => {
  await using registry = await startRegistry({ ...noMinutePasses, refusalsPerSource: 12 })
  const { org } = registry
  await registry.seed.repo(org.uid, { name: 'app' })
  const { client: mine } = await person(registry, org.uid, roleUids.push)
  const [one, other] = [await make(mine, org.uid), await make(mine, org.uid)]
  const wrong = [
    { user: one.user, secret: other.secret },
    { user: 'pt-22222222', secret: one.secret },
    { user: one.user, secret: newPushSecret() },
    { user: one.user, secret: `${one.secret}0` },
    { user: one.user, secret: '' },
    { user: one.user.toUpperCase(), secret: one.secret },
    { user: '_token', secret: one.secret },
    { user: one.token.uid, secret: one.secret },
  ]
  for (const each of wrong) {
    const { status, text } = await ask(registry, each, 'repository:acme/app:pull')
    assert.equal(status, 401, each.user)
    assert.ok(!text.includes('pinfold_pt_'))
  }
  const { token } = (await ask(registry, one, 'repository:acme/app:pull')).body
  for (const secret of [one.secret, token as string]) {
    assert.equal((await registry.withToken(secret).get('/control/v1/pushTokens')).status, 401)
  }
  const direct = { authorization: basic(one.user, one.secret) }
  assert.equal((await registry.anonymous.call('GET', '/control/v1/pushTokens', undefined, direct)).status, 401)
  assert.equal((await registry.anonymous.call('GET', '/v2/acme/app/tags/list', undefined, direct)).status, 200)
  // Wrong passwords are rate-limited, and the right one continues to work.
  let last = 0
  for (let i = 0; i < 12 && last !== 429; i++)
    last = (await ask(registry, wrong[2]!, 'repository:acme/app:pull')).status
  assert.equal(last, 429)
  assert.equal((await ask(registry, one, 'repository:acme/app:pull')).status, 200)
})

test('creating a token requires its capabilities, from bindings and in a token without limits', async () => {
  await using registry = await startRegistry()
  const { org, seed } = registry
  const path = `/control/v1/pushTokens/${org.uid}`
  const stranger = await registry.as((await seed.person()).uid)
  assertDenied(await stranger.post(path, { name: 'x' }))
  assertDenied(await stranger.post(`/control/v1/pushTokens/${'a'.repeat(40)}`, { name: 'x' }))
  assert.equal((await registry.anonymous.post(path, { name: 'x' })).status, 401)

  const { uid, client: puller } = await person(registry, org.uid, roleUids.pull)
  ok(await puller.post(path, { name: 'x' }))
  assertDenied(await puller.post(path, { name: 'x', push: true }))
  const narrowed = await registry.as(uid, { cap: { [org.uid]: [1600, 1609, 1613] } })
  const refused = await narrowed.post(path, { name: 'x' })
  assertError(refused, 403, 7, 'NARROWED_TOKEN')
  assertError(await narrowed.get('/control/v1/pushTokens'), 403, 7, 'NARROWED_TOKEN')
  const mine = await make(puller, org.uid)
  assertError(await narrowed.delete(`/control/v1/pushTokens/${mine.token.uid}`), 403, 7, 'NARROWED_TOKEN')
  ok(await puller.delete(`/control/v1/pushTokens/${mine.token.uid}`))

  // A workload cannot create a password without permission to create identities.
  const workload = await seed.member(org.uid, roleUids.push)
  const machine = await registry.as(workload.uid)
  const denied = await machine.post(path, { name: 'x' })
  assertDenied(denied)
  assert.match(denied.body.message, /identity\.create/)
  const role = await seed.role(org.uid, ['CAP_IAM_IDENTITY_CREATE'])
  await seed.binding(org.uid, workload.uid, role.uid)
  ok(await machine.post(path, { name: 'x', push: true }))

  const other = await seed.group('', { name: 'other' })
  const foreign = await seed.repo(other.uid, { name: 'app' })
  assertInvalid(await puller.post(path, {}), 'name')
  assertInvalid(await puller.post(path, { name: 'Ä' }), 'name')
  assertInvalid(await puller.post(path, { name: 'x', ttl: '3599s' }), 'ttl')
  assertInvalid(await puller.post(path, { name: 'x', ttl: `${365 * 86_400 + 1}s` }), 'ttl')
  assertInvalid(await puller.post(path, { name: 'x', repoUids: [foreign.uid] }), 'repo_uids[0]')
  assertInvalid(await puller.post(path, { name: 'x', repoUids: Array(51).fill(foreign.uid) }), 'repo_uids')
  assert.equal((await puller.post(path, { name: 'x', repoUids: [`${org.uid}/0123456789abcdef`] })).status, 404)
  assert.equal((await registry.operator.post(`/control/v1/pushTokens/${'a'.repeat(40)}`, { name: 'x' })).status, 404)
  for (let i = 1; i < 100; i++) ok(await puller.post(path, { name: 'x' }))
  assert.equal((await puller.post(path, { name: 'x' })).status, 429)
})

test('members who manage a group can list and revoke the tokens of others there; other callers cannot', async () => {
  await using registry = await startRegistry()
  const { org, seed } = registry
  const team = await seed.group(org.uid, { name: 'team' })
  const { client: mine } = await person(registry, org.uid, roleUids.push)
  const owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const atTeam = await registry.as((await seed.member(team.uid, roleUids.owner)).uid)
  const [wide, narrow] = [await make(mine, org.uid), await make(mine, team.uid)]
  const uids = async (who: Client, group: string, query = '') =>
    ok(await who.get(`/control/v1/groupPushTokens/${group}${query}`)).pushTokens.map(({ uid }: Json) => uid)
  assert.deepEqual((await uids(owner, org.uid)).sort(), [wide.token.uid, narrow.token.uid].sort())
  assert.equal((await uids(owner, org.uid, '?page_size=1')).length, 1)
  assert.deepEqual(await uids(atTeam, team.uid), [narrow.token.uid])
  assertDenied(await atTeam.get(`/control/v1/groupPushTokens/${org.uid}`))
  assertDenied(await mine.get(`/control/v1/groupPushTokens/${org.uid}`))

  const end = (who: Client, group: string, { token }: Made) =>
    who.post(`/control/v1/groupPushTokens/${group}:revoke`, { pushTokenUid: token.uid })
  assertDenied(await end(mine, org.uid, wide))
  assert.equal((await end(atTeam, team.uid, wide)).status, 404)
  assert.equal((await owner.delete(`/control/v1/pushTokens/${wide.token.uid}`)).status, 404)
  assertInvalid(await end(owner, org.uid, { ...wide, token: { uid: 'x' } }), 'uid')
  ok(await end(atTeam, team.uid, narrow))
  ok(await end(owner, org.uid, wide))
  assert.equal((await ask(registry, wide, '')).status, 401)
  assert.deepEqual(await uids(owner, org.uid), [])
  assert.equal((await registry.events()).filter((type) => type.includes('push_token.revoked')).length, 2)
})

test('the operator can have push tokens too, limited to the rights in the token', async () => {
  await using registry = await startRegistry()
  const made = await make(registry.operator, registry.org.uid, { push: true })
  assert.deepEqual(await actions(registry, made, 'acme/app'), ['pull', 'push'])
  assert.deepEqual(await actions(registry, made, 'other/app'), [])
  await (await client(registry, made, 'acme/app')).pushImage('acme/app', 'v1')
  assert.equal(ok(await registry.operator.get('/control/v1/pushTokens')).pushTokens.length, 1)
})

test('a token is deleted with its group', async () => {
  await using registry = await startRegistry()
  const team = await registry.seed.group(registry.org.uid, { name: 'team' })
  const made = await make(registry.operator, team.uid)
  ok(await registry.operator.delete(`/iam/v2/groups/${team.uid}`))
  assert.equal((await ask(registry, made, '')).status, 401)
})

test('a token ends when the sign-in provider of its creator is deleted', async () => {
  await using scene = await startSignInScene()
  const { pinfold, org, idp } = scene
  scene.somebody()
  const mine = await scene.client()
  const made = await make(mine, org.uid)
  assert.equal((await ask(pinfold, made, '')).status, 200)
  ok(await pinfold.operator.delete(`/iam/v2/identityProviders/${idp.uid}`))
  assert.equal((await ask(pinfold, made, '')).status, 401)
  const [last] = (await pinfold.events()).filter((type) => type.includes('push_token')).slice(-1)
  assert.match(last!, /push_token\.revoked/)
})

test('a token ends with its session if that session may be stolen, but not when its creator signs out', async () => {
  await using scene = await startSignInScene()
  const { pinfold, org } = scene
  scene.somebody()
  const [stolen, mine] = [await scene.client(), await scene.client()]
  const sessionOf = (one: Client) => String(decodeJwt(one.token!).sid)
  const [theirs, own] = [await make(stolen, org.uid), await make(mine, org.uid)]
  ok(await mine.delete(`/control/v1/sessions/${sessionOf(stolen)}`))
  assert.equal((await ask(pinfold, theirs, '')).status, 401)
  assert.match((await pinfold.events()).at(-1)!, /push_token\.revoked/)
  ok(await mine.delete(`/control/v1/sessions/${sessionOf(mine)}`))
  assert.equal((await ask(pinfold, own, '')).status, 200)

  const again = await scene.open({ create_refresh_token: 'true' })
  const made = await make(pinfold.withToken(again.get('token')!), org.uid)
  const refresh = () =>
    pinfold.withToken(again.get('refresh_token')!).post(`/sts/exchange_refresh_token?aud=${pinfold.url}`)
  const { refreshToken } = ok(await refresh())
  ok(await pinfold.withToken(refreshToken.token).post(`/sts/exchange_refresh_token?aud=${pinfold.url}`))
  assert.equal((await refresh()).status, 401)
  assert.equal((await ask(pinfold, made, '')).status, 401)
})

test('a session that ends during the request creates no push token', async () => {
  await using scene = await startSignInScene()
  const { pinfold, org } = scene
  scene.somebody()
  const mine = await scene.client()
  ok(await mine.get('/control/v1/pushTokens'))
  // Another server ends the session. This server still accepts it for half a second.
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM sessions`))
  assert.equal((await mine.post(`/control/v1/pushTokens/${org.uid}`, { name: 'late' })).status, 401)
  assert.deepEqual(await pinfold.app.db.all(sql`SELECT uid FROM push_tokens`), [])
})

test('refuses a token created through a server-wide provider after the provider is removed from the settings', async () => {
  await using issuer = await startIssuer()
  const oidcProviders = [{ issuer: issuer.url, audience: 'people' }]
  const settings = {
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    allowSelfRegistration: true,
    oidcProviders,
  }
  await using registry = await startRegistry(settings)
  const { org } = registry
  const shown = registry.withToken(await issuer.token({ sub: 'ann', aud: 'people' }))
  const { identity } = ok(await shown.post('/auth/v1/register', {}))
  await registry.seed.binding(org.uid, identity, roleUids.push)
  const { token } = ok(await shown.post(`/sts/exchange?aud=${registry.url}&identity=${identity}`))
  const made = await make(registry.withToken(token.token ?? token), org.uid)
  assert.equal((await ask(registry, made, '')).status, 200)
  oidcProviders.length = 0
  assert.equal((await ask(registry, made, '')).status, 401)
})

test('a checksum distinguishes a secret from similar text', () => {
  const secret = newPushSecret()
  assert.ok(isPushSecret(secret))
  assert.ok(!isPushSecret(`${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`))
  assert.ok(!isPushSecret(secret.replace('pinfold_pt_', 'pinfold_xx_')))
  assert.ok(!isPushSecret(`${secret} `))
  // Checksum as computed with zlib of Python: CRC-32 of the text before, in base 62, six digits.
  assert.ok(isPushSecret('pinfold_pt_7k3Mq9xWb2Fz0Ht5Ld8Rs1Vc4Ng6Yp1ow8B0'))
  assert.notEqual(newPushSecret(), secret)
})
