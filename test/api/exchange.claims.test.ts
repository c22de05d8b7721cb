// Rules by which an identity accepts tokens: claims, exact or by pattern, and static keys.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type Scene, startExchange, subject } from '../support/exchange.ts'
import { assertDenied, assertError, assertInvalid, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import type { Json } from '../support/pinfold.ts'

const day = 24 * 60 * 60 * 1000
let scene: Scene
let offset = 0
let exact: Json

before(async () => {
  scene = await startExchange({ clock: () => new Date(Date.now() + offset) })
  exact = { issuer: scene.issuer.url, subject }
})

after(() => scene[Symbol.asyncDispose]())

const statuses = (uid: string, tokens: Json[]) =>
  Promise.all(tokens.map(async (claims) => (await scene.exchange(await scene.token(claims), { identity: uid })).status))

/** The identity accepts each token in `yes`. It refuses tokens in `no` with 403, or with 401 for another audience. */
async function assertMatches(claimMatch: Json, yes: Json[], no: Json[], refusal = 403): Promise<void> {
  const { uid } = await scene.identity({ claimMatch })
  assert.deepEqual(
    await statuses(uid, yes),
    yes.map(() => 200),
  )
  assert.deepEqual(
    await statuses(uid, no),
    no.map(() => refusal),
  )
}

test('an exact issuer and subject match byte for byte', async () => {
  await assertMatches(exact, [{}], [{ sub: `${subject} ` }, { sub: subject.toUpperCase() }, { sub: 'x' }])
})

test('claims inside objects match by a name with dots', async () => {
  const pod = { 'kubernetes.io': { namespace: 'ci', serviceaccount: { name: 'builder' } } }
  const { issuer } = exact
  await assertMatches(
    { ...exact, claims: { 'kubernetes.io.namespace': 'ci', 'kubernetes.io.serviceaccount.name': 'builder' } },
    [pod, { 'kubernetes.io.namespace': 'ci', 'kubernetes.io': { serviceaccount: { name: 'builder' } } }],
    [{}, { 'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'builder' } } }, { 'kubernetes.io': 'ci' }],
  )
  await assertMatches(
    { issuer, subjectPattern: '.*', claimPatterns: { 'realm_access.roles': 'build-.*' } },
    [{ realm_access: { roles: ['a', 'build-x'] } }],
    [{ realm_access: { roles: ['a'] } }, { realm_access: 'build-x' }, { realm_access: { roles: { a: 'build-x' } } }],
  )
})

test('compares integers above 2^53 by their exact digits', async () => {
  const large = '9007199254740993'
  const { uid } = await scene.identity({ claimMatch: { ...exact, claims: { run: large } } })
  const status = async (run: string) => {
    const claims = { iss: scene.issuer.url, sub: subject, aud: scene.pinfold.url }
    const times = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 300 }
    const payload = `${JSON.stringify({ ...claims, ...times }).slice(0, -1)},"run":${run}}`
    const token = scene.issuer.signRaw(JSON.stringify({ alg: 'RS256', typ: 'JOSE' }), payload)
    return (await scene.exchange(token, { identity: uid })).status
  }
  assert.equal(await status(large), 200)
  assert.equal(await status(`["x",${large}]`), 200)
  for (const other of ['9007199254740992', '9007199254740994', `${large}.0`, '9.007199254740993e15', `-${large}`]) {
    assert.equal(await status(other), 403, other)
  }
})

test('a subject pattern must match the whole subject, with or without anchors', async () => {
  const { issuer } = exact
  for (const subjectPattern of ['repo:acme/.*', '^repo:acme/.*$', 'repo:acme/.*$', 'repo:acme/(web|api):.*|nothing']) {
    await assertMatches(
      { issuer, subjectPattern },
      [{ sub: 'repo:acme/web:ref:x' }],
      [
        { sub: 'xrepo:acme/web:ref:x' },
        { sub: 'repo:acm/web' },
        { sub: 'repo:acme/web:\u2028x'.replace('acme', 'acmes') },
      ],
    )
  }
  // Each alternative of a pattern must match the whole text, and an unclosed quote does not affect the added groups.
  await assertMatches({ issuer, subjectPattern: 'a|b' }, [{ sub: 'a' }, { sub: 'b' }], [{ sub: 'ax' }, { sub: 'xb' }])
  await assertMatches(
    { issuer, subjectPattern: '\\Qa.b' },
    [{ sub: 'a.b' }],
    [{ sub: 'axb' }, { sub: 'a.b)$' }, { sub: 'a.bc' }],
  )
  await assertMatches({ issuer, subjectPattern: '(?m)^a$' }, [{ sub: 'a' }], [{ sub: 'a b' }, { sub: 'b' }])
  await assertMatches({ issuer, subjectPattern: '.*' }, [{ sub: 'anything' }], [])
})

test('an issuer pattern accepts only matching issuers', async () => {
  const quoted = scene.issuer.url.replaceAll('.', '\\.')
  await assertMatches({ issuerPattern: quoted, subject }, [{}], [{ iss: `${scene.issuer.url}/x` }])
  const { uid } = await scene.identity({ claimMatch: { issuerPattern: 'http://127\\.0\\.0\\.1:\\d+', subject } })
  await using other = await startIssuer('ES256')
  ok(await scene.exchange(await scene.token(), { identity: uid }))
  ok(await scene.exchange(await other.token({ sub: subject, aud: scene.pinfold.url }), { identity: uid }))
})

test('logs a claim that is too long for its pattern once an hour for each identity', async (t) => {
  const { app } = scene.pinfold
  const warn = t.mock.method(app.log, 'warn')
  const warnings = () => warn.mock.calls.map(({ arguments: [message, fields] }) => ({ message, ...fields }))
  const wanted = (identity: string, claim: string) => {
    return { message: 'claim is too long for the patterns of an identity', identity, claim }
  }
  const subjectPattern = 'repo:.{0,100}'
  const { uid } = await scene.identity({ claimMatch: { issuer: exact.issuer, subjectPattern } })
  const issuerPattern = 'http://.{0,100}'
  const other = await scene.identity({ claimMatch: { issuerPattern, subject } })
  const long = await scene.token({ sub: `repo:${'x'.repeat(500)}` })
  try {
    ok(await scene.exchange(await scene.token(), { identity: uid }))
    assert.deepEqual(warnings(), [])
    for (let i = 0; i < 3; i++) assertDenied(await scene.exchange(long, { identity: uid }))
    assert.deepEqual(warnings(), [wanted(uid, 'sub')])
    const unknown = await scene.token({ iss: `http://${'x'.repeat(100)}` })
    for (let i = 0; i < 3; i++) await scene.exchange(unknown, { identity: other.uid })
    assert.deepEqual(warnings(), [wanted(uid, 'sub'), wanted(other.uid, 'iss')])
    offset = 60 * 60 * 1000
    const later = await scene.token({ sub: `repo:${'x'.repeat(500)}`, exp: Math.floor(Date.now() / 1000) + 7200 })
    assertDenied(await scene.exchange(later, { identity: uid }))
    assert.equal(warnings().length, 3)
  } finally {
    offset = 0
  }
})

test('refuses to exchange its own tokens, also for an identity that trusts each issuer', async () => {
  const { pinfold } = scene
  const { uid } = await scene.identity({ claimMatch: { issuerPattern: '.*', subjectPattern: '.*' } })
  ok(await scene.exchange(await scene.token(), { identity: uid }))
  const answer = await scene.exchange(await pinfold.tokenFor(uid), { identity: uid })
  assertError(answer, 401, 16, 'UNAUTHENTICATED')
})

// A backtracking engine would not finish this match.
test('matching a pattern takes linear time', async () => {
  for (const subjectPattern of ['(a+)+$', '(a|a)*b', '(a|aa)+$', '(.*a){10}']) {
    const { uid } = await scene.identity({ claimMatch: { issuer: exact.issuer, subjectPattern } })
    assertDenied(await scene.exchange(await scene.token({ sub: `${'a'.repeat(2000)}!` }), { identity: uid }))
  }
})

test('refuses patterns that are slow together, too long or not RE2, when the identity is created', async () => {
  const { pinfold, org } = scene
  const create = (claimMatch: Json) =>
    pinfold.operator.post(`/iam/v2/identities/${org.uid}`, { name: 'n', claimMatch: { ...exact, ...claimMatch } })
  const field = 'claim_match.claim_patterns.a'
  for (const pattern of ['.{0,1000}'.repeat(110), 'x'.repeat(1025), '(?=a)', '(a)\\1', '(', '(?:(?:a{9}){999}){9}']) {
    assertInvalid(await create({ claimPatterns: { a: pattern } }), field)
  }
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`c${i}`, '.{0,100}x']))
  const answer = await create({ claimPatterns: many })
  assert.equal(answer.status, 400)
  assert.ok(answer.body.details[1].fieldViolations.length < 20)
  ok(await create({ claimPatterns: { a: `^${'x'.repeat(390)}$` } }))
})

test('requires an audience of this server, unless the identity names another one', async () => {
  const { url } = scene.pinfold
  const { host, hostname } = new URL(url)
  const ours = [{ aud: url }, { aud: host }, { aud: hostname }, { aud: ['x', url] }]
  await assertMatches(exact, ours, [{ aud: 'x' }, { aud: ['x', 'y'] }, { aud: `${url}/` }], 401)
  const own = [{ aud: 'acme' }, { aud: ['x', 'acme'] }]
  await assertMatches({ ...exact, audience: 'acme' }, own, [...ours, { aud: 'acme ' }, { aud: 'ACME' }], 401)
  const some = [{ aud: 'acme-1' }, { aud: ['x', 'acme-2'] }]
  await assertMatches(
    { ...exact, audiencePattern: 'acme-\\d' },
    some,
    [...ours, { aud: 'acme-10' }, { aud: 'xacme-1' }],
    401,
  )
})

test('denies each other mismatch, also for an audience that the identity names', async () => {
  const others = [{ sub: 'x' }, { iss: 'https://other.example.com' }, { kind: 'y' }]
  for (const own of [{ audience: 'acme' }, { audiencePattern: 'ac.*' }]) {
    const match = { ...exact, ...own, claims: { kind: 'x' } }
    await assertMatches(
      match,
      [{ aud: 'acme', kind: 'x' }],
      others.map((claims) => ({ aud: 'acme', kind: 'x', ...claims })),
    )
    // A token for this server, of an unknown person.
    await assertMatches(match, [], [{ sub: 'x' }, { sub: 'x', aud: ['x', scene.pinfold.url] }])
    await assertMatches(
      match,
      [],
      [
        { sub: 'x', aud: 'x' },
        { iss: 'https://other.example.com', aud: 'x' },
      ],
      401,
    )
  }
})

test('all custom claims must match: text, number, boolean, or any element of a list', async () => {
  const claims = { repository_id: '123', private: 'true', team: 'web', environment: 'prod' }
  const good = { repository_id: 123, private: true, team: ['api', 'web'], environment: 'prod' }
  await assertMatches(
    { ...exact, claims },
    [good, { ...good, repository_id: '123', private: 'true', team: 'web', environment: ['prod'] }],
    [
      {},
      { ...good, environment: 'production' },
      { ...good, repository_id: 1234 },
      { ...good, repository_id: 123.5 },
      { ...good, private: false },
      { ...good, private: 1 },
      { ...good, team: ['api'] },
      { ...good, team: [] },
      { ...good, team: [['web']] },
      { ...good, team: { web: 'web' } },
      { ...good, environment: null },
      { ...good, environment: undefined },
    ],
  )
  await assertMatches(
    { ...exact, claimPatterns: { ref: 'refs/heads/(main|release-.*)', run: '\\d+', ok: 'true' } },
    [{ ref: 'refs/heads/release-1', run: 42, ok: [false, true] }],
    [
      { ref: 'refs/heads/main2', run: 42, ok: true },
      { ref: 'refs/heads/main', run: 4.5, ok: true },
      { ref: 'refs/heads/main', run: 42, ok: 'truest' },
      { ref: 'refs/heads/main', run: 42 },
    ],
  )
})

test('ignores claims with names that every JavaScript object inherits', async () => {
  await assertMatches({ ...exact, claimPatterns: { constructor: '.*', toString: '.*' } }, [], [{}])
  const ids = [{ id: '9007199254740992' }, { id: 2 ** 53 }]
  await assertMatches({ ...exact, claims: { id: '9007199254740992' } }, ids, [{ id: 2 ** 53 + 2 }])
  await assertMatches({ ...exact, claims: { id: '' } }, [], [{ id: '' }, {}])
})

test('accepts one large issuer with and without the scheme of its URL', async () => {
  const { pinfold, org } = scene
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: 'RS256' }] })
  const spellings = ['accounts.google.com', 'https://accounts.google.com']
  for (const issuer of spellings) {
    const staticKeys = { issuer, subject, issuerKeys: keys }
    const { uid } = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
    for (const iss of spellings) {
      const token = await new SignJWT({ iss, sub: subject, aud: pinfold.url })
        .setProtectedHeader({ alg: 'RS256' })
        .setExpirationTime('5m')
        .sign(privateKey)
      ok(await scene.exchange(token, { identity: uid }))
    }
  }
})

test('tokens do not match identities of other kinds', async () => {
  const { pinfold, org } = scene
  const kinds = [
    { awsIdentity: { awsAccount: '123456789012', arn: 'a' } },
    { servicePrincipal: 'SERVICE_PRINCIPAL_INGESTER' },
  ]
  for (const kind of kinds) {
    const { uid } = await pinfold.seed.identity(org.uid, { claimMatch: undefined, ...kind })
    assertDenied(await scene.exchange(await scene.token(), { identity: uid }))
  }
})

async function keyHolder(body: Json = {}) {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const issuerKeys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256' }] })
  const issuer = 'urn:unreachable'
  const staticKeys = { issuer, subject: 'device', issuerKeys, ...body }
  const { uid } = await scene.pinfold.seed.identity(scene.org.uid, { claimMatch: undefined, staticKeys })
  const token = (claims: Json = {}) => {
    const now = Math.floor((Date.now() + offset) / 1000)
    const said = { iss: issuer, sub: 'device', aud: scene.pinfold.url, iat: now, exp: now + 300, ...claims }
    return new SignJWT(said).setProtectedHeader({ alg: 'ES256', kid: 'k' }).sign(privateKey)
  }
  return { uid, token }
}

test('static keys verify tokens of an unreachable issuer, for the one configured subject', async () => {
  const { uid, token } = await keyHolder()
  ok(await scene.exchange(await token(), { identity: uid }))
  assertDenied(await scene.exchange(await token({ sub: 'other' }), { identity: uid }))
  assertDenied(await scene.exchange(await token({ iss: 'urn:unreachable:2' }), { identity: uid }))
  const stranger = await keyHolder()
  assertError(await scene.exchange(await stranger.token(), { identity: uid }), 401, 16, 'UNAUTHENTICATED')
  assertError(await scene.exchange(await token({ aud: 'x' }), { identity: uid }), 401, 16, 'UNAUTHENTICATED')
})

test("an audience of the static keys replaces the server's", async () => {
  const { uid, token } = await keyHolder({ audiences: ['plant'] })
  ok(await scene.exchange(await token({ aud: 'plant' }), { identity: uid }))
  ok(await scene.exchange(await token({ aud: ['x', 'plant'] }), { identity: uid }))
  assertError(await scene.exchange(await token(), { identity: uid }), 401, 16, 'UNAUTHENTICATED')
  assertDenied(await scene.exchange(await token({ sub: 'other', aud: 'plant' }), { identity: uid }))
  assertDenied(await scene.exchange(await token({ iss: 'urn:another', aud: 'plant' }), { identity: uid }))
  assertError(
    await scene.exchange(await token({ sub: 'other', aud: 'x' }), { identity: uid }),
    401,
    16,
    'UNAUTHENTICATED',
  )
})

test('static keys stop working at their expiry, after a year at the latest', async () => {
  const soon = await keyHolder({ expirationTime: new Date(Date.now() + 10 * day).toISOString() })
  const late = await keyHolder()
  const at = async (days: number, { uid, token }: Awaited<ReturnType<typeof keyHolder>>) => {
    offset = days * day
    return scene.exchange(await token(), { identity: uid })
  }
  try {
    ok(await at(9.9, soon))
    assertDenied(await at(10, soon))
    ok(await at(364.9, late))
    const answer = await at(365, late)
    assertDenied(answer)
    assert.equal(
      answer.body.message,
      'the token does not match the identity; check its uid and the claims that it requires',
    )
  } finally {
    offset = 0
  }
})
