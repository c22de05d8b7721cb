// Subscriptions that have so much waiting that events get no delivery before others have gone out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { catchUp, passOverBefore } from '#domains/events/delivery/behind.ts'
import { findSettings } from '#domains/events/delivery/deliveries.store.ts'
import { claimQueue, findQueue } from '#domains/events/delivery/queues.store.ts'
import { sureRoom } from '#domains/events/delivery/room.service.ts'
import { route } from '#domains/events/delivery/routing.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, startReceiver } from '../support/receiver.ts'

const node = 'by-hand'
const settingsOf = (pinfold: Pinfold, uid: string): Promise<Json> =>
  pinfold.operator.get(`/events/v2/subscriptions/${uid}/settings`).then(({ body }) => body)

test('a paused subscription has so many deliveries, and once it goes on the others in their order, each once', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { operator, seed } = pinfold
  const org = await seed.group()
  const repo = await seed.repo(org.uid)
  const { uid } = await seed.subscription(org.uid, receiver.url)
  await operator.post(`/events/v2/subscriptions/${uid}:pause`, { reason: 'until it is mended' })
  const described = sureRoom + 40
  for (let i = 0; i < described; i++) await operator.patch(`/registry/v2/repos/${repo.uid}`, { description: `${i}` })
  const other = await seed.repo(org.uid)
  const behind = await eventually(
    () => settingsOf(pinfold, uid),
    ({ waiting }) => waiting === String(described + 1),
  )
  assert.ok(Date.parse(behind.behindTime) <= Date.now())
  const { body } = await operator.get(`/events/v2/subscriptions/${uid}/deliveries?state=WAITING`)
  assert.ok(Number(body.totalCount) <= sureRoom && Number(body.totalCount) > 0, body.totalCount)

  await operator.post(`/events/v2/subscriptions/${uid}:resume`)
  await receiver.until((got) => got.some(({ subject }) => subject === other.uid))
  const descriptions = () =>
    receiver.got.filter(({ subject }) => subject === repo.uid).map(({ json }) => Number(json.body.description))
  await receiver.until(() => descriptions().length >= described)
  assert.deepEqual(
    descriptions(),
    Array.from({ length: described }, (_, i) => i),
  )
  const after = await eventually(
    () => settingsOf(pinfold, uid),
    ({ waiting }) => waiting === '0',
  )
  assert.equal(after.behindTime, undefined)
  const next = await seed.repo(org.uid)
  await receiver.until((got) => got.some(({ subject }) => subject === next.uid))
})

/** An organisation with a folder and a subscription whose deliveries nobody sends. */
async function stage() {
  const pinfold = await startPinfold()
  const { app, seed } = pinfold
  const org = await seed.group()
  const folder = await seed.group(org.uid)
  const { uid } = await seed.subscription(folder.uid, 'https://hooks.example.com/')
  const { subscriber } = (await findSettings(app.db, uid))!
  const routed = (waiting: number) =>
    app.db.tx((tx) => route(app, tx, '', '', { events: 200, deliveries: 2000, waiting }))
  const own = async () => {
    const seen = (await findQueue(app.db, subscriber.id))!
    return app.db.tx((tx) => claimQueue(tx, seen, node))
  }
  const caughtUp = (most: Parameters<typeof catchUp>[4]) =>
    app.db.tx((tx) => catchUp(app, tx, subscriber.id, node, most))
  const waiting = async (): Promise<string[]> =>
    (
      await app.db.all<{ subject: string }>(sql`
        SELECT subject FROM deliveries WHERE subscription_id = ${subscriber.id} AND state = 0 ORDER BY id`)
    ).map(({ subject }) => subject)
  const behind = async () => (await findQueue(app.db, subscriber.id))!.behind
  const send = () =>
    app.db.tx((tx) => tx.run(sql`UPDATE deliveries SET state = 1 WHERE subscription_id = ${subscriber.id}`))
  await app.db.tx((tx) => route(app, tx, '', ''))
  await send()
  return { pinfold, org, folder, uid, subscriber, routed, own, caughtUp, waiting, behind, send }
}

const plenty = { waiting: 100, positions: 1000, deliveries: 100 }

test('who is behind gets the events of its place and its types, and none twice', async () => {
  const { pinfold, org, folder, uid, routed, own, caughtUp, waiting, behind, send } = await stage()
  await using _ = pinfold
  const { seed, operator } = pinfold
  await operator.patch(`/events/v2/subscriptions/${uid}/settings`, { types: ['*.repo.created.*'] })
  const subjects: string[] = []
  for (let i = 0; i < 3; i++) subjects.push((await seed.repo(folder.uid)).uid)
  await routed(3)
  assert.deepEqual(await waiting(), subjects)
  assert.equal(await behind(), 0, 'so many may wait')

  await seed.repo(org.uid)
  const below = await seed.group(folder.uid)
  for (const place of [folder, below, folder]) subjects.push((await seed.repo(place.uid)).uid)
  await operator.patch(`/registry/v2/repos/${subjects[0]}`, { description: 'of no type that is wanted' })
  await routed(3)
  assert.deepEqual(await waiting(), subjects.slice(0, 3))
  assert.ok((await behind()) > 0)
  // What comes now is behind what it has no delivery of yet.
  subjects.push((await seed.repo(folder.uid)).uid)
  await send()
  await routed(3)
  assert.deepEqual(await waiting(), [])

  await own()
  // The folder below is the first of the two.
  assert.deepEqual(await caughtUp({ ...plenty, events: 2 }), { added: 1, isBehind: true, isFull: false })
  assert.deepEqual(await caughtUp({ ...plenty, waiting: 1 }), { added: 0, isBehind: true, isFull: true })
  let more = true
  for (let times = 0; more; times++) {
    more = (await caughtUp({ ...plenty, positions: 2 })).isBehind
    assert.ok(times < 20)
  }
  assert.deepEqual(await waiting(), subjects.slice(3))
  assert.equal(await behind(), 0)
  assert.deepEqual(await caughtUp(plenty), { added: 0, isBehind: false, isFull: false })

  subjects.push((await seed.repo(folder.uid)).uid)
  await routed(100)
  assert.deepEqual(await waiting(), subjects.slice(3), 'and then each event makes one at once again')
})

test('what is no longer kept is passed over at once, however much it was', async () => {
  const { pinfold, folder, routed, own, caughtUp, waiting, behind, send } = await stage()
  await using _ = pinfold
  const { app, seed } = pinfold
  await seed.repo(folder.uid)
  await routed(1)
  for (let i = 0; i < 20; i++) await seed.repo(folder.uid)
  await routed(1)
  await send()
  const before = await behind()
  assert.ok(before > 0)
  const { uid: last } = await seed.repo(folder.uid)
  await routed(1)
  await app.db.tx((tx) => tx.run(sql`DELETE FROM events_outbox WHERE position > ${before} AND subject <> ${last}`))
  await own()
  assert.equal((await caughtUp({ ...plenty, positions: 2 })).added, 0)
  assert.deepEqual(await caughtUp({ ...plenty, positions: 2 }), { added: 1, isBehind: false, isFull: false })
  assert.deepEqual(await waiting(), [last])
})

test('others are not behind because one is, and a queue of nobody is nobody’s to go on with', async () => {
  const { pinfold, folder, subscriber, routed, caughtUp, waiting, behind } = await stage()
  await using _ = pinfold
  const { app, seed } = pinfold
  for (let i = 0; i < 2; i++) await seed.repo(folder.uid)
  await routed(2)
  const { uid } = await seed.subscription(folder.uid, 'https://other.example.com/')
  await seed.repo(folder.uid)
  await routed(2)
  const other = (await findSettings(app.db, uid))!
  assert.deepEqual([(await waiting()).length, other.settings.waiting], [2, 1])
  assert.ok((await behind()) > 0)
  assert.equal(other.settings.behindTime, '')
  assert.deepEqual(await caughtUp(plenty), { added: 0, isBehind: false, isFull: false })
  assert.equal((await waiting()).length, 2)
  assert.notEqual((await findSettings(app.db, subscriber.uid))!.settings.behindTime, '')
})

test('a sink that has failed for too long does not get what is as old', async () => {
  const { pinfold, folder, subscriber, routed, own, caughtUp, waiting, send } = await stage()
  await using _ = pinfold
  const { app, seed } = pinfold
  const add = async () => (await seed.repo(folder.uid)).uid
  for (let i = 0; i < 2; i++) await add()
  await routed(1)
  const after = new Date(Date.now() + 1).toISOString()
  while (new Date().toISOString() <= after) await new Promise((resolve) => setTimeout(resolve, 1))
  const young = await add()
  await routed(1)
  await own()
  await app.db.tx((tx) => passOverBefore(tx, subscriber.id, after))
  await send()
  await caughtUp(plenty)
  assert.deepEqual(await waiting(), [young])
})
