// The dry run of an exchange returns the same result as the exchange.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimsOf, type Scene, startExchange, subject } from '../support/exchange.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'

let scene: Scene
let owner: Client
before(async () => {
  scene = await startExchange()
  owner = await scene.pinfold.as((await scene.pinfold.seed.member(scene.org.uid, roleUids.owner)).uid)
})
after(() => scene[Symbol.asyncDispose]())

const check = (uid: string, claims: unknown, match?: Json, client = owner) =>
  client.post(`/control/v1/claimChecks/${uid}`, {
    claims: typeof claims === 'string' ? claims : JSON.stringify(claims),
    ...(match && { match }),
  })
const failing = ({ checks }: Json): string[] =>
  checks.filter(({ matches }: Json) => !matches).map(({ claim }: Json) => claim)

test('twenty tokens get the same result in the check and in an exchange, for stored and new identities', async () => {
  const match = {
    issuer: scene.issuer.url,
    subjectPattern: 'repo:acme/[^:]+:.*',
    claims: { environment: 'prod', run: '7' },
    claimPatterns: { actor: '(jane|joe)' },
  }
  const { uid } = await scene.identity({ claimMatch: match })
  const good = { environment: 'prod', run: 7, actor: 'jane' }
  const now = Math.floor(Date.now() / 1000)
  const host = new URL(scene.pinfold.url).host
  const changes: Json[] = [
    {},
    { actor: 'joe' },
    { actor: 'mallory' },
    { actor: ['mallory', 'jane'] },
    { environment: 'staging' },
    { environment: undefined },
    { run: '7' },
    { run: 8 },
    { sub: 'repo:acme/api:x' },
    { sub: 'repo:evil/api:x' },
    { sub: `x${subject}` },
    { aud: host },
    { aud: 'https://elsewhere.example' },
    { aud: ['https://elsewhere.example', scene.pinfold.url] },
    { nbf: now + 30 },
    { nbf: now + 300 },
    { iat: now + 300 },
    { exp: now - 300 },
    { exp: now + 367 * 86_400 },
    { iss: 'https://elsewhere.example' },
  ]
  for (const change of changes) {
    const token = await scene.token({ ...good, ...change })
    const claims = claimsOf(token)
    const real = (await scene.exchange(token, { identity: uid })).status === 200
    const told = ok(await check(uid, claims))
    assert.equal(told.matches, real, JSON.stringify(change))
    assert.deepEqual(failing(ok(await check(scene.org.uid, claims, match))), failing(told))
    assert.equal(failing(told).length === 0, real)
  }
})

test('the result has the expected and the actual value of each claim', async () => {
  const { uid } = await scene.identity()
  const claims = claimsOf(await scene.token({ sub: 'repo:acme/other' }))
  const told = ok(await check(uid, claims))
  assert.deepEqual(failing(told), ['sub'])
  assert.deepEqual(told.checks[1], { claim: 'sub', wanted: subject, got: 'repo:acme/other', matches: false })
  assert.deepEqual(failing(ok(await check(uid, {}))), ['iss', 'sub', 'aud', 'exp'])
})

test('validates the rules like the creation of an identity, and stores nothing', async () => {
  const { uid } = scene.org
  const events = await eventsOf(scene.pinfold, async () => {
    assertInvalid(await check(uid, '{}', { issuer: scene.issuer.url, subjectPattern: '(' }), 'match.subject_pattern')
    assertInvalid(await check(uid, '{}', { subject: 'x' }), 'match.issuer')
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`claim-${i}`, 'x']))
    const match = { issuer: scene.issuer.url, subject: 'x', claims: many }
    assertInvalid(await check(uid, '{}', match), 'match')
    assertInvalid(await check(uid, '', { issuer: scene.issuer.url, subject }), 'claims')
    for (const bad of ['x', '[]', 'null', '{"a":1,"a":2}', `{"a":"${'x'.repeat(17_000)}"}`]) {
      assertInvalid(await check(uid, bad, { issuer: scene.issuer.url, subject }), 'claims')
    }
  })
  assert.deepEqual(events, [])
})

test('requires permission to list identities, and refuses identities that do not match by claims', async () => {
  const { pinfold, org } = scene
  const { uid } = await scene.identity()
  const [stranger, viewer] = await Promise.all([
    pinfold.seed.person(),
    pinfold.seed.member(org.uid, roleUids.viewer) as Promise<{ uid: string }>,
  ])
  assertDenied(await check(uid, '{}', undefined, await pinfold.as(stranger.uid)))
  ok(await check(uid, '{}', undefined, await pinfold.as(viewer.uid)))
  const missing = `${org.uid}/${'0'.repeat(16)}`
  assertNotFound(await check(missing, '{}'), 'iam.pinfold.dev/Identity', missing)
  assertNotFound(await check(missing, '{}', { issuer: scene.issuer.url, subject }), 'iam.pinfold.dev/Group', missing)
  const awsIdentity = { awsAccount: '123456789012', userId: 'A' }
  const aws = await pinfold.seed.identity(org.uid, { claimMatch: undefined, awsIdentity })
  assertInvalid(await check(aws.uid, '{}'), 'uid')
  assertInvalid(await check(stranger.uid, '{}', undefined, pinfold.operator), 'uid')
})
