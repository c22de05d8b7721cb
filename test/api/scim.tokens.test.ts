import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertBlocked, assertDenied, assertError, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { scimClient } from '../support/scim.ts'

const hour = 3600_000
const day = 24 * hour

let made = 0
let offset = 0
const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  clock: () => new Date(Date.now() + offset),
})
const org: string = scene.org.uid
const ownerUid = (await pinfold.seed.member(org, roleUids.owner)).uid
const owner = async () => pinfold.as(ownerUid)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

/** A provider, and its token methods as the owner calls them. */
async function provider() {
  const client = await owner()
  const oidc = { issuer: issuer.url, clientId: 'c', clientSecret: 's' }
  const body = { name: `tokens ${made++}`, defaultRole: roleUids.viewer, oidc }
  const { uid } = ok(await client.post(`/iam/v2/identityProviders/${org}`, body))
  const path = `/iam/v2/identityProviders/${uid}`
  const call = async (method: string, request: Json = {}) => (await owner()).post(`${path}:${method}`, request)
  return {
    uid: uid as string,
    path,
    generate: (request?: Json) => call('generateScimToken', request),
    regenerate: (request?: Json) => call('regenerateScimToken', request),
    revoke: () => call('revokeScimToken'),
    enable: (request: Json) => call('setScimEnabled', request),
    read: async (): Promise<Json> => ok(await (await owner()).get(path)).scim,
  }
}

/** Status of a request with the token: 200 if SCIM is on, 403 for a valid token while SCIM is off, 401 for an invalid token. */
const knock = async (uid: string, token: string) =>
  (await scimClient(`${pinfold.url}/scim/v2/${uid}`, token).get('/Users?count=0')).status

const isAbout = (time: string, from: number) => Math.abs(Date.parse(time) - (Date.now() + offset + from)) < 60_000

test('only callers with permission to manage SCIM can create tokens', async () => {
  const { path } = await provider()
  for (const client of [await member(roleUids.viewer), await member(roleUids.editor), await scene.foreigner()]) {
    assertDenied(await client.post(`${path}:generateScimToken`, {}))
    assertDenied(await client.post(`${path}:revokeScimToken`, {}))
  }
})

test('a first token is shown once, is valid for a year, and has no access until SCIM is turned on', async () => {
  const { uid, generate, read } = await provider()
  assert.deepEqual(await read(), {
    enabled: false,
    endpointUrl: '',
    credentialState: 'CREDENTIAL_STATE_NOT_ISSUED',
    etag: '',
  })
  let issued: Json = {}
  const [event, ...others] = await eventsOf(pinfold, async () => {
    issued = ok(await generate())
  })
  assert.match(issued.token, /^pfscim_[0-9a-f]{64}$/)
  assert.equal(issued.endpointUrl, `${pinfold.url}/scim/v2/${uid}`)
  assert.equal(issued.identityProviderUid, uid)
  assert.ok(isAbout(issued.expireTime, 365 * day))
  assert.equal(await knock(uid, issued.token), 403)

  assert.equal(others.length, 0)
  assert.equal(event!.type, 'dev.pinfold.api.iam.identity_providers.scim_token.generated.v1')
  assert.equal(event!.subject, uid)
  assert.equal(event!.actor, ownerUid)
  assert.equal(event!.body.identity_provider_uid, uid)
  assert.ok(!JSON.stringify(event).includes(issued.token))
  const rows = await pinfold.app.db.all<Json>(sql`SELECT scim FROM identity_providers WHERE uid = ${uid}`)
  assert.ok(!JSON.stringify(rows).includes(issued.token.slice('pfscim_'.length)))

  assert.deepEqual(await read(), {
    enabled: false,
    endpointUrl: issued.endpointUrl,
    tokenExpireTime: issued.expireTime,
    credentialState: 'CREDENTIAL_STATE_LIVE',
    etag: issued.etag,
  })
  assertBlocked(await generate(), uid, 'SCIM_TOKEN_ISSUED')
})

test('a list contains neither times nor states of SCIM', async () => {
  const { uid, generate } = await provider()
  const { etag, endpointUrl } = ok(await generate())
  const listed = ok(await (await owner()).get(`/iam/v2/identityProviders?uidp.childrenOf=${org}&pageSize=200`))
  const { scim } = listed.identityProviders.find((one: Json) => one.uid === uid)
  assert.deepEqual(scim, { enabled: false, endpointUrl, etag })
})

test('limits the lifetime of a token, which can be set in only one way', async () => {
  const { generate } = await provider()
  const at = (ms: number) => new Date(Date.now() + offset + ms).toISOString()
  assertInvalid(await generate({ expireTime: at(-1000) }), 'expire_time')
  assertInvalid(await generate({ expireTime: at(2 * 365 * day + hour) }), 'expire_time')
  assertInvalid(await generate({ expireTime: at(day), neverExpires: true }), 'expire_time')
  const issued = ok(await generate({ neverExpires: true }))
  assert.equal(issued.expireTime, undefined)
})

test('turning SCIM on requires two direct owners and the current ETag', async () => {
  const { uid, generate, enable, read } = await provider()
  assertInvalid(await enable({ enabled: true }), 'etag')
  assert.equal((await enable({ enabled: true, etag: 'x' })).body.code, 5)
  const { token, etag } = ok(await generate())
  assertBlocked(await enable({ enabled: true, etag }), org, 'TOO_FEW_OWNERS')
  // Owners of a folder, and editors, do not count.
  const { uid: folder } = await pinfold.seed.group(org)
  await pinfold.seed.member(folder, roleUids.owner)
  await pinfold.seed.member(org, roleUids.editor)
  assertBlocked(await enable({ enabled: true, etag }), org, 'TOO_FEW_OWNERS')

  const second = await pinfold.seed.member(org, roleUids.owner)
  assertError(await enable({ enabled: true, etag: 'old' }), 409, 10, 'ETAG_MISMATCH')
  const on = ok(await enable({ enabled: true, etag }))
  assert.equal(on.enabled, true)
  assert.notEqual(on.etag, etag)
  assert.equal(await knock(uid, token), 200)
  assertError(await enable({ enabled: false, etag }), 409, 10, 'ETAG_MISMATCH')

  const off = ok(await enable({ enabled: false, etag: on.etag }))
  assert.equal(await knock(uid, token), 403)
  assert.equal((await read()).credentialState, 'CREDENTIAL_STATE_LIVE')
  assert.equal((await read()).etag, off.etag)
  ok(await pinfold.operator.delete(`/iam/v2/identities/${second.uid}`))
})

test('a replaced token stays valid for the overlap, but not after its own expiry', async () => {
  const { uid, generate, regenerate, read } = await provider()
  assertInvalid(await regenerate({}), 'etag')
  const first = ok(await generate())
  assertError(await regenerate({ etag: 'old' }), 409, 10, 'ETAG_MISMATCH')
  assertInvalid(await regenerate({ etag: first.etag, overlap: '-1s' }), 'overlap')

  const second = ok(await regenerate({ etag: first.etag }))
  assert.ok(isAbout(second.previousTokenExpireTime, hour))
  assert.equal(second.requestedOverlap, '3600s')
  assert.equal((await read()).credentialState, 'CREDENTIAL_STATE_ROTATING')
  assert.deepEqual([await knock(uid, first.token), await knock(uid, second.token)], [403, 403])
  offset += hour + 1000
  assert.deepEqual([await knock(uid, first.token), await knock(uid, second.token)], [401, 403])
  assert.equal((await read()).credentialState, 'CREDENTIAL_STATE_LIVE')

  // A longer overlap counts as one day, and the former token keeps working.
  const third = ok(await regenerate({ etag: second.etag, overlap: '1000000s' }))
  assert.ok(isAbout(third.previousTokenExpireTime, day))
  const fourth = ok(
    await regenerate({
      etag: third.etag,
      overlap: '0s',
      expireTime: new Date(Date.now() + offset + hour).toISOString(),
    }),
  )
  assert.equal(fourth.previousTokenExpireTime, undefined)
  assert.deepEqual([await knock(uid, second.token), await knock(uid, third.token)], [401, 401])
  // The token expires before the overlap ends.
  const fifth = ok(await regenerate({ etag: fourth.etag, overlap: '7200s' }))
  assert.equal(fifth.previousTokenExpireTime, fourth.expireTime)
})

test('an expired or revoked token stays invalid, and a new token gives access again', async () => {
  const { uid, generate, regenerate, revoke, read } = await provider()
  assert.equal((await revoke()).body.code, 5)
  const first = ok(await generate({ expireTime: new Date(Date.now() + offset + hour).toISOString() }))
  offset += hour + 1000
  assert.equal(await knock(uid, first.token), 401)
  assert.equal((await read()).credentialState, 'CREDENTIAL_STATE_EXPIRED')
  const second = ok(await regenerate({ etag: first.etag }))
  assert.equal(second.previousTokenExpireTime, undefined)
  assert.equal(await knock(uid, first.token), 401)

  const third = ok(await regenerate({ etag: second.etag }))
  const revoked = ok(await revoke())
  assert.ok(isAbout(revoked.revokeTime, 0))
  assert.equal(revoked.enabled, false)
  assert.deepEqual([await knock(uid, second.token), await knock(uid, third.token)], [401, 401])
  assert.equal((await read()).credentialState, 'CREDENTIAL_STATE_REVOKED')
  const fourth = ok(await regenerate({ etag: revoked.etag }))
  assert.equal(fourth.previousTokenExpireTime, undefined)
  assert.equal(await knock(uid, fourth.token), 403)
})

test('version 1 has the same methods', async () => {
  const { uid } = await provider()
  const client = await owner()
  const path = `/iam/v1/identityProviders/${uid}`
  const issued = ok(await client.post(`${path}:generateScimToken`, {}))
  assert.equal(issued.identityProviderId, uid)
  const again = ok(await client.post(`${path}:regenerateScimToken`, { etag: issued.etag, overlap: '60s' }))
  assert.equal(again.requestedOverlap, '60s')
  const { items } = ok(await client.get(`/iam/v1/identityProviders?id=${uid}`))
  assert.equal(items[0].scim.credentialState, 'CREDENTIAL_STATE_ROTATING')
  const revoked = ok(await client.post(`${path}:revokeScimToken`, {}))
  const off = ok(await client.post(`${path}:setScimEnabled`, { enabled: false, etag: revoked.etag }))
  assert.equal(off.enabled, false)
})
