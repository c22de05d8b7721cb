// Waiting events: none has a row before the end of an attempt, and the number of rows is limited.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { deliveryStates, kept } from '#domains/events/delivery/deliveries.model.ts'
import { findSettings } from '#domains/events/delivery/deliveries.store.ts'
import { guaranteedDeliveries, pendingOf } from '#domains/events/delivery/delivery-limits.service.ts'
import { createResults } from '#domains/events/delivery/results.ts'
import { claimQueue, findQueue } from '#domains/events/routing/queues.store.ts'
import { insertDeliveries, lockRouting } from '#domains/events/routing/routing.store.ts'
import { route, routeBacklog } from '#domains/events/routing/routing.ts'
import { newSecret } from '#domains/events/subscriptions/secrets.ts'
import { insertSubscription } from '#domains/events/subscriptions/subscriptions.store.ts'
import { newUid } from '#lib/uid.ts'
import { assertBlocked, assertError, ok } from '../support/expect.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, startReceiver } from '../support/receiver.ts'
import { digestOf, startRegistry, types } from '../support/registry.ts'

const base = '/events/v2/subscriptions'
const node = 'by-hand'

/** Subscriptions to push events, without events about their creation. */
async function subscribe({ app }: Pick<Pinfold, 'app'>, org: string, sinks: readonly string[]): Promise<void> {
  await routeBacklog(app, '')
  const now = app.clock().toISOString()
  await app.db.tx(async (tx) => {
    await lockRouting(tx)
    for (const sink of sinks) {
      const one = { uid: newUid(org), sink, createTime: now, updateTime: now }
      await insertSubscription(tx, one, newSecret(app.cipher), '')
    }
    await tx.run(sql`UPDATE subscriptions SET types = ${'["*.registry.push.*"]'}`)
  })
}

type Registry = Awaited<ReturnType<typeof startRegistry>>

async function pushTags({ pusher }: Registry, tags: number): Promise<void> {
  const name = 'acme/app'
  const config = await pusher.pushBlob(name, '{}', types.empty)
  const body = JSON.stringify({ schemaVersion: 2, mediaType: types.image, config, layers: [] })
  const names = Array.from({ length: tags }, (_, i) => `tag=t${i}`).join('&')
  const headers = { 'content-type': types.image }
  await pusher.ok(201, 'PUT', `${name}/manifests/${digestOf(body)}?${names}`, { body, headers })
}

const countOf = async ({ app }: Pick<Pinfold, 'app'>) =>
  (await app.db.get<{ count: number }>(sql`SELECT count(*) AS count FROM deliveries`))!.count

test('a push of 100 tags with 200 subscriptions stores no delivery before its first attempt has ended', async () => {
  await using registry = await startRegistry()
  const { app, org } = registry
  const sinks = Array.from({ length: 200 }, (_, i) => `https://hooks.example.com/${i}`)
  await subscribe(registry, org.uid, sinks)
  await pushTags(registry, 100)
  await routeBacklog(app, '')
  const pushed = await app.db.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM events_outbox WHERE type LIKE ${'%.push.%'} AND position > 0`)
  assert.equal(pushed!.count, 101, 'one for each tag, and one for the digest')
  assert.equal(await countOf(registry), 0)
  const behind = await app.db.get<{ count: number }>(sql`
    SELECT count(*) AS count FROM delivery_queues WHERE behind > 0`)
  assert.equal(behind!.count, sinks.length, 'each is a position')
})

test('each of 200 subscriptions gets all events of a large push once, in order for each subject', async () => {
  const [subscriptions, tags] = [10, 40]
  await using registry = await startRegistry({ ...localSinks, quotaPendingDeliveries: 1 })
  await using receiver = await startReceiver()
  const { app, org } = registry
  const sinks = Array.from({ length: subscriptions }, (_, i) => `${receiver.url}?to=${i}`)
  await subscribe(registry, org.uid, sinks)
  await app.db.tx((tx) => tx.run(sql`UPDATE delivery_queues SET paused = 1`))
  await pushTags(registry, tags)
  const events = await eventually(
    () =>
      app.db.all<{ uuid: string; subject: string }>(sql`
        SELECT uuid, subject FROM events_outbox WHERE type LIKE ${'%.push.%'} AND position > 0 ORDER BY position`),
    (some) => some.length === tags + 1,
  )
  assert.equal(await countOf(registry), 0)
  let most = 0
  await app.db.tx((tx) => tx.run(sql`UPDATE delivery_queues SET paused = 0, generation = generation + 1`))
  app.events.queued.notify()
  const all = subscriptions * (tags + 1)
  while (receiver.got.length < all) {
    await receiver.until((got) => got.length % 50 === 0 || got.length >= all)
    most = Math.max(most, await pendingOf(app.db, org.uid))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.equal(most, 0, 'none has failed')
  const bySink = Map.groupBy(receiver.got, ({ path }) => path)
  assert.equal(bySink.size, subscriptions)
  const orderOf = (got: readonly { id: string; subject: string }[]) =>
    [...Map.groupBy(got, ({ subject }) => subject)].map(([subject, some]) => [subject, some.map(({ id }) => id)])
  const wanted = orderOf(events.map(({ uuid, subject }) => ({ id: uuid, subject })))
  for (const got of bySink.values()) assert.deepEqual(new Map(orderOf(got) as []), new Map(wanted as []))
  await eventually(
    () => countOf(registry),
    (count) => count === all,
  )
  const rows = await app.db.all(sql`SELECT DISTINCT state, attempts, next_time AS "nextTime" FROM deliveries`)
  assert.deepEqual(rows, [{ state: 1, attempts: 1, nextTime: '' }], 'one for each attempt that ended')
  await eventually(
    () => app.db.all(sql`SELECT behind FROM delivery_queues WHERE behind > 0`),
    (some) => some.length === 0,
  )
  assert.deepEqual(await app.db.all(sql`SELECT subject FROM delivery_lanes`), [])
})

/** Creates an organization with subscriptions to repository events. Each subscription has a backlog of the given size. */
async function stage(limit: number, events: number) {
  const pinfold = await startPinfold({ quotaPendingDeliveries: limit })
  const { app, seed, operator } = pinfold
  const org = await seed.group()
  const uids: string[] = []
  for (let i = 0; i < 2; i++) {
    const { uid } = await seed.subscription(org.uid, 'https://hooks.example.com/')
    await operator.patch(`${base}/${uid}/settings`, { types: ['*.repo.*'] })
    uids.push(uid)
  }
  const first = await seed.repo(org.uid)
  for (let i = 1; i < events; i++) await seed.repo(org.uid)
  await app.db.tx((tx) => route(app, tx, '', ''))
  const ids: number[] = []
  for (const uid of uids) {
    const { id } = (await findSettings(app.db, uid))!.subscriber
    await app.db.tx(async (tx) => claimQueue(tx, (await findQueue(tx, id))!, node))
    ids.push(id)
  }
  return { pinfold, org, uids, ids, since: first.createTime as string }
}

test('the quota limits the stored deliveries of an organization; each subscription may exceed it by 16', async () => {
  const { pinfold, org, uids, since } = await stage(30, 60)
  await using _ = pinfold
  const { app, operator } = pinfold
  assert.equal(await pendingOf(app.db, org.uid), 0)
  const replay = (i: number) =>
    operator.post(`${base}/${uids[i]}:replay`, { startTime: since, endTime: '2100-01-01T00:00:00Z' })
  assert.equal(ok(await replay(0)).eventCount, '30')
  assert.equal(ok(await replay(1)).eventCount, String(guaranteedDeliveries), 'no subscription waits for another')
  const { quotas } = ok(await operator.get(`/iam/v2/quotas/${org.uid}`)) as { quotas: Json[] }
  const { limit, used } = quotas.find(({ name }) => name === 'pending_deliveries')!
  assert.deepEqual([limit, used], ['30', '46'])
  const shown = ok(await operator.get(`${base}/${uids[0]}/settings`))
  assert.equal(shown.waiting, '90', 'stored or not')
})

test('refuses replays and redeliveries above the quota; a running replay continues when there is space', async () => {
  const { pinfold, org, uids, since } = await stage(20, 18)
  await using _ = pinfold
  const { app, operator } = pinfold
  const replay = (i: number, more: Json = {}) =>
    operator.post(`${base}/${uids[i]}:replay`, { startTime: since, endTime: '2100-01-01T00:00:00Z', ...more })
  assert.equal(ok(await replay(0)).eventCount, '18')
  const listed = ok(await operator.get(`${base}/${uids[0]}/deliveries?page_size=10`)).deliveries as Json[]
  await app.db.tx((tx) => tx.run(sql`UPDATE deliveries SET state = 1 WHERE id <= ${8}`))
  const some = ok(await replay(1))
  assert.equal(some.eventCount, '16')
  const refused = await replay(1, { pageToken: some.nextPageToken })
  assertError(refused, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  assert.equal(refused.body.details[0].metadata.quota, 'pending_deliveries')

  await app.db.tx((tx) => tx.run(sql`UPDATE deliveries SET state = 1`))
  assert.equal(ok(await replay(1, { pageToken: some.nextPageToken })).eventCount, '2')
  const deliveryUids = listed.map(({ uid }) => uid as string)
  const redeliver = () => operator.post(`${base}/${uids[0]}:redeliver`, { deliveryUids })
  ok(await redeliver())
  assertError(await redeliver(), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  assert.equal(await pendingOf(app.db, org.uid), 12)
})

test('redelivery returns QUEUE_FULL if the subscription has the maximum number of waiting deliveries', async () => {
  const { pinfold, uids, ids, since } = await stage(0, 1)
  await using _ = pinfold
  const { app, operator } = pinfold
  ok(await operator.post(`${base}/${uids[0]}:replay`, { startTime: since, endTime: '2100-01-01T00:00:00Z' }))
  await app.db.tx((tx) => tx.run(sql`UPDATE deliveries SET state = 1`))
  const { deliveries } = ok(await operator.get(`${base}/${uids[0]}/deliveries`))
  await app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO deliveries (id, subscription_id, event_id, subject, create_time)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
      SELECT -n.i, ${ids[0]!} + 0 * n.i, 0, 'x', ${since} FROM n`),
  )
  const answer = await operator.post(`${base}/${uids[0]}:redeliver`, { deliveryUids: [deliveries[0].uid] })
  assertBlocked(answer, uids[0]!, 'QUEUE_FULL')
})

test('a new event wakes a queue with a backlog, unless the queue is paused', async () => {
  const { pinfold, org, uids, ids } = await stage(100, 60)
  await using _ = pinfold
  const { app, seed, operator } = pinfold
  ok(await operator.post(`${base}/${uids[1]}:pause`))
  const states = () => Promise.all(ids.map(async (id) => (await findQueue(app.db, id))!))
  const before = await states()
  assert.ok(before.every(({ behind }) => behind > 0))
  await seed.repo(org.uid)
  await app.db.tx((tx) => route(app, tx, '', ''))
  const after = await states()
  assert.deepEqual(
    after.map(({ generation, behind }, i) => [generation - before[i]!.generation, behind - before[i]!.behind]),
    [
      [1, 0],
      [0, 0],
    ],
  )
})

test('keeps the newest finished deliveries, up to a limit for each state', async () => {
  const { pinfold, ids } = await stage(100, 1)
  await using _ = pinfold
  const { app } = pinfold
  const [subscription] = ids as [number, number]
  const results = createResults(app, node, { ...kept, deliveries: 4, every: 3 })
  const rows = async (state: number) =>
    (
      await app.db.all<{ id: number }>(sql`
        SELECT id FROM deliveries WHERE subscription_id = ${subscription} AND state = ${state} ORDER BY id`)
    ).map(({ id }) => id)
  const createTime = app.clock().toISOString()
  const first = await app.db.tx(async (tx) => {
    await lockRouting(tx)
    await tx.run(sql`DELETE FROM deliveries`)
    const one = { subscription, event: 1, subject: 'x', createTime }
    return insertDeliveries(
      tx,
      Array.from({ length: 15 }, () => one),
    )
  })
  const outcome = { result: 'delivered', status: 200, durationMs: 1, waitMs: 0 } as const
  for (let i = 0; i < 12; i++) {
    const state = i < 6 ? deliveryStates.delivered : deliveryStates.givenUp
    const event = { event: 1, subject: 'x', createTime }
    const entry = { subscription, delivery: first + i, event, outcome, time: createTime, state, nextTime: '' }
    await results.record(entry, { checkpoint: () => undefined, saved: () => {} })
  }
  await results.trim(subscription)
  await results.close()
  const from = (start: number, count: number) => Array.from({ length: count }, (_, i) => first + start + i)
  assert.deepEqual(
    { delivered: await rows(1), givenUp: await rows(2), waiting: await rows(0) },
    { delivered: from(2, 4), givenUp: from(8, 4), waiting: from(12, 3) },
  )
  const attempts = await app.db.all<{ id: number }>(sql`
    SELECT DISTINCT delivery_id AS id FROM delivery_attempts WHERE delivery_id < ${first + 8} ORDER BY delivery_id`)
  assert.deepEqual(
    attempts.map(({ id }) => id),
    from(2, 4),
  )
})
