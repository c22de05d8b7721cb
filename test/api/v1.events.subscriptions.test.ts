// Version 1 of subscriptions: the same subscriptions under other names, listed in full, and deleted with an empty answer.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Subscriptions } from '#gen/pinfold/events/v1/subscriptions_pb.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/events/v1/subscriptions'
const sink = 'https://hooks.example.com/pinfold?token=hidden'
const { pinfold, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const viewer = await scene.member(roleUids.viewer)
const foreigner = await scene.foreigner()
const grpc = grpcClientOf(pinfold, Subscriptions, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const folder = async (): Promise<string> => (await pinfold.seed.group(org.uid)).uid
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items

test('a subscription created in either version is the same in the other', async () => {
  const group = await folder()
  const made = ok(await owner.post(`${path}/${group}`, { sink }))
  assert.deepEqual(made, { id: made.id, sink })
  const newer = ok(await owner.get(`/events/v2/subscriptions/${made.id}`))
  assert.equal(newer.sink, sink)
  const { uid } = await pinfold.seed.subscription(group)
  const all = [made.id, uid].sort()
  assert.deepEqual(
    (await list(`uidp.childrenOf=${group}`)).map(({ id }) => id),
    all,
  )
  const { items } = await grpc.list({ uidp: { childrenOf: group } })
  assert.deepEqual(
    items.map(({ id }) => id),
    all,
  )
  assert.equal((await grpc.create({ parentId: group, subscription: { sink } })).sink, sink)
})

test('an ID selects exactly one subscription; a missing or invisible one returns an empty list', async () => {
  const group = await folder()
  const { uid } = await pinfold.seed.subscription(group)
  await pinfold.seed.subscription(group)
  assert.deepEqual(
    (await list(`id=${uid}`)).map(({ id }) => id),
    [uid],
  )
  for (const id of [group, `${group}/0123456789abcdef`, 'nonsense', uid.slice(0, -1)]) {
    assert.deepEqual(ok(await owner.get(`${path}?id=${id}`)), { items: [] }, id)
  }
  assert.deepEqual(ok(await foreigner.get(`${path}?id=${uid}`)), { items: [] })
  assert.deepEqual(await list('', foreigner), [])
  assert.deepEqual((await grpc.list({ id: `${group}/0123456789abcdef` })).items, [])
})

test('a deletion returns an empty answer, and a missing subscription returns NOT_FOUND', async () => {
  const { uid } = await pinfold.seed.subscription(await folder())
  assertDenied(await viewer.delete(`${path}/${uid}`))
  assertDenied(await foreigner.delete(`${path}/${uid}`))
  const deleted = await owner.delete(`${path}/${uid}`)
  assert.deepEqual([deleted.status, deleted.text], [200, ''])
  assertNotFound(await owner.delete(`${path}/${uid}`), 'events.pinfold.dev/Subscription', uid)
  await assert.rejects(grpc.delete({ id: uid }), { code: 5 })
})

test('validates a sink like version 2, and hides it from callers who cannot change it', async () => {
  const group = await folder()
  assertInvalid(await owner.post(`${path}/${group}`, {}), 'sink')
  assertInvalid(await owner.post(`${path}/${group}`, { sink: 'https://127.0.0.1/' }), 'sink')
  await assert.rejects(grpc.create({ parentId: group }), { code: 3, fields: ['subscription'] })
  const { id } = ok(await owner.post(`${path}/${group}`, { sink }))
  const [seen] = await list(`id=${id}`, viewer)
  assert.ok(!seen!.sink.includes('hidden'), seen!.sink)
})

test('events have the format of version 1, and a deletion event has no body', async () => {
  const group = await folder()
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    id = ok(await owner.post(`${path}/${group}`, { sink })).id
    await owner.delete(`${path}/${id}`)
  })
  const type = 'dev.pinfold.api.events.subscription'
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [`${type}.created.v1`, id, group, 'pinfold.platform.events.Subscription'],
      [`${type}.deleted.v1`, id, group, events[1]!.bodyType],
    ],
  )
  assert.equal(events[0]!.body.id, id)
  assert.ok(!JSON.stringify(events).includes('hidden'))
  assert.equal(events[1]!.body, null)
})
