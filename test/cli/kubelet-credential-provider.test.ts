import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { registryClient, startRegistry } from '../support/registry.ts'

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1'
const pod = 'system:serviceaccount:payments:ledger'

/** A registry with an image, and an identity that trusts a service account of a Kubernetes cluster. */
async function start() {
  const registry = await startRegistry()
  await using cluster = await startIssuer('RS256')
  const home = makeHome()
  const { org, seed, url } = registry
  await registry.pusher.pushImage('acme/app', 'v1')
  const staticKeys = { issuer: cluster.url, subject: pod, issuerKeys: JSON.stringify(cluster.jwks()) }
  const identity = await seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  await seed.binding(org.uid, identity.uid, roleUids.pull)
  const host = new URL(url).host
  const token = await cluster.token({ sub: pod, aud: url })
  return {
    registry,
    host,
    identity: identity.uid as string,
    token,
    home,
    async ask(request: Json | string, ...args: string[]) {
      const whole = { apiVersion, kind: 'CredentialProviderRequest', image: `${host}/acme/app:v1` }
      const input = typeof request === 'string' ? request : JSON.stringify({ ...whole, ...request })
      const ran = await run(['kubelet-credential-provider', '--api', url, ...args], { env: home.env, input })
      return { ...ran, body: ran.code === 0 ? (JSON.parse(ran.stdout) as Json) : {} }
    },
    async [Symbol.asyncDispose]() {
      home[Symbol.dispose]()
      await registry[Symbol.asyncDispose]()
    },
  }
}

test('exchanges a service account token for a pull credential of the identity in its annotation', async () => {
  await using it = await start()
  const { host, registry } = it
  const annotations = { 'pinfold.dev/identity': it.identity, other: 'x' }
  const answer = await it.ask({ serviceAccountToken: it.token, serviceAccountAnnotations: annotations })
  assert.equal(answer.code, 0, answer.stderr)
  const { cacheDuration, auth, ...head } = answer.body
  assert.deepEqual(head, { kind: 'CredentialProviderResponse', apiVersion, cacheKeyType: 'Registry' })
  // Five minutes before the token expires after an hour.
  const seconds = Number(/^(\d+)s$/.exec(cacheDuration)![1])
  assert.ok(seconds > 3200 && seconds <= 3300, cacheDuration)
  assert.deepEqual(Object.keys(auth), [host])
  const { username, password } = auth[host]
  assert.equal(username, '_token')
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const scope = '/token?scope=repository:acme/app:pull'
  const { token } = ok(await registry.anonymous.call('GET', scope, undefined, { authorization }))
  await registryClient(`http://127.0.0.1:${registry.port}`, token).ok(200, 'GET', 'acme/app/manifests/v1')

  const old = await it.ask({
    apiVersion: apiVersion.replace('v1', 'v1beta1'),
    serviceAccountToken: it.token,
    serviceAccountAnnotations: annotations,
  })
  assert.equal(old.body.apiVersion, apiVersion.replace('v1', 'v1beta1'))
})

test('a node uses its own token, for the identity in its configuration', async () => {
  await using it = await start()
  const file = join(it.home.home, 'node-token')
  writeFileSync(file, it.token)
  const answer = await it.ask({}, '--identity', it.identity, '--identity-token', file)
  assert.equal(answer.code, 0, answer.stderr)
  assert.equal(answer.body.auth[it.host].username, '_token')
})

test('returns no credential for an image of another registry, and sends no request', async () => {
  await using it = await start()
  for (const image of ['docker.io/library/nginx', `x${it.host}/acme/app`, `${it.host}.example/acme/app`]) {
    const answer = await it.ask({ image, serviceAccountToken: it.token }, '--api', 'http://127.0.0.1:1')
    assert.deepEqual([answer.code, answer.body.auth, answer.body.cacheDuration], [0, null, '0s'], answer.stderr)
  }
})

test('prints errors as one sentence for the kubelet log, without the token', async () => {
  await using it = await start()
  const named = { 'pinfold.dev/identity': it.identity }
  const stranger = { 'pinfold.dev/identity': `${it.registry.org.uid}/0123456789abcdef` }
  const { token } = it
  const wrong: [Json | string, RegExp, number][] = [
    ['', /is not a JSON object/, 64],
    ['[]', /is not a CredentialProviderRequest/, 64],
    [{ kind: 'Other' }, /is not a CredentialProviderRequest/, 64],
    [{ apiVersion: 'credentialprovider.kubelet.k8s.io/v9' }, /unknown apiVersion/, 64],
    [{ image: 'nginx' }, /no image/, 64],
    [{ image: 7 }, /no image/, 64],
    [{ serviceAccountToken: 'a b' }, /invalid serviceAccountToken/, 64],
    [{ serviceAccountToken: token }, /no identity is configured; .*pinfold\.dev\/identity/, 78],
    [
      { serviceAccountToken: token, serviceAccountAnnotations: { 'pinfold.dev/identity': 'ledger' } },
      /not the uid/,
      78,
    ],
    [{ serviceAccountToken: `${token}x`, serviceAccountAnnotations: named }, /token/, 77],
    [{ serviceAccountToken: token, serviceAccountAnnotations: stranger }, /does not match the identity/, 77],
    [`{"x":"${'y'.repeat(600 * 1024)}"}`, /longer than/, 64],
  ]
  for (const [request, pattern, code] of wrong) {
    const { stdout, stderr, ...ran } = await it.ask(request)
    assert.deepEqual([ran.code, stdout], [code, ''], stderr)
    assert.match(stderr, pattern)
    assert.ok(!stderr.includes(token.slice(-20)))
  }
})
