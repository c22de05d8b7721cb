// Version 1 of identities: other names, lists in full, a PUT that replaces, and static keys that live for 30 days.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { Identities } from '#gen/pinfold/iam/v1/identities_pb.ts'
import { assertDenied, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { publicKeys } from '../support/public-keys.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/identities'
const claimMatch = { issuer: 'https://issuer.example.com', subjectPattern: 'repo:acme/.*' }
const issuer = await startIssuer()
const { pinfold, operator, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, Identities, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const create = (body: Json, client: Client = owner) => client.post(`${path}/${org.uid}`, { name: 'one', ...body })
const put = (id: string, body: Json) => owner.call('PUT', `${path}/${id}`, { name: 'one', ...body })
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items
const inDays = (days: number) => new Date(Date.now() + days * 24 * 3600 * 1000).toISOString()
const newer = async (id: string) => ok(await owner.get(`/iam/v2/identities/${id}`))

test('an identity created in either version is the same in the other, for each kind of relationship', async () => {
  const keys = { issuer: 'i', subject: 's', issuerKeys: '{"keys":[]}', audiences: ['me'] }
  for (const [older, later] of [
    [{ claimMatch }, { claimMatch: { ...claimMatch, claims: {}, claimPatterns: {} } }],
    [{ static: { ...keys, expiration: inDays(9) } }, undefined],
    [{ awsIdentity: { awsAccount: '123456789012', arnPattern: 'a.*', userId: 'u' } }, undefined],
    [{ servicePrincipal: 'CATALOG_SYNCER' }, { servicePrincipal: 'SERVICE_PRINCIPAL_CATALOG_SYNCER' }],
  ] as const) {
    const made = ok(await create({ description: 'text', ...older }))
    const seen = await newer(made.id)
    assert.deepEqual(
      [seen.uid, seen.name, seen.description, seen.lastSeenTime],
      [made.id, 'one', 'text', made.lastSeen],
    )
    for (const [name, value] of Object.entries(later ?? {})) assert.deepEqual(seen[name], value)
    const [listed] = await list(`id=${made.id}`)
    assert.deepEqual(listed, made)
    for (const [name, value] of Object.entries(older)) {
      if (typeof value === 'string') assert.equal(made[name], value)
      else assert.deepEqual({ ...made[name], ...value }, made[name])
    }
  }
  const { uid } = await pinfold.seed.identity(org.uid, { name: 'later', company: 'Acme' })
  const { items } = await grpc.list({ id: uid })
  assert.deepEqual(
    items.map(({ id, name, relationship }) => [id, name, relationship.case]),
    [[uid, 'later', 'claimMatch']],
  )
})

test('version 1 also shows when an identity was last seen', async () => {
  const { uid, updateTime } = await pinfold.seed.identity(org.uid, { name: 'seen' })
  const seen = new Date(Date.parse(updateTime) + 60_000).toISOString()
  pinfold.app.lastSeen.note(uid, seen)
  await pinfold.app.lastSeen.flush()
  const [listed] = await list(`id=${uid}`)
  assert.deepEqual([listed!.lastSeen, listed!.updatedAt], [seen, updateTime])
})

test('a PUT replaces the fields of an identity in version 1, and cannot change its kind', async () => {
  const { uid } = await pinfold.seed.identity(org.uid, { description: 'text', company: 'Acme', claimMatch })
  const other = { issuerPattern: 'https://.+', subject: 's', audience: 'a' }
  const { description, claimMatch: match } = ok(await put(uid, { claimMatch: other }))
  assert.deepEqual([description, { ...match, ...other }], ['', match])
  assert.equal((await newer(uid)).company, 'Acme')
  assertInvalid(await put(uid, {}), 'relationship')
  assertInvalid(await put(uid, { awsIdentity: { awsAccount: '123456789012', arn: 'a' } }), 'relationship')
  await assert.rejects(grpc.update({ id: `${org.uid}/0123456789abcdef`, name: 'none' }), { code: 5 })
})

test('static keys are valid for 30 days, and keep a later expiry from version 2', async () => {
  const keys = { issuer: 'i', subject: 's', issuerKeys: publicKeys }
  const made = ok(await create({ static: keys }))
  const days30 = 30 * 24 * 3600 * 1000
  assert.equal(made.static.expiration, new Date(Date.parse(made.createdAt) + days30).toISOString())
  assert.equal(made.static.issuerKeys, publicKeys)
  assertInvalid(await create({ static: { ...keys, expiration: inDays(30.01) } }), 'static.expiration')
  const wrong = { subject: '', audiences: ['a', 'b'], issuerKeys: '' }
  assertInvalid(
    await create({ static: { ...keys, ...wrong } }),
    'static.subject',
    'static.issuer_keys',
    'static.audiences',
  )

  const staticKeys = { ...keys, expirationTime: inDays(200) }
  const { uid } = await pinfold.seed.identity(org.uid, { claimMatch: undefined, staticKeys })
  const [{ static: shown }] = (await list(`id=${uid}`)) as [Json]
  assert.equal(ok(await put(uid, { static: shown })).static.expiration, staticKeys.expirationTime)
  assertInvalid(await put(uid, { static: { ...shown, expiration: inDays(201) } }), 'static.expiration')
})

test('refuses invalid keys; invalid keys in older data stay stored but match no token', async () => {
  for (const issuerKeys of ['keys', 'null', '{"keys":[null,{}]}']) {
    const keys = { issuer: issuer.url, subject: 'job', issuerKeys: publicKeys }
    assertInvalid(await create({ static: { ...keys, issuerKeys } }), 'static.issuer_keys')
    const { id } = ok(await create({ static: keys }))
    const { staticKeys } = await newer(id)
    const relationship = JSON.stringify({ staticKeys: { ...staticKeys, issuerKeys } })
    await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE identities SET relationship = ${relationship} WHERE uid = ${id}`))
    const [{ static: shown }] = (await list(`id=${id}`)) as [Json]
    assert.equal(ok(await put(id, { static: shown, description: 'changed' })).static.issuerKeys, issuerKeys)
    const token = await issuer.token({ sub: 'job', aud: pinfold.url })
    const answer = await pinfold
      .withToken(token)
      .post(`/sts/exchange?identity=${id}&aud=${encodeURIComponent(pinfold.url)}`)
    assert.deepEqual([answer.status, answer.body.code], [401, 16], answer.text)
  }
})

test('a list is complete; a missing or invisible identity returns an empty list', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const uids: string[] = []
  for (let i = 0; i < 52; i++) uids.push((await pinfold.seed.identity(folder.uid)).uid)
  const below = `uidp.childrenOf=${folder.uid}`
  assert.deepEqual(
    (await list(below)).map(({ id }) => id),
    uids.toSorted(),
  )
  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=nonsense', `uidp.childrenOf=${missing}`])
    assert.deepEqual(await list(query), [])
  for (const query of [`id=${uids[0]}`, below]) assert.deepEqual(await list(query, stranger), [])
})

test('a person is found by issuer and subject', async () => {
  const [issuerUrl, subject] = ['https://people.example.com', 'somebody@example.com']
  const at = `${path}/lookup?issuer=${issuerUrl}&subject=${subject}`
  assert.equal((await stranger.get(at)).body.code, 5)
  const { uid } = ok(await stranger.get(`/iam/v2/identities:lookupIdentity?issuer=${issuerUrl}&subject=${subject}`))
  await pinfold.seed.person({ uid, name: 'somebody' })
  const found = ok(await stranger.get(at))
  assert.deepEqual([found.id, found.name], [uid, 'somebody'])
  assertInvalid(await owner.get(`${path}/lookup?issuer=x`), 'subject')
  await assert.rejects(grpc.lookup({ subject: 'x' }), { code: 3, fields: ['issuer'] })
})

test('refuses to change an identity with more rights than the caller, and a deletion returns an empty answer', async () => {
  const { uid } = await pinfold.seed.member(org.uid, roleUids.owner)
  const updater = await scene.holding('CAP_IAM_IDENTITY_UPDATE')
  assertDenied(
    await updater.call('PUT', `${path}/${uid}`, {
      name: 'one',
      claimMatch: { issuer: 'https://x.example', subject: 's' },
    }),
  )
  assert.equal((await operator.delete(`${path}/${uid}`)).text, '')
  assert.deepEqual(await list(`id=${uid}`), [])
  await assert.rejects(grpc.delete({ id: uid }), { code: 5 })
})

test('events have the format of the called version', async () => {
  const type = (verb: string) => `dev.pinfold.api.iam.identity.${verb}.v1`
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    id = ok(await create({ claimMatch })).id
    await put(id, { description: 'two', claimMatch })
    await owner.patch(`/iam/v2/identities/${id}`, { description: 'three' })
    await grpc.delete({ id })
  })
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), id, org.uid, 'pinfold.platform.iam.Identity'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.Identity'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.v2.Identity'],
      [type('deleted'), id, org.uid, 'pinfold.platform.iam.DeleteIdentityRequest'],
    ],
  )
  assert.deepEqual([events[1]!.body.id, events[1]!.body.claim_match.subject_pattern], [id, claimMatch.subjectPattern])
  assert.deepEqual(events[3]!.body, { id })
})
