// Methods with which the owner of a subscription reads and controls its deliveries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { type Sql, sql } from '#db/sql.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, type Received, startReceiver } from '../support/receiver.ts'

const base = '/events/v2/subscriptions'
const type = 'events.pinfold.dev/Subscription'
const missing = '0123456789abcdef'
const updated = 'dev.pinfold.api.events.subscription.updated.v1'

const delivered = (pinfold: Pinfold, uid: string, count: number) =>
  eventually(
    () => pinfold.operator.get(`${base}/${uid}/deliveries?state=DELIVERED`),
    ({ body }) => body.totalCount === String(count),
  )
/** Ends the current millisecond, so that events before and after it have different times. */
const nextTime = () => sleep(2)
const webhookHeaders = ({ headers }: Received) => headers as Record<string, string>

test('deliveries wait while a subscription is paused, and are sent when it is resumed', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const events = await eventsOf(pinfold, async () => {
    const paused = ok(await operator.post(`${base}/${uid}:pause`, { reason: 'the receiver moves' }))
    assert.deepEqual([paused.paused, paused.pauseReason], [true, 'the receiver moves'])
    assert.equal(
      ok(await operator.post(`${base}/${uid}:pause`, { reason: 'another' })).pauseReason,
      'the receiver moves',
    )
  })
  assert.deepEqual(
    events.map(({ type, subject, group, bodyType, body }) => ({ type, subject, group, bodyType, body })),
    [
      {
        type: updated,
        subject: uid,
        group: org.uid,
        bodyType: 'pinfold.control.events.v1.SubscriptionSettings',
        body: { ...events[0]!.body, uid, types: [], paused: true, pause_reason: 'the receiver moves' },
      },
    ],
  )
  const repo = await seed.repo(org.uid)
  await eventually(
    () => operator.get(`${base}/${uid}/settings`),
    ({ body }) => body.waiting === '1',
  )
  assert.equal(receiver.got.length, 0)
  assert.equal(ok(await operator.post(`${base}/${uid}:resume`)).paused, false)
  await receiver.until((got) => got.length === 1)
  assert.equal(receiver.got[0]!.subject, repo.uid)
  assertInvalid(await operator.post(`${base}/${uid}:pause`, { reason: 'two\nlines' }), 'reason')
})

test('a subscription gets only the event types that it selects', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const types = ['*.deleted.v1', 'dev.pinfold.api.iam.*']
  const settings = ok(await operator.patch(`${base}/${uid}/settings`, { types }))
  assert.deepEqual(settings.types, types)
  assert.deepEqual(ok(await operator.get(`${base}/${uid}/settings`)), settings)
  const repo = await seed.repo(org.uid)
  await seed.identity(org.uid)
  await operator.delete(`/registry/v2/repos/${repo.uid}`)
  await receiver.until((got) => got.length === 2)
  assert.deepEqual(receiver.got.map((one) => one.type.replace('dev.pinfold.api.', '')).sort(), [
    'iam.identity.created.v1',
    'platform.registry.repo.deleted.v1',
  ])
  assert.deepEqual(ok(await operator.patch(`${base}/${uid}/settings?updateMask=types`, {})).types, [])
  for (const bad of [['two words'], ['x'.repeat(201)], [''], Array.from({ length: 21 }, (_, i) => `t${i}`)]) {
    assertInvalid(await operator.patch(`${base}/${uid}/settings`, { types: bad }), 'types')
  }
})

test('a secret is shown once, verifies with the Standard Webhooks library, and stays valid during the overlap', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const rotate = async (body: Json = {}) => ok(await operator.post(`${base}/${uid}:rotateSecret`, body))
  const next = async (): Promise<Received> => {
    const before = receiver.got.length
    await seed.repo(org.uid)
    await receiver.until((got) => got.length > before)
    return receiver.got.at(-1)!
  }
  const verifies = (secret: string, one: Received): boolean => {
    try {
      new Webhook(secret).verify(one.text, webhookHeaders(one))
      return true
    } catch {
      return false
    }
  }

  const first = await rotate()
  assert.match(first.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(first.settings.oldSecretExpireTime, undefined, 'the first was never shown, so nobody uses it')
  const one = await next()
  assert.ok(verifies(first.secret, one))
  assert.equal(one.headers['webhook-id'], one.id)

  const events = await eventsOf(pinfold, rotate)
  assert.ok(!JSON.stringify(events).includes('whsec_') && events[0]!.type === updated)
  const second = await rotate({ overlap: '3600s' })
  const both = await next()
  assert.ok(verifies(second.secret, both))
  assert.ok(!verifies(first.secret, both), 'the one before the last is over')
  const third = await rotate({ overlap: '3600s' })
  const overlapping = await next()
  assert.ok(verifies(second.secret, overlapping) && verifies(third.secret, overlapping))
  const last = await rotate({ overlap: '0s' })
  const alone = await next()
  assert.ok(verifies(last.secret, alone) && !verifies(third.secret, alone))
  assert.ok(!(await operator.get(`${base}/${uid}/settings`)).text.includes('whsec_'))
  for (const overlap of ['-1s', '604801s']) {
    assertInvalid(await operator.post(`${base}/${uid}:rotateSecret`, { overlap }), 'overlap')
  }
})

test('a test event is sent at once, only to its subscription, and returns the result', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  await operator.post(`${base}/${uid}:pause`)
  await seed.subscription(org.uid, other.url)
  const sent = ok(await operator.post(`${base}/${uid}:sendTest`))
  assert.equal(sent.state, 'DELIVERED')
  assert.deepEqual([sent.attempts.length, sent.lastAttempt.result, sent.lastAttempt.status], [1, 'delivered', 200])
  const test = receiver.got[0]!
  assert.deepEqual([test.id, test.type], [sent.eventId, 'dev.pinfold.control.events.subscription.test.v1'])
  assert.equal(test.json.body.subscription, uid)
  receiver.answer(() => ({ status: 500 }))
  const failed = ok(await operator.post(`${base}/${uid}:sendTest`))
  assert.deepEqual([failed.state, failed.lastAttempt.status], ['GIVEN_UP', 500])
  const repo = await seed.repo(org.uid)
  await other.until((got) => got.some(({ subject }) => subject === repo.uid))
  assert.ok(other.got.every((one) => !one.type.endsWith('test.v1')))
  assert.equal(receiver.got.length, 2)
})

test('lists deliveries in both orders and in pages, each with its attempts', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver((_, times) => (times === 1 ? { status: 503 } : undefined))
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const repos = []
  for (let i = 0; i < 7; i++) repos.push(await seed.repo(org.uid))
  await delivered(pinfold, uid, 7)
  const subjects = repos.map((repo) => repo.uid)
  const list = async (query: string) => ok(await operator.get(`${base}/${uid}/deliveries?${query}`))
  const all = await list('order_by=uid')
  assert.deepEqual(
    all.deliveries.map(({ subject }: Json) => subject).toSorted(),
    subjects.toSorted(),
    'in the order in which their first attempts ended',
  )
  assert.deepEqual((await list('')).deliveries, all.deliveries.toReversed())
  const paged: Json[] = []
  for (let token = ''; ; ) {
    const page = await list(`page_size=3&page_token=${token}`)
    assert.equal(page.totalCount, '7')
    paged.push(...page.deliveries)
    token = page.nextPageToken
    if (!token) break
  }
  assert.deepEqual(paged, all.deliveries.toReversed())
  assert.deepEqual((await list('skip=5&order_by=uid asc')).deliveries, all.deliveries.slice(5))
  assert.deepEqual([(await list('state=WAITING')).totalCount, (await list('state=GIVEN_UP')).totalCount], ['0', '0'])

  const [first] = all.deliveries
  const { attempts, ...rest } = ok(await operator.get(`/events/v2/deliveries/${first.uid}`))
  assert.deepEqual({ ...rest, attempts: [] }, first)
  assert.deepEqual(
    attempts.map(({ status }: Json) => status),
    [503, 200],
  )
  assert.deepEqual(attempts.at(-1), first.lastAttempt)
  assert.equal(first.attemptCount, 2)
  assertInvalid(await operator.get(`${base}/${uid}/deliveries?order_by=subject`), 'order_by')
  assertInvalid(await operator.get(`${base}/${uid}/deliveries?state=9`), 'state')
  for (const unknown of [`${uid}/${missing}`, `${uid}/ffffffffffffffff`, uid, `${org.uid}/${missing}/${missing}`]) {
    assertNotFound(await operator.get(`/events/v2/deliveries/${unknown}`), 'events.pinfold.dev/Delivery', unknown)
  }
})

test('redelivers past events with the same ID; a request sends all of its deliveries or none', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const other = await seed.subscription(org.uid, receiver.url)
  await operator.post(`${base}/${other.uid}:pause`)
  for (let i = 0; i < 3; i++) await seed.repo(org.uid)
  // The repositories, and two events for the other subscription.
  const listed = (await delivered(pinfold, uid, 5)).body.deliveries as Json[]
  const redeliver = (deliveryUids: string[]) => operator.post(`${base}/${uid}:redeliver`, { deliveryUids })

  const time = { startTime: org.createTime, endTime: '2100-01-01T00:00:00Z' }
  ok(await operator.post(`${base}/${other.uid}:replay`, time))
  const waiting = ok(await operator.get(`${base}/${other.uid}/deliveries`)).deliveries[0]
  const unknown = `${uid}/ffffffffffff`.padEnd(uid.length + 17, 'f')
  assertNotFound(await redeliver([listed[0]!.uid, unknown]), 'events.pinfold.dev/Delivery', unknown)
  assertNotFound(await redeliver([waiting.uid]), 'events.pinfold.dev/Delivery', waiting.uid)
  const blocked = await operator.post(`${base}/${other.uid}:redeliver`, { deliveryUids: [waiting.uid] })
  assertBlocked(blocked, waiting.uid, 'STILL_WAITING')
  assertInvalid(await redeliver([]), 'delivery_uids')
  assertInvalid(await redeliver(Array.from({ length: 101 }, () => unknown)), 'delivery_uids')
  assert.equal(receiver.got.length, 5)

  const wanted = [listed[0]!, listed[2]!]
  const made = ok(await redeliver(wanted.map((one) => one.uid))).deliveries as Json[]
  assert.deepEqual(
    made.map(({ eventId, state }) => [eventId, state]),
    wanted.map(({ eventId }) => [eventId, 'WAITING']),
  )
  await receiver.until((got) => got.length === 7)
  assert.deepEqual(new Set(receiver.got.slice(5).map(({ id }) => id)), new Set(wanted.map(({ eventId }) => eventId)))
})

test('replays events of a time range in order, also to a subscription created later', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const other = await seed.group()
  await nextTime()
  const repo = await seed.repo(org.uid)
  const start = repo.createTime as string
  for (let i = 0; i < 5; i++) await operator.patch(`/registry/v2/repos/${repo.uid}`, { description: `${i}` })
  await seed.repo(other.uid)
  await nextTime()
  const { uid, createTime } = await seed.subscription(org.uid, receiver.url)
  const replay = (body: Json) => operator.post(`${base}/${uid}:replay`, body)
  const { eventCount } = ok(await replay({ startTime: start, endTime: createTime }))
  assert.equal(eventCount, '6')
  await receiver.until((got) => got.length === 6)
  assert.deepEqual(
    receiver.got.map(({ json }) => json.body.description),
    ['', '0', '1', '2', '3', '4'],
  )
  assert.equal(ok(await replay({ startTime: start, endTime: createTime })).eventCount, '6')
  await receiver.until((got) => got.length === 12)
  assert.equal(new Set(receiver.got.map(({ id }) => id)).size, 6)
  assert.equal(ok(await replay({ startTime: '2000-01-01T00:00:00Z', endTime: '2000-01-02T00:00:00Z' })).eventCount, '0')
  assertInvalid(await replay({}), 'start_time')
  assertInvalid(await replay({ startTime: createTime, endTime: createTime }), 'end_time')
})

test('a replay creates deliveries up to the queue limit, and continues later from there', async () => {
  await using pinfold = await startPinfold()
  const { seed, operator, app } = pinfold
  const org = await seed.group()
  await nextTime()
  const repo = await seed.repo(org.uid)
  for (let i = 0; i < 5; i++) await operator.patch(`/registry/v2/repos/${repo.uid}`, { description: `${i}` })
  await nextTime()
  const { uid, createTime } = await seed.subscription(org.uid)
  ok(await operator.post(`${base}/${uid}:pause`))
  const run = (query: Sql) => app.db.tx((tx) => tx.run(query))
  await run(sql`
    INSERT INTO deliveries (id, subscription_id, event_id, subject, create_time)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9996)
    SELECT -n.i, s.id, 0, 'x', s.create_time FROM n, subscriptions s WHERE s.uid = ${uid}`)
  const time = { startTime: repo.createTime, endTime: createTime }
  const replay = (more: Json = {}) => operator.post(`${base}/${uid}:replay`, { ...time, ...more })
  const first = ok(await replay())
  assert.equal(first.eventCount, '4')
  const pageToken = first.nextPageToken as string
  assertBlocked(await replay({ pageToken }), uid, 'QUEUE_FULL')
  assertInvalid(await replay({ pageToken, endTime: '2100-01-01T00:00:00Z' }), 'page_token')
  await run(sql`DELETE FROM deliveries WHERE id < 0`)
  assert.deepEqual(ok(await replay({ pageToken })), { eventCount: '2', nextPageToken: '' })
  const { deliveries } = ok(await operator.get(`${base}/${uid}/deliveries?order_by=uid`))
  assert.equal(new Set((deliveries as Json[]).map(({ eventId }) => eventId)).size, 6)
})

test('each method requires the capability on the subscription before the server looks it up', async () => {
  await using pinfold = await startPinfold()
  const { seed } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid)
  const viewer = await pinfold.as((await seed.member(org.uid, roleUids.viewer)).uid)
  const editor = await pinfold.as((await seed.member(org.uid, roleUids.editor)).uid)
  const stranger = await pinfold.as((await seed.member((await seed.group()).uid, roleUids.owner)).uid)
  const verbs = ['pause', 'resume', 'rotateSecret', 'sendTest', 'replay', 'redeliver']
  for (const one of [uid, `${org.uid}/${missing}`]) {
    for (const verb of verbs) {
      assertDenied(await viewer.post(`${base}/${one}:${verb}`))
      assertDenied(await stranger.post(`${base}/${one}:${verb}`))
    }
    assertDenied(await viewer.patch(`${base}/${one}/settings`, { types: [] }))
    for (const path of [
      `${base}/${one}/settings`,
      `${base}/${one}/deliveries`,
      `/events/v2/deliveries/${one}/${missing}`,
    ]) {
      assertDenied(await stranger.get(path))
    }
  }
  assert.equal((await viewer.get(`${base}/${uid}/deliveries`)).status, 200)
  assert.equal((await editor.post(`${base}/${uid}:pause`)).status, 200)
  const gone = `${org.uid}/${missing}`
  for (const verb of ['pause', 'resume', 'rotateSecret', 'sendTest']) {
    assertNotFound(await editor.post(`${base}/${gone}:${verb}`), type, gone)
  }
  assertNotFound(await editor.get(`${base}/${gone}/settings`), type, gone)
  assertNotFound(await editor.patch(`${base}/${gone}/settings`, { types: [] }), type, gone)
})

test('events about subscription settings contain neither the queue state nor the end of an old secret', async () => {
  await using pinfold = await startPinfold(localSinks)
  const { seed, operator, app } = pinfold
  const { uid } = await seed.subscription((await seed.group()).uid, 'http://127.0.0.1:9/sink')
  ok(await operator.post(`${base}/${uid}:rotateSecret`, {}))
  await app.db.tx((tx) =>
    tx.run(sql`UPDATE delivery_queues SET blocked_until = '2031-01-01T00:00:00.000Z' WHERE paused = 0`),
  )
  const events = await eventsOf(pinfold, async () => {
    assert.ok(ok(await operator.post(`${base}/${uid}:rotateSecret`, {})).settings.oldSecretExpireTime)
    ok(await operator.post(`${base}/${uid}:pause`, {}))
    ok(await operator.patch(`${base}/${uid}/settings`, { types: ['registry.*'] }))
  })
  const bodies = events.map(({ body }) => (body as Json).settings ?? body)
  assert.equal(bodies.length, 3)
  for (const body of bodies) {
    const known = ['uid', 'types', 'paused', 'pause_reason', 'waiting', 'given_up', 'failures']
    assert.deepEqual(
      Object.keys(body).filter((name) => !known.includes(name)),
      [],
    )
  }
})
