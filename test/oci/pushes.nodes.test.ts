// Concurrent pushes, deletions and collections in one repository, on two servers if the database supports it.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import pg from 'pg'
import { sql } from '#db/sql.ts'
import { inRepo, lockRepo } from '#domains/registry/blobs/blobs.store.ts'
import { deleteUnneededLink } from '#domains/registry/blobs/collection.store.ts'
import { insertLinks } from '#domains/registry/manifests/manifests.store.ts'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { atOnce } from '../support/at-once.ts'
import { checkUsage } from '../support/check-usage.ts'
import { ok } from '../support/expect.ts'
import { clientAt, secondNode, someoneWaits } from '../support/nodes.ts'
import { onPostgres } from '../support/pinfold.ts'
import { digestOf, imageOf, type RegistryClient, startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const always = '9999'
const skip = onPostgres ? false : 'an embedded database has one writer, which nobody waits for in the middle'

async function scene(overrides: Parameters<typeof startRegistry>[0] = {}) {
  const registry = await startRegistry(overrides)
  const node = await secondNode(registry)
  return {
    registry,
    node,
    doors: [registry.pusher, clientAt(node, registry.pusher)] as [RegistryClient, RegistryClient],
    async [Symbol.asyncDispose]() {
      await node[Symbol.asyncDispose]()
      await registry[Symbol.asyncDispose]()
    },
  }
}

const repoOf = async ({ app, org }: TestRegistry) => (await findRepoRow(app.db, { group: org.uid, name: 'app' }))!

async function blobsOf(door: RegistryClient) {
  const layer = await door.pushBlob(name, randomBytes(64))
  const config = await door.pushBlob(name, '{"architecture":"amd64"}', types.config)
  return { layer, config, manifest: JSON.stringify(imageOf(config, [layer])) }
}

test('a push during the deletion of a blob gets the error that the blob is missing', { skip }, async () => {
  await using fixture = await scene()
  const { registry, doors } = fixture
  const { layer, manifest } = await blobsOf(doors[0])
  const repo = await repoOf(registry)
  let pushed: Promise<{ status: number; body: Record<string, any> }> | undefined
  await registry.app.db.tx(async (tx) => {
    await lockRepo(tx, repo, 'alone')
    const headers = { 'content-type': types.image }
    pushed ??= doors[1].call('PUT', `${name}/manifests/latest`, { body: manifest, headers })
    await someoneWaits(fixture.node)
    assert.equal(await deleteUnneededLink(tx, { repo: repo.id, digest: layer.digest }, always), true)
  }, inRepo)
  const { status, body } = await pushed!
  assert.deepEqual([status, body.errors[0].code], [404, 'MANIFEST_BLOB_UNKNOWN'])
  await checkUsage(registry)
})

test('a garbage collection during the push of a manifest keeps its blobs', { skip }, async () => {
  await using fixture = await scene({ blobGraceSeconds: 0 })
  const { registry, doors } = fixture
  const { layer } = await blobsOf(doors[0])
  const repo = await repoOf(registry)
  let collected: Promise<unknown> | undefined
  await registry.app.db.tx(async (tx) => {
    await lockRepo(tx, repo, 'alone')
    await insertLinks(tx, repo.id, digestOf('a manifest'), 0, [layer.digest])
    collected ??= registry.operator.post('/control/v1/blobs:collect', {})
    await someoneWaits(fixture.node)
  }, inRepo)
  await collected
  const left = await registry.app.db.all(sql`SELECT digest FROM repo_blobs WHERE repo_id = ${repo.id}`)
  assert.deepEqual(left, [{ digest: layer.digest }])
  assert.equal((await doors[1].call('GET', `${name}/blobs/${layer.digest}`)).status, 200)
  await checkUsage(registry)
})

/** Locks the row like another server. */
async function holdRepo(
  { app }: TestRegistry,
  id: number,
  lock: 'FOR NO KEY UPDATE' | 'FOR UPDATE' = 'FOR NO KEY UPDATE',
) {
  const url = new URL(app.config.database)
  const schema = url.searchParams.get('schema')!
  url.searchParams.delete('schema')
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query('BEGIN')
  await client.query(`SELECT 1 FROM ${schema}.repos WHERE id = $1 ${lock}`, [id])
  return { [Symbol.asyncDispose]: () => client.end() }
}

test('many pushes that wait for one repository do not block other repositories, and each push completes', {
  skip,
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { pusher, operator } = registry
  const { manifest } = await blobsOf(pusher)
  const repo = await repoOf(registry)
  const headers = { 'content-type': types.image }
  const move = (i: number) => pusher.call('PUT', `${name}/manifests/t${i}`, { body: manifest, headers })
  let pushed: ReturnType<typeof move>[]
  {
    await using _held = await holdRepo(registry, repo.id)
    pushed = Array.from({ length: 30 }, (_, i) => move(i))
    await someoneWaits(registry)
    await pusher.pushImage('acme/other', 'latest')
    assert.equal((await operator.get('/registry/v2/repos')).status, 200)
  }
  const statuses = new Set((await Promise.all(pushed)).map(({ status }) => status))
  assert.deepEqual([...statuses], [201])
})

test('two repositories that another node deletes leave connections for requests to other repositories', {
  skip,
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, org, pusher, operator } = registry
  const headers = { 'content-type': types.image }
  const names = ['acme/app', 'acme/second']
  const images = []
  for (const one of names) images.push(await pusher.pushImage(one, 'first'))
  const { bytes: body } = await pusher.ok(200, 'GET', `${names[0]}/manifests/first`)
  let pushed: Promise<{ status: number }>[]
  {
    await using held = new AsyncDisposableStack()
    for (const one of ['app', 'second']) {
      const row = (await findRepoRow(app.db, { group: org.uid, name: one }))!
      held.use(await holdRepo(registry, row.id, 'FOR UPDATE'))
    }
    pushed = names.flatMap((one) =>
      Array.from({ length: 12 }, (_, i) => {
        if (i % 3 === 0) return pusher.call('PUT', `${one}/manifests/t${i}`, { body, headers })
        const blob = randomBytes(64)
        return pusher.call('POST', `${one}/blobs/uploads/?digest=${digestOf(blob)}`, { body: blob })
      }),
    )
    await someoneWaits(registry, 7)
    for (let i = 0; i < 20; i++) assert.equal((await operator.get('/registry/v2/repos')).status, 200)
    assert.equal((await pusher.call('GET', `acme/app/manifests/${images[0]!.digest}`)).status, 200)
  }
  const statuses = new Set((await Promise.all(pushed)).map(({ status }) => status))
  assert.ok(
    [...statuses].every((status) => status === 201 || status === 404),
    [...statuses].join(),
  )
})

test('a tag that many clients push, update and delete on two servers always equals its tag history', async () => {
  await using fixture = await scene()
  const { registry, doors } = fixture
  const { config } = await blobsOf(doors[0])
  const statuses = new Set<number>()
  const acknowledged: string[] = []
  const retries = () => registry.app.db.stats().retries + fixture.node.app.db.stats().retries
  const before = retries()
  const turn = async (i: number): Promise<void> => {
    const door = doors[i % 2]!
    const layer = await door.pushBlob(name, randomBytes(64))
    const manifest = JSON.stringify(imageOf(config, [layer]))
    const headers = { 'content-type': types.image }
    const put = await door.call('PUT', `${name}/manifests/hot`, { body: manifest, headers })
    statuses.add(put.status)
    if (put.status === 201) acknowledged.push(digestOf(manifest))
    if (i % 5 === 0) statuses.add((await door.call('DELETE', `${name}/manifests/hot`)).status)
    if (i % 7 === 0) statuses.add((await door.call('DELETE', `${name}/manifests/${digestOf(manifest)}`)).status)
  }
  await atOnce(8, 80, turn)
  for (const status of statuses) assert.ok([201, 202, 404].includes(status), `answered ${status}`)
  // The job that reads images uses separate transactions.
  assert.ok(retries() - before <= 20, `${retries() - before} transactions ran again`)

  const repo = await repoOf(registry)
  type Row = { event: number; digest: string; previous: string; time: string }
  const rows = await registry.app.db.all<Row>(sql`
    SELECT event, digest, previous_digest AS previous, time FROM tag_history
     WHERE repo_id = ${repo.ledger} AND tag = 'hot' ORDER BY time`)
  const deleted = 3
  let now = ''
  for (const row of rows) {
    assert.equal(row.previous, now, `the row of ${row.time} does not follow from the one before`)
    now = row.event === deleted ? '' : row.digest
  }
  for (const digest of acknowledged) assert.ok(rows.some((row) => row.digest === digest && row.event !== deleted))
  const heads = await Promise.all(doors.map((door) => door.call('HEAD', `${name}/manifests/hot`)))
  for (const { headers } of heads) assert.equal(headers['docker-content-digest'] ?? '', now)
  const listed = ok(await registry.operator.get(`/registry/v2/tags?uidp.descendantsOf=${repo.uid}`))
  assert.equal(Number(listed.totalCount), now === '' ? 0 : 1)
  await checkUsage(registry)
})

test('an organization never stores more than its quota, on any of its servers', async () => {
  await using fixture = await scene()
  const { registry, doors } = fixture
  await blobsOf(doors[0])
  const [before] = (await checkUsage(registry)).values()
  const limit = before!.bytes + 5 * 1000
  const limits = [{ name: 'bytes', limit: String(limit) }]
  ok(await registry.operator.post('/control/v1/quotas:set', { organization: registry.org.uid, limits }))
  const replies = await Promise.all(
    Array.from({ length: 16 }, (_, i) => {
      const body = randomBytes(1000)
      // Uses different repositories, because pushes to the same one wait for each other anyway.
      return doors[i % 2]!.call('POST', `acme/r${i % 4}/blobs/uploads/?digest=${digestOf(body)}`, { body })
    }),
  )
  const counts = Map.groupBy(replies, ({ status }) => status)
  assert.deepEqual([...counts.keys()].sort(), [201, 403])
  assert.equal(counts.get(201)!.length, 5)
  const [after] = (await checkUsage(registry)).values()
  assert.equal(after!.bytes, limit)
})

test('a repository deleted during pushes leaves no rows or content', async () => {
  await using fixture = await scene()
  const { registry, doors } = fixture
  for (let round = 0; round < 3; round++) {
    await blobsOf(doors[0])
    const repo = await repoOf(registry)
    const pushing = Array.from({ length: 8 }, async (_, i) => {
      const door = doors[i % 2]!
      const begun = await door.call('POST', `${name}/blobs/uploads/`)
      const body = randomBytes(100)
      if (begun.status === 202) await door.call('PATCH', String(begun.headers.location), { body })
      return Promise.all([
        door.call('POST', `${name}/blobs/uploads/?digest=${digestOf(body)}`, { body }),
        door.pushImage(name, `t${i}`).catch((error: Error) => assert.match(error.message, /answered 40[0-9]/)),
      ])
    })
    const gone = await registry.operator.delete(`/registry/v2/repos/${repo.uid}`)
    assert.equal(gone.status, 200, gone.text)
    for (const [reply] of await Promise.all(pushing)) assert.ok(reply.status < 500, reply.bytes.toString())
    for (const table of ['uploads', 'repo_blobs', 'manifests', 'manifest_links', 'tags', 'image_reads'] as const) {
      const left = await registry.app.db.all(countOf[table](repo.id))
      assert.deepEqual(left, [{ n: 0 }], table)
    }
    await checkUsage(registry)
  }
})

const countOf = {
  uploads: (repo: number) => sql`SELECT count(*) AS n FROM uploads WHERE repo_id = ${repo}`,
  repo_blobs: (repo: number) => sql`SELECT count(*) AS n FROM repo_blobs WHERE repo_id = ${repo}`,
  manifests: (repo: number) => sql`SELECT count(*) AS n FROM manifests WHERE repo_id = ${repo}`,
  manifest_links: (repo: number) => sql`SELECT count(*) AS n FROM manifest_links WHERE repo_id = ${repo}`,
  tags: (repo: number) => sql`SELECT count(*) AS n FROM tags WHERE repo_id = ${repo}`,
  image_reads: (repo: number) => sql`SELECT count(*) AS n FROM image_reads WHERE repo_id = ${repo}`,
}
