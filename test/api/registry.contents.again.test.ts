// Images that an earlier version of the server has read are read again without a push, and no data is lost.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readerVersion } from '#domains/registry/images/image-contents.model.ts'
import { claimRead } from '#domains/registry/images/image-contents.service.ts'
import { readAgain, readImages } from '#domains/registry/images/read-images.job.ts'
import { startWorkers } from '#workers.ts'
import { allRead, alpine, pushLayers } from '../support/images.ts'
import type { Json } from '../support/pinfold.ts'
import { indexOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { zipOf } from '../support/zip.ts'

let registry: TestRegistry
let now = new Date('2026-03-01T00:00:00.000Z')
before(async () => {
  registry = await startRegistry({ clock: () => now })
})
after(() => registry[Symbol.asyncDispose]())

const known = 1
const db = () => registry.app.db
const contentsOf = (digest: string) =>
  db().get<Json>(sql`
    SELECT c.state, c.reader, c.gaps, c.packages AS hash, p.packages
      FROM image_contents c LEFT JOIN package_lists p ON p.hash = c.packages WHERE c.digest = ${digest}`)
const kindsIn = (found: Json | undefined) => new Set((JSON.parse(found?.packages) as string[][]).map(([kind]) => kind))

async function read(): Promise<void> {
  const workers = await startWorkers(registry.app, { jobs: [readImages] })
  await allRead(registry)
  await workers.close()
}

/** Changes the database as if an earlier version had read all images: only distribution packages, with another hash. */
async function makeOld(reader = 0): Promise<void> {
  const old = '[["apk","busybox","1.0-r0","busybox","1.0-r0","x86_64"]]'
  await db().tx(async (tx) => {
    await tx.run(sql`INSERT INTO package_lists (hash, packages) VALUES ('old', ${old}) ON CONFLICT (hash) DO NOTHING`)
    await tx.run(sql`UPDATE image_contents SET reader = ${reader}, packages = 'old' WHERE state = ${known}`)
  })
}

/** Runs until no data of an earlier version is left. */
async function readAllAgain(): Promise<void> {
  const workers = await startWorkers(registry.app, { jobs: [readAgain, readImages] })
  for (;;) {
    const left = await db().get(sql`SELECT 1 AS found FROM image_contents WHERE reader < ${readerVersion} LIMIT 1`)
    if (!left) break
    // An index waits until its images are read.
    const next = await db().get<Json>(sql`SELECT MIN(due_time) AS due, MIN(again) AS again FROM image_reads`)
    const only =
      next?.again === 1 && (await db().all(sql`SELECT 1 AS one FROM image_reads WHERE owner > ''`)).length === 0
    if (only && next.due > now.toISOString()) now = new Date(next.due)
    registry.app.images.pushed.notify()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await allRead(registry)
  await workers.close()
}

const app = zipOf({ 'META-INF/maven/g/a/pom.properties': 'groupId=g\nartifactId=a\nversion=1\n' })
const image = (name: string) => pushLayers(registry.pusher, name, [alpine('alpine-3.10'), { 'app.jar': app, name }])

test('reads images and indexes again without a push, and finds language packages', async () => {
  const images = [await image('acme/one'), await image('acme/two')]
  const index = await registry.pusher.pushManifest('acme/one', indexOf([images[0]!]))
  await read()
  const fresh = await Promise.all([...images, index].map(({ digest }) => contentsOf(digest)))
  for (const reader of [0, readerVersion - 1]) {
    await makeOld(reader)
    await readAllAgain()
    for (const [i, { digest }] of [...images, index].entries()) {
      const found = await contentsOf(digest)
      assert.deepEqual(kindsIn(found), new Set(['apk', 'maven']))
      assert.deepEqual(found, fresh[i])
    }
  }
})

test('reads pushed images before images that are read again, also in the same organization', async () => {
  await makeOld()
  await db().tx((tx) =>
    tx.run(sql`
      INSERT INTO image_reads (repo_id, digest, due_time, attempts, organization, again)
      SELECT c.repo_id, c.digest, '2026-01-01T00:00:00.000Z', 0, substr(r.uid, 1, 40), 1
        FROM image_contents c JOIN repos r ON r.id = c.repo_id`),
  )
  const pushed = await image('acme/pushed')
  const first = await claimRead(registry.app, { node: 'one', isGone: () => false })
  assert.deepEqual([first?.digest, first?.again], [pushed.digest, 0])
  await db().tx((tx) => tx.run(sql`UPDATE image_reads SET owner = '' WHERE owner = 'one'`))
  await readAllAgain()
})

test('keeps the known contents of images that are deleted or became unreadable', async () => {
  const gone = await image('acme/gone')
  const broken = await image('acme/broken')
  await read()
  await makeOld()
  const manifest = await registry.pusher.ok(200, 'GET', `acme/broken/manifests/${broken.digest}`)
  const layer = manifest.body.layers[1].digest as string
  await registry.pusher.ok(202, 'DELETE', `acme/gone/manifests/${gone.digest}`)
  const { read: open } = registry.app.blobs
  registry.app.blobs.read = async (of) => {
    const blob = await open(of)
    if (!(of as Json).digest?.includes(layer.slice(7))) return blob
    return { ...blob, stream: () => Readable.from([Buffer.alloc(2000, 7)]) as never }
  }
  await readAllAgain()
  registry.app.blobs.read = open
  assert.deepEqual((await contentsOf(gone.digest))?.hash, 'old')
  const found = await contentsOf(broken.digest)
  assert.deepEqual([found?.state, kindsIn(found)], [known, new Set(['apk'])])
  const gaps = JSON.parse(found?.gaps) as Json[]
  assert.deepEqual(
    gaps.map(({ reason, path }) => [reason, path]),
    [['DAMAGED', '']],
  )
})
