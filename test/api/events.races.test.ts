// Races while a queue is read or written: concurrent routing, concurrent replays, and commits without an answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Sql, sql, type Tx } from '#db/sql.ts'
import { QueueReader } from '#domains/events/delivery/queue-reader.ts'
import { createResults, type Entry } from '#domains/events/delivery/results.ts'
import { SinkQueue, type SinkQueueDeps } from '#domains/events/delivery/sink-queue.ts'
import { type SubjectQueue, subjectQueueRows } from '#domains/events/delivery/subject-queues.ts'
import { beat, claimQueue, findQueue, type OwnedQueue } from '#domains/events/routing/queues.store.ts'
import { insertDeliveries, lockRouting } from '#domains/events/routing/routing.store.ts'
import { route } from '#domains/events/routing/routing.ts'
import { onPostgres, startPinfold } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'

const node = 'by-hand'

/** A subscription whose queue only the test processes. */
async function stage() {
  const pinfold = await startPinfold()
  const { app, seed } = pinfold
  const org = await seed.group()
  await seed.subscription(org.uid, 'https://hooks.example.com/')
  await app.db.tx((tx) => route(app, tx, '', ''))
  const { id } = (await app.db.get<{ id: number }>(sql`SELECT subscription_id AS id FROM delivery_queues`))!
  const routed = async (): Promise<OwnedQueue> => {
    const { queues } = await app.db.tx((tx) => route(app, tx, new Date().toISOString(), node))
    return queues[0]!
  }
  const queue = async () => (await findQueue(app.db, id))!
  return { pinfold, org, owned: { subscription: id, node }, routed, queue }
}

type Stage = Awaited<ReturnType<typeof stage>>

/** A reader of a queue without a position. Each of its first progress reads misses an event that is routed meanwhile. */
async function missed({ pinfold: { app, seed }, org, owned, routed, queue }: Stage, times: number) {
  await app.db.tx((tx) => tx.run(sql`UPDATE delivery_queues SET generation = generation + 1`))
  const seen = await queue()
  assert.equal(seen.behind, 0)
  await app.db.tx((tx) => claimQueue(tx, seen, node))
  let left = times
  let isRouting = false
  const db = {
    ...app.db,
    get: async (query: Sql) => {
      const row = await app.db.get(query)
      if (left === 0 || isRouting || !query.parts.join('').includes('events_router')) return row
      left--
      isRouting = true
      await seed.repo(org.uid)
      reader.note(await routed())
      isRouting = false
      return row
    },
  } as typeof app.db
  const reader: QueueReader = new QueueReader({ ...app, db }, owned)
  await reader.read(8, Date.now, async () => 16)
  return reader
}

test('sends events that are routed while the position of a queue is being read', async () => {
  const staged = await stage()
  await using _ = staged.pinfold
  const reader = await missed(staged, 1)
  assert.equal(reader.subjectQueues.readyCount, 1)
  assert.deepEqual([reader.isBehind, reader.checkpoint()!.isDone], [false, false])
})

test('a queue keeps its position before events that its owner has not read', async () => {
  const staged = await stage()
  await using _ = staged.pinfold
  const { owned, queue } = staged
  const reader = await missed(staged, 3)
  const { generation } = reader
  assert.equal(reader.checkpoint()!.position, (await queue()).behind)
  const results = createResults(staged.pinfold.app, node)
  await results.release({ subscription: owned.subscription, generation: generation! }, undefined, reader)
  const { behind, owner } = await queue()
  assert.ok(behind > 0)
  assert.equal(owner, node)
  await results.close()
})

const delivered = { result: 'delivered', status: 200, durationMs: 1, waitMs: 0 } as const
const failed = { result: 'refused', status: 500, durationMs: 1, waitMs: 0 } as const

/** Result of the first attempt for the first row of a subject: a failure with a retry. */
function entryOf({ owned }: Stage, subjectQueue: SubjectQueue): Entry {
  const { id: delivery, event, subject, createTime } = subjectQueue.rows[0]!
  const of = { event, subject, createTime }
  return { ...owned, delivery, event: of, outcome: failed, time: createTime, state: 0, nextTime: '' }
}

/** Stores a delivery like a replay of the event. */
async function replay({ pinfold: { app }, owned }: Stage, { event, subject }: { event: number; subject: string }) {
  await app.db.tx(async (tx) => {
    await lockRouting(tx)
    await insertDeliveries(tx, [{ ...owned, event, subject, createTime: new Date().toISOString() }])
  })
}

test('stores results of attempts once, also if the commit gets no answer', async () => {
  for (const isCommitted of [true, false]) {
    const staged = await stage()
    await using _ = staged.pinfold
    const { pinfold, org, owned, routed } = staged
    const { app, seed } = pinfold
    await seed.repo(org.uid)
    await routed()
    const reader = new QueueReader(app, owned)
    await reader.read(8, Date.now, async () => 16)
    const [subjectQueue] = reader.subjectQueues.take(1, Date.now())
    const entry = entryOf(staged, subjectQueue!)
    let losses = 1
    const tx: typeof app.db.tx = (work, options) => {
      if (losses === 0) return app.db.tx(work, options)
      losses--
      const lost = new Error('the connection ended')
      if (isCommitted) return app.db.tx(work, options).then(() => Promise.reject(lost))
      return app.db.tx(async (within) => {
        await work(within)
        throw lost
      }, options)
    }
    const results = createResults({ ...app, db: { ...app.db, tx } as typeof app.db }, node)
    reader.subjectQueues.retry(subjectQueue!, 0, Date.now())
    const id = await results.record(entry, reader)
    const rows = () => app.db.all(sql`SELECT id, state, attempts FROM deliveries`)
    assert.deepEqual(await rows(), [{ id, state: 0, attempts: 1 }])
    const later = '2100-01-01T00:00:00.000Z'
    losses = 1
    assert.equal(
      await results.record({ ...entry, delivery: id, state: 1, outcome: delivered, time: later }, reader),
      id,
    )
    assert.deepEqual(await rows(), [{ id, state: 1, attempts: 2 }])
    const attempts = await app.db.all(sql`SELECT 1 AS found FROM delivery_attempts`)
    assert.equal(attempts.length, 2)
    await results.close()
  }
})

test('releases a queue whose lease is lost while a delivery is prepared', async () => {
  const staged = await stage()
  await using _ = staged.pinfold
  const { pinfold, org, routed, queue: stored } = staged
  const { app, seed } = pinfold
  await seed.repo(org.uid)
  const first = await routed()
  const results = createResults(app, node)
  let asked = 0
  const get = async (query: Sql) => {
    const row = await app.db.get(query)
    if (!query.parts.join('').includes('s.old_secret') || ++asked === 1) return row
    queue.drop()
    return undefined
  }
  const ended = Promise.withResolvers<unknown>()
  const deps: SinkQueueDeps = {
    app: { ...app, db: { ...app.db, get } as typeof app.db },
    url: pinfold.url,
    node,
    results,
    maySend: () => true,
    limit: () => 8,
    onRoom: () => {},
    onEnd: (_queue, next) => ended.resolve(next),
  }
  const queue = new SinkQueue(deps, first)
  queue.pump()
  assert.equal(await ended.promise, 'unknown')
  assert.equal((await stored()).owner, '')
  await results.close()
})

test('reads the replay of an event while the result of its first attempt is being stored', async () => {
  const staged = await stage()
  await using _ = staged.pinfold
  const { pinfold, org, owned, routed, queue } = staged
  const { app, seed } = pinfold
  await seed.repo(org.uid)
  await routed()
  const reader = new QueueReader(app, owned)
  const read = () => reader.read(8, Date.now, async () => 16)
  await read()
  const [subjectQueue] = reader.subjectQueues.take(1, Date.now())
  reader.subjectQueues.retry(subjectQueue!, 0, Date.now())
  await replay(staged, subjectQueue!.rows[0]!)
  reader.note(await queue())
  await read()
  assert.deepEqual(
    subjectQueue!.rows.map(({ attempts }) => attempts),
    [1, 0],
  )
})

test('does not read a delivery again while its result is being stored', async () => {
  const staged = await stage()
  await using _ = staged.pinfold
  const { pinfold, org, owned, routed, queue } = staged
  const { app, seed, operator } = pinfold
  const { uid } = await seed.repo(org.uid)
  for (let i = 1; i < subjectQueueRows; i++) await operator.patch(`/registry/v2/repos/${uid}`, { description: `${i}` })
  await routed()
  const reader = new QueueReader(app, owned)
  const results = createResults(app, node)
  const read = () => reader.read(8, Date.now, async () => 16)
  await read()
  const [subjectQueue] = reader.subjectQueues.take(1, Date.now())
  const { rows } = subjectQueue!
  assert.equal(rows.length, subjectQueueRows)
  const row = rows[0]!
  await replay(staged, row)
  const entry = entryOf(staged, subjectQueue!)
  reader.subjectQueues.retry(subjectQueue!, 0, Date.now())
  reader.recorded(subjectQueue!, { ...row }, await results.record(entry, reader), false, Date.now())
  reader.note(await queue())
  await read()
  while (rows.length > 0) reader.subjectQueues.done(subjectQueue!, Date.now())
  await read()
  assert.deepEqual(
    rows.map(({ attempts }) => attempts),
    [0],
  )
  await results.close()
})

test('lease renewals and stored results lock queues in the same order', {
  skip: !onPostgres && 'an embedded database has one writer',
}, async () => {
  await using pinfold = await startPinfold()
  const { db } = pinfold.app
  const org = await pinfold.seed.group()
  for (let i = 0; i < 2; i++) await pinfold.seed.subscription(org.uid)
  const lock = (tx: Tx, which: Sql) =>
    tx.run(sql`
      UPDATE delivery_queues SET owner = ${node}
       WHERE subscription_id = (SELECT ${which}(subscription_id) FROM delivery_queues)`)
  // Updates the row with the higher id first, so that the table stores the rows in reverse order of their ids.
  for (const which of [sql`max`, sql`min`]) await db.tx((tx) => lock(tx, which))
  const runs = { results: 0, beat: 0 }
  const [isLocked, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const rowLocks = { isolation: 'rowLocks' } as const
  const writing = db.tx(async (tx) => {
    runs.results++
    await lock(tx, sql`min`)
    isLocked.resolve()
    await mayGoOn.promise
    await lock(tx, sql`max`)
  }, rowLocks)
  await isLocked.promise
  const beating = db.tx((tx) => {
    runs.beat++
    return beat(tx, node)
  }, rowLocks)
  const waiting = () => db.all(sql`SELECT 1 AS found FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`)
  await eventually(waiting, (found) => found.length > 0)
  mayGoOn.resolve()
  await writing
  assert.equal((await beating).length, 2)
  assert.deepEqual(runs, { results: 1, beat: 1 })
})

test('stored results lock the queues of failed sinks in the order of subscriptions', {
  skip: !onPostgres && 'an embedded database has one writer',
}, async () => {
  await using pinfold = await startPinfold()
  const { app, seed } = pinfold
  const org = await seed.group()
  for (let i = 0; i < 2; i++) await seed.subscription(org.uid)
  const rows = await app.db.all<{ id: number }>(sql`
    UPDATE delivery_queues SET owner = ${node} RETURNING subscription_id AS id`)
  const [first, second] = rows.map(({ id }) => id).sort((a, b) => a - b)
  const results = createResults(app, node)
  const progress = { checkpoint: () => undefined, saved() {} }
  const fail = (subscription: number) =>
    results.record(
      {
        ...{ subscription, delivery: 1, outcome: undefined, state: 0, nextTime: '' },
        ...{ event: { event: 1, subject: '', createTime: '' }, time: '' },
        sink: { failures: 1, until: '', resets: 0 },
      },
      progress,
    )
  const waiting = () =>
    app.db.all(sql`SELECT 1 AS found FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`)
  const lock = (tx: Tx, id: number) =>
    tx.all(sql`SELECT 1 AS found FROM delivery_queues WHERE subscription_id = ${id} FOR UPDATE NOWAIT`)
  const [isLocked, isBlocked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = app.db.tx(
    async (tx) => {
      await lock(tx, first!)
      isLocked.resolve()
      await isBlocked.promise
      // If the batch held this lock, the two transactions would wait for each other.
      await lock(tx, second!)
    },
    { isolation: 'rowLocks' },
  )
  await isLocked.promise
  const stored = Promise.all([fail(second!), fail(first!)])
  await eventually(waiting, (found) => found.length > 0)
  isBlocked.resolve()
  await holding
  await stored
  const failures = await app.db.all<{ failures: number }>(sql`SELECT failures FROM delivery_queues`)
  assert.deepEqual(
    failures.map((one) => one.failures),
    [1, 1],
  )
  await results.close()
})
