// One queue of a subscription, processed by the test. The database is real; the sink and the clock are fake.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { guaranteedDeliveries } from '#domains/events/delivery/delivery-limits.service.ts'
import { createResults, type Entry, type Results } from '#domains/events/delivery/results.ts'
import { SinkQueue } from '#domains/events/delivery/sink-queue.ts'
import { findQueue, type OwnedQueue } from '#domains/events/routing/queues.store.ts'
import { route } from '#domains/events/routing/routing.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

type Answer = { status: number; retryAfter?: string }
type Post = { subject: string; answer(answer: Answer): void }
type Release = { dueTime: string | undefined; answer(released: boolean): void }

const start = Date.parse('2026-03-01T12:00:00.000Z')
const node = 'by-hand'
const firstMs = 60_000

/** Starts a queue with one event for each of the given number of subjects. Its requests wait until the test answers. */
async function startQueue(pinfold: Pinfold, subjects: number) {
  const { app, seed } = pinfold
  const state = { now: start, posts: 0 }
  const asked = waiting<Post | Release>()
  const entries: Entry[] = []
  const ends: unknown[] = []
  const org = await seed.group()
  await seed.subscription(org.uid, 'https://hooks.example.com/')
  const routed = async (): Promise<OwnedQueue> => {
    const { queues } = await app.db.tx((tx) => route(app, tx, new Date(state.now).toISOString(), node))
    return queues[0]!
  }
  const add = async (count: number): Promise<OwnedQueue> => {
    for (let i = 0; i < count; i++) await seed.repo(org.uid)
    return routed()
  }
  await app.db.tx((tx) => route(app, tx, '', ''))
  const real = createResults(app, node)
  const results = {
    record: (entry, progress) => {
      entries.push(entry)
      return real.record(entry, progress)
    },
    release: (_: unknown, dueTime: string | undefined) =>
      new Promise<boolean>((answer) => asked.add({ dueTime, answer })),
    trim: async () => {},
    free: async () => {},
    close: async () => {},
  } satisfies Results
  const sinks = {
    ...app.sinks,
    post: (_url: string, headers: Record<string, string>) =>
      new Promise<{ status: number; retryAfter: string }>((resolve) => {
        state.posts++
        const answer = ({ status, retryAfter = '' }: Answer) => resolve({ status, retryAfter })
        asked.add({ subject: headers['Ce-Subject'] ?? headers['ce-subject']!, answer })
      }),
  } as typeof app.sinks
  const config = { ...app.config, deliveryRetryMinMs: firstMs, deliveryRetryMaxMs: 3600_000 }
  const served = { ...app, sinks, config, clock: () => new Date(state.now) }
  const first = await add(subjects)
  const queue = new SinkQueue(
    {
      app: served,
      url: pinfold.url,
      node,
      results,
      maySend: () => true,
      limit: () => 32,
      onRoom: () => {},
      onEnd: (_, next) => ends.push(next),
    },
    first,
  )
  queue.pump()
  const nextPost = async (): Promise<Post> => {
    const one = await asked.next()
    if ('subject' in one) return one
    throw new Error('the queue has nothing to do')
  }
  return { state, asked, nextPost, entries, ends, queue, add, routed }
}

/** Requests that the test has not answered yet, in order. */
function waiting<T>() {
  const items: T[] = []
  const takers: ((item: T) => void)[] = []
  return {
    add(item: T): void {
      const taker = takers.shift()
      if (taker) taker(item)
      else items.push(item)
    },
    next: (): Promise<T> =>
      new Promise((resolve) => (items.length > 0 ? resolve(items.shift()!) : takers.push(resolve))),
  }
}

type Queue = Awaited<ReturnType<typeof startQueue>>

/** Responds to each request until the queue is empty. The test itself releases the queue. */
async function untilRest({ asked }: Queue, answer: (post: Post) => Answer): Promise<Release> {
  for (;;) {
    const one = await asked.next()
    if (!('subject' in one)) return one
    one.answer(answer(one))
  }
}

const delivered = ({ entries }: Queue) => entries.filter(({ outcome }) => outcome?.result === 'delivered').length

test('after a sink recovers, all its other queues continue at once', async (t: TestContext) => {
  await using pinfold = await startPinfold()
  const queue = await startQueue(pinfold, 12)
  // Each failing subject waits for the maximum time, and the sink for the minimum.
  let failed = 0
  t.mock.method(Math, 'random', () => (failed < 10 ? 0 : 0.999))
  const resting = await untilRest(queue, () => {
    failed++
    return { status: 500 }
  })
  const blocked = Date.parse(resting.dueTime!) - start
  assert.ok(blocked < firstMs, 'the sink is tried again before the subjects that had failed alone')
  queue.state.now = start + blocked
  queue.queue.note((await findQueue(pinfold.app.db, queue.queue.subscription))!)
  resting.answer(true)
  await untilRest(queue, () => ({ status: 200 }))
  assert.equal(delivered(queue), 12)
  assert.deepEqual(queue.ends, [])
})

test('a 503 without Retry-After delays only its subject, not the whole sink', async () => {
  await using pinfold = await startPinfold()
  const queue = await startQueue(pinfold, 1)
  const resting = await untilRest(queue, () => ({ status: 503 }))
  const [entry] = queue.entries
  assert.equal(entry!.outcome!.result, 'refused')
  assert.equal(entry!.sink, undefined)
  // The next request is sent at once.
  queue.queue.note(await queue.add(20))
  resting.answer(true)
  await untilRest(queue, () => ({ status: 200 }))
  assert.equal(delivered(queue), 20)
})

test('limits the pause that a sink can ask for to a day', async () => {
  for (const retryAfter of ['999999999', 'Fri, 01 Jan 2100 00:00:00 GMT']) {
    for (const status of [429, 503]) {
      await using pinfold = await startPinfold()
      const queue = await startQueue(pinfold, 1)
      const { dueTime } = await untilRest(queue, () => ({ status, retryAfter }))
      assert.equal(Date.parse(dueTime!) - start, 24 * 3600_000, `${status} ${retryAfter}`)
    }
  }
})

test('a queue that gets an event while it is being released continues with the same owner', async () => {
  await using pinfold = await startPinfold()
  const queue = await startQueue(pinfold, 1)
  const resting = await untilRest(queue, () => ({ status: 200 }))
  assert.equal(resting.dueTime, undefined)
  queue.queue.note(await queue.add(1))
  const post = await queue.nextPost()
  // The queue was released, and the same owner claimed it again because of the event.
  resting.answer(true)
  await Promise.resolve()
  post.answer({ status: 200 })
  const again = await untilRest(queue, () => ({ status: 200 }))
  assert.equal(delivered(queue), 2)
  assert.deepEqual(queue.ends, [])
  again.answer(true)
  while (queue.ends.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(queue.ends, [{ dueTime: undefined }])
})

test('an event that is added while a long per-subject queue is shortened keeps its position', async () => {
  await using pinfold = await startPinfold()
  const queue = await startQueue(pinfold, 1)
  const first = await queue.nextPost()
  const { app, operator } = pinfold
  const describe = async (from: number, to: number) => {
    for (let i = from; i < to; i++) {
      await operator.patch(`/registry/v2/repos/${first.subject}`, { description: String(i) })
    }
    await app.db.tx((tx) => route(app, tx, new Date(start).toISOString(), node))
    return (await findQueue(app.db, queue.queue.subscription))!
  }
  queue.queue.note(await describe(0, 50))
  first.answer({ status: 200 })
  for (let i = 0; i < 10; i++) (await queue.nextPost()).answer({ status: 200 })
  const held = await queue.nextPost()
  // Some events of the subject are sent, some wait in memory, some are still unread, and the new event comes last.
  queue.queue.note(await describe(50, 51))
  held.answer({ status: 200 })
  await untilRest(queue, () => ({ status: 200 }))
  const sent = queue.entries.map(({ event }) => event.event)
  assert.equal(sent.length, 52)
  assert.deepEqual(
    sent,
    [...sent].sort((a, b) => a - b),
  )
  const rows = await app.db.all<{ event: number }>(sql`SELECT event_id AS event FROM deliveries ORDER BY id`)
  assert.deepEqual(
    sent,
    rows.map(({ event }) => event),
  )
})

test('a failing subject stores one row and a position for any backlog, and the events of other subjects are found', async () => {
  await using pinfold = await startPinfold()
  const { app, seed, operator } = pinfold
  const queue = await startQueue(pinfold, 1)
  const { uid: org } = (await app.db.get<{ uid: string }>(sql`SELECT parent_uid AS uid FROM subscriptions`))!
  const { uid: bad } = await seed.repo(org)
  const described = 100
  for (let i = 1; i < described; i++) await operator.patch(`/registry/v2/repos/${bad}`, { description: `${i}` })
  queue.queue.note(await queue.routed())
  let isWell = false
  const answered: string[] = []
  const answer = ({ subject }: Post): Answer => {
    const status = subject === bad && !isWell ? 500 : 200
    if (status === 200) answered.push(subject)
    return { status }
  }
  const rows = async () =>
    (await app.db.get<{ count: number }>(sql`SELECT count(*) AS count FROM deliveries WHERE subject = ${bad}`))!.count
  const resting = await untilRest(queue, answer)
  const stored = await rows()
  assert.equal(stored, 1)

  const { uid: other } = await seed.repo(org)
  queue.queue.note(await queue.routed())
  resting.answer(true)
  const again = await untilRest(queue, answer)
  assert.ok(answered.includes(other), 'found behind the others')

  isWell = true
  queue.state.now += 2 * firstMs
  queue.queue.note((await findQueue(app.db, queue.queue.subscription))!)
  again.answer(true)
  await untilRest(queue, answer)
  assert.equal(answered.filter((subject) => subject === bad).length, described)
  const sent = queue.entries.filter(({ outcome, event }) => outcome?.result === 'delivered' && event.subject === bad)
  const mine = await app.db.all<{ event: number }>(sql`
    SELECT event_id AS event FROM deliveries WHERE subject = ${bad} ORDER BY event_id`)
  assert.deepEqual(
    sent.map(({ event }) => event.event),
    mine.map(({ event }) => event),
  )
})

test('one transaction routes a limited number of events, and stores no delivery', async () => {
  await using pinfold = await startPinfold()
  const { app, seed } = pinfold
  const { uid } = await seed.group()
  for (let i = 0; i < 3; i++) await seed.subscription(uid)
  while ((await app.db.tx((tx) => route(app, tx, '', ''))).isMore) {
    // Routes the events so far.
  }
  for (let i = 0; i < 4; i++) await seed.repo(uid)
  const routed = async () => {
    const { events, isMore } = await app.db.tx((tx) => route(app, tx, '', '', 3))
    return [events, isMore]
  }
  assert.deepEqual(await routed(), [3, true])
  assert.deepEqual(await routed(), [1, false])
  assert.deepEqual(await routed(), [0, false])
  assert.deepEqual(await app.db.all(sql`SELECT id FROM deliveries`), [])
})

test('above the quota, a subscription with failing subjects reads only as many events as it can store', async () => {
  await using pinfold = await startPinfold({ quotaPendingDeliveries: 1 })
  const queue = await startQueue(pinfold, 60)
  let isWell = false
  let posts = 0
  // One attempt succeeds now and then, so the whole sink does not count as failing.
  const answer = () => ({ status: isWell || ++posts % 5 === 0 ? 200 : 500 })
  const rows = async (state: number) =>
    (await pinfold.app.db.all(sql`SELECT id FROM deliveries WHERE state = ${state}`)).length
  const resting = await untilRest(queue, answer)
  assert.equal(await rows(0), guaranteedDeliveries)
  isWell = true
  queue.state.now += 2 * firstMs
  queue.queue.note((await findQueue(pinfold.app.db, queue.queue.subscription))!)
  resting.answer(true)
  await untilRest(queue, answer)
  assert.equal(delivered(queue), 60)
  assert.equal(await rows(1), 60)
})
