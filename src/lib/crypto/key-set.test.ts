import assert from 'node:assert/strict'
import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto'
import { test } from 'node:test'
import { importJWK } from 'jose'
import { maxKeys, type PublicJwk, readKeySet } from './key-set.ts'

const pair = ({ publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject }) => ({
  open: publicKey.export({ format: 'jwk' }),
  secret: privateKey.export({ format: 'jwk' }),
})
const rsa = (modulusLength: number, publicExponent = 65_537) =>
  pair(generateKeyPairSync('rsa', { modulusLength, publicExponent }))
const ec = (namedCurve: string) => pair(generateKeyPairSync('ec', { namedCurve }))

const [rsa2048, p256, p384, p521] = [rsa(2048), ec('P-256'), ec('P-384'), ec('P-521')]
const ed25519 = pair(generateKeyPairSync('ed25519'))

const read = (...keys: unknown[]): PublicJwk[] => readKeySet({ keys })!.keys

test('keeps public keys of the types that sign tokens', async () => {
  const good: [JsonWebKey, string[]][] = [
    [rsa2048.open, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    [rsa(2048, 3).open, ['RS256']],
    [p256.open, ['ES256']],
    [p384.open, ['ES384']],
    [p521.open, ['ES512']],
    [ed25519.open, ['EdDSA', 'Ed25519']],
  ]
  for (const [open, algorithms] of good) {
    assert.deepEqual(read(open), [{ ...open, use: 'sig' }])
    for (const alg of algorithms) {
      const [kept] = read({ ...open, kid: 'k', use: 'sig', key_ops: ['verify'], alg, x5c: ['MII'], more: 1 })
      assert.deepEqual(kept, { ...open, kid: 'k', use: 'sig', alg })
      await importJWK(kept!, alg)
    }
  }
})

test('keeps the valid keys of a set with unusable keys', () => {
  const keys = [null, { kty: 'oct', k: 'AAAA' }, { ...p256.open, kid: 'a' }, 7, { ...ed25519.open, kid: 'b' }, []]
  assert.deepEqual(
    read(...keys).map(({ kid }) => kid),
    ['a', 'b'],
  )
})

test('skips keys for other uses than verification, and exposed private or symmetric keys', () => {
  const { open } = rsa2048
  for (const more of [
    { use: 'enc' },
    { use: 'SIG' },
    { use: ['sig'] },
    { use: null },
    { key_ops: [] },
    { key_ops: ['sign'] },
    { key_ops: 'verify' },
    { alg: 'RSA-OAEP' },
    { alg: 'HS256' },
    { alg: 'ES256' },
    { alg: 'none' },
    { alg: ['RS256'] },
    { alg: null },
    { k: 'AAAA' },
  ]) {
    assert.deepEqual(read({ ...open, ...more }), [], JSON.stringify(more))
  }
  for (const { secret } of [rsa2048, p256, p384, p521, ed25519]) assert.deepEqual(read(secret), [])
  assert.deepEqual(read({ ...p256.open, alg: 'ES384' }), [])
})

test('omits weak keys, and keys that make each verification slow', () => {
  assert.deepEqual(read(rsa(1024).open), [])
  assert.deepEqual(read(rsa(2040).open), [])
  const { open } = rsa2048
  const number = (bytes: number, last: number) => Buffer.concat([Buffer.alloc(bytes - 1, 0xff), Buffer.from([last])])
  const modulus = (bytes: number) => ({ ...open, n: number(bytes, 1).toString('base64url') })
  assert.equal(read(modulus(1024)).length, 1)
  assert.deepEqual(read(modulus(1025)), [])
  assert.deepEqual(read(modulus(2048)), [])
  for (const e of ['AQ', 'AA', 'Ag', 'AQAA', 'AQAAAAAB', open.n!]) assert.deepEqual(read({ ...open, e }), [], e)
})

test('omits malformed keys', () => {
  const { open } = p256
  for (const jwk of [
    {},
    { kty: 'RSA' },
    { kty: 'RSA', n: '', e: 'AQAB' },
    { kty: 'RSA', n: rsa2048.open.n, e: 65_537 },
    { kty: 'RSA', n: `${rsa2048.open.n}=`, e: 'AQAB' },
    { kty: 'RSA', n: ` ${rsa2048.open.n}`, e: 'AQAB' },
    { ...open, kty: 'ec' },
    { ...open, kty: ['EC'] },
    { ...open, crv: 'P-384' },
    { ...open, crv: 'secp256k1' },
    { ...open, crv: ['P-256'] },
    { ...open, x: open.y },
    { ...open, y: undefined },
    { ...open, x: 'AA', y: 'AA' },
    { ...open, x: `${open.x}AAAA` },
    { ...open, x: { length: 3 } },
    { ...open, kid: 7 },
    { ...open, kid: null },
    { ...open, kid: 'x'.repeat(513) },
    { ...ed25519.open, x: 'AAAA' },
    { ...ed25519.open, crv: 'X25519' },
    { ...ed25519.open, crv: 'Ed448' },
    { kty: 'RSA', crv: 'P-256', x: open.x, y: open.y },
    { kty: '__proto__' },
    JSON.parse(`{"__proto__":${JSON.stringify(open)}}`),
  ]) {
    assert.deepEqual(read(jwk), [], JSON.stringify(jwk))
  }
})

test('reads only the first `maxKeys` keys of a set', () => {
  const many = Array.from({ length: maxKeys + 1 }, (_, index) => ({ ...p256.open, kid: String(index) }))
  assert.equal(read(...many).length, maxKeys)
  assert.equal(read(...many).at(-1)!.kid, String(maxKeys - 1))
  assert.deepEqual(read(...Array(maxKeys).fill({}), p256.open), [])
})

test('distinguishes a document that is not a JWK Set from a set without keys', () => {
  for (const document of [
    null,
    7,
    'keys',
    [],
    [p256.open],
    p256.open,
    {},
    { keys: {} },
    { keys: 'x' },
    { keys: null },
  ]) {
    assert.equal(readKeySet(document), undefined, JSON.stringify(document))
  }
  assert.deepEqual(readKeySet({ keys: [], more: 1 }), { keys: [] })
})

test('verifies a signature of the private key with a kept public key', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const [kept] = read(publicKey.export({ format: 'jwk' }))
  const signature = sign(null, Buffer.from('text'), privateKey)
  assert.ok(verify(null, Buffer.from('text'), { key: kept as JsonWebKey, format: 'jwk' }, signature))
})
