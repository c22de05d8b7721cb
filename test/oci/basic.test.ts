// Basic credentials in each request, as curl -u sends them. They have the same effect as a token from /token.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { noMinutePasses } from '../support/times.ts'

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

function as(registry: TestRegistry, user: string, password: string) {
  const authorization = basic(user, password)
  return async (method: string, path: string, body?: string | Buffer, headers: Record<string, string> = {}) => {
    const url = new URL(path, registry.url)
    const answer = await fetch(url, { method, headers: { authorization, ...headers }, ...(body && { body }) })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
}

test('accepts an access token as a password at each path, with the rights of its identity', async () => {
  await using registry = await startRegistry()
  const image = await registry.pusher.pushImage('acme/app', 'v1')
  const host = new URL(registry.url).host
  const tokenOf = (uid: string) => registry.tokenFor(uid, { audience: host })
  const pull = as(registry, '_token', await tokenOf(registry.puller.uid))
  assert.equal((await pull('GET', '/v2/')).status, 200)
  assert.equal((await pull('HEAD', '/v2/acme/app/manifests/v1')).headers.get('docker-content-digest'), image.digest)
  assert.deepEqual(JSON.parse((await pull('GET', '/v2/acme/app/tags/list')).text).tags, ['v1'])
  assert.equal((await pull('GET', '/v2/_catalog')).status, 200)
  assert.equal((await pull('POST', '/v2/acme/app/blobs/uploads/')).status, 403)
  const push = as(registry, '_token', await tokenOf(registry.pusher.uid))
  assert.equal((await push('POST', '/v2/acme/app/blobs/uploads/')).status, 202)
  const config = await registry.pusher.pushBlob('acme/app', '{}', types.empty)
  const manifest = JSON.stringify(imageOf(config, []))
  const put = await push('PUT', '/v2/acme/app/manifests/v2', manifest, { 'content-type': types.image })
  assert.equal(put.status, 201, put.text)
})

test('accepts a push token, and an external token for an identity', async () => {
  await using registry = await startRegistry()
  await using issuer = await startIssuer()
  const { org, seed } = registry
  await registry.pusher.pushImage('acme/app', 'v1')
  const owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const { pushToken, secret } = ok(
    await owner.post(`/control/v1/pushTokens/${org.uid}`, { name: 'laptop', push: true }),
  )
  const token = as(registry, pushToken.userName, secret)
  assert.equal((await token('GET', '/v2/acme/app/manifests/v1')).status, 200)
  assert.equal((await token('POST', '/v2/acme/app/blobs/uploads/')).status, 202)
  assert.equal((await token('DELETE', '/v2/acme/app/manifests/v1')).status, 403)
  const staticKeys = {
    issuer: issuer.url,
    subject: 'robot',
    issuerKeys: JSON.stringify(issuer.jwks()),
    expirationTime: new Date(Date.now() + 86_400_000).toISOString(),
  }
  const made = await seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  await seed.binding(org.uid, made.uid, roleUids.pull)
  const outside = as(registry, made.uid, await issuer.token({ sub: 'robot', aud: new URL(registry.url).host }))
  assert.equal((await outside('GET', '/v2/acme/app/manifests/v1')).status, 200)
  ok(await owner.delete(`/control/v1/pushTokens/${pushToken.uid}`))
  assert.equal((await token('GET', '/v2/acme/app/manifests/v1')).status, 401)
})

test('wrong credentials get only a Bearer challenge, and count for the limit of failed attempts', async () => {
  await using registry = await startRegistry({ ...noMinutePasses, refusalsPerSource: 4 })
  const wrong = [
    ['_token', 'nonsense'],
    ['pt-22222222', `pinfold_pt_${'a'.repeat(36)}`],
    ['somebody', 'words'],
  ] as const
  for (const [user, password] of wrong) {
    const answer = await as(registry, user, password)('GET', '/v2/acme/app/manifests/v1')
    assert.equal(answer.status, 401, answer.text)
    const challenge = answer.headers.get('www-authenticate') ?? ''
    assert.match(challenge, /^Bearer realm="[^"]*\/token",service="[^"]*",scope="repository:acme\/app:pull",error=/)
    assert.doesNotMatch(challenge, /basic/i)
  }
  const guess = as(registry, '_token', 'nonsense')
  let last = 0
  for (let i = 0; i < 8 && last !== 429; i++) last = (await guess('GET', '/v2/')).status
  assert.equal(last, 429)
  // The same limit counts at the token endpoint.
  assert.equal((await guess('GET', '/token')).status, 429)
  const host = new URL(registry.url).host
  const good = as(registry, '_token', await registry.tokenFor(registry.puller.uid, { audience: host }))
  assert.equal((await good('GET', '/v2/')).status, 200, 'a good credential works all the same')
})
