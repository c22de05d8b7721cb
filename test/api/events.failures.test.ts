// Failures of receivers, and addresses to which the server must never connect.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { type Answer, eventually, localSinks, startReceiver } from '../support/receiver.ts'

const settings = (pinfold: Pinfold, uid: string): Promise<Json> =>
  pinfold.operator.get(`/events/v2/subscriptions/${uid}/settings`).then(({ body }) => body)
const deliveries = (pinfold: Pinfold, uid: string, query = ''): Promise<Json[]> =>
  pinfold.operator.get(`/events/v2/subscriptions/${uid}/deliveries?${query}`).then(({ body }) => body.deliveries)

test('pauses a subscription if its sink returns 410, with the reason and an event to other subscriptions', async () => {
  await using pinfold = await startPinfold(localSinks)
  await using gone = await startReceiver(() => ({ status: 410 }))
  await using other = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, gone.url)
  await seed.subscription(org.uid, other.url)
  await other.until((got) => got.some(({ type }) => type.endsWith('subscription.updated.v1')))
  const told = other.got.find(({ type }) => type.endsWith('subscription.updated.v1'))!
  // The event equals the event of a pause by a member, and contains no queue data.
  const queue = { waiting: '0', given_up: '0', failures: 0 }
  const pause = { paused: true, pause_reason: 'the endpoint URL responded with 410 Gone' }
  assert.deepEqual(told.json.body, { uid, types: [], ...pause, ...queue })
  assert.equal(told.headers['ce-bodytype'], 'pinfold.control.events.v1.SubscriptionSettings')
  const paused = await settings(pinfold, uid)
  assert.deepEqual(
    [paused.paused, paused.pauseReason, paused.waiting],
    [true, 'the endpoint URL responded with 410 Gone', '1'],
  )

  const repo = await seed.repo(org.uid)
  await other.until((got) => got.some(({ subject }) => subject === repo.uid))
  assert.equal(gone.got.length, 1)
  gone.answer(() => undefined)
  assert.equal((await operator.post(`/events/v2/subscriptions/${uid}:resume`)).status, 200)
  await gone.until(() => gone.accepted().length >= 2)
  assert.ok(gone.accepted().some(({ id }) => id === gone.got[0]!.id))
})

test('a sink that asks for a pause with Retry-After gets no request until it ends', async () => {
  await using pinfold = await startPinfold(localSinks)
  const org = await pinfold.seed.group()
  for (const answer of [
    { status: 429, headers: { 'retry-after': '3600' } },
    { status: 503, headers: { 'retry-after': new Date(Date.now() + 3600_000).toUTCString() } },
  ] satisfies Answer[]) {
    await using receiver = await startReceiver(() => answer)
    const folder = await pinfold.seed.group(org.uid)
    const { uid } = await pinfold.seed.subscription(folder.uid, receiver.url)
    await pinfold.seed.repo(folder.uid)
    const blocked = await eventually(
      () => settings(pinfold, uid),
      ({ blockedUntil }) => blockedUntil,
    )
    const wait = Date.parse(blocked.blockedUntil) - Date.now()
    assert.ok(wait > 3_500_000 && wait <= 3_600_000, String(wait))
    assert.equal(blocked.failures, 1)
    await pinfold.seed.repo(folder.uid)
    await eventually(
      () => settings(pinfold, uid),
      ({ waiting }) => waiting === '2',
    )
    assert.equal(receiver.got.length, 1)

    // A member can resume the subscription at once after repairing the sink.
    receiver.answer(() => undefined)
    await pinfold.operator.post(`/events/v2/subscriptions/${uid}:resume`)
    await receiver.until(() => receiver.accepted().length === 2)
  }
})

test('does not follow redirects, and retries other failures with the same ID', async () => {
  await using pinfold = await startPinfold({ ...localSinks, deliveryTimeoutMs: 1000 })
  await using elsewhere = await startReceiver()
  const answers: Answer[] = [
    'cut',
    { status: 307, headers: { location: elsewhere.url } },
    { status: 400 },
    { status: 404 },
    { status: 500 },
    'nothing',
  ]
  await using receiver = await startReceiver((_, times) => answers[times - 1])
  const org = await pinfold.seed.group()
  const { uid } = await pinfold.seed.subscription(org.uid, receiver.url)
  await pinfold.seed.repo(org.uid)
  await receiver.until(() => receiver.accepted().length === 1)
  assert.equal(new Set(receiver.got.map(({ id }) => id)).size, 1)
  assert.equal(receiver.got.length, 7)
  assert.equal(elsewhere.got.length, 0)
  const [delivery] = await eventually(
    () => deliveries(pinfold, uid),
    ([one]) => one?.state === 'DELIVERED',
  )
  const read = (await pinfold.operator.get(`/events/v2/deliveries/${delivery!.uid}`)).body
  assert.deepEqual(
    read.attempts.map(({ result, status }: Json) => [result, status]),
    [
      ['unreachable', 0],
      ['refused', 307],
      ['refused', 400],
      ['refused', 404],
      ['refused', 500],
      ['timeout', 0],
      ['delivered', 200],
    ],
  )
  const times = read.attempts.map(({ createTime }: Json) => Date.parse(createTime)) as number[]
  const waits = times.slice(1).map((time, i) => time - times[i]!)
  for (const [i, least] of [10, 20, 40, 50, 50].entries()) assert.ok(waits[i]! >= least, waits.join())
})

test('an expired delivery stays listed, is not tried again, and does not block the next delivery of its subject', async () => {
  await using pinfold = await startPinfold({ ...localSinks, deliveryGiveUpMs: 1 })
  const { seed, operator } = pinfold
  await using receiver = await startReceiver(({ json }) =>
    json.body.description === 'bad' ? { status: 400 } : undefined,
  )
  const org = await seed.group()
  const repo = await seed.repo(org.uid)
  const { uid } = await seed.subscription(org.uid, receiver.url)
  for (const description of ['bad', 'good']) await operator.patch(`/registry/v2/repos/${repo.uid}`, { description })
  await receiver.until(() => receiver.accepted().length === 1)
  assert.equal(receiver.accepted()[0]!.json.body.description, 'good')
  const [dead] = await eventually(
    () => deliveries(pinfold, uid, 'state=GIVEN_UP'),
    (some) => some.length === 1,
  )
  assert.deepEqual([dead!.subject, dead!.attemptCount, dead!.lastAttempt.status], [repo.uid, 1, 400])
  assert.equal((await settings(pinfold, uid)).givenUp, '1')

  receiver.answer(() => undefined)
  const again = await operator.post(`/events/v2/subscriptions/${uid}:redeliver`, { deliveryUids: [dead!.uid] })
  assert.equal(again.status, 200, again.text)
  assert.equal(again.body.deliveries[0].eventId, dead!.eventId)
  await receiver.until(() => receiver.accepted().length === 2)
  assert.deepEqual(receiver.accepted()[1]!.id, dead!.eventId)
})

test('limits the concurrent deliveries to one sink as configured, also for two subscriptions', async () => {
  await using pinfold = await startPinfold({ ...localSinks, deliveriesInFlight: 4 })
  await using receiver = await startReceiver()
  const { seed } = pinfold
  const org = await seed.group()
  await seed.subscription(org.uid, receiver.url)
  await seed.subscription(org.uid, receiver.url)
  // Responds only when four requests have arrived, so four requests must be sent concurrently.
  const held: (() => void)[] = []
  receiver.hold((release) => {
    held.push(release)
    if (held.length === 4) for (const one of held.splice(0)) one()
  })
  await Promise.all(Array.from({ length: 20 }, () => seed.repo(org.uid)))
  await receiver.until((got) => got.length >= 36)
  assert.equal(receiver.mostInFlight(), 4)
})

test('two subscriptions of one sink share its limit, however slow the sink is', async () => {
  await using pinfold = await startPinfold({ ...localSinks, deliveriesInFlight: 4 })
  await using shared = await startReceiver()
  await using other = await startReceiver()
  const { seed } = pinfold
  const [org, aside] = [await seed.group(), await seed.group()]
  for (const sink of [shared.url, shared.url]) await seed.subscription(org.uid, sink)
  await seed.subscription(aside.uid, other.url)
  await shared.until((got) => got.length >= 1)
  const held: (() => void)[] = []
  shared.hold((release) => held.push(release))
  const before = shared.got.length
  await Promise.all(Array.from({ length: 20 }, () => seed.repo(org.uid)))
  await shared.until((got) => got.length >= before + 4)
  // Further requests to the shared sink would have arrived before these later events.
  for (let i = 0; i < 3; i++) {
    const last = await seed.repo(aside.uid)
    await other.until((got) => got.some(({ subject }) => subject === last.uid))
  }
  assert.equal(held.length, 4)
  shared.hold((release) => release())
  for (const release of held) release()
  await shared.until((got) => got.length === before + 40)
})

test('refuses connections to addresses of this machine unless a setting allows them, also after a DNS change', async () => {
  await using receiver = await startReceiver()
  await using pinfold = await startPinfold({ ...localSinks, allowPrivateAddresses: false })
  const org = await pinfold.seed.group()
  // Changes the address of a host name between the check and the connection.
  const { uid } = await pinfold.seed.subscription(org.uid, 'https://hooks.example.com/')
  await pinfold.operator.post(`/events/v2/subscriptions/${uid}:pause`)
  await pinfold.point(uid, receiver.url)
  await pinfold.seed.repo(org.uid)
  await pinfold.operator.post(`/events/v2/subscriptions/${uid}:resume`)
  const [tried] = await eventually(
    () => deliveries(pinfold, uid),
    ([one]) => one?.lastAttempt !== undefined,
  )
  assert.deepEqual([tried!.state, tried!.lastAttempt.result], ['WAITING', 'private-address'])
  assert.equal(receiver.got.length, 0)
})
