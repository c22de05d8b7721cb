// Records of a pull: each pull is counted, and sends an event only if a subscription or stream selects it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { createAudience } from '#domains/events/subscriptions/audience.ts'
import { sweepUsage } from '#domains/registry/usage/digest-usage.job.ts'
import { createDigestUsage } from '#domains/registry/usage/digest-usage.ts'
import { runJob } from '../support/background-jobs.ts'
import { openStream } from '../support/event-stream.ts'
import { onPostgres, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const pull = 'dev.pinfold.registry.pull.v1'

type Row = { digest: string; day: string; caller: string; gets: number; checks: number; last: string }

async function usageOf({ app }: TestRegistry): Promise<Row[]> {
  await app.usage.flush()
  return app.db.all<Row>(sql`
    SELECT digest, day, caller, gets, checks, last_time AS "last" FROM digest_usage ORDER BY digest, day, caller`)
}

async function pullEvents({ app }: TestRegistry): Promise<number> {
  await app.registryEvents.flush()
  const row = await app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM events_outbox WHERE type = ${pull}`)
  return row!.n
}

const silent = {
  failed: () => {},
  dropped: (count: number) => assert.equal(count, 0),
}

test('counts pulls without a subscription by digest, caller and day, without events', async () => {
  let now = '2026-03-01T23:59:59.000Z'
  await using registry = await startRegistry({ clock: () => new Date(now) })
  const { pusher, puller } = registry
  const image = await pusher.pushImage(name, 'v1')
  for (let i = 0; i < 20; i++) await puller.ok(200, 'GET', `${name}/manifests/v1`)
  await puller.ok(200, 'HEAD', `${name}/manifests/${image.digest}`)
  await pusher.ok(200, 'GET', `${name}/manifests/${image.digest}`)
  await usageOf(registry)
  now = '2026-03-02T00:00:00.000Z'
  await puller.ok(200, 'GET', `${name}/manifests/v1`)
  await puller.ok(404, 'GET', `${name}/manifests/none`)

  const { digest } = image
  const rows = [
    { digest, day: '2026-03-01', caller: puller.uid, gets: 20, checks: 1, last: '2026-03-01T23:59:59.000Z' },
    { digest, day: '2026-03-01', caller: pusher.uid, gets: 1, checks: 0, last: '2026-03-01T23:59:59.000Z' },
    { digest, day: '2026-03-02', caller: puller.uid, gets: 1, checks: 0, last: now },
  ]
  const key = ({ day, caller }: { day: string; caller: string }) => `${day} ${caller}`
  assert.deepEqual(
    await usageOf(registry),
    rows.sort((a, b) => (key(a) < key(b) ? -1 : 1)),
  )
  assert.equal(await pullEvents(registry), 0)
})

test('counts pulls without a credential as one caller, from all addresses', async () => {
  await using registry = await startRegistry({ publicOrg: 'acme', trustedProxies: ['127.0.0.1'] })
  const { pusher, anonymous, nobody } = registry
  await pusher.pushImage(name, 'latest')
  const token = (await anonymous.get(`/token?scope=repository:${name}:pull`)).body.token as string
  for (let i = 0; i < 5; i++) {
    await nobody.ok(200, 'GET', `${name}/manifests/latest`, { token, headers: { 'x-forwarded-for': `192.0.2.${i}` } })
  }
  assert.deepEqual(
    (await usageOf(registry)).map(({ caller, gets }) => [caller, gets]),
    [['', 5]],
  )
})

test('a million pulls of one manifest use one row, and pulls of very many callers use few rows', async () => {
  await using registry = await startRegistry()
  const { app } = registry
  const now = '2026-03-01T12:00:00.000Z'
  for (let i = 0; i < 1_000_000; i++) app.usage.note(1, 'sha256:a', 'one', 'GET', now)
  assert.equal(await app.usage.flush(), 1)
  const callers = Array.from({ length: 150 }, (_, i) => `caller-${String(i).padStart(3, '0')}`)
  for (const caller of [...callers, '', ...callers]) app.usage.note(2, 'sha256:b', caller, 'HEAD', now)
  await app.usage.flush()
  for (const caller of [...callers, 'one more'])
    app.usage.note(2, 'sha256:b', caller, 'GET', '2026-03-01T13:00:00.000Z')
  const rows = await usageOf(registry)
  assert.equal(rows[0]!.gets, 1_000_000)
  const many = rows.slice(1)
  assert.equal(many.length, 102)
  const others = many.find(({ caller }) => caller === '*')!
  assert.deepEqual([others.gets, others.checks, others.last], [51, 100, '2026-03-01T13:00:00.000Z'])
  assert.equal(
    many.reduce((sum, { gets, checks }) => sum + gets + checks, 0),
    301 + 151,
  )
  // The anonymous caller always has a separate row, however late the first pull is.
  for (const caller of callers) app.usage.note(3, 'sha256:c', caller, 'GET', now)
  await app.usage.flush()
  app.usage.note(3, 'sha256:c', '', 'GET', now)
  const late = (await usageOf(registry)).filter(({ digest }) => digest === 'sha256:c')
  assert.equal(late.find(({ caller }) => caller === '')?.gets, 1)
})

test('writes failed counts later, and when the server stops', async () => {
  await using registry = await startRegistry()
  let down = true
  const db = {
    ...registry.app.db,
    tx: (...args: Parameters<typeof registry.app.db.tx>) => {
      return down ? Promise.reject(new Error('down')) : registry.app.db.tx(...args)
    },
  } as typeof registry.app.db
  const usage = createDigestUsage(db, silent)
  const note = (time: string) => usage.note(1, 'sha256:a', 'one', 'GET', `2026-03-01T12:00:0${time}.000Z`)
  note('1')
  await assert.rejects(usage.flush(), /down/)
  note('0')
  down = false
  await usage.close()
  const [row] = await usageOf(registry)
  assert.deepEqual([row!.gets, row!.last], [2, '2026-03-01T12:00:01.000Z'])
})

test('limits the counts that wait for an unavailable database', () => {
  const left: number[] = []
  const db = { tx: () => Promise.reject(new Error('down')) } as never
  const usage = createDigestUsage(db, { failed: () => {}, dropped: (count) => left.push(count) })
  for (let i = 0; i < 30_000; i++) usage.note(i, 'sha256:a', 'one', 'GET', '2026-03-01T12:00:00.000Z')
  return assert.rejects(usage.flush()).then(() => assert.deepEqual(left, [10_000]))
})

test('reports dropped pull events only if they were selected: as a number, and as one log line', async () => {
  await using registry = await startRegistry({ registryEventsPerOrganization: 2, clock: () => new Date('2026-03-01') })
  const { app, pusher, puller, org, seed } = registry
  const team = await seed.group(org.uid, { name: 'team' })
  for (const path of ['acme/app', 'acme/team/app']) await pusher.pushImage(path, 'v1')
  const warned: unknown[][] = []
  app.log.warn = (...line) => void warned.push(line)
  const droppedNow = async () => {
    await app.registryEvents.flush()
    const shown = await app.metrics.registry.getSingleMetricAsString('pinfold_registry_dropped_total')
    return Object.fromEntries(
      [...shown.matchAll(/what="(\w+)"\} (\d+)/g)].map(([, what, count]) => [what, Number(count)]),
    )
  }
  const none = { pull_event: 0, refused_push_event: 0, pull_count: 0 }
  const pull = (path: string) => puller.ok(200, 'GET', `${path}/manifests/v1`)
  for (let i = 0; i < 5; i++) await pull('acme/app')
  assert.deepEqual(await droppedNow(), none, 'before anything was known of who listens')
  await seed.subscription(team.uid)
  for (let i = 0; i < 5; i++) await pull('acme/app')
  assert.deepEqual([await droppedNow(), warned], [none, []], 'in a group beside it')
  for (let i = 0; i < 5; i++) await pull('acme/team/app')
  assert.deepEqual(await droppedNow(), { ...none, pull_event: 3 })
  await pull('acme/team/app')
  const headers = { 'content-type': types.image }
  for (let i = 0; i < 3; i++) await puller.ok(403, 'PUT', 'acme/team/app/manifests/v1', { body: '{}', headers })
  assert.deepEqual(await droppedNow(), { ...none, pull_event: 4, refused_push_event: 1 })
  assert.deepEqual(warned, [
    ['pull events dropped', { count: 3 }],
    ['refused push events dropped', { count: 1 }],
  ])
})

test('a pull sends an event as soon as a subscription selects it, and is also counted', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, operator, org, seed } = registry
  const team = await seed.group(org.uid, { name: 'team' })
  const aside = await seed.group(org.uid, { name: 'aside' })
  const path = 'acme/team/app'
  await pusher.pushImage(path, 'v1')
  const pullOnce = () => puller.ok(200, 'GET', `${path}/manifests/v1`)
  const pulls = async () => {
    const before = await pullEvents(registry)
    await pullOnce()
    return (await pullEvents(registry)) - before
  }
  const typed = async (uid: string, types: string[]) => {
    const { status } = await operator.patch(`/events/v2/subscriptions/${uid}/settings`, { types })
    assert.equal(status, 200)
  }
  assert.equal(await pulls(), 0)
  const elsewhere = await seed.subscription(aside.uid)
  assert.equal(await pulls(), 0, 'a group beside it')
  const above = await seed.subscription(org.uid)
  assert.equal(await pulls(), 1, 'a group above it')
  await typed(above.uid, ['dev.pinfold.registry.push.*'])
  assert.equal(await pulls(), 0, 'other types')
  await typed(above.uid, ['dev.pinfold.registry.p*'])
  assert.equal(await pulls(), 1, 'a pattern')
  for (const { uid } of [elsewhere, above]) await operator.delete(`/events/v2/subscriptions/${uid}`)
  assert.equal(await pulls(), 0, 'it is deleted')
  // Between two writes: a pull before the subscription was known sends no event.
  await pullOnce()
  const own = await seed.subscription(team.uid)
  await pullOnce()
  assert.equal(await pullEvents(registry), 2 + 1)
  await operator.delete(`/events/v2/subscriptions/${own.uid}`)
  const manifests = (await usageOf(registry)).filter(({ caller }) => caller === puller.uid)
  assert.deepEqual(
    manifests.map(({ gets }) => gets),
    [8],
  )
})

test('a pull sends an event while an open stream can show it', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, url, seed, org, operator } = registry
  await pusher.pushImage(name, 'v1')
  const pulls = async () => {
    const before = await pullEvents(registry)
    await puller.ok(200, 'GET', `${name}/manifests/v1`)
    return (await pullEvents(registry)) - before
  }
  const rows = async () => {
    const [row] = await registry.app.db.all<{ n: number }>(sql`SELECT count(*) AS n FROM pull_streams`)
    return row!.n
  }
  const closed = async () => {
    while ((await rows()) > 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const mine = await registry.tokenFor((await seed.member(org.uid, roleUids.owner)).uid)
  const other = await seed.group('', { name: 'other' })
  const foreign = await registry.tokenFor((await seed.member(other.uid, roleUids.owner)).uid)
  for (const [token, query, wanted] of [
    [mine, `group=${org.uid}`, 1],
    [mine, '', 1],
    [mine, `group=${org.uid}&types=dev.pinfold.api.*`, 0],
    [foreign, '', 0],
    [operator.token!, '', 1],
  ] as const) {
    const stream = await openStream(url, token, { query })
    assert.equal(stream.status, 200)
    assert.equal(await pulls(), wanted, query)
    stream.close()
    await closed()
  }
  const left = { stream: 'of a server that was killed', until: '2020-01-01T00:00:00.000Z' }
  await registry.app.db.tx((tx) =>
    tx.run(
      sql`INSERT INTO pull_streams (stream, place, expire_time) VALUES (${left.stream}, ${org.uid}, ${left.until})`,
    ),
  )
  assert.equal(await pulls(), 0)
})

test('a subscription change on another server has effect after half a second', async () => {
  await using registry = await startRegistry()
  const { db } = registry.app
  const { org, seed } = registry
  let now = 0
  // Simulates another server, which gets no signal of commits on this one.
  const apart = { ...db, all: db.all.bind(db), get: db.get.bind(db), shared: true, onCommit: () => {} } as typeof db
  const audience = createAudience(
    apart,
    pull,
    () => new Date(),
    () => now,
  )
  assert.equal(audience.isEmpty(org.uid), false, 'nothing is known yet')
  assert.equal(await audience.includes(org.uid), false)
  assert.equal(audience.isEmpty(org.uid), true)
  await seed.subscription(org.uid)
  now = 499
  assert.equal(audience.isEmpty(org.uid), true)
  now = 500
  assert.equal(audience.isEmpty(org.uid), false, 'in doubt it is asked')
  assert.equal(await audience.includes(org.uid), true)
})

test('deletes old counts, except the latest ones of an existing manifest', async () => {
  await using registry = await startRegistry({ clock: () => new Date('2026-06-01T00:00:00.000Z') })
  const { app, pusher, registryOperator } = registry
  const [kept, gone] = [await pusher.pushImage(name, 'kept'), await pusher.pushImage(name, 'gone')]
  const repo = (await app.paths.find(name)).repo!.id
  const days = ['2026-01-01', '2026-01-02', '2026-03-02', '2026-03-03', '2026-03-04']
  const write = async (digest: string, some: readonly string[]) => {
    for (const day of some) for (const caller of ['a', 'b']) app.usage.note(repo, digest, caller, 'GET', `${day}T00`)
    await app.usage.flush()
  }
  await write(kept.digest, days.slice(0, 2))
  await write(gone.digest, days.slice(0, 2))
  const busy = `sha256:${randomBytes(32).toString('hex')}`
  await write(busy, days)
  // More rows than one batch reads.
  for (let i = 0; i < 1200; i++) app.usage.note(repo + 1, `sha256:${i}`, '', 'GET', '2025-01-01T00')
  await app.usage.flush()
  await registryOperator.ok(202, 'DELETE', `${name}/manifests/${gone.digest}`)
  await runJob(app, sweepUsage)
  const left = (await usageOf(registry)).map(({ digest, day, caller }) => `${digest} ${day} ${caller}`)
  assert.deepEqual(
    left,
    [
      ...['a', 'b'].map((caller) => `${kept.digest} 2026-01-02 ${caller}`),
      ...['2026-03-03', '2026-03-04'].map((day) => `${busy} ${day} *`),
    ].sort(),
  )
})

test('does not count pulls of blobs', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const { digest } = await pusher.pushBlob(name, 'content')
  await puller.ok(200, 'HEAD', `${name}/blobs/${digest}`)
  await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  assert.deepEqual(await usageOf(registry), [])
})

test('after a week, merges the callers of a day into one number, except the latest ones of an existing manifest', async () => {
  await using registry = await startRegistry({ clock: () => new Date('2026-06-01T00:00:00.000Z') })
  const { app, pusher } = registry
  const { digest } = await pusher.pushImage(name, 'v1')
  const repo = (await app.paths.find(name)).repo!.id
  const gone = `sha256:${randomBytes(32).toString('hex')}`
  const note = (of: string, day: string, caller: string, time = 'T00') => {
    app.usage.note(repo, of, caller, 'GET', `2026-${day}${time}`)
  }
  for (const caller of ['a', 'b', 'b', '', '*']) note(digest, '05-20', caller, caller === 'b' ? 'T02' : 'T01')
  for (const caller of ['a', 'b']) note(digest, '05-24', caller)
  for (const caller of ['a', 'b']) for (const day of ['05-20', '05-25']) note(gone, day, caller)
  await app.usage.flush()
  const rows = async (of: string) =>
    (await usageOf(registry))
      .filter((row) => row.digest === of)
      .map(({ day, caller, gets, last }) => [day.slice(5), caller, gets, last.slice(11)])
  await runJob(app, sweepUsage)
  const expected = [
    ['05-20', '', 1, '01'],
    ['05-20', '*', 4, '02'],
    ['05-24', 'a', 1, '00'],
    ['05-24', 'b', 1, '00'],
  ]
  assert.deepEqual(await rows(digest), expected)
  assert.deepEqual(await rows(gone), [
    ['05-20', '*', 2, '00'],
    ['05-25', 'a', 1, '00'],
    ['05-25', 'b', 1, '00'],
  ])
  await runJob(app, sweepUsage)
  assert.deepEqual(await rows(digest), expected, 'the second time there is nothing to do')
})

test('adding to a count and listing callers use the key of the table', async () => {
  await using registry = await startRegistry()
  const { db } = registry.app
  const plan = await db.plan(sql`
    SELECT caller FROM digest_usage
     WHERE repo_id = ${1} AND digest = ${'sha256:a'} AND day = ${'2026-01-01'} AND caller <> ${''} LIMIT ${100}`)
  if (!onPostgres) assert.match(plan, /SEARCH digest_usage USING PRIMARY KEY \(repo_id=\? AND digest=\? AND day=\?/)
  const streams = await db.plan(sql`
    SELECT 1 AS found FROM pull_streams WHERE place IN (${'a'}, ${'b'}) AND expire_time > ${'2026'} LIMIT 1`)
  if (!onPostgres) assert.match(streams, /USING COVERING INDEX pull_streams_by_place/)
})
