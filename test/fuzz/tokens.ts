// Fuzz targets for tokens of unknown callers at the token exchange, and for responses of their issuers.
import assert from 'node:assert/strict'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { createOutsideIssuers } from '#issuer/outside-issuers.ts'
import { checkTimes, readOutsideToken, verifyOutsideToken } from '#issuer/outside-token.ts'
import { type KeySet, readKeySet } from '#lib/crypto/key-set.ts'
import { AppError } from '#lib/errors.ts'
import { parseUniqueJson } from '#lib/json/unique-json.ts'
import { oneOf, type Random } from '../support/random.ts'
import { mutate } from './mutate.ts'

const issuer = 'https://issuer.example.com'
const pairs = await Promise.all(
  ['RS256', 'ES256', 'EdDSA'].map(async (alg) => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    return { alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid: alg, alg, use: 'sig' } }
  }),
)
const published = { keys: pairs.map(({ jwk }) => jwk) }
const keys = readKeySet(published)!
assert.equal(keys.keys.length, pairs.length)
const now = new Date()
const seconds = Math.floor(now.getTime() / 1000)
const good = await Promise.all(
  pairs.map(({ alg, privateKey }) =>
    new SignJWT({
      iss: issuer,
      sub: 'job',
      aud: ['a', 'b'],
      iat: seconds,
      exp: seconds + 300,
      nested: { a: [1, true] },
    })
      .setProtectedHeader({ alg, kid: alg, typ: 'JWT' })
      .sign(privateKey),
  ),
)
for (const token of good) await verifyOutsideToken(readOutsideToken(token), keys)

const jsons = [
  '{"a":[1,-2.5e3,{"b":null,"c":"\\u0061\\"}"}],"":{"a":true},"\\ud83d\\ude00":[]}',
  '{"iss":"https://a.example","sub":"s","aud":["x"],"exp":1,"__proto__":{"admin":true}}',
  '[[[[]]],{"a":{"a":{"a":{}}}}]',
  JSON.stringify(published),
]

/** Number of members in the objects of a JSON text. */
function members(text: string): number {
  return [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length
}

/** A changed token must not be accepted as one of the valid ones. */
async function readAndVerify(text: string): Promise<void> {
  const token = readOutsideToken(text)
  checkTimes(token, now)
  assert.equal(typeof token.issuer, 'string')
  assert.ok(token.audience.length > 0 && token.subject !== '')
  const verified = await verifyOutsideToken(token, keys).then(
    () => true,
    (error: unknown) => {
      if (error instanceof AppError && error.code === 'UNAUTHENTICATED') return false
      throw error
    },
  )
  assert.equal(verified, good.includes(text), text)
}

export const tokenTargets: Record<string, (random: Random) => unknown> = {
  outsideToken: (random) => readAndVerify(mutate(random, oneOf(random, good))),
  tokenParts(random) {
    const parts = oneOf(random, good).split('.')
    const at = random.below(2)
    const text = mutate(random, Buffer.from(parts[at]!, 'base64url').toString('utf8'))
    parts[at] = Buffer.from(text, random.below(2) ? 'latin1' : 'utf8').toString('base64url')
    return readAndVerify(parts.join('.'))
  },
  uniqueJson(random) {
    const text = mutate(random, oneOf(random, jsons))
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      assert.throws(() => parseUniqueJson(text), SyntaxError)
      return
    }
    if (members(text) === members(JSON.stringify(value))) assert.deepStrictEqual(parseUniqueJson(text), value)
    else assert.throws(() => parseUniqueJson(text), /twice/)
  },
  async keySet(random) {
    const getJson = async (url: string) => {
      if (url.endsWith('/.well-known/openid-configuration')) return { issuer, jwks_uri: `${issuer}/keys` }
      return JSON.parse(mutate(random, JSON.stringify({ keys: [oneOf(random, published.keys)] }))) as unknown
    }
    const set = (await createOutsideIssuers({ getJson }, () => 0).keysOf(issuer, undefined)) as KeySet
    const known = new Set(['kty', 'use', 'kid', 'alg', 'n', 'e', 'crv', 'x', 'y'])
    for (const key of set.keys)
      assert.deepEqual(
        Object.keys(key).filter((name) => !known.has(name)),
        [],
      )
    const verified = good.map((token) =>
      verifyOutsideToken(readOutsideToken(token), set).catch((error: unknown) => error),
    )
    for (const result of await Promise.all(verified)) {
      if (result !== undefined && !(result instanceof AppError)) throw result
    }
  },
}
