// The search index does not make transactions of requests conflict on PostgreSQL.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queueForSearch } from '#db/search-queue.ts'
import { ident, sql } from '#db/sql.ts'
import { removeRepos } from '#domains/registry/deletions/removals.job.ts'
import { indexNames } from '#domains/search/index-names.job.ts'
import { indexQueued } from '#domains/search/write-index.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Client, onPostgres, roleUids, startPinfold } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan } from '../support/scanning.ts'

const ofSearch = /^(?:search_|tag_grams)/

test('no serializable transaction of a request reads the search index or its queue', {
  skip: !onPostgres,
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, seed, org, operator } = registry
  const read = new Set<string>()
  const changed = new Set<string>()
  let serializable = 0
  const { tx } = app.db
  app.db.tx = (work, options) =>
    tx(async (one) => {
      const result = await work(one)
      if (options?.isolation === 'rowLocks') return result
      const locks = await one.all<{ name: string }>(sql`
        SELECT DISTINCT coalesce(i.indrelid, l.relation)::regclass::text AS name
          FROM pg_locks l LEFT JOIN pg_index i ON i.indexrelid = l.relation
         WHERE l.mode = 'SIReadLock' AND l.pid = pg_backend_pid()`)
      serializable++
      for (const { name } of locks) read.add(name)
      return result
    }, options)
  app.db.onCommit((changes) => {
    for (const change of changes) changed.add(change.split(' ')[1]!)
  })

  const folder = await seed.group(org.uid, { name: 'folder' })
  const { uid: repo } = await seed.repo(folder.uid, { name: 'app' })
  const person = await seed.person({ name: 'Person', email: 'person@people.example' })
  const owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  ok(await owner.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: person.uid, roleUid: roleUids.viewer }))
  const client: Client = await registry.as(person.uid)
  const [pending] = ok(await client.get('/control/v1/pendingBindings')).pendingBindings
  ok(await client.post(`/control/v1/pendingBindings/${pending.uid}:accept`))
  const machine = await seed.identity(folder.uid, { name: 'machine' })
  ok(await operator.patch(`/iam/v2/identities/${machine.uid}`, { name: 'renamed' }))
  const digest = await pushAndScan(registry, 'acme/folder/app', apkLayer('alpine', '3.19.1', ['curl 8-r0']), '1.0')
  const tag = ok(await operator.post(`/registry/v2/tags/${repo}`, { name: 'other', digest }))
  assert.ok(changed.has('search_queue'))
  assert.equal((await app.db.all(sql`SELECT 1 AS found FROM search_parts`)).length, 0)
  await runJob(app, indexNames)
  assert.ok((await app.db.all(sql`SELECT 1 AS found FROM search_parts`)).length > 0)

  changed.clear()
  ok(await operator.delete(`/registry/v2/tags/${tag.uid}`))
  ok(await operator.patch(`/iam/v2/groups/${folder.uid}`, { name: 'renamed' }))
  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  ok(await operator.delete(`/iam/v2/identities/${machine.uid}`))
  ok(await operator.delete(`/iam/v2/roleBindings/${pending.uid}`))
  ok(await operator.delete(`/iam/v2/groups/${folder.uid}`))
  assert.ok(serializable > 10 && read.has('groups'), `${serializable} transactions read ${[...read].join(', ')}`)
  assert.deepEqual(
    [...read].filter((name) => ofSearch.test(name)),
    [],
  )
  assert.deepEqual(
    [...changed].filter((name) => ofSearch.test(name)),
    ['search_queue'],
  )
})

test('writers of different rows commit at once while the index is written', { skip: !onPostgres }, async () => {
  await using pinfold = await startPinfold({ jobs: [] })
  const { db } = pinfold.app
  await pinfold.seed.group('', { name: 'first' })
  const before = db.stats().retries
  for (let round = 1; round <= 20; round++) {
    const [begun, indexed] = [[0, 1].map(() => Promise.withResolvers<void>()), Promise.withResolvers<void>()]
    const writers = begun.map(({ resolve }, i) =>
      db.tx(async (tx) => {
        await queueForSearch(tx, 'repos', 2 * round + i)
        resolve()
        await indexed.promise
        await queueForSearch(tx, 'groups', 2 * round + i)
      }),
    )
    await Promise.all(begun.map(({ promise }) => promise))
    await db.tx((tx) => indexQueued(tx, 10), { isolation: 'rowLocks' })
    indexed.resolve()
    await Promise.all(writers)
  }
  assert.equal(db.stats().retries, before)
})

test('removes all index rows of deleted repositories, members and organizations', async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, seed, org, operator } = registry
  const tables = ['search_parts', 'tag_grams', 'search_packages', 'search_lists', 'search_queue']
  const counts = async () => {
    await runJob(app, indexNames)
    const all = await Promise.all(
      tables.map((table) => app.db.get<{ total: number }>(sql`SELECT count(*) AS total FROM ${ident(table)}`)),
    )
    return all.map((row) => row!.total)
  }
  const { uid: repo } = await seed.repo(org.uid, { name: 'app' })
  const person = await seed.person({ name: 'Person' })
  const binding = await seed.binding(org.uid, person.uid, roleUids.viewer)
  const lines = Array.from({ length: 510 }, (_, i) => `package-${i} 1-r0`)
  await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), 'some-name')
  const [parts, grams, packages, lists, queued] = await counts()
  assert.ok(parts! > packages! && grams === 7 && packages! >= 510 && lists === 1 && queued === 0)

  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  await runJob(app, removeRepos)
  assert.equal((await counts())[1], 0)
  ok(await operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  for (const { uid } of [registry.pusher, registry.puller]) ok(await operator.delete(`/iam/v2/identities/${uid}`))
  ok(await operator.delete(`/iam/v2/groups/${org.uid}`))
  assert.deepEqual(await counts(), [0, 0, 0, 0, 0])
})
