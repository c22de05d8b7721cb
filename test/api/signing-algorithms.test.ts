// RS256 beside ES256, for verifiers that support only RS256: clouds, and strict clients of OpenID Connect Discovery.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import { readConfig } from '#config.ts'
import { readKeys, rotateKeys } from '#domains/iam/iam.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { createApp } from '../../src/create-app.ts'
import { openIssuer } from '../../src/open-issuer.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { startClouds } from '../support/fake-clouds.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'

const minute = 60_000
const day = 24 * 60 * minute

const algorithmsOf = async ({ anonymous }: Pinfold) =>
  ((await anonymous.get('/.well-known/jwks.json')).body.keys as Json[]).map(({ alg }) => alg as string).sort()
const discoveryOf = async ({ anonymous }: Pinfold) => (await anonymous.get('/.well-known/openid-configuration')).body

/** Verifies the discovery document as strictly as OpenID Connect Discovery 1.0, section 3, and returns the claims. */
async function verifyStrictly(discovery: Json, token: string, audience: string) {
  const required = ['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri']
  for (const name of required) assert.ok(URL.canParse(discovery[name]), name)
  for (const name of ['response_types_supported', 'subject_types_supported'])
    assert.ok(discovery[name].length > 0, name)
  assert.ok(discovery.id_token_signing_alg_values_supported.includes('RS256'), 'RS256 must be included')
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri))
  const options = { issuer: discovery.issuer, audience, algorithms: ['RS256'] }
  return (await jwtVerify(token, keys, options)).payload
}

test('the setting lists at least one algorithm, without duplicates', () => {
  const read = (value: string) => readConfig({ PINFOLD_SIGNING_ALGORITHMS: value }).signingAlgorithms
  assert.deepEqual(read(''), ['ES256'])
  assert.deepEqual(read('RS256, ES256'), ['RS256', 'ES256'])
  assert.deepEqual(read('RS256'), ['RS256'])
  for (const wrong of ['HS256', 'ES256,ES256', 'ES256,none', ',', 'ES256,']) {
    assert.throws(() => read(wrong), /PINFOLD_SIGNING_ALGORITHMS must be one or more of ES256, RS256/, wrong)
  }
})

test('with both algorithms there are keys of both, and the first algorithm signs for strict clients', async () => {
  await using pinfold = await startPinfold({ signingAlgorithms: ['RS256', 'ES256'] })
  assert.deepEqual(await algorithmsOf(pinfold), ['ES256', 'RS256'])
  const discovery = await discoveryOf(pinfold)
  assert.deepEqual([...discovery.id_token_signing_alg_values_supported].sort(), ['ES256', 'RS256'])
  const token = await pinfold.tokenFor(operatorUid)
  assert.equal((await verifyStrictly(discovery, token, pinfold.url)).sub, operatorUid)
  assert.equal((await pinfold.withToken(token).get('/iam/v2/groups')).status, 200)
})

test('a key is valid only for its own algorithm, and keys of both algorithms belong to this server', async () => {
  await using pinfold = await startPinfold({ signingAlgorithms: ['ES256', 'RS256'] })
  const { keyring } = pinfold.app
  assert.equal(decodeProtectedHeader(await pinfold.tokenFor(operatorUid)).alg, 'ES256')
  const [rsa, ec] = [keyring.signer('RS256'), keyring.signer('ES256')]
  const sign = async (alg: string, kid: string, key: typeof rsa.key) => {
    const token = await new SignJWT({})
      .setProtectedHeader({ alg, kid, typ: 'at+jwt' })
      .setIssuer(pinfold.url)
      .setAudience(pinfold.url)
      .setSubject(operatorUid)
      .setIssuedAt()
      .setExpirationTime('5 minutes')
      .sign(key)
    return (await pinfold.withToken(token).get('/iam/v2/groups')).status
  }
  assert.equal(await sign('RS256', rsa.kid, rsa.key), 200)
  assert.equal(await sign('ES256', ec.kid, ec.key), 200)
  assert.equal(await sign('RS256', ec.kid, rsa.key), 401)
  assert.equal(await sign('ES256', rsa.kid, ec.key), 401)
  assert.equal(keyring.verifier(rsa.kid, 'ES256'), undefined)
  assert.equal(keyring.verifier(ec.kid, 'RS256'), undefined)
})

test('replaces keys of both algorithms in time', async () => {
  const start = Date.parse('2026-08-01T12:00:00.000Z')
  let now = start
  const rotation = { keyRotationDays: 30, signingAlgorithms: ['ES256', 'RS256'] } as const
  await using pinfold = await startPinfold({ clock: () => new Date(now), ...rotation })
  const { keyring } = pinfold.app
  const kids = () => [keyring.signer('ES256').kid, keyring.signer('RS256').kid]
  const first = kids()
  now = start + 29 * day
  await runJob(pinfold.app, rotateKeys)
  assert.deepEqual(await algorithmsOf(pinfold), ['ES256', 'ES256', 'RS256', 'RS256'])
  assert.deepEqual(kids(), first)
  now = start + 30 * day
  const second = kids()
  for (const i of [0, 1]) assert.notEqual(second[i], first[i])
  now = start + 32 * day
  await runJob(pinfold.app, rotateKeys)
  assert.deepEqual(await algorithmsOf(pinfold), ['ES256', 'RS256'])
  assert.deepEqual(kids(), second)
})

test('a new algorithm signs after its key was published, and a removed one verifies until its tokens expire', async () => {
  const start = Date.parse('2026-08-01T12:00:00.000Z')
  let now = start
  const clock = () => new Date(now)
  await using pinfold = await startPinfold({ clock, keyRotationDays: 30 })
  const { app } = pinfold
  const token = await pinfold.tokenFor(operatorUid)

  now += day
  const later = await createApp({ ...app.config, signingAlgorithms: ['RS256'] }, clock)
  try {
    await runJob(app, readKeys)
    assert.deepEqual(await algorithmsOf(pinfold), ['ES256', 'RS256'])
    assert.equal(later.keyring.signer().alg, 'ES256')
    now += 10 * minute - 1
    assert.equal(later.keyring.signer().alg, 'ES256')
    now += 1
    assert.equal(later.keyring.signer().alg, 'RS256')
    const es256 = decodeProtectedHeader(token).kid!

    const rotate = () => later.keyring.rotate((work, options) => later.db.tx(work, options))
    now = start + 32 * day - 1
    await rotate()
    assert.ok(later.keyring.verifier(es256, 'ES256'))
    now = start + 32 * day
    await rotate()
    assert.equal(later.keyring.verifier(es256, 'ES256'), undefined)
    assert.deepEqual(later.keyring.algorithms(), ['RS256'])
  } finally {
    await later.close()
  }
})

test('a command on the machine of the server creates no keys that the server does not have', async () => {
  await using pinfold = await startPinfold({ signingAlgorithms: ['RS256'] })
  const { app } = pinfold
  const beside = await openIssuer({ ...app.config, signingAlgorithms: ['ES256'] })
  try {
    assert.deepEqual(beside.keyring.algorithms(), ['RS256'])
    assert.equal(beside.keyring.signer().kid, app.keyring.signer().kid)
  } finally {
    await beside.close()
  }
  assert.equal(await app.keyring.refresh(), 0)
})

for (const [signingAlgorithms, expected] of [
  [['ES256', 'RS256'], 'RS256'],
  [['ES256'], 'ES256'],
] as const) {
  test(`with ${signingAlgorithms.join(' and ')}, Azure gets a token signed with ${expected}`, async () => {
    await using clouds = await startClouds()
    await using pinfold = await startPinfold({
      signingAlgorithms,
      azureLoginUrl: clouds.url,
      allowPrivateAddresses: true,
      allowInsecureIssuers: true,
    })
    const [tenantId, application] = ['ffffffff-0000-4000-8000-000000000001', 'ffffffff-0000-4000-8000-000000000002']
    const { uid } = await pinfold.seed.group()
    await pinfold.seed.association(uid, { azure: { tenantId, clientIds: { canary: application } } })
    const trust = { issuer: pinfold.url, subject: `canary:${uid}`, audience: 'api://AzureADTokenExchange' }
    clouds.trust(`${tenantId} ${application}`, trust)
    const path = `/iam/v2/accountAssociations/${uid}:checkAccountAssociation`
    const { status } = ok(await pinfold.operator.post(path, { providerType: 'ACCOUNT_PROVIDER_TYPE_AZURE' }))
    assert.equal(status, 'CHECK_STATUS_READY')
    assert.deepEqual(
      clouds.seen.map(({ alg }) => alg),
      [expected],
    )
  })
}
