import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { AppError } from '#lib/errors.ts'
import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { createOutsideIssuers } from './outside-issuers.ts'

const issuer = 'https://issuer.test'
const discoveryUrl = `${issuer}/.well-known/openid-configuration`
const jwksUrl = 'https://keys.test/jwks'
const second = 1000
const minute = 60 * second
const hour = 60 * minute

const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const jwks = (...kids: (string | undefined)[]) => ({ keys: kids.map((kid) => (kid ? { ...jwk, kid } : jwk)) })
const goodDocuments = () =>
  new Map<string, unknown>([
    [discoveryUrl, { issuer, jwks_uri: jwksUrl }],
    [jwksUrl, jwks('a')],
  ])

/** Issuers with a fixed clock. A document can be a promise, for a slow response. */
function start(documents = goodDocuments()) {
  const state = { now: Date.parse('2026-08-01T12:00:00.000Z'), asked: [] as string[], down: false }
  const outgoing: Pick<Outgoing, 'getJson'> = {
    async getJson(url) {
      state.asked.push(url)
      const document = state.down ? undefined : await documents.get(url)
      if (document === undefined) throw new OutgoingError('unreachable')
      return structuredClone(document)
    },
  }
  const issuers = createOutsideIssuers(outgoing, () => state.now)
  return {
    state,
    documents,
    /** Number of fetches since the last call. */
    fetches: () => {
      const { length } = state.asked.filter((url) => url.endsWith('/.well-known/openid-configuration'))
      state.asked = []
      return length
    },
    keysOf: issuers.keysOf,
    held: issuers.held,
    kids: async (kid?: string, of = issuer) => (await issuers.keysOf(of, kid)).keys.map((key) => key.kid),
    refused: (promise: Promise<unknown>) =>
      assert.rejects(promise, (error) => {
        assert.ok(error instanceof AppError)
        assert.deepEqual(
          [error.code, error.message],
          ['UNAUTHENTICATED', 'the token is not accepted; check its issuer, audience, signature and expiry'],
        )
        assert.deepEqual([error.details, error.reason], [[], 'UNAUTHENTICATED'])
        assert.ok(error.cause instanceof Error)
        return true
      }),
  }
}

test('without keys, fetches them by discovery and waits', async () => {
  const { kids, state } = start()
  assert.deepEqual(await kids('a'), ['a'])
  assert.deepEqual(state.asked, [discoveryUrl, jwksUrl])
})

test('without keys, a kid missing after the first fetch causes no second fetch', async () => {
  const { kids, fetches } = start()
  assert.deepEqual(await kids('b'), ['a'])
  assert.equal(fetches(), 1)
})

test('without keys, refuses for 10 s after a failed fetch, without a request', async () => {
  const { state, keysOf, kids, fetches, refused } = start()
  state.down = true
  await refused(keysOf(issuer, 'a'))
  assert.equal(fetches(), 1)
  state.down = false
  state.now += 10 * second - 1
  await refused(keysOf(issuer, 'a'))
  await refused(keysOf(issuer, undefined))
  assert.equal(fetches(), 0)
  state.now += 1
  assert.deepEqual(await kids('a'), ['a'])
  assert.equal(fetches(), 1)
})

test('serves keys younger than 5 min without a request', async () => {
  const { state, keysOf, fetches } = start()
  const first = await keysOf(issuer, 'a')
  state.now += 5 * minute - 1
  assert.equal(await keysOf(issuer, 'a'), first)
  assert.equal(await keysOf(issuer, undefined), first)
  assert.equal(fetches(), 1)
})

test('held returns keys for 24 h without a request', async () => {
  const { state, keysOf, held, fetches } = start()
  assert.equal(held(issuer), undefined)
  const keys = await keysOf(issuer, 'a')
  fetches()
  state.now += 24 * hour - 1
  assert.equal(held(issuer), keys)
  state.now += 1
  assert.equal(held(issuer), undefined)
  assert.equal(fetches(), 0)
})

test('serves keys of at least 5 min at once, and refreshes them in the background', async () => {
  for (const age of [5 * minute, 24 * hour - 1]) {
    const { state, documents, kids, fetches } = start()
    await kids('a')
    const slow = Promise.withResolvers<unknown>()
    documents.set(jwksUrl, slow.promise)
    state.now += age
    for (const kid of ['a', undefined, 'a']) assert.deepEqual(await kids(kid), ['a'])
    slow.resolve(jwks('a', 'b'))
    await turn()
    assert.deepEqual(await kids('b'), ['a', 'b'])
    assert.equal(fetches(), 2)
  }
})

test('serves keys after a failed refresh, and tries again after 30 s', async () => {
  const { state, documents, kids, fetches } = start()
  await kids('a')
  state.down = true
  state.now += 5 * minute
  assert.deepEqual(await kids('a'), ['a'])
  await turn()
  assert.equal(fetches(), 2)
  for (let retry = 0; retry < 3; retry++) {
    state.now += 30 * second - 1
    assert.deepEqual(await kids('a'), ['a'])
    assert.equal(fetches(), 0)
    state.now += 1
    assert.deepEqual(await kids('a'), ['a'])
    await turn()
    assert.equal(fetches(), 1)
  }
  state.down = false
  documents.set(jwksUrl, jwks('b'))
  state.now += 30 * second
  assert.deepEqual(await kids('a'), ['a'])
  await turn()
  assert.deepEqual(await kids('b'), ['b'])
})

test('does not serve keys of 24 h while the issuer is unavailable, and fetches them when it is back', async () => {
  const { state, keysOf, kids, fetches, refused } = start()
  await kids('a')
  state.down = true
  state.now += 24 * hour - 1
  assert.deepEqual(await kids('a'), ['a'])
  await turn()
  state.now += 10 * second
  fetches()
  await refused(keysOf(issuer, 'a'))
  await refused(keysOf(issuer, 'a'))
  assert.equal(fetches(), 1)
  state.down = false
  state.now += 10 * second
  assert.deepEqual(await kids('a'), ['a'])
  assert.equal(fetches(), 1)
})

test('the age of keys counts from the start of the fetch', async () => {
  const { state, documents, kids, fetches } = start()
  const slow = Promise.withResolvers<unknown>()
  documents.set(jwksUrl, slow.promise)
  const first = kids('a')
  state.now += 5 * minute
  slow.resolve(jwks('a'))
  assert.deepEqual(await first, ['a'])
  assert.equal(fetches(), 2)
})

test('key rotation fails no sign-in: fetches an unknown kid and waits', async () => {
  const { documents, kids, fetches } = start()
  await kids('a')
  documents.set(jwksUrl, jwks('b'))
  assert.deepEqual(await kids('b'), ['b'])
  assert.equal(fetches(), 2)
})

test('key rotation fails no sign-in with old keys or after a failed refresh', async () => {
  const { state, documents, kids, fetches } = start()
  await kids('a')
  state.now += hour
  documents.set(jwksUrl, jwks('b'))
  assert.deepEqual(await kids('b'), ['b'])
  assert.equal(fetches(), 2)

  state.now += hour
  state.down = true
  await kids('b')
  await turn()
  state.down = false
  documents.set(jwksUrl, jwks('c'))
  assert.deepEqual(await kids('c'), ['c'])
  assert.equal(fetches(), 2)
})

test('key rotation fails no sign-in during the first fetch or a refresh', async () => {
  for (const held of [false, true]) {
    const { state, documents, kids, fetches } = start()
    if (held) await kids('a')
    state.now += 5 * minute
    const slow = Promise.withResolvers<unknown>()
    documents.set(jwksUrl, slow.promise)
    const early = kids('a')
    await turn()
    const late = Promise.all([kids('b'), kids('b'), kids('b')])
    documents.set(jwksUrl, jwks('b'))
    slow.resolve(jwks('a'))
    assert.deepEqual(await early, ['a'])
    assert.deepEqual(await late, [['b'], ['b'], ['b']])
    assert.equal(fetches(), held ? 3 : 2)
  }
})

test('many unknown kids cause one fetch in 30 s, and the keys stay cached', async () => {
  const { state, kids, fetches } = start()
  await kids('a')
  fetches()
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => kids(`${round}-${index}`)))
    for (const answer of answers) assert.deepEqual(answer, ['a'])
    assert.equal(fetches(), 1)
    state.now += 30 * second - 1
    assert.deepEqual(await kids('one more'), ['a'])
    assert.equal(fetches(), 0)
    state.now += 1
  }
  state.down = true
  assert.deepEqual(await kids('x'), ['a'])
  assert.deepEqual(await kids('y'), ['a'])
  assert.equal(fetches(), 1)
})

test('fifty simultaneous calls share one fetch: a first, a failing, or one for a kid', async () => {
  const { state, documents, keysOf, kids, fetches, refused } = start()
  const fifty = <T>(one: () => Promise<T>) => Promise.all(Array.from({ length: 50 }, one))
  state.down = true
  await fifty(() => refused(keysOf(issuer, 'a')))
  assert.equal(fetches(), 1)

  state.down = false
  state.now += 10 * second
  for (const answer of await fifty(() => kids('a'))) assert.deepEqual(answer, ['a'])
  assert.equal(fetches(), 1)

  documents.set(jwksUrl, jwks('b'))
  for (const answer of await fifty(() => kids('b'))) assert.deepEqual(answer, ['b'])
  assert.equal(fetches(), 1)

  state.now += 5 * minute
  for (const answer of await fifty(() => kids('b'))) assert.deepEqual(answer, ['b'])
  assert.equal(fetches(), 1)
})

test('the issuer in the document must exactly equal the requested issuer', async () => {
  const others = [`${issuer}/`, 'https://ISSUER.test', 'http://issuer.test', `${issuer}:443`, '', null, 7, [issuer]]
  for (const other of [undefined, ...others]) {
    const { documents, keysOf, refused, state } = start()
    documents.set(discoveryUrl, { issuer: other, jwks_uri: jwksUrl })
    await refused(keysOf(issuer, 'a'))
    assert.deepEqual(state.asked, [discoveryUrl])
  }
})

test('removes one slash at the end of the issuer only for the document URL', async () => {
  for (const [of, path] of [
    ['https://issuer.test/', ''],
    ['https://issuer.test//', '/'],
    ['https://issuer.test/tenant', '/tenant'],
    ['https://issuer.test/tenant/', '/tenant'],
    ['https://issuer.test/tenant//', '/tenant/'],
    ['http://127.0.0.1:8080/realms/a%20b;v=1/@x', undefined],
    ['https://[2001:db8::1]:8443', undefined],
  ] as const) {
    const url = `${path === undefined ? of : issuer + path}/.well-known/openid-configuration`
    const documents = goodDocuments().set(url, { issuer: of, jwks_uri: jwksUrl })
    const { kids, state } = start(documents)
    assert.deepEqual(await kids('a', of), ['a'])
    assert.deepEqual(state.asked, [url, jwksUrl])
  }
  const { documents, keysOf, kids, refused } = start()
  assert.deepEqual(await kids('a'), ['a'])
  await refused(keysOf(`${issuer}/`, 'a'))
  documents.set(discoveryUrl, { issuer: `${issuer}/`, jwks_uri: jwksUrl })
  assert.deepEqual(await kids('a'), ['a'])
})

test('refuses an invalid issuer without a request', async () => {
  const { state, keysOf, refused } = start()
  const whole = [
    '',
    'issuer.test',
    'HTTPS://issuer.test',
    'ftp://issuer.test',
    'https://',
    'https:///x',
    '//issuer.test',
  ]
  const tails = ['?', '?a=b', '#', '#a', '/?x', '/#x', '\\x', ' ', '\n', '\t/x', '/ü', '/"', '/\0', '.ü', '/x\n']
  const users = ['https://me@issuer.test', 'https://me:secret@issuer.test', 'https://evil.test#@issuer.test']
  const long = `${issuer}/${'x'.repeat(1024)}`
  for (const of of [...whole, ...tails.map((tail) => issuer + tail), ...users, long]) {
    await refused(keysOf(of, undefined))
  }
  assert.deepEqual(state.asked, [])
})

test('refuses malformed documents, and keeps the cached keys', async () => {
  const garbage = [null, 7, 'text', true, [], {}, { keys: null }, { keys: 'a' }, { keys: {} }, jwk]
  const discovery = [
    null,
    7,
    'text',
    [],
    {},
    { issuer },
    ...[null, 7, [jwksUrl], {}].map((jwks_uri) => ({ issuer, jwks_uri })),
  ]
  for (const [url, documents] of [
    [discoveryUrl, discovery],
    [jwksUrl, garbage],
  ] as const) {
    for (const document of documents) {
      const one = start()
      one.documents.set(url, document)
      await one.refused(one.keysOf(issuer, 'a'))
      one.documents.set(url, goodDocuments().get(url))
      one.state.now += 10 * second
      assert.deepEqual(await one.kids('a'), ['a'])
      one.documents.set(url, document)
      assert.deepEqual(await one.kids('b'), ['a'])
    }
  }
})

test('serves only keys that can verify, and accepts an empty key set', async () => {
  const { state, documents, kids } = start()
  documents.set(jwksUrl, {
    keys: [{ kty: 'oct', k: 'AAAA', kid: 'x' }, null, { ...jwk, use: 'enc' }, ...jwks('b').keys],
  })
  assert.deepEqual(await kids(), ['b'])
  documents.set(jwksUrl, { keys: [] })
  state.now += 5 * minute
  await kids()
  await turn()
  assert.deepEqual(await kids(), [])
})

test('caches 1,000 issuers, and drops first those without keys, then the least recently used', async () => {
  const documents = goodDocuments()
  const named = (index: number) => `https://${index}.test`
  for (let index = 0; index < 1200; index++) {
    documents.set(`${named(index)}/.well-known/openid-configuration`, { issuer: named(index), jwks_uri: jwksUrl })
  }
  const { kids, keysOf, fetches, refused } = start(documents)
  for (let index = 0; index < 999; index++) await kids('a', named(index))
  for (let index = 0; index < 100; index++) await refused(keysOf(`https://nobody.test/${index}`, 'a'))
  fetches()
  for (let index = 0; index < 999; index++) await kids('a', named(index))
  assert.equal(fetches(), 0)

  await kids('a', named(999))
  await kids('a', named(0))
  await kids('a', named(1000))
  fetches()
  for (const index of [0, 2, 999, 1000]) await kids('a', named(index))
  assert.equal(fetches(), 0)
  await kids('a', named(1))
  assert.equal(fetches(), 1)
})

test('fetches keys again after the clock was set back, because their age is unknown', async () => {
  const { kids, state, fetches } = start()
  await kids()
  state.now -= hour
  await kids()
  assert.equal(fetches(), 2)
})
