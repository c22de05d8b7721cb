// Deletion of a large repo in slices: it disappears for everybody at once, and in the end only its tag history remains.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { inRepo } from '#domains/registry/blobs/blobs.store.ts'
import { collectBlobs, scheduleCollections } from '#domains/registry/blobs/collect-blobs.job.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { removings } from '#domains/registry/deletions/removals.service.ts'
import { mostAtOnce, piecesAtOnce, sliceSize } from '#domains/registry/repos/removals.model.ts'
import { openRemovals } from '#domains/registry/repos/removals.store.ts'
import { startWorkers } from '#workers.ts'
import { type Finding, verify } from '../../src/maintenance/verify.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkLists } from '../support/check-lists.ts'
import { checkUsage } from '../support/check-usage.ts'
import { eventually } from '../support/receiver.ts'
import { codeOf, imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/large'
const many = 1050

/** A repo with one image under many tags. */
async function scene() {
  const registry = await startRegistry()
  const { pusher, app } = registry
  await pusher.pushImage('acme/other', 'v1')
  const digest = await pushMany(pusher, name)
  const { uid, id, ledger } = (await app.db.get<{ uid: string; id: number; ledger: number }>(
    sql`SELECT uid, id, ledger_id AS ledger FROM repos WHERE name = 'large'`,
  ))!
  return { registry, uid, id, ledger, digest, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() }
}

async function pushMany(pusher: TestRegistry['registryOperator'], name: string): Promise<string> {
  const layer = await pusher.pushBlob(name, 'layer')
  const config = await pusher.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
  const body = JSON.stringify(imageOf(config, [layer]))
  const { digest } = await pusher.pushManifest(name, body)
  for (let at = 0; at < many; at += 50) {
    const tags = Array.from({ length: 50 }, (_, i) => `tag=v${at + i}`).join('&')
    await pusher.ok(201, 'PUT', `${name}/manifests/${digest}?${tags}`, {
      body,
      headers: { 'content-type': types.image },
    })
  }
  return digest
}

async function problems({ app }: Pick<TestRegistry, 'app'>): Promise<Finding[]> {
  const found: Finding[] = []
  await verify(app.config, { repair: false, hash: false, found: (finding) => found.push(finding) })
  return found
}

async function finish({ app }: TestRegistry): Promise<void> {
  const workers = await startWorkers(app, { jobs: [removeRepos] })
  await eventually(
    () => openRemovals(app.db),
    (left) => left.length === 0,
  )
  await workers.close()
}

test('a large repository disappears at once, and its name can be used again during the deletion', async () => {
  await using fixture = await scene()
  const { registry, uid, ledger } = fixture
  const { operator, pusher, puller, org, app } = registry
  const tag = (await app.db.get<{ uid: string }>(sql`SELECT uid FROM tags WHERE name = 'v7'`))!
  assert.equal((await operator.delete(`/registry/v2/repos/${uid}`)).status, 200)
  assert.equal((await openRemovals(app.db)).length, 1)

  assert.equal((await operator.get(`/registry/v2/repos/${uid}`)).status, 404)
  assert.equal((await operator.get(`/registry/v2/tags/${tag.uid}`)).status, 404)
  assert.equal((await operator.delete(`/registry/v2/repos/${uid}`)).status, 404)
  const got = await puller.call('GET', `${name}/manifests/v7`)
  assert.deepEqual([got.status, codeOf(got)], [404, 'NAME_UNKNOWN'])
  for (const path of ['repos', 'repos?order_by=uid', `repos?uidp.children_of=${org.uid}&order_by=uid`]) {
    const { body } = await operator.get(`/registry/v2/${path}`)
    assert.deepEqual(
      body.repos.map((one: { name: string }) => one.name),
      ['other'],
      path,
    )
  }
  for (const more of ['', '&order_by=uid', '&order_by=update_time', '&updated_since=2020-01-01T00:00:00Z']) {
    const { body } = await operator.get(`/registry/v2/tags?uidp.descendants_of=${org.uid}${more}`)
    assert.deepEqual(
      body.tags.map((one: { name: string }) => one.name),
      ['v1'],
      more,
    )
  }
  const refused = await operator.delete(`/iam/v2/groups/${org.uid}`)
  assert.equal(refused.status, 400)
  assert.match(
    refused.text,
    /still has deletions of repositories that have not finished; wait until they have finished/,
  )
  assert.deepEqual(await problems(registry), [], 'what is on its way is no damage')

  // The same repository name, and a tag name that the deleted repository had.
  const again = await pusher.pushImage(name, 'v7')
  await finish(registry)
  assert.equal((await puller.ok(200, 'GET', `${name}/manifests/v7`)).headers['docker-content-digest'], again.digest)
  const rows = await app.db.all<{ tag: string; event: number; time: string }>(sql`
    SELECT tag, event, time FROM tag_history WHERE repo_id = ${ledger} ORDER BY tag, time`)
  const of = (wanted: string) => rows.filter((row) => row.tag === wanted).map(({ event }) => event)
  assert.deepEqual([of('v7'), of('v8'), rows.length], [[1, 3, 1], [1, 3], 2 * many + 1])
  assert.equal(new Set(rows.filter(({ event }) => event === 3).map(({ time }) => time)).size, 1, 'one time for all')
  assert.deepEqual(await app.db.all(sql`SELECT 1 AS one FROM repos WHERE ledger_id IS NULL`), [])
  await checkLists(registry)
  await checkUsage(registry)
  assert.deepEqual(await problems(registry), [])
  const told = await app.db.all(sql`SELECT 1 AS one FROM events_outbox WHERE type LIKE '%repo.deleted%'`)
  assert.equal(told.length, 1)
})

test('the next node completes the deletion of a large repository after a node was killed', async () => {
  await using fixture = await scene()
  const { registry, uid, ledger } = fixture
  const { app, operator } = registry
  assert.equal((await operator.delete(`/registry/v2/repos/${uid}`)).status, 200)
  const [removal] = await openRemovals(app.db)
  for (const removing of [...removings(app).slice(0, 1), ...removings(app)]) {
    await app.db.tx((tx) => removing(tx, removal!, sliceSize), { isolation: 'rowLocks' })
  }
  await checkUsageOf(registry)
  await finish(registry)
  const left = await app.db.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM tag_history WHERE repo_id = ${ledger} AND event = 3`)
  assert.equal(left!.total, many)
  await checkLists(registry)
  await checkUsage(registry)
  assert.deepEqual(await problems(registry), [])
})

test('deleting parts that are already gone takes few transactions while the rest is deleted', async () => {
  await using fixture = await scene()
  const { registry, uid } = fixture
  const { app, operator, pusher } = registry
  const blobs = 300
  for (let i = 0; i < blobs; i++) await pusher.pushBlob(name, `blob ${i}`)
  assert.equal((await operator.delete(`/registry/v2/repos/${uid}`)).status, 200)
  // Other transactions of the server, such as its heartbeats, depend on how long this takes.
  let took = 0
  const { tx } = app.db
  app.db.tx = (work, options) => {
    if (options === inRepo) took++
    return tx(work, options)
  }
  await runJob(app, removeRepos)
  // Tags, blobs, a few other rows, and for each kind one query that finds no more rows.
  const needed = Math.ceil((many + blobs) / sliceSize) + 2 * removings(app).length
  assert.ok(took > 0 && took <= needed, `${took} transactions, where ${needed} would do`)
  await checkUsage(registry)
})

/** Starts an upload, and sends the given number of parts with one byte each. */
async function upload(pusher: TestRegistry['pusher'], name: string, pieces: number): Promise<void> {
  const location = String((await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)).headers.location)
  for (let i = 0; i < pieces; i++) await pusher.ok(202, 'PATCH', location, { body: 'x' })
}

test('deletes uploads with many parts in batches, and the parts in the next garbage collection', async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, pusher, operator } = registry
  const uidOf = async (name: string) =>
    (await app.db.get<{ uid: string }>(sql`SELECT uid FROM repos WHERE name = ${name}`))!.uid
  const pieces = async () => (await app.db.all(sql`SELECT location FROM upload_parts`)).length
  const waiting = async () => (await app.db.all(sql`SELECT location FROM blob_trash WHERE due <= ${soon()}`)).length
  for (const name of ['acme/few', 'acme/many']) await pusher.pushImage(name, 'v1')
  const stored = (await storedOf(app)).length

  await upload(pusher, 'acme/few', 3)
  await upload(pusher, 'acme/many', piecesAtOnce + 1)
  await upload(pusher, 'acme/many', mostAtOnce - piecesAtOnce)
  await upload(pusher, 'acme/many', 0)
  assert.equal((await operator.delete(`/registry/v2/repos/${await uidOf('few')}`)).status, 200)
  assert.deepEqual(await openRemovals(app.db), [], 'so few go at once')
  assert.equal(await waiting(), 3)

  assert.equal((await operator.delete(`/registry/v2/repos/${await uidOf('many')}`)).status, 200)
  const [removal] = await openRemovals(app.db)
  for (let left = mostAtOnce + 1, turns = 0; left > 0; turns++) {
    assert.ok(turns < 20, `${left} pieces are left`)
    for (const removing of removings(app)) {
      await app.db.tx((tx) => removing(tx, removal!, sliceSize), { isolation: 'rowLocks' })
    }
    const now = await pieces()
    assert.ok(left - now <= piecesAtOnce, `${left - now} pieces went with one slice`)
    await checkUsageOf(registry)
    left = now
  }
  await finish(registry)
  assert.deepEqual(await app.db.all(sql`SELECT uid FROM uploads`), [])
  assert.equal(await waiting(), mostAtOnce + 4)
  assert.deepEqual(await problems(registry), [])
  for (const job of [scheduleCollections, collectBlobs]) await runJob(app, job)
  assert.equal(await waiting(), 0)
  // The blobs of the images may be deleted by now, too.
  assert.ok((await storedOf(app)).length <= stored)
  await checkUsage(registry)
})

const soon = () => new Date(Date.now() + 1000).toISOString()

async function storedOf({ blobs }: TestRegistry['app']): Promise<string[]> {
  const locations: string[] = []
  for await (const { location } of blobs.list()) locations.push(location)
  return locations
}

test('schedules organizations fairly, however much one of them has deleted', async () => {
  await using registry = await startRegistry()
  const { operator, registryOperator: pusher, app, seed } = registry
  await seed.group('', { name: 'beta' })
  // All deletions of acme were requested before those of beta.
  for (const path of ['acme/one', 'acme/two', 'beta/three']) {
    await pushMany(pusher, path)
    const { uid } = (await app.db.get<{ uid: string }>(sql`SELECT uid FROM repos WHERE name = ${path.slice(5)}`))!
    assert.equal((await operator.delete(`/registry/v2/repos/${uid}`)).status, 200)
  }
  const uids = (await openRemovals(app.db)).map(({ uid }) => uid)
  assert.equal(uids.length, 3)
  const ended: unknown[] = []
  const log = { ...app.log, info: (_: string, fields: Record<string, unknown> = {}) => ended.push(fields.uid) }
  assert.deepEqual(await runJob({ ...app, log: log as typeof app.log }, removeRepos), { repos: 3 })
  assert.deepEqual(ended, [uids[0], uids[2], uids[1]])
  await checkLists(registry)
  await checkUsage(registry)
})

/** The counters are correct after each batch. */
async function checkUsageOf(registry: TestRegistry): Promise<void> {
  assert.deepEqual(
    (await problems(registry)).filter(({ check }) => check === 'usage' || check === 'totals'),
    [],
  )
}
