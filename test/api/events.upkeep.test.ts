// Expiry of events and deliveries, and the metrics of waiting deliveries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sweepEvents } from '#domains/events/events.job.ts'
import { route } from '#domains/events/routing/routing.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, startReceiver } from '../support/receiver.ts'

const base = '/events/v2/subscriptions'
const day = 24 * 60 * 60 * 1000

async function rows(pinfold: Pinfold): Promise<Json> {
  const found = await pinfold.app.db.get<Json>(sql`
    SELECT (SELECT count(*) FROM events_outbox) AS events, (SELECT count(*) FROM deliveries) AS deliveries,
           (SELECT count(*) FROM delivery_attempts) AS attempts, (SELECT count(*) FROM delivery_queues) AS queues`)
  return found!
}

test('keeps events and deliveries for thirty days', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, app, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  for (let i = 0; i < 3; i++) await seed.repo(org.uid)
  const list = () => operator.get(`${base}/${uid}/deliveries?state=DELIVERED`)
  await eventually(list, ({ body }) => body.totalCount === '3')
  const after = (days: number) => runJob({ ...app, clock: () => new Date(Date.now() + days * day) }, sweepEvents)
  await after(29)
  assert.deepEqual(await rows(pinfold), { events: 5, deliveries: 3, attempts: 3, queues: 1 })
  await after(31)
  // The newest event is kept, whatever its age, because its number must not be reused.
  assert.deepEqual(await rows(pinfold), { events: 1, deliveries: 0, attempts: 0, queues: 1 })
  assert.equal((await list()).body.totalCount, '0')
  const repo = await seed.repo(org.uid)
  await receiver.until((got) => got.some(({ subject }) => subject === repo.uid))
})

test('keeps an event until it is routed, whatever its age', async () => {
  await using pinfold = await startPinfold()
  const { seed, app } = pinfold
  const org = await seed.group()
  for (let i = 0; i < 3; i++) await seed.repo(org.uid)
  const sweep = () => runJob({ ...app, clock: () => new Date(Date.now() + 31 * day) }, sweepEvents)
  const { events } = await rows(pinfold)
  await sweep()
  assert.equal((await rows(pinfold)).events, events)
  await app.db.tx((tx) => route(app, tx, new Date().toISOString(), ''))
  await sweep()
  assert.equal((await rows(pinfold)).events, 1)
})

test('deletes the queue of a deleted subscription without sending it', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid, createTime } = await seed.subscription(org.uid, receiver.url)
  await operator.post(`${base}/${uid}:pause`)
  await Promise.all(Array.from({ length: 250 }, () => seed.repo(org.uid)))
  const [startTime, endTime] = [createTime, '2100-01-01T00:00:00Z']
  await eventually(
    () => operator.post(`${base}/${uid}:replay`, { startTime, endTime }),
    ({ body }) => Number(body.eventCount) >= 250,
  )
  await operator.delete(`${base}/${uid}`)
  await eventually(
    () => rows(pinfold),
    ({ deliveries, queues }) => deliveries === 0 && queues === 0,
  )
  assert.equal(receiver.got.length, 0)

  // Another subscription is not confused with the deleted one.
  const next = await seed.subscription(org.uid, receiver.url)
  const repo = await seed.repo(org.uid)
  await receiver.until((got) => got.length === 1)
  assert.equal(receiver.got[0]!.subject, repo.uid)
  assert.notEqual(next.uid, uid)
})

test('the metrics show waiting deliveries by reason and age, and the results of attempts', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using good = await startReceiver()
  await using busy = await startReceiver(() => ({ status: 429, headers: { 'retry-after': '3600' } }))
  const { seed, operator } = pinfold
  const org = await seed.group()
  const folder = async (sink: string): Promise<string> => {
    const group = await seed.group(org.uid)
    const { uid } = await seed.subscription(group.uid, sink)
    if (sink === good.url) await operator.post(`${base}/${uid}:pause`)
    await seed.repo(group.uid)
    return uid
  }
  const paused = await folder(good.url)
  const blocked = await folder(busy.url)
  const read = async () => (await operator.get('/metrics')).text
  const waiting = (state: string) => new RegExp(`^pinfold_deliveries_waiting\\{state="${state}"\\} 1$`, 'm')
  const text = await eventually(read, (shown) => waiting('paused').test(shown) && waiting('blocked').test(shown))
  assert.match(text, /^pinfold_deliveries_oldest_seconds\{state="blocked"\} \d/m)
  assert.match(text, /^pinfold_delivery_attempts_total\{result="slowed"\} 1$/m)
  await operator.post(`${base}/${paused}:resume`)
  await eventually(read, (shown) => /^pinfold_delivery_attempts_total\{result="delivered"\} 1$/m.test(shown))
  const last = await read()
  assert.match(last, /^pinfold_delivery_latency_seconds_count 2$/m)
  assert.ok(![org.uid, blocked, good.url].some((secret) => last.includes(secret)), 'labels hold nothing of users')
})
