// Forged, malformed and stolen tokens. The response says only that the token is not accepted.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Hostile, hostileTokens } from '../support/hostile-tokens.ts'
import { type Answer, type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { openGrpc, type RawGrpc } from '../support/raw-grpc.ts'

const subject = 'repo:acme/web:ref:refs/heads/main'
const messages = {
  16: 'the token is not accepted; check its issuer, audience, signature and expiry',
  7: 'the token does not match the identity; check its uid and the claims that it requires',
}
const reasons = { 16: 'UNAUTHENTICATED', 7: 'PERMISSION_DENIED' }
const stray = '0123456789abcdef'
/** The server clock stands still, so no token expires or becomes valid during the test. */
const now = Math.floor(Date.now() / 1000)

let pinfold: Pinfold
let grpc: RawGrpc
let issuers: { rsa: FakeIssuer; ec: FakeIssuer }
let identities: { rsa: string; ec: string; missing: string }
let corpus: Hostile[]

before(async () => {
  const many = { exchangesPerSource: 1_000_000, exchangesPerIssuer: 1_000_000 }
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    ...many,
    clock: () => new Date(now * 1000),
  })
  grpc = openGrpc(pinfold.port)
  issuers = { rsa: await startIssuer(), ec: await startIssuer('ES256') }
  const org = await pinfold.seed.group()
  const identityOf = async ({ url }: FakeIssuer) =>
    (await pinfold.seed.identity(org.uid, { claimMatch: { issuer: url, subject } })).uid as string
  const other = { issuer: issuers.rsa.url, subject: 'repo:acme/other:ref:refs/heads/main' }
  await pinfold.seed.identity(org.uid, { claimMatch: other })
  identities = {
    rsa: await identityOf(issuers.rsa),
    ec: await identityOf(issuers.ec),
    missing: `${org.uid}/${stray}`,
  }
  const own = {
    "the operator's token": pinfold.operator.token!,
    'a token of ours': await pinfold.tokenFor(identities.rsa),
    'a token of ours for the registry': await pinfold.tokenFor(identities.rsa, { audience: new URL(pinfold.url).host }),
    'a token of ours for the operator, expired': await pinfold.tokenFor(operatorUid, { now: new Date(0) }),
  }
  corpus = hostileTokens({ ...issuers, audience: pinfold.url, subject, own, now })
  await control()
})

after(async () => {
  grpc[Symbol.dispose]()
  await issuers.rsa[Symbol.asyncDispose]()
  await issuers.ec[Symbol.asyncDispose]()
  await pinfold[Symbol.asyncDispose]()
})

function exchange(token: string, identity: string): Promise<Answer> {
  const search = new URLSearchParams({ aud: pinfold.url, identity })
  return pinfold.withToken(token).call('POST', `/sts/exchange?${search}`)
}

/** The valid token of each issuer. All hostile tokens are variations of it. */
async function control(): Promise<void> {
  for (const kind of ['rsa', 'ec'] as const) {
    const token = await issuers[kind].token({ sub: subject, aud: pinfold.url, iat: now, exp: now + 300 })
    const answer = await exchange(token, identities[kind])
    assert.equal(answer.status, 200, answer.text)
  }
}

/** True if the token fits into a header. Other tokens can only be sent in a form. */
const fitsHeader = ({ token }: Hostile): boolean => /^[\x21-\x7e]{1,15000}$/.test(token)

test('the test corpus has at least 200 different tokens', (t) => {
  t.diagnostic(`${corpus.length} tokens, ${corpus.filter(fitsHeader).length} of them fit a header`)
  assert.ok(corpus.length >= 200, String(corpus.length))
  const names = new Map<string, string>()
  for (const { name, token, identity } of corpus) {
    const key = `${identity} ${token}`
    assert.equal(names.get(key), undefined, `${name} is the same as ${names.get(key)}`)
    names.set(key, name)
  }
})

test('REST refuses each token with the message of its error code, the same for a missing identity', async () => {
  const tokens = corpus.filter(fitsHeader)
  assert.ok(tokens.length >= 200)
  for (const { name, token, code, identity } of tokens) {
    for (const uid of [identities[identity], identities.missing]) {
      const { status, body, text, headers } = await exchange(token, uid)
      assert.equal(status, code === 16 ? 401 : 403, `${name}: ${text}`)
      const [info, ...more] = body.details as Json[]
      assert.deepEqual({ code: body.code, message: body.message }, { code, message: messages[code] }, name)
      assert.equal(info!.reason, reasons[code])
      assert.deepEqual(Object.keys(info!.metadata), ['requestId'])
      assert.deepEqual(more, [])
      assert.equal(headers.get('www-authenticate'), code === 16 ? 'Bearer' : null)
    }
  }
})

test('gRPC refuses each token with the same error', async () => {
  const desc = SecurityTokenService.method.exchange
  for (const { name, token, code, identity } of corpus.filter(fitsHeader)) {
    for (const uid of [identities[identity], identities.missing]) {
      const request = create(desc.input, { aud: [pinfold.url], identity: uid })
      const answer = await grpc.call(desc, request, { token })
      assert.deepEqual({ code: answer.code, message: answer.message }, { code, message: messages[code] }, name)
      assert.equal(answer.details.length, 1)
    }
  }
})

test('the OAuth endpoint, which accepts any text, refuses each token with the same error', async () => {
  for (const { name, token, code, identity } of corpus) {
    for (const uid of [identities[identity], identities.missing]) {
      const form = new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        identity: uid,
      })
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await pinfold.anonymous.call('POST', '/oauth/token', form.toString(), headers)
      assert.equal(answer.status, 400, `${name}: ${answer.text}`)
      assert.deepEqual(answer.body, { error: 'invalid_grant', error_description: messages[code] }, name)
    }
  }
})

test('refuses a token that is longer than a header may be, without parsing it', async () => {
  const token = await issuers.rsa.token({ sub: subject, aud: pinfold.url, pad: 'x'.repeat(20_000) })
  assert.equal((await exchange(token, identities.rsa)).status, 431)
})

test('valid tokens still pass after all hostile tokens, and each issuer got only a few requests', async () => {
  await control()
  for (const { requests } of Object.values(issuers)) assert.ok(requests.length <= 8, requests.join(' '))
})
