import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startServer } from '#api/server.ts'
import { list, sql } from '#db/sql.ts'
import { deliverEvents } from '#domains/events/events.job.ts'
import { operatorUid, signAccessToken } from '#issuer/access-token.ts'
import { startWorkers } from '#workers.ts'
import { createApp } from '../../src/create-app.ts'
import { type EventStream, openStream } from '../support/event-stream.ts'
import { assertDenied, assertError, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import {
  type Answer,
  type Client,
  clientOf,
  onPostgres,
  type Pinfold,
  roleUids,
  startPinfold,
} from '../support/pinfold.ts'
import { connectRaw } from '../support/raw-http.ts'
import { type Received, startReceiver, verifyDelivery } from '../support/receiver.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold({
    deliver: true,
    allowPrivateAddresses: true,
    allowInsecureSinks: true,
    streamIdleMs: 50,
  })
})
after(() => pinfold[Symbol.asyncDispose]())

const follow = (client: Client, query = '', headers = {}) => openStream(pinfold.url, client.token, { query, headers })
/** Skips events about groups and identities of the setup, which a stream that starts a moment later may get. */
const repos = 'types=dev.pinfold.api.platform.registry.*'
const subjects = ({ events }: EventStream) => events.map(({ attributes }) => attributes.subject)
const answerOf = ({ status, error, headers }: EventStream): Answer => ({
  status,
  body: error,
  headers,
  text: JSON.stringify(error),
})

/** Reads until the text meets the condition. */
async function until(text: () => Promise<string>, pattern: RegExp): Promise<void> {
  while (!pattern.test(await text())) await new Promise((resolve) => setImmediate(resolve))
}

/** The server keeps no events in memory from here on. */
const untilNobodyFollows = () =>
  until(() => pinfold.app.metrics.registry.getSingleMetricAsString('pinfold_requests_in_flight'), /in_flight 0$/m)

/** A delivery with the content of the stream message. */
function received({ attributes, data, token }: EventStream['events'][number]): Received {
  const headers = { authorization: `Bearer ${token}` }
  const { id = '', type = '', subject = '' } = attributes
  return { id, type, subject, path: '', headers, raw: data, text: data, json: JSON.parse(data), status: 200 }
}

test('a streamed event has the same attributes, body and proof as a delivered event', async () => {
  await using receiver = await startReceiver()
  const org = await pinfold.seed.group()
  ok(await pinfold.operator.post(`/events/v2/subscriptions/${org.uid}`, { sink: receiver.url }))
  using stream = await follow(pinfold.operator, `group=${org.uid}&${repos}`)
  assert.deepEqual([stream.status, stream.headers.get('cache-control')], [200, 'no-store'])
  const repo = await pinfold.seed.repo(org.uid, { description: 'späte Grüße' })
  await stream.until(() => stream.events.length > 0)
  await receiver.until((got) => got.length > 0)

  const [event] = stream.events
  const [delivered] = receiver.got
  assert.equal(event!.id, delivered!.id)
  assert.equal(event!.data, delivered!.text)
  const attributes = Object.entries(delivered!.headers).filter(([name]) => name.startsWith('ce-'))
  assert.deepEqual(event!.attributes, Object.fromEntries(attributes.map(([name, value]) => [name.slice(3), value])))
  assert.equal(event!.attributes.subject, repo.uid)
  await verifyDelivery(received(event!), pinfold.url, org.uid)
})

test('without a group, the proof names the highest group in which the caller can see the event', async () => {
  const org = (await pinfold.seed.group()).uid
  const folder = (await pinfold.seed.group(org)).uid
  const viewer = await pinfold.as((await pinfold.seed.member(org, roleUids.viewer)).uid)
  using all = await follow(pinfold.operator, repos)
  using some = await follow(viewer, repos)
  using one = await follow(viewer, `group=${folder}&${repos}`)
  const { uid } = await pinfold.seed.repo(folder)
  for (const [stream, scope] of [
    [all, '/'],
    [some, org],
    [one, folder],
  ] as const) {
    await stream.until(() => subjects(stream).includes(uid))
    await verifyDelivery(received(stream.events.at(-1)!), pinfold.url, scope)
  }
})

test('a stream contains only events of its group and types that the caller can see', async () => {
  const [org, other] = [(await pinfold.seed.group()).uid, (await pinfold.seed.group()).uid]
  const [left, right] = [(await pinfold.seed.group(org)).uid, (await pinfold.seed.group(org)).uid]
  const viewer = await pinfold.as((await pinfold.seed.member(left, roleUids.viewer)).uid)
  const both = `${repos},dev.pinfold.api.iam.roles.created.v1`
  using everything = await follow(pinfold.operator, both)
  using ofOrg = await follow(pinfold.operator, `group=${org}&${both}`)
  using ofLeft = await follow(pinfold.operator, `group=${left}&${repos}`)
  using seen = await follow(viewer, both)

  const made = []
  for (const group of [other, org, right, left]) {
    made.push((await pinfold.seed.repo(group)).uid, (await pinfold.seed.role(group, ['repo.list'])).uid)
  }
  const last = made.at(-1)!
  await everything.until(() => subjects(everything).includes(last))
  assert.deepEqual(subjects(everything), made)
  await ofOrg.until(() => subjects(ofOrg).includes(last))
  assert.deepEqual(subjects(ofOrg), made.slice(2))
  await seen.until(() => subjects(seen).includes(last))
  assert.deepEqual(subjects(seen), made.slice(6))
  await ofLeft.until(() => ofLeft.ids.includes(everything.events.at(-1)!.id))
  assert.deepEqual(subjects(ofLeft), [made[6]])
})

test('a stream resumes after the last event ID, by header or query, and after the ID of a delivery', async () => {
  const org = (await pinfold.seed.group()).uid
  using first = await follow(pinfold.operator, `group=${org}&${repos}`)
  const made: string[] = []
  for (let i = 0; i < 5; i++) made.push((await pinfold.seed.repo(org)).uid)
  await first.until(() => first.events.length === 5)
  first.close()
  await untilNobodyFollows()
  const ids = first.events.map(({ id }) => id)
  assert.deepEqual(
    ids,
    first.events.map(({ attributes }) => attributes.id),
  )

  const resumed = [
    [3, await follow(pinfold.operator, `group=${org}`, { 'last-event-id': ids[2] })],
    [1, await follow(pinfold.operator, `group=${org}&after=${ids[0]}`)],
    [4, await follow(pinfold.operator, `group=${org}&after=${ids[0]}`, { 'last-event-id': ids[3] })],
    [0, await follow(pinfold.operator, `group=${org}&types=*.repo.*&after=0`)],
    [0, await follow(pinfold.operator, `group=${org}&${repos}`, { 'last-event-id': first.ids[0]! })],
  ] as const
  const late = (await pinfold.seed.repo(org)).uid
  for (const [from, stream] of resumed) {
    await stream.until(() => subjects(stream).includes(late))
    assert.deepEqual(subjects(stream), [...made.slice(from), late])
    stream.close()
  }
})

test('skips events that are no longer kept', async () => {
  const org = (await pinfold.seed.group()).uid
  const kept = await pinfold.seed.repo(org)
  using before = await follow(pinfold.operator, `group=${org}&${repos}&after=0`)
  await before.until(() => subjects(before).includes(kept.uid))
  before.close()
  const swept = [await pinfold.seed.repo(org), await pinfold.seed.repo(org)].map(({ uid }) => uid)
  await untilNobodyFollows()
  using other = await follow(pinfold.operator, `group=${org}&${repos}`, { 'last-event-id': before.ids.at(-1)! })
  await other.until(() => other.events.length === 2)
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM events_outbox WHERE subject IN (${list(swept)})`))
  other.close()
  await untilNobodyFollows()

  using after = await follow(pinfold.operator, `group=${org}&${repos}`, { 'last-event-id': before.ids.at(-1)! })
  const { uid } = await pinfold.seed.repo(org)
  await after.until(() => subjects(after).includes(uid))
  assert.deepEqual(subjects(after), [uid])
})

test('refuses an unknown ID and an expired one with different errors', async () => {
  const gone = await follow(pinfold.operator, 'after=00000000-0000-4000-8000-000000000000')
  assertError(answerOf(gone), 400, 11, 'EVENT_NOT_KEPT')
  for (const after of ['1', 'x', '-1', '00', 'A'.repeat(5000)]) {
    assertInvalid(answerOf(await follow(pinfold.operator, `after=${after}`)), 'after')
  }
  assertInvalid(answerOf(await follow(pinfold.operator, '', { 'last-event-id': 'junk' })), 'after')
  assertInvalid(answerOf(await follow(pinfold.operator, 'types=Group&group=x')), 'group', 'types')
  assertInvalid(answerOf(await follow(pinfold.operator, 'from=1')), 'from')
})

test('refuses a group that the caller cannot see before the server looks it up', async () => {
  const [org, other] = [(await pinfold.seed.group()).uid, (await pinfold.seed.group()).uid]
  const viewer = await pinfold.as((await pinfold.seed.member(org, roleUids.viewer)).uid)
  assertDenied(answerOf(await follow(viewer, `group=${other}`)))
  assertDenied(answerOf(await follow(viewer, `group=${'0'.repeat(40)}`)))
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(answerOf(await follow(viewer, `group=${missing}`)), 'iam.pinfold.dev/Group', missing)
})

test('a stream follows permission changes: events stop when access is revoked and start when it is granted', async () => {
  const org = (await pinfold.seed.group()).uid
  const identity = await pinfold.seed.identity(org)
  const binding = await pinfold.seed.binding(org, identity.uid, roleUids.viewer)
  const client = await pinfold.as(identity.uid)
  using free = await follow(client, repos)
  using named = await follow(client, `group=${org}`)
  using witness = await follow(pinfold.operator, `group=${org}`)
  const before = (await pinfold.seed.repo(org)).uid
  for (const stream of [free, named]) await stream.until(() => subjects(stream).includes(before))

  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  const hidden = (await pinfold.seed.repo(org)).uid
  await witness.until(() => subjects(witness).includes(hidden))
  assert.equal(await named.ended, true)
  assert.equal(named.ending()!.code, 7)
  await free.until(() => free.ids.includes(witness.events.at(-1)!.id))
  await pinfold.seed.binding(org, identity.uid, roleUids.viewer)
  const after = (await pinfold.seed.repo(org)).uid
  await free.until(() => subjects(free).includes(after))
  for (const stream of [free, named]) assert.ok(!subjects(stream).includes(hidden))
})

test('an idle stream ends when its caller loses access, also without an event', async () => {
  await using quiet = await startPinfold({ deliver: true, streamIdleMs: 20 })
  const org = (await quiet.seed.group()).uid
  const identity = await quiet.seed.identity(org)
  const binding = await quiet.seed.binding(org, identity.uid, roleUids.viewer)
  const client = await quiet.as(identity.uid)
  const follow = (query: string) => openStream(quiet.url, client.token, { query })
  const rare = 'types=dev.pinfold.api.iam.role.created'
  using named = await follow(`group=${org}&${rare}`)
  using free = await follow(rare)
  for (const stream of [named, free]) await stream.until(() => stream.ids.length > 2)
  const [{ id }] = (await quiet.app.db.all<{ id: string }>(sql`SELECT max(id) AS id FROM events_outbox`)) as [
    { id: string },
  ]
  // Writes no event, as if the permission had expired.
  await quiet.app.db.tx((tx) => tx.run(sql`DELETE FROM role_bindings WHERE uid = ${binding.uid}`))
  // The other stream has sent many keepalive messages.
  const said = free.ids.length
  await free.until(() => free.ids.length > said + 100 || named.ending() !== undefined)
  assert.equal(named.ending()?.code, 7)
  assert.equal(await named.ended, true)
  assert.deepEqual(await quiet.app.db.all(sql`SELECT max(id) AS id FROM events_outbox`), [{ id }])
})

test('a stream ends when its token expires', async () => {
  let now = Date.now()
  await using aging = await startPinfold({ deliver: true, clock: () => new Date(now), streamIdleMs: 20 })
  const { token } = await aging.as(operatorUid, { lifetime: 60 })
  using stream = await openStream(aging.url, token)
  now += 61_000
  assert.equal(await stream.ended, true)
  assert.equal(stream.ending()!.code, 16)
})

test('a stream can last longer than the request timeout, and sends keepalive messages', async () => {
  await using quick = await startPinfold({ deliver: true, requestTimeoutMs: 1500, streamIdleMs: 100 })
  using stream = await openStream(quick.url, quick.operator.token)
  await stream.until(() => stream.ids.length > 16)
  const { uid } = await quick.seed.group()
  await stream.until(() => subjects(stream).includes(uid))
})

test('limits the streams of each caller, and counts only open streams', async () => {
  await using few = await startPinfold({ deliver: true, streamsPerCaller: 2, streamIdleMs: 20 })
  const someone = await few.as((await few.seed.person()).uid)
  const first = await openStream(few.url, someone.token)
  using _second = await openStream(few.url, someone.token)
  const third = await openStream(few.url, someone.token)
  assertError(answerOf(third), 429, 8, 'TOO_MANY_STREAMS')
  using _other = await openStream(few.url, few.operator.token)
  first.close()
  let again = await openStream(few.url, someone.token)
  while (again.status === 429) again = await openStream(few.url, someone.token)
  assert.equal(again.status, 200)
  again.close()
})

test('ends a stream whose client does not read', async () => {
  await using quick = await startPinfold({ deliver: true, requestTimeoutMs: 2000 })
  const org = (await quick.seed.group()).uid
  const repo = await quick.seed.repo(org)
  using lazy = await connectRaw(quick.port)
  lazy.write(
    `GET /events/v2/stream?group=${org} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${quick.operator.token}\r\n\r\n`,
  )
  await lazy.take(/text\/event-stream[\s\S]*still here/)
  lazy.pause()
  using eager = await openStream(quick.url, quick.operator.token)
  const content = 'x'.repeat(400_000)
  for (let i = 0; i < 40; i++) ok(await quick.operator.patch(`/registry/v2/repos/${repo.uid}/readme`, { content }))
  await eager.until(() => eager.events.length >= 40)
  await until(() => quick.app.metrics.registry.getSingleMetricAsString('pinfold_requests_in_flight'), /in_flight 1$/m)
  lazy.resume()
  await lazy.closed
  assert.ok(!lazy.received().includes('event: status'))
})

test('a server stop ends each stream without an error', async () => {
  const stopped = await startPinfold({ drainMs: 60_000 })
  const streams = await Promise.all([1, 2, 3].map(() => openStream(stopped.url, stopped.operator.token)))
  await stopped[Symbol.asyncDispose]()
  for (const stream of streams) {
    assert.equal(await stream.ended, true)
    assert.equal(stream.ending()!.code, 14)
  }
})

test('with many concurrent writers, all streams have the same event order, also after a reconnect', async () => {
  const org = (await pinfold.seed.group()).uid
  const query = `group=${org}&${repos}`
  using steady = await follow(pinfold.operator, query)
  using second = await follow(pinfold.operator, query)
  const collected: string[] = []
  let last = steady.ids[0]!
  const done = Promise.withResolvers<void>()
  let finished = 0
  const flaky = (async () => {
    for (let round = 1; finished === 0 || collected.length < finished; round++) {
      using part = await follow(pinfold.operator, query, { 'last-event-id': last })
      await part.until(
        () => part.events.length >= round || (finished > 0 && collected.length + part.events.length >= finished),
      )
      collected.push(...part.events.map(({ id }) => id))
      last = part.ids.at(-1)!
    }
    done.resolve()
  })()
  const subjectQueues = Array.from({ length: 12 }, async () => {
    for (let i = 0; i < 15; i++) await pinfold.seed.repo(org)
  })
  await Promise.all(subjectQueues)
  finished = 12 * 15
  await Promise.all([
    flaky,
    done.promise,
    ...[steady, second].map((one) => one.until(() => one.events.length >= finished)),
  ])

  const ids = steady.events.map(({ id }) => id)
  assert.equal(new Set(ids).size, finished)
  assert.deepEqual(
    second.events.map(({ id }) => id),
    ids,
  )
  assert.deepEqual(collected, ids)
})

test('a stream includes events that another server writes', { skip: !onPostgres && 'one server only' }, async () => {
  const app = await createApp({ ...pinfold.app.config, listen: { host: '127.0.0.1', port: 0 } })
  const server = await startServer(app)
  const deliveries = await startWorkers(app, { server, jobs: [deliverEvents] })
  try {
    const issued = { issuer: server.url, audience: server.url, subject: operatorUid, now: app.clock() }
    const there = clientOf(server.url, await signAccessToken(app.keyring, issued))
    const org = (await pinfold.seed.group()).uid
    using here = await follow(pinfold.operator, `group=${org}&${repos}`)
    const made: string[] = []
    for (let i = 0; i < 6; i++) {
      const writer = i % 2 ? there : pinfold.operator
      made.push(ok(await writer.post(`/registry/v2/repos/${org}`, { name: `repo${i}` })).uid)
    }
    await here.until(() => here.events.length === made.length)
    assert.deepEqual(subjects(here), made)
  } finally {
    await Promise.all([server.close(), deliveries.close()])
    await app.close()
  }
})
