// Positions of subscriptions in the event stream. Deliveries are created from these positions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import type { Outcome } from '#domains/events/delivery/attempt.ts'
import { readEvents } from '#domains/events/delivery/backlog.ts'
import { findSettings } from '#domains/events/delivery/deliveries.store.ts'
import { guaranteedDeliveries } from '#domains/events/delivery/delivery-limits.service.ts'
import { QueueReader } from '#domains/events/delivery/queue-reader.ts'
import { createResults, type Entry } from '#domains/events/delivery/results.ts'
import type { SubjectQueue } from '#domains/events/delivery/subject-queues.ts'
import { claimQueue, findQueue } from '#domains/events/routing/queues.store.ts'
import { route } from '#domains/events/routing/routing.ts'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, startReceiver } from '../support/receiver.ts'

const node = 'by-hand'
const settingsOf = (pinfold: Pinfold, uid: string): Promise<Json> =>
  pinfold.operator.get(`/events/v2/subscriptions/${uid}/settings`).then(({ body }) => body)

test('a paused subscription keeps its position, and gets its events once and in order after it is resumed', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { operator, seed } = pinfold
  const org = await seed.group()
  const repo = await seed.repo(org.uid)
  const { uid } = await seed.subscription(org.uid, receiver.url)
  await operator.post(`/events/v2/subscriptions/${uid}:pause`, { reason: 'until it is mended' })
  const described = guaranteedDeliveries + 40
  for (let i = 0; i < described; i++) await operator.patch(`/registry/v2/repos/${repo.uid}`, { description: `${i}` })
  const other = await seed.repo(org.uid)
  const behind = await eventually(
    () => settingsOf(pinfold, uid),
    ({ waiting }) => waiting === String(described + 1),
  )
  assert.ok(Date.parse(behind.behindTime) <= Date.now())
  const { body } = await operator.get(`/events/v2/subscriptions/${uid}/deliveries?state=WAITING`)
  assert.equal(body.totalCount, '0', 'none was tried')

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
    ({ waiting, behindTime }) => waiting === '0' && behindTime === undefined,
  )
  assert.equal(after.behindTime, undefined)
  const next = await seed.repo(org.uid)
  await receiver.until((got) => got.some(({ subject }) => subject === next.uid))
})

/** An organization with a folder and a subscription. Only the test sends its deliveries. */
async function stage() {
  const pinfold = await startPinfold()
  const { app, seed } = pinfold
  const org = await seed.group()
  const folder = await seed.group(org.uid)
  const { uid } = await seed.subscription(folder.uid, 'https://hooks.example.com/')
  const { subscriber } = (await findSettings(app.db, uid))!
  const routed = () => app.db.tx((tx) => route(app, tx, '', ''))
  const own = async (as = node) => {
    const seen = (await findQueue(app.db, subscriber.id))!
    return app.db.tx((tx) => claimQueue(tx, seen, as))
  }
  const behind = async () => (await findQueue(app.db, subscriber.id))!.behind
  const rows = async (): Promise<string[]> =>
    (
      await app.db.all<{ subject: string }>(sql`
        SELECT subject FROM deliveries WHERE subscription_id = ${subscriber.id} ORDER BY id`)
    ).map(({ subject }) => subject)
  await routed()
  return { pinfold, org, folder, uid, subscriber, routed, own, behind, rows }
}

type Stage = Awaited<ReturnType<typeof stage>>
const outcome: Outcome = { result: 'delivered', status: 200, durationMs: 1, waitMs: 0 }

/** Processes the queue with a new reader, as after a crash. */
function serve({ pinfold: { app }, subscriber }: Stage) {
  const reader = new QueueReader(app, { subscription: subscriber.id, node })
  const results = createResults(app, node)
  const take = async (): Promise<SubjectQueue[]> => {
    await reader.read(100, Date.now, async () => 100)
    return reader.subjectQueues.take(100, Date.now())
  }
  const end = async (subjectQueue: SubjectQueue, isWell = true): Promise<number> => {
    const row = subjectQueue.rows[0]!
    const [state, nextTime] = isWell ? ([1, ''] as const) : ([0, '2100-01-01T00:00:00.000Z'] as const)
    const { id: delivery, event, subject, createTime } = row
    const of = { event, subject, createTime }
    const base = { subscription: subscriber.id, delivery, event: of, outcome, time: createTime }
    if (isWell) reader.subjectQueues.done(subjectQueue, Date.now())
    else reader.subjectQueues.retry(subjectQueue, Date.parse(nextTime), Date.now())
    const stored = await results.record({ ...base, state, nextTime } satisfies Entry, reader)
    reader.recorded(subjectQueue, row, stored, isWell, Date.now())
    return stored
  }
  return { reader, take, end }
}

const subjects = (subjectQueues: readonly SubjectQueue[]) => subjectQueues.map(({ subject }) => subject)

test('a subscription gets each event of its group and types once', async () => {
  const staged = await stage()
  const { pinfold, org, folder, uid, routed, own, behind, rows } = staged
  await using _ = pinfold
  const { seed, operator } = pinfold
  await operator.patch(`/events/v2/subscriptions/${uid}/settings`, { types: ['*.repo.created.*'] })
  const wanted: string[] = []
  await seed.repo(org.uid)
  const below = await seed.group(folder.uid)
  for (const group of [folder, below, folder]) wanted.push((await seed.repo(group.uid)).uid)
  await operator.patch(`/registry/v2/repos/${wanted[0]}`, { description: 'of no type that is wanted' })
  await routed()
  assert.ok((await behind()) > 0)
  assert.deepEqual(await rows(), [])

  await own()
  const { take, end } = serve(staged)
  const subjectQueues = await take()
  assert.deepEqual(subjects(subjectQueues), wanted)
  for (const subjectQueue of subjectQueues) assert.ok((await end(subjectQueue)) > 0)
  assert.deepEqual(await rows(), wanted)
  assert.deepEqual(await take(), [])
  assert.deepEqual(await serve(staged).take(), [], 'nor after a crash')
})

test('after a crash, only events without a finished attempt are sent, in order for each subject', async () => {
  const staged = await stage()
  const { pinfold, folder, subscriber, routed, own, behind, rows } = staged
  await using _ = pinfold
  const { app, seed, operator } = pinfold
  const [slow, bad, good] = [(await seed.repo(folder.uid)).uid, (await seed.repo(folder.uid)).uid, '']
  assert.equal(good, '')
  for (const uid of [slow, bad]) await operator.patch(`/registry/v2/repos/${uid}`, { description: 'second' })
  const { uid: last } = await seed.repo(folder.uid)
  await routed()
  await own()
  const first = serve(staged)
  const subjectQueues = await first.take()
  assert.deepEqual(subjects(subjectQueues), [slow, bad, last])
  await first.end(subjectQueues[1]!, false)
  await first.end(subjectQueues[2]!)
  assert.deepEqual(await rows(), [bad, last])
  const positions = await app.db.all(sql`SELECT subject FROM delivery_lanes ORDER BY position`)
  assert.deepEqual(positions, [{ subject: slow }, { subject: bad }])
  const shown = await settingsOf(pinfold, subscriber.uid)
  assert.equal(shown.waiting, '4', 'two of each')

  const second = serve(staged)
  const again = await second.take()
  assert.deepEqual(subjects(again), [slow], 'one is done, and one waits for its time')
  await second.end(again[0]!)
  const [next] = await second.take()
  await second.end(next!)
  assert.deepEqual(await rows(), [bad, last, slow, slow])
  assert.ok((await behind()) > 0)
  assert.deepEqual(await app.db.all(sql`SELECT subject FROM delivery_lanes`), [{ subject: bad }])

  await app.db.tx((tx) => tx.run(sql`UPDATE deliveries SET next_time = ''`))
  const third = serve(staged)
  for (const isFirst of [true, false]) {
    const [subjectQueue, ...others] = await third.take()
    assert.deepEqual([subjectQueue!.subject, subjectQueue!.rows[0]!.id > 0, others], [bad, isFirst, []])
    await third.end(subjectQueue!)
  }
  assert.deepEqual(await rows(), [bad, last, slow, slow, bad])
  assert.deepEqual(await app.db.all(sql`SELECT subject FROM delivery_lanes`), [])
})

test('a node that lost its queue lease stores no results of its attempts', async () => {
  const staged = await stage()
  const { pinfold, folder, routed, own, behind, rows } = staged
  await using _ = pinfold
  await pinfold.seed.repo(folder.uid)
  await routed()
  await own()
  const { take, end } = serve(staged)
  const [subjectQueue] = await take()
  await own('another')
  const before = await behind()
  assert.equal(await end(subjectQueue!), 0)
  assert.deepEqual([await rows(), await behind()], [[], before])
})

test('skips any number of expired events at once', async () => {
  const staged = await stage()
  const { pinfold, folder, subscriber, routed, own, behind } = staged
  await using _ = pinfold
  const { app, seed } = pinfold
  for (let i = 0; i < 20; i++) await seed.repo(folder.uid)
  const { uid: last } = await seed.repo(folder.uid)
  await routed()
  const after = await behind()
  await app.db.tx((tx) => tx.run(sql`DELETE FROM events_outbox WHERE position > ${after} AND subject <> ${last}`))
  await own()
  const read = (from: number) =>
    readEvents(app, app.db, { subscription: subscriber.id, node, after: from }, { positions: 2 })
  const first = await read(after)
  assert.deepEqual([first.events, first.isEnd], [[], false])
  const second = await read(first.position)
  assert.deepEqual([second.events.map(({ subject }) => subject), second.isEnd], [[last], true])
})

test('does not read a queue that another node owns', async () => {
  const staged = await stage()
  const { pinfold, folder, routed, own } = staged
  await using _ = pinfold
  await pinfold.seed.repo(folder.uid)
  await routed()
  await own('another')
  assert.deepEqual(await serve(staged).take(), [])
})

test('a sink that failed for too long does not get events older than the limit', async () => {
  const staged = await stage()
  const { pinfold, folder, routed, own } = staged
  await using _ = pinfold
  const { seed } = pinfold
  const old = (await seed.repo(folder.uid)).uid
  await pinfold.operator.patch(`/registry/v2/repos/${old}`, { description: 'second' })
  const young = (await seed.repo(folder.uid)).uid
  await routed()
  await own()
  const { reader, take } = serve(staged)
  const subjectQueues = await take()
  const { position } = subjectQueues.find(({ subject }) => subject === young)!.rows[0]!
  for (const subjectQueue of subjectQueues) reader.subjectQueues.putBack(subjectQueue, Date.now())
  reader.passOver(position - 1, Date.now())
  assert.deepEqual(subjects(await take()), [young])
})
