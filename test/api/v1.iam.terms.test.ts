// Version 1 of terms: acceptances for a group and the groups above it, in full.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Terms } from '#gen/pinfold/iam/v1/terms_pb.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/terms'
const documents = ['one', 'two'].map((id) => ({ id, label: id, url: `https://example.com/${id}` }))
const { pinfold, org, ...scene } = await startScene({ termsDocuments: documents })
const { uid: ownerUid } = await pinfold.seed.member(org.uid, roleUids.owner)
const owner = await pinfold.as(ownerUid)
const folder = await pinfold.seed.group(org.uid)
const grpc = grpcClientOf(pinfold, Terms, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

test('an acceptance in either version is listed in the other, also on folders', async () => {
  const events = await eventsOf(pinfold, async () => {
    const answer = ok(await owner.post(`${path}/${org.uid}`, { documentIds: ['one'] }))
    assert.deepEqual(answer, { group: org.uid, documentIds: ['one'] })
    await grpc.acceptTerms({ group: org.uid, documentIds: ['one'] })
  })
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType, event.body]),
    [
      [
        'dev.pinfold.api.iam.terms.accepted.v1',
        org.uid,
        org.uid,
        'pinfold.platform.iam.AcceptTermsResponse',
        { group: org.uid, document_ids: ['one'] },
      ],
    ],
  )
  assert.equal(ok(await owner.get(`/iam/v2/terms/${org.uid}`)).totalCount, '1')

  ok(await owner.post(`/iam/v2/terms/${folder.uid}`, { documentIds: ['two'] }))
  const { items } = ok(await owner.get(`${path}/${folder.uid}`))
  const times = items.map(({ acceptedAt }: { acceptedAt: string }) => acceptedAt)
  assert.deepEqual(items, [
    { docId: 'one', acceptedBy: ownerUid, acceptedAt: times[0] },
    { docId: 'two', acceptedBy: ownerUid, acceptedAt: times[1] },
  ])
  assert.deepEqual(
    (await grpc.listAccepted({ group: org.uid })).items.map(({ docId }) => docId),
    ['one'],
  )
})

test('names invalid documents, and returns NOT_FOUND for a missing group', async () => {
  assertInvalid(await owner.post(`${path}/${org.uid}`, { documentIds: ['three'] }), 'document_ids')
  const missing = `${org.uid}/0123456789abcdef`
  assert.deepEqual(ok(await owner.get(`${path}/${org.uid}/ffff456789abcdef`)).items.length, 1)
  assertNotFound(await owner.post(`${path}/${missing}`, { documentIds: ['one'] }), 'iam.pinfold.dev/Group', missing)
  const stranger = await scene.stranger()
  assertDenied(await stranger.get(`${path}/${org.uid}`))
  assertDenied(await stranger.post(`${path}/${org.uid}`, { documentIds: ['one'] }))
})
