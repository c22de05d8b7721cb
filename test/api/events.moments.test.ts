// Exact times at which a delivery is given up, an old secret ends, and a replay starts and ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Json, startPinfold } from '../support/pinfold.ts'
import { eventually, localSinks, type Received, startReceiver } from '../support/receiver.ts'

const base = '/events/v2/subscriptions'
const second = 1000

/** A server with a clock that only the test advances. */
async function startStill(settings: Json = {}) {
  const clock = { now: Math.floor(Date.now() / second) * second }
  const pinfold = await startPinfold({ ...localSinks, clock: () => new Date(clock.now), ...settings })
  return { pinfold, clock, iso: (ms: number) => new Date(ms).toISOString() }
}

test('gives up a delivery as soon as it reaches the configured age', async () => {
  const { pinfold, clock } = await startStill({ deliveryGiveUpMs: second, deliveryRetryMinMs: 10 })
  await using _ = pinfold
  const { seed, operator } = pinfold
  const subscribe = async () => {
    const receiver = await startReceiver(() => ({ status: 400 }))
    const org = await seed.group()
    const { uid } = await seed.subscription(org.uid, receiver.url)
    const deliveries = async (): Promise<Json[]> => ok(await operator.get(`${base}/${uid}/deliveries`)).deliveries
    const tried = async (times: number): Promise<string> => {
      const [one] = await eventually(deliveries, (some) => some[0]?.attemptCount === times)
      return one!.state
    }
    return { org, receiver, tried }
  }
  const [old, young] = [await subscribe(), await subscribe()]
  await using one = old.receiver
  await using other = young.receiver
  const began = clock.now
  await seed.repo(old.org.uid)
  await one.until((got) => got.length === 1)
  await old.tried(1)
  clock.now = began + 1
  await seed.repo(young.org.uid)
  await other.until((got) => got.length === 1)
  await young.tried(1)
  clock.now = began + second
  assert.deepEqual([await old.tried(2), await young.tried(2)], ['GIVEN_UP', 'WAITING'])
})

test('the previous secret also signs until its overlap ends', async () => {
  const { pinfold, clock } = await startStill()
  await using _ = pinfold
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const rotate = (overlap: string) => operator.post(`${base}/${uid}:rotateSecret`, { overlap })
  const isSignedBy = async (secret: string): Promise<boolean> => {
    const before = receiver.got.length
    await seed.repo(org.uid)
    await receiver.until((got) => got.length > before)
    const { text, headers } = receiver.got.at(-1) as Received
    try {
      new Webhook(secret).verify(text, headers as Record<string, string>)
      return true
    } catch {
      return false
    }
  }
  const { secret } = ok(await rotate('0s'))
  assert.ok(await isSignedBy(secret))
  ok(await rotate('60s'))
  clock.now += 60 * second - 1
  assert.ok(await isSignedBy(secret))
  clock.now += 1
  assert.ok(!(await isSignedBy(secret)))
  ok(await rotate(`${7 * 86_400}s`))
  assertInvalid(await rotate(`${7 * 86_400 + 1}s`), 'overlap')
})

test('a replay contains events from its start until just before its end, of the group of the subscription', async () => {
  const { pinfold, clock, iso } = await startStill()
  await using _ = pinfold
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const [org, other] = [await seed.group(), await seed.group()]
  const { uid } = await seed.subscription(org.uid, receiver.url)
  const began = clock.now
  const repos: string[] = []
  for (const ms of [999, 1000, 1999, 2000]) {
    clock.now = began + ms
    repos.push((await seed.repo(org.uid)).uid)
    await seed.repo(other.uid)
  }
  await receiver.until((got) => got.length === 4)
  const time = { startTime: iso(began + 1000), endTime: iso(began + 2000) }
  assert.equal(ok(await operator.post(`${base}/${uid}:replay`, time)).eventCount, '2')
  await receiver.until((got) => got.length === 6)
  assert.deepEqual(
    receiver.got
      .slice(4)
      .map(({ subject }) => subject)
      .sort(),
    repos.slice(1, 3).sort(),
  )
  const none = { startTime: time.endTime, endTime: time.endTime }
  assertInvalid(await operator.post(`${base}/${uid}:replay`, none), 'end_time')
})

test('redelivers at most 100 deliveries at a time', async () => {
  const { pinfold } = await startStill()
  await using _ = pinfold
  await using receiver = await startReceiver()
  const { seed, operator } = pinfold
  const org = await seed.group()
  const { uid } = await seed.subscription(org.uid, receiver.url)
  await seed.repo(org.uid)
  const [delivery] = await eventually(
    async (): Promise<Json[]> => ok(await operator.get(`${base}/${uid}/deliveries?state=DELIVERED`)).deliveries,
    (some) => some.length === 1,
  )
  const again = (count: number) =>
    operator.post(`${base}/${uid}:redeliver`, { deliveryUids: Array(count).fill(delivery!.uid) })
  assert.equal(ok(await again(100)).deliveries.length, 100)
  assertInvalid(await again(101), 'delivery_uids')
})
