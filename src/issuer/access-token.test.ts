import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { type CryptoKey, decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose'
import { AppError } from '#lib/errors.ts'
import { createVerifier, maxLifetime, signAccessToken } from './access-token.ts'
import type { Keyring } from './keyring.ts'

const signingAlgorithm = 'ES256'

const issuer = 'https://pinfold.example.com'
const audience = issuer
const subject = 'a'.repeat(40)
const group = `${subject}/0123456789abcdef`
const start = Date.parse('2026-08-01T12:00:00.000Z')

let privateKey: CryptoKey
let publicKey: CryptoKey
before(async () => {
  ;({ privateKey, publicKey } = await generateKeyPair(signingAlgorithm, { extractable: true }))
})

/** An issuer with one key, which counts signature checks: each check requests the key exactly once. */
function startIssuer() {
  const state = { now: start, checks: 0, epoch: 0, kids: ['k1'] }
  const keyring: Keyring = {
    signer: () => ({ kid: 'k1', alg: signingAlgorithm, key: privateKey }),
    algorithms: () => [signingAlgorithm],
    verifier: (kid) => (state.kids.includes(kid) ? publicKey : undefined),
    async findVerifier(kid, algorithm) {
      state.checks++
      return this.verifier(kid, algorithm)
    },
    jwks: () => ({ keys: [] }),
    epoch: () => state.epoch,
    refresh: async () => 0,
    rotate: async () => 0,
  }
  const now = () => new Date(state.now)
  const verify = createVerifier(keyring, issuer, audience, now)
  const sign = (more: Partial<Parameters<typeof signAccessToken>[1]> = {}) =>
    signAccessToken(keyring, { issuer, audience, subject, now: now(), ...more })
  return { state, verify, sign }
}

function signRaw(claims: Record<string, unknown>, header: Record<string, unknown> = {}): Promise<string> {
  const seconds = start / 1000
  return new SignJWT({ iss: issuer, aud: audience, sub: subject, iat: seconds, exp: seconds + 600, ...claims })
    .setProtectedHeader({ alg: signingAlgorithm, kid: 'k1', typ: 'at+jwt', ...header })
    .sign(privateKey)
}

const refused = (message: RegExp) => (error: unknown) =>
  error instanceof AppError && error.code === 'UNAUTHENTICATED' && message.test(error.message)

test('verify returns the signed claims', async () => {
  const { verify, sign } = startIssuer()
  const narrowing = new Map([[group, (1n << 3n) | (1n << 168n)]])
  assert.deepEqual(await verify(await sign({ narrowing })), {
    subject,
    audience: [audience],
    issuedAt: start / 1000,
    expiry: start / 1000 + 3600,
    narrowing,
    narrowed: true,
  })
  assert.equal((await verify(await sign({ narrowing, whole: true }))).narrowed, false)
  assert.partialDeepStrictEqual(await verify(await sign()), { narrowing: undefined, narrowed: false })
})

test('a token has its audience, a unique ID, and encoded capabilities as in the contract', async () => {
  const { sign } = startIssuer()
  const token = await sign({ narrowing: new Map([[group, 1n << 3n]]) })
  assert.deepEqual(decodeProtectedHeader(token), { alg: 'ES256', kid: 'k1', typ: 'at+jwt' })
  const { jti, ...claims } = decodeJwt(token)
  const times = { iat: start / 1000, exp: start / 1000 + 3600 }
  const cap = { [group]: 'AAAAAAAAADIAAAAAAAAACA==' }
  assert.deepEqual(claims, { iss: issuer, sub: subject, aud: audience, ...times, cap, narrowed: true })
  assert.notEqual(decodeJwt(await sign()).jti, jti)
})

test('a token is valid for at most an hour, or for less on request', async () => {
  const { sign } = startIssuer()
  const lifetimeOf = (token: string) => decodeJwt(token).exp! - decodeJwt(token).iat!
  assert.equal(maxLifetime, 3600)
  assert.equal(lifetimeOf(await sign({ lifetime: 86_400 })), 3600)
  assert.equal(lifetimeOf(await sign({ lifetime: 60 })), 60)
})

test('verifies the signature of a token only once', async () => {
  const { state, verify, sign } = startIssuer()
  const [one, two] = [await sign(), await sign()]
  const first = await verify(one)
  assert.equal(state.checks, 1)
  assert.equal(await verify(one), first)
  assert.equal(await verify(one), first)
  assert.equal(state.checks, 1)
  await verify(two)
  assert.equal(state.checks, 2)
})

test('checks a refused token again each time', async () => {
  const { state, verify } = startIssuer()
  const token = await signRaw({ aud: 'somebody else' })
  await assert.rejects(verify(token))
  await assert.rejects(verify(token))
  assert.equal(state.checks, 2)
})

test('a verified token still expires on time', async () => {
  const { state, verify, sign } = startIssuer()
  const token = await sign({ lifetime: 60 })
  await verify(token)
  state.now += 59_999
  await verify(token)
  state.now += 1
  await assert.rejects(verify(token), refused(/has expired/))
  await assert.rejects(verify(token), refused(/has expired/))
})

test('verifies tokens again after a key change', async () => {
  const { state, verify, sign } = startIssuer()
  const token = await sign()
  await verify(token)
  state.epoch++
  await verify(token)
  assert.equal(state.checks, 2)

  state.kids = []
  state.epoch++
  await assert.rejects(verify(token), refused(/not issued by this server/))
})

test('a token is not valid before its nbf', async () => {
  const { state, verify } = startIssuer()
  const token = await signRaw({ nbf: start / 1000 + 10 })
  await assert.rejects(verify(token), refused(/invalid claim: nbf/))
  state.now += 10_000
  await verify(token)
})

test('refuses a token without a required claim, and a token of another type', async () => {
  const { verify } = startIssuer()
  for (const claim of ['iss', 'aud', 'sub', 'iat', 'exp']) {
    await assert.rejects(verify(await signRaw({ [claim]: undefined })), refused(/./), claim)
  }
  for (const sub of ['', 'somebody', 'A'.repeat(40), `${subject}/`, `${subject}/..`, '/', 7, ['a'.repeat(40)], null]) {
    await assert.rejects(verify(await signRaw({ sub })), refused(/./), JSON.stringify(sub))
  }
  for (const typ of ['JWT', 'id+jwt', undefined]) {
    await assert.rejects(verify(await signRaw({}, { typ })), refused(/./), String(typ))
  }
  await verify(await signRaw({ aud: ['somebody else', audience] }))
  await verify(await signRaw({}, { typ: 'application/at+jwt' }))
})

test('refuses a token of more than 16 KiB without a signature check', async () => {
  const { state, verify } = startIssuer()
  await assert.rejects(verify(await signRaw({ padding: 'x'.repeat(16_384) })), refused(/too long/))
  assert.equal(state.checks, 0)
})

test('an unreadable cap claim grants nothing, and readable entries in it apply', async () => {
  const { verify } = startIssuer()
  const list = 'AAAAAAAAADIAAAAAAAAACA=='
  const narrowingOf = async (cap: unknown) => (await verify(await signRaw({ cap }))).narrowing
  for (const cap of [null, true, 7, '', list, [], [list], {}]) {
    assert.deepEqual(await narrowingOf(cap), new Map(), JSON.stringify(cap))
  }
  const members = { [group]: list, '/': list, '': list, '*': list, [`${group}/`]: list, [subject]: 'nonsense' }
  assert.deepEqual(
    await narrowingOf(members),
    new Map([
      [group, 8n],
      ['/', 8n],
    ]),
  )
  for (const text of [7, null, 'AAAA', `${list}AAAA`, list.slice(4), 'AAAAAAAAADIAAAAAAAAACA', [103], { 3: true }]) {
    assert.deepEqual(await narrowingOf({ [group]: text }), new Map(), JSON.stringify(text))
  }
})
