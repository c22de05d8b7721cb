import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import {
  claimRead,
  type DueRead,
  finishRead,
  unreadable as unreadableOutcome,
} from '#domains/registry/images/image-contents.service.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { createReadScheduler } from '#lib/scheduling/read-scheduler.ts'
import { startWorkers } from '#workers.ts'
import { allRead, alpine, pushLayers } from '../support/images.ts'
import { type Json, onPostgres, roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
let now = new Date('2026-03-01T00:00:00.000Z')
const later = (ms: number) => {
  now = new Date(now.getTime() + ms)
}
before(async () => {
  registry = await startRegistry({ sparseManifests: 'all', clock: () => now })
})
after(() => registry[Symbol.asyncDispose]())

let count = 0
const newName = () => `acme/image-${count++}`
const queue = () => registry.app.db.all<Json>(sql`SELECT digest, due_time AS due, attempts FROM image_reads`)
const stateOf = async (digest: string) => {
  const row = await registry.app.db.get<Json>(sql`SELECT state, reason FROM image_contents WHERE digest = ${digest}`)
  return row && [row.state, row.reason]
}
const [known, unreadable] = [1, 3]

/** Runs the reader once. */
async function tryOnce(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = registry.app.images.read.subscribe(resolve)
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  await promise
  stop()
  await reader.close()
}

test('the next server reads images that were pushed while no server read images', async () => {
  const pushed = [await push(), await push(), await push()]
  assert.equal((await queue()).length, 3)
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  await allRead(registry)
  await reader.close()
  for (const digest of pushed) assert.deepEqual(await stateOf(digest), [known, ''])
})

/** An image that no other test pushes. */
const push = async () => {
  const name = newName()
  return (await pushLayers(registry.pusher, name, [alpine('alpine-3.10'), { name }])).digest
}

const shared = { skip: !onPostgres && 'one node only' }

test('two servers share the queue, and each image is read once', shared, async () => {
  const pushed = []
  for (let i = 0; i < 6; i++) pushed.push(await push())
  const readers = [
    await startWorkers(registry.app, { jobs: [readImages] }),
    await startWorkers(registry.app, { jobs: [readImages] }),
  ]
  await allRead(registry)
  for (const reader of readers) await reader.close()
  for (const digest of pushed) assert.deepEqual(await stateOf(digest), [known, ''])
})

test('another reader reads an image after its reader is gone, and not before', async () => {
  const digest = await push()
  await registry.app.db.tx((tx) => tx.run(sql`UPDATE image_reads SET owner = 'gone', fence = 1, attempts = 1`))
  const live = await claimRead(registry.app, { node: 'other', isGone: () => false })
  assert.equal(live, undefined)
  const stalled = (await registry.app.db.get<DueRead>(sql`
    SELECT repo_id AS repo, digest, due_time AS "dueTime", attempts, owner, fence FROM image_reads`))!
  let time = 0
  const app = { ...registry.app, config: { ...registry.app.config, leaseMs: 400 } }
  const reader = await startWorkers(app, { jobs: [readImages], monotonic: () => time })
  if (onPostgres) assert.equal(await stateOf(digest), undefined)
  const asking = setInterval(() => {
    time += 100
    app.images.pushed.notify()
  }, 50)
  await allRead(registry)
  clearInterval(asking)
  await reader.close()
  assert.deepEqual(await stateOf(digest), [known, ''])
  // The late result of the former reader is ignored.
  await finishRead(registry.app, stalled, unreadableOutcome('FAILED', 'too late'))
  assert.deepEqual(await stateOf(digest), [known, ''])
})

test('reads an image again if its reader failed to release it', async () => {
  const digest = await push()
  const first = (await claimRead(registry.app, { node: 'same', isGone: () => false }))!
  const again = (await claimRead(registry.app, { node: 'same', isGone: () => false }))!
  assert.deepEqual([again.digest, again.fence], [first.digest, first.fence + 1])
  await finishRead(registry.app, again, unreadableOutcome('FAILED', 'enough'))
  assert.deepEqual((await stateOf(digest))?.[1], 'FAILED')
})

test('an image becomes readable when its missing content arrives', async () => {
  const [name, other] = [newName(), newName()]
  const config = await registry.pusher.pushBlob(name, '{}', types.config)
  const image = await pushLayers(registry.pusher, other, [alpine('alpine-3.11')])
  const manifest = await registry.pusher.ok(200, 'GET', `${other}/manifests/${image.digest}`)
  const late = await registry.pusher.pushManifest(name, imageOf(config, manifest.body.layers))
  await tryOnce()
  await tryOnce()
  assert.deepEqual([await stateOf(image.digest), await stateOf(late.digest)], [[known, ''], undefined])
  const layer = await registry.pusher.ok(200, 'GET', `${other}/blobs/${manifest.body.layers[0].digest}`)
  await registry.pusher.pushBlob(name, layer.bytes)
  later(10_000)
  await tryOnce()
  assert.deepEqual([await queue(), await stateOf(late.digest)], [[], [known, '']])
})

test('retries a failing store, and releases the image at once when the reader stops', async () => {
  const digest = await push()
  const { read } = registry.app.blobs
  registry.app.blobs.read = () => Promise.reject(new Error('the disk is away'))
  await tryOnce()
  assert.deepEqual(
    (await queue()).map(({ attempts }) => attempts),
    [1],
  )
  later(10_000)

  const opened = Promise.withResolvers<void>()
  registry.app.blobs.read = () => {
    opened.resolve()
    return new Promise(() => {})
  }
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  await opened.promise
  await reader.close()
  assert.deepEqual(
    (await queue()).map(({ attempts, due }) => [attempts, due]),
    [[1, now.toISOString()]],
  )

  registry.app.blobs.read = read
  await tryOnce()
  assert.deepEqual([await queue(), await stateOf(digest)], [[], [known, '']])
})

test('removes an image from the queue if it is deleted before it was read', async () => {
  const name = newName()
  const image = await pushLayers(registry.pusher, name, [alpine('alpine-3.10'), { x: name }])
  await registry.registryOperator.ok(202, 'DELETE', `${name}/manifests/${image.digest}`)
  await tryOnce()
  assert.deepEqual([await queue(), await stateOf(image.digest)], [[], undefined])
})

test('schedules organizations fairly, however many images one of them has pushed', async () => {
  // On a busy machine an image may take so long that its organization has to pause. So the clock stands still.
  registry.app.images.turns = createReadScheduler(() => 0)
  const other = await registry.seed.group('', { name: 'other' })
  const theirs = await registry.registryAs((await registry.seed.member(other.uid, roleUids.push)).uid)
  const many: string[] = []
  for (let i = 0; i < 6; i++) many.push(await push())
  later(1000)
  const few: string[] = []
  for (const name of ['other/a', 'other/b']) few.push((await pushLayers(theirs, name, [{ name }])).digest)
  const order: string[] = []
  const { info } = registry.app.log
  registry.app.log.info = (message, fields) => {
    if (message === 'image read') order.push(String(fields?.digest))
    info(message, fields)
  }
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  await allRead(registry)
  await reader.close()
  registry.app.log.info = info
  assert.deepEqual(order.toSorted(), [...many, ...few].toSorted())
  for (const digest of few) assert.ok(order.indexOf(digest) <= 3, `${order.map((one) => few.includes(one))}`)
})

/** Creates an organization with a member who may push there. */
async function newOrganization(name: string) {
  const { uid } = await registry.seed.group('', { name })
  const client = await registry.registryAs((await registry.seed.member(uid, roleUids.push)).uid)
  const pushOne = async (image: string) =>
    (await pushLayers(client, `${name}/${image}`, [alpine('alpine-3.10'), { image, name }])).digest
  return { uid: uid as string, pushOne }
}

/** Reads all queued images, and returns their digests in reading order. */
async function readAll(): Promise<string[]> {
  const order: string[] = []
  const { info } = registry.app.log
  registry.app.log.info = (message, fields) => {
    if (message === 'image read') order.push(String(fields?.digest))
    info(message, fields)
  }
  const reader = await startWorkers(registry.app, { jobs: [readImages] })
  await allRead(registry)
  await reader.close()
  registry.app.log.info = info
  return order
}

test('an organization with slow images gets a quarter of the time, or all of it if no other waits', async () => {
  const [slow, quick] = [await newOrganization('a-slow'), await newOrganization('b-quick')]
  const long = new Set<string>()
  for (const image of ['a', 'b', 'c']) long.add(await slow.pushOne(image))
  for (let i = 0; i < 12; i++) await quick.pushOne(`image-${i}`)
  const { turns } = registry.app.images
  let time = 0
  const { choose, take } = createReadScheduler(() => time, { giveWayMs: 60_000, shortMs: 1000 })
  registry.app.images.turns = {
    choose,
    take: (read, others, work) =>
      take(read, others, async (signal) => {
        time += long.has(read.digest) ? 30_000 : 10_000
        await work(signal)
      }),
  }
  const order = (await readAll()).map((digest) => (long.has(digest) ? 'S' : 'q')).join('')
  registry.app.images.turns = turns
  // After 30 seconds for one organization, the other gets 90 seconds.
  assert.match(order, /^q?S(q{3,9})S(q{3,9})q*S$/)
  assert.equal(order.length, 15)
})

test('a slow image yields to waiting images, and is read completely later', async () => {
  const [slow, quick] = [await newOrganization('c-slow'), await newOrganization('d-quick')]
  const long = await slow.pushOne('a')
  const { turns } = registry.app.images
  registry.app.images.turns = createReadScheduler(() => performance.now(), { giveWayMs: 50, shortMs: 1000 })
  const { read } = registry.app.blobs
  const opened = Promise.withResolvers<void>()
  const turnsOfLong: AbortSignal[] = []
  const { take } = registry.app.images.turns
  let bothWait = false
  registry.app.images.turns.take = (one, waiting, work) =>
    // On a busy machine the other images could be slow too, so only this image counts time. It waits until both others are
    // queued. Otherwise all images would be read before the second one is queued.
    take(
      one,
      async () => bothWait && one.digest === long && waiting(),
      async (signal) => {
        if (one.digest === long) turnsOfLong.push(signal)
        await work(signal)
      },
    )
  registry.app.blobs.read = () => {
    registry.app.blobs.read = read
    opened.resolve()
    return new Promise(() => {})
  }
  const done = readAll()
  await opened.promise
  // No other image has waited so far.
  assert.deepEqual(
    turnsOfLong.map(({ aborted }) => aborted),
    [false],
  )
  const others = [await quick.pushOne('a'), await quick.pushOne('b')]
  bothWait = true
  const order = await done
  registry.app.images.turns = turns
  assert.deepEqual(order.toSorted(), [...others, long].toSorted())
  assert.notEqual(order[0], long)
  assert.deepEqual(
    turnsOfLong.map(({ aborted }) => aborted),
    [true, false],
  )
  assert.deepEqual(await stateOf(long), [known, ''])
})

test('images that wait for a retry do not delay other organizations', async () => {
  const early = await registry.seed.group('', { name: 'another' })
  const theirs = await registry.registryAs((await registry.seed.member(early.uid, roleUids.push)).uid)
  const waiting = (await pushLayers(theirs, 'another/a', [{ x: 'waits' }])).digest
  const future = new Date(now.getTime() + 3_600_000).toISOString()
  await registry.app.db.tx((tx) => tx.run(sql`UPDATE image_reads SET due_time = ${future}`))
  const due = await push()
  for (const after of ['', early.uid, registry.org.uid, 'f'.repeat(40)]) {
    const read = (await claimRead(registry.app, { node: 'n', isGone: () => false, after }))!
    assert.equal(read.digest, due)
    await registry.app.db.tx((tx) => tx.run(sql`UPDATE image_reads SET owner = '' WHERE digest = ${due}`))
  }
  await registry.app.db.tx((tx) => tx.run(sql`DELETE FROM image_reads WHERE digest IN (${waiting}, ${due})`))
})

// This test is the last one, because it advances the clock by a day and the tokens expire.
test('retries missing content with growing delays, and finally marks the image unreadable', async () => {
  const name = newName()
  const config = await registry.pusher.pushBlob(name, '{}', types.config)
  const layer = { mediaType: types.layer, size: 10, digest: `sha256:${'0'.repeat(64)}` }
  const { digest } = await registry.pusher.pushManifest(name, imageOf(config, [layer]))
  const waits = []
  for (let attempt = 1; attempt < 10; attempt++) {
    await tryOnce()
    const [left] = await queue()
    assert.equal(left?.attempts, attempt)
    waits.push((Date.parse(left?.due) - now.getTime()) / 1000)
    later(waits.at(-1)! * 1000)
  }
  assert.deepEqual(waits, [10, 40, 160, 640, 2560, 10_240, 21_600, 21_600, 21_600])
  assert.equal(await stateOf(digest), undefined)
  await tryOnce()
  assert.deepEqual([await queue(), await stateOf(digest)], [[], [unreadable, 'BLOB_MISSING']])
})
