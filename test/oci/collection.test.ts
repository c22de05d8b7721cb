// Garbage collection deletes content that is not needed, and nothing else.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { idFile } from '#blobs/disk.ts'
import { type Sql, sql } from '#db/sql.ts'
import { requestCollection, waitForCollection } from '#domains/registry/blobs/collection.service.ts'
import { hold } from '#domains/registry/blobs/locations.store.ts'
import { digestOf, imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const day = 86_400_000

async function scene() {
  const clock = { now: Date.parse('2026-03-01T00:00:00Z') }
  const registry = await startRegistry({ blobs: '', clock: () => new Date(clock.now) })
  // Tokens expire before the days of this test are over.
  const client = () => registry.registryAs(registry.pusher.uid)
  return { registry, clock, client, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() }
}

/** Files of blobs and uploads. The file with the database ID always stays. */
function files({ app }: TestRegistry): string[] {
  const folder = join(app.config.data, 'blobs')
  assert.ok(existsSync(join(folder, idFile)))
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file !== idFile && statSync(join(folder, file)).isFile())
}

async function collect({ operator }: { operator: TestRegistry['operator'] }, dryRun = false) {
  const { status, text, body } = await operator.call('POST', '/control/v1/blobs:collect', { dryRun })
  assert.equal(status, 200, text)
  assert.equal(body.finished, true)
  const { id: _, finished: __, ...counts } = body
  return Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, Number(count)]))
}

const nothing = { links: 0, blobs: 0, bytes: 0, uploads: 0, files: 0, fileBytes: 0 }

test('deletes a blob after no manifest needs it and its grace period is over', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const pusher = await client()
  const used = await pusher.pushImage(name, 'v1')
  const gone = await pusher.pushImage(name, 'v2')
  const loose = await pusher.pushBlob(name, randomBytes(100))
  await pusher.ok(202, 'DELETE', `${name}/manifests/${gone.digest}`)
  assert.deepEqual(await collect(registry), nothing)
  const before = files(registry)

  clock.now += 2 * day
  const later = { operator: await registry.as((await import('#issuer/access-token.ts')).operatorUid) }
  // Both images have the same config. The remaining image still needs it.
  const expected = { ...nothing, links: 2, blobs: 2, bytes: 164 }
  assert.deepEqual(await collect(later, true), expected)
  assert.deepEqual(files(registry), before)
  const again = await client()
  await again.ok(200, 'GET', `${name}/blobs/${loose.digest}`)
  assert.deepEqual(await collect(later), expected)
  assert.equal(files(registry).length, 2)
  await again.ok(404, 'GET', `${name}/blobs/${loose.digest}`)
  const manifest = await again.ok(200, 'GET', `${name}/manifests/${used.digest}`)
  for (const { digest } of [manifest.body.config, ...manifest.body.layers]) {
    await again.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
  assert.deepEqual(await collect(later), nothing)
})

test('keeps content that a running push needs', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const first = await client()
  const blobs = await Promise.all(['head', 'mount', 'again', 'lost'].map((text) => first.pushBlob(name, text)))
  clock.now += day - 1000
  const pusher = await client()
  await pusher.ok(200, 'HEAD', `${name}/blobs/${blobs[0]!.digest}`)
  await pusher.ok(201, 'POST', `${name}/blobs/uploads/?mount=${blobs[1]!.digest}&from=${name}`)
  await pusher.pushBlob(name, 'again')
  clock.now += day - 1000
  const operator = await registry.as((await import('#issuer/access-token.ts')).operatorUid)
  assert.deepEqual(await collect({ operator }), { ...nothing, links: 1, blobs: 1, bytes: 4 })
  const late = await client()
  const refused = await late.call('PUT', `${name}/manifests/v1`, {
    body: JSON.stringify(imageOf(blobs[3]!, [])),
    headers: { 'content-type': types.image },
  })
  assert.equal(refused.status, 404)
  await late.pushManifest(name, imageOf(blobs[0]!, [blobs[1]!, blobs[2]!]), 'v1')
  clock.now += 10 * day
  assert.deepEqual(
    await collect({ operator: await registry.as((await import('#issuer/access-token.ts')).operatorUid) }),
    nothing,
  )
})

test('a blob needed only by another repository stays available only there', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const pusher = await client()
  const layer = await pusher.pushBlob(name, 'shared')
  await pusher.pushBlob('acme/other', 'shared')
  await pusher.pushManifest(
    'acme/other',
    imageOf(await pusher.pushBlob('acme/other', '{}', types.empty), [layer]),
    'v1',
  )
  clock.now += 2 * day
  const operator = await registry.as((await import('#issuer/access-token.ts')).operatorUid)
  assert.deepEqual(await collect({ operator }), { ...nothing, links: 1 })
  const late = await client()
  await late.ok(404, 'GET', `${name}/blobs/${layer.digest}`)
  await late.ok(200, 'GET', `acme/other/blobs/${layer.digest}`)
})

test('deletes abandoned uploads, and files without a row in the database', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const pusher = await client()
  const locations: string[] = []
  for (const body of ['stale', 'fresh']) {
    const { headers } = await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
    await pusher.ok(202, 'PATCH', String(headers.location), { body })
    locations.push(String(headers.location))
  }
  const folder = join(registry.app.config.data, 'blobs')
  const stray = join(folder, 'uploads', 'a'.repeat(32))
  const young = join(folder, 'uploads', 'b'.repeat(32))
  for (const file of [stray, young]) writeFileSync(file, 'abc')
  clock.now += 2 * day
  const late = await client()
  await late.ok(202, 'PATCH', locations[1]!, { body: '!' })
  const old = new Date(clock.now - 2 * day)
  utimesSync(stray, old, old)
  for (const file of [young]) utimesSync(file, new Date(clock.now), new Date(clock.now))

  const operator = await registry.as((await import('#issuer/access-token.ts')).operatorUid)
  assert.deepEqual(await collect({ operator }), { ...nothing, uploads: 1, files: 1, fileBytes: 3 })
  await late.ok(404, 'GET', locations[0]!)
  await late.ok(201, 'PUT', `${locations[1]}?digest=${digestOf('fresh!')}`)
  assert.equal(files(registry).length, 2)
})

test('keeps a file without a row for an hour, however short the grace period is', async () => {
  const clock = { now: Date.parse('2026-03-01T00:00:00Z') }
  await using registry = await startRegistry({ blobs: '', clock: () => new Date(clock.now), blobGraceSeconds: 1 })
  const { digest } = await registry.pusher.pushBlob(name, 'known')
  const folder = join(registry.app.config.data, 'blobs')
  const minutes = (age: number) => new Date(clock.now - age * 60_000)
  const written = [0, 59, 61].flatMap((age) => {
    const files = [
      join('uploads', `${age}`.padStart(32, 'a')),
      join('sha256', digest.slice(7, 9), `${'b'.repeat(64)}-${`${age}`.padStart(16, 'c')}`),
    ]
    for (const file of files) {
      writeFileSync(join(folder, file), 'abc')
      utimesSync(join(folder, file), minutes(age), minutes(age))
    }
    return files
  })
  assert.deepEqual(await collect(registry), { ...nothing, files: 2, fileBytes: 6 })
  for (const file of written) assert.equal(files(registry).includes(file), !file.endsWith('61'), file)
})

test('keeps files of other programs in all folders of the store', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  await (await client()).pushBlob(name, 'ours')
  const folder = join(registry.app.config.data, 'blobs')
  mkdirSync(join(folder, 'c', 'aa'), { recursive: true })
  const theirs = ['uploads/.nfs0001', 'uploads/notes.txt', `c/aa/${'A'.repeat(32)}`, 'c/aa/lost+found']
  for (const file of theirs) {
    writeFileSync(join(folder, file), 'abc')
    utimesSync(join(folder, file), new Date(clock.now - 2 * day), new Date(clock.now - 2 * day))
  }
  assert.deepEqual(await collect(registry), nothing)
  for (const file of theirs) assert.ok(existsSync(join(folder, file)), file)
})

test('retries to delete a file after a day, and deletes the others meanwhile', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const pusher = await client()
  for (const text of ['first', 'second', 'third']) await pusher.pushBlob(name, text)
  const folder = join(registry.app.config.data, 'blobs')
  const [stuck = '', ...others] = files(registry)
  const { removeAll } = registry.app.blobs
  let fails = true
  registry.app.blobs.removeAll = async (locations) => {
    const left = await removeAll(locations.filter((one) => !fails || one !== stuck))
    return fails && locations.includes(stuck) ? [...left, stuck] : left
  }
  const operator = async () => ({
    operator: await registry.as((await import('#issuer/access-token.ts')).operatorUid),
  })
  clock.now += 2 * day
  assert.equal((await collect(await operator())).blobs, 3)
  assert.deepEqual(
    [existsSync(join(folder, stuck)), ...others.map((file) => existsSync(join(folder, file)))],
    [true, false, false],
  )
  fails = false
  await collect(await operator())
  assert.ok(existsSync(join(folder, stuck)), 'not at once')
  clock.now += day
  await collect(await operator())
  assert.equal(existsSync(join(folder, stuck)), false)
})

test('the waiting time of content starts when its last row is deleted, however long ago the collection started', async () => {
  await using registry = await startRegistry({ blobs: '', blobTrashSeconds: 600, blobGraceSeconds: 1 })
  const { app, pusher } = registry
  for (const text of ['first', 'second']) await pusher.pushBlob(name, text)
  let now = Date.now() + 10_000
  const { clock } = app
  app.clock = () => {
    now += 7000
    return new Date(now)
  }
  const began = now
  const whole = { waitMs: 60_000, signal: new AbortController().signal }
  await waitForCollection(app, await requestCollection(app, false), whole)
  app.clock = clock
  const dues = (await app.db.all<{ due: string }>(sql`SELECT due FROM blob_trash ORDER BY due`)).map(({ due }) => {
    return Date.parse(due)
  })
  assert.equal(dues.length, 2)
  assert.ok(dues[0]! >= began + 600_000 + 7000 && dues[1]! >= dues[0]! + 7000, JSON.stringify([began, ...dues]))
})

test('deletes nothing from the store while a backup runs, and deletes expired content after it', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  await (await client()).pushBlob(name, 'blob')
  const operator = async () => ({
    operator: await registry.as((await import('#issuer/access-token.ts')).operatorUid),
  })
  clock.now += 2 * day
  const [now, until] = [0, 600_000].map((ms) => new Date(clock.now + ms).toISOString())
  await registry.app.db.tx((tx) => hold(tx, 'one', { now: now!, until: until! }))
  assert.equal((await collect(await operator())).blobs, 1)
  assert.equal(files(registry).length, 1)
  // A killed backup does not record its end.
  clock.now += 601_000
  await collect(await operator())
  assert.deepEqual(files(registry), [])
})

test('deletes nothing from a folder that replaced the configured blob folder', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  await (await client()).pushBlob(name, 'ours')
  const folder = join(registry.app.config.data, 'blobs')
  const stray = join(folder, 'uploads', 'a'.repeat(32))
  writeFileSync(stray, 'abc')
  utimesSync(stray, new Date(clock.now - 2 * day), new Date(clock.now - 2 * day))
  const id = readFileSync(join(folder, 'pinfold-id'), 'utf8')
  writeFileSync(join(folder, 'pinfold-id'), id.replace(/^./, '_'))
  const refused = await registry.operator.post('/control/v1/blobs:collect', { dryRun: false })
  assert.match(refused.body.message, /the blob store was replaced by another one/)
  assert.ok(existsSync(stray))
  writeFileSync(join(folder, 'pinfold-id'), id)
  assert.deepEqual(await collect(registry), { ...nothing, files: 1, fileBytes: 3 })
})

test('keeps an upload that continues during its garbage collection', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const { app } = registry
  const { headers } = await registry.pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  const location = String(headers.location)
  await registry.pusher.ok(202, 'PATCH', location, { body: 'first half, ' })
  clock.now += 2 * day
  const late = await client()
  const operator = await registry.as((await import('#issuer/access-token.ts')).operatorUid)
  const { all } = app.db
  let found = 0
  // This runs between the search for abandoned uploads and their removal.
  app.db.all = async <T>(query: Sql): Promise<T[]> => {
    const rows = await all<T>(query)
    if (!query.parts.join('?').includes('FROM uploads WHERE update_time <')) return rows
    found += rows.length
    if (rows.length > 0) await late.ok(202, 'PATCH', location, { body: 'second half' })
    return rows
  }
  assert.deepEqual(await collect({ operator }), nothing)
  app.db.all = all
  assert.equal(found, 1)
  await late.ok(201, 'PUT', `${location}?digest=${digestOf('first half, second half')}`)
})

test('keeps blobs in a folder that belongs to another database', async () => {
  await using fixture = await scene()
  const { registry, clock, client } = fixture
  const folder = join(registry.app.config.data, 'blobs')
  const theirs = join('sha256', 'aa', `${'a'.repeat(64)}-${'b'.repeat(16)}`)
  mkdirSync(join(folder, 'sha256', 'aa'))
  for (const file of [theirs, join('uploads', 'a'.repeat(32))]) {
    writeFileSync(join(folder, file), 'abc')
    utimesSync(join(folder, file), new Date(clock.now - 2 * day), new Date(clock.now - 2 * day))
  }
  assert.deepEqual(await collect(registry), { ...nothing, files: 1, fileBytes: 3 })
  assert.deepEqual(files(registry), [theirs])
  await (await client()).pushBlob(name, 'ours')
  assert.deepEqual(await collect(registry), { ...nothing, files: 1, fileBytes: 3 })
})

test('pushes, mounts and deletions work during garbage collection', async () => {
  await using registry = await startRegistry({ blobs: '', blobGraceSeconds: 3600 })
  const { pusher, app } = registry
  let failures = 0
  let over = false
  const collecting = (async () => {
    const forLong = { waitMs: 60_000, signal: new AbortController().signal }
    while (!over) await waitForCollection(app, await requestCollection(app, false), forLong)
  })()
  await Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      for (let round = 0; round < 5; round++) {
        const image = await pusher.pushImage(`acme/app-${i % 3}`, `v${round % 2}`)
        const pulled = await pusher.ok(200, 'GET', `acme/app-${i % 3}/manifests/${image.digest}`)
        for (const { digest } of pulled.body.layers) {
          const got = await pusher.call('GET', `acme/app-${i % 3}/blobs/${digest}`)
          if (digestOf(got.bytes) !== digest) failures++
        }
      }
    }),
  )
  over = true
  await collecting
  assert.equal(failures, 0)
})

test('keeps collected content in the trash for the configured time, and does not collect it twice', async () => {
  const clock = { now: Date.parse('2026-03-01T00:00:00Z') }
  await using registry = await startRegistry({
    blobs: '',
    clock: () => new Date(clock.now),
    blobTrashSeconds: 7 * 86_400,
  })
  const collectNow = async () => {
    const { operatorUid } = await import('#issuer/access-token.ts')
    return collect({ operator: await registry.as(operatorUid) })
  }
  await registry.pusher.pushImage(name, 'v1')
  await registry.pusher.pushBlob(name, 'unused')
  clock.now += 2 * day
  assert.deepEqual(await collectNow(), { ...nothing, links: 1, blobs: 1, bytes: 6 })
  assert.equal(files(registry).length, 3)
  clock.now += 6 * day
  assert.deepEqual(await collectNow(), nothing)
  // If the same content is pushed again, it is a new blob.
  const again = await registry.registryAs(registry.pusher.uid)
  await again.pushBlob(name, 'unused')
  assert.equal(files(registry).length, 4)
  clock.now += day
  assert.deepEqual(await collectNow(), nothing)
  assert.equal(files(registry).length, 3)
  const late = await registry.registryAs(registry.pusher.uid)
  assert.equal((await late.ok(200, 'GET', `${name}/blobs/${digestOf('unused')}`)).bytes.toString(), 'unused')
})

test('does not delete content from the trash if a row names it again', async () => {
  await using registry = await startRegistry({ blobs: '' })
  const { digest } = await registry.pusher.pushBlob(name, 'in use')
  await registry.app.db.tx((tx) =>
    tx.run(sql`INSERT INTO blob_trash (location, size, due) SELECT location, size, '2020' FROM blobs`),
  )
  await collect(registry)
  await registry.puller.ok(200, 'GET', `${name}/blobs/${digest}`)
})
