import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startServer } from '#api/server.ts'
import { readConfig } from '#config.ts'
import { Terms } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { TermsService } from '#gen/pinfold/iam/v2/terms_pb.ts'
import { createApp } from '../../src/create-app.ts'
import { assertDenied, assertInvalid, assertNotFound, assertTimes, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

const documents = [
  { id: 'terms-of-service.v1', label: 'Terms of service', url: 'https://example.com/terms' },
  { id: 'privacy.v2', label: 'Privacy', url: 'https://example.com/privacy' },
]
const [terms, privacy] = ['terms-of-service.v1', 'privacy.v2']
const base = '/iam/v2/terms'
const guarded = [
  'pinfold.platform.registry.v2.ReposService/CreateRepo',
  'pinfold.platform.iam.v2.GroupsService/UpdateGroup',
]

let pinfold: Pinfold
let time = Date.parse('2026-03-01T12:00:00.000Z')

before(async () => {
  pinfold = await startPinfold({ termsDocuments: documents, termsMethods: guarded, clock: () => new Date(time) })
})
after(() => pinfold[Symbol.asyncDispose]())

/** Creates an organization with a folder, and its members. */
async function scene(): Promise<{ org: string; folder: string; owner: Client; viewer: Client; ownerUid: string }> {
  const org = (await pinfold.seed.group()).uid
  const folder = (await pinfold.seed.group(org)).uid
  const [first, second] = [
    await pinfold.seed.member(org, roleUids.owner),
    await pinfold.seed.member(org, roleUids.viewer),
  ]
  return { org, folder, owner: await pinfold.as(first.uid), viewer: await pinfold.as(second.uid), ownerUid: first.uid }
}
const accept = (client: Client, group: string, ...documentIds: unknown[]) =>
  client.post(`${base}/${group}`, { documentIds })

test('checks permission before terms, so that callers without access get no information about terms', async () => {
  const { org, folder, owner } = await scene()
  const stranger = await pinfold.as((await pinfold.seed.identity(org)).uid)
  for (const group of [org, folder]) {
    assertDenied(await stranger.post(`/registry/v2/repos/${group}`, { name: 'web' }))
    assertDenied(await stranger.patch(`/iam/v2/groups/${group}`, { description: 'x' }))
    assert.equal((await owner.post(`/registry/v2/repos/${group}`, { name: 'web' })).body.code, 9, 'terms wait')
  }
})

test('a document can be accepted once, and accepting it again changes nothing', async () => {
  const { org, owner, viewer, ownerUid } = await scene()
  const events = await eventsOf(pinfold, async () => {
    assert.deepEqual(ok(await accept(owner, org, terms, terms)), { group: org, documentIds: [terms] })
    time += 1000
    assert.deepEqual(ok(await accept(pinfold.operator, org, terms)), { group: org, documentIds: [terms] })
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.group, one.body]),
    [['dev.pinfold.api.iam.terms.accepted.v1', org, org, { group: org, document_ids: [terms] }]],
  )
  const listed = ok(await viewer.get(`${base}/${org}`))
  assert.equal(listed.totalCount, '1')
  const [acceptance] = listed.termsAcceptances
  assertTimes(acceptance, 'createTime')
  assert.deepEqual(acceptance, { docId: terms, acceptedBy: ownerUid, orgUid: org, createTime: acceptance.createTime })
})

test('an acceptance on a group is listed on the groups below, but not above', async () => {
  const { org, folder, owner, viewer } = await scene()
  ok(await accept(owner, org, terms))
  time += 1000
  ok(await accept(owner, folder, privacy, terms))
  const listed = async (group: string, query = '') => {
    const { termsAcceptances } = ok(await viewer.get(`${base}/${group}?${query}`))
    return (termsAcceptances as Json[]).map(({ docId, orgUid }) => [docId, orgUid])
  }
  const below = [
    [privacy, folder],
    [terms, folder],
  ]
  assert.deepEqual(await listed(org), [[terms, org]])
  assert.deepEqual(await listed(folder), [[terms, org], ...below])
  assert.deepEqual(await listed(folder, 'order_by=create_time desc'), [...below.toReversed(), [terms, org]])
  assert.deepEqual(await listed(folder, 'order_by=doc_id'), [
    [privacy, folder],
    [terms, org],
    [terms, folder],
  ])
  assertInvalid(await viewer.get(`${base}/${org}?order_by=accepted_by`), 'order_by')

  for (const order of ['create_time', 'doc_id desc']) {
    const walked: unknown[] = []
    for (let token = '', pages = 0; pages === 0 || token !== ''; pages++) {
      const page = ok(await viewer.get(`${base}/${folder}?page_size=1&order_by=${order}&page_token=${token}`))
      assert.equal(page.totalCount, '3')
      walked.push(...(page.termsAcceptances as Json[]).map(({ docId, orgUid }) => [docId, orgUid]))
      token = page.nextPageToken
    }
    assert.deepEqual(walked, await listed(folder, `order_by=${order}`))
  }
})

test('only documents in the settings can be accepted, by callers with permission', async () => {
  const { org, owner, viewer } = await scene()
  assertInvalid(await accept(owner, org), 'document_ids')
  assertInvalid(await accept(owner, org, terms, 'other.v1'), 'document_ids')
  assertInvalid(await accept(owner, org, ''), 'document_ids')
  assertDenied(await accept(viewer, org, terms))
  const stranger = await pinfold.as((await pinfold.seed.identity(org)).uid)
  assertDenied(await stranger.get(`${base}/${org}`))
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(await accept(owner, missing, terms), 'iam.pinfold.dev/Group', missing)
  assertNotFound(await viewer.get(`${base}/${missing}`), 'iam.pinfold.dev/Group', missing)
  assert.equal(ok(await viewer.get(`${base}/${org}`)).totalCount, '0')
})

/** Asserts a FAILED_PRECONDITION error with exactly these documents. */
function assertGated(answer: Answer, ...ids: string[]): void {
  assertGatedIn('v2.', answer, ...ids)
}
function assertGatedIn(version: string, answer: Answer, ...ids: string[]): void {
  assert.equal(answer.status, 400, answer.text)
  assert.equal(answer.body.code, 9)
  const [info, detail] = answer.body.details as Json[]
  assert.equal(info!.reason, 'TERMS_NOT_ACCEPTED')
  const missing = documents.filter(({ id }) => ids.includes(id))
  assert.deepEqual(detail, {
    '@type': `type.googleapis.com/pinfold.platform.iam.${version}TermsNotAcceptedDetail`,
    missing,
  })
}

test('a method in the settings is refused until each document is accepted, on the group or above', async () => {
  const { org, folder, owner, viewer } = await scene()
  const make = (client: Client, name: string) => client.post(`/registry/v2/repos/${folder}`, { name })
  for (const client of [owner, pinfold.operator]) assertGated(await make(client, 'a'), terms, privacy)
  assertGated(await owner.patch(`/iam/v2/groups/${org}`, { description: 'x' }), terms, privacy)
  assertDenied(await make(viewer, 'a'))
  ok(await owner.post(`/iam/v2/groups/${folder}`, { name: 'not named in the settings' }))

  ok(await accept(owner, org, terms))
  assertGated(await make(owner, 'a'), privacy)
  ok(await accept(owner, folder, privacy))
  ok(await make(owner, 'a'))
  assertGated(await owner.patch(`/iam/v2/groups/${org}`, { description: 'x' }), privacy)
  ok(await accept(owner, org, privacy))
  ok(await owner.patch(`/iam/v2/groups/${org}`, { description: 'x' }))
})

test('both versions refuse a method until the terms are accepted, each with its own error detail', async () => {
  const { org, folder, owner } = await scene()
  const put = () => owner.call('PUT', `/iam/v1/groups/${org}`, { name: `by v1 ${org.slice(0, 8)}` })
  assertGatedIn('', await put(), terms, privacy)
  assertGatedIn('', await owner.post(`/registry/v1/repos/${folder}`, { name: 'web' }), terms, privacy)
  ok(await owner.post(`/iam/v1/terms/${org}`, { documentIds: [terms, privacy] }))
  ok(await put())
})

test('folders require acceptance of the terms above; callers without access get no information, over REST and gRPC', async () => {
  const termsMethods = [`${GroupsService.typeName}/CreateGroup`, `${IdentitiesService.typeName}/CreateIdentity`]
  await using held = await startPinfold({ termsDocuments: documents, termsMethods })
  const org = (await held.seed.group()).uid
  assertGated(await held.operator.post(`/iam/v2/groups/${org}`, { name: 'folder' }), terms, privacy)
  const stranger = await held.as((await held.seed.person()).uid)
  assertDenied(await stranger.post(`/iam/v2/groups/${org}`, { name: 'folder' }))
  assertDenied(await stranger.post(`/iam/v2/identities/${org}`, {}))
  using groups = grpcClientOf(held, GroupsService, stranger.token)
  using identities = grpcClientOf(held, IdentitiesService, stranger.token)
  await assert.rejects(groups.createGroup({ parent: org, group: { name: 'folder' } }), { code: 7 })
  await assert.rejects(identities.createIdentity({ parent: org }), { code: 7 })
  using asOperator = grpcClientOf(held, IdentitiesService, held.operator.token)
  await assert.rejects(asOperator.createIdentity({ parent: org }), { code: 9, reason: 'TERMS_NOT_ACCEPTED' })

  ok(await accept(held.operator, org, terms, privacy))
  ok(await held.operator.post(`/iam/v2/groups/${org}`, { name: 'folder' }))
})

test('acceptances do not prevent deletion of their group, and are deleted with it', async () => {
  const { org, folder, owner } = await scene()
  ok(await accept(owner, folder, terms))
  assert.equal((await owner.delete(`/iam/v2/groups/${folder}`)).status, 200)
  assert.equal(ok(await owner.get(`${base}/${org}`)).totalCount, '0')
})

test('without terms in the settings, no method is refused, and no document can be accepted', async () => {
  await using open = await startPinfold()
  const org = (await open.seed.group()).uid
  await open.seed.repo(org)
  assertInvalid(await open.operator.post(`${base}/${org}`, { documentIds: [terms] }), 'document_ids')
  assert.deepEqual(ok(await open.operator.get(`${base}/${org}`)).termsAcceptances, [])
})

test('the server does not start with invalid terms settings', async () => {
  const json = (value: unknown) => ({
    PINFOLD_TERMS_DOCUMENTS: typeof value === 'string' ? value : JSON.stringify(value),
  })
  for (const wrong of [
    'x',
    '{}',
    [{ id: 'a' }],
    [{ ...documents[0], more: 'x' }],
    [{ ...documents[0], label: '' }],
    [documents[0], documents[0]],
  ]) {
    assert.throws(() => readConfig(json(wrong)), /PINFOLD_TERMS_DOCUMENTS must be/)
  }
  assert.deepEqual(readConfig(json(documents)).termsDocuments, documents)
  assert.throws(() => readConfig({ PINFOLD_TERMS_METHODS: 'x' }), /PINFOLD_TERMS_METHODS must be/)
  assert.throws(() => readConfig({ PINFOLD_TERMS_METHODS: guarded[0]! }), /needs PINFOLD_TERMS_DOCUMENTS/)
  assert.deepEqual(readConfig({ ...json(documents), PINFOLD_TERMS_METHODS: guarded.join(', ') }).termsMethods, guarded)

  const accepting = [Terms, TermsService].map(({ typeName }) => `${typeName}/AcceptTerms`)
  for (const method of ['a.B/C', 'pinfold.platform.registry.v2.ReposService/ListRepos', ...accepting]) {
    const listen = { host: '127.0.0.1', port: 0 }
    const app = await createApp({ ...pinfold.app.config, listen, termsMethods: [method] })
    try {
      await assert.rejects(startServer(app), /PINFOLD_TERMS_METHODS/, method)
    } finally {
      await app.close()
    }
  }
})
