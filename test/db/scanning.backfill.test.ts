// Package lists from earlier versions are converted to rows in batches, with concurrent deletions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { raw, sql } from '#db/sql.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { queueMatches } from '#domains/scanning/queue/queue.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan } from '../support/scanning.ts'

let registry: TestRegistry
before(async () => {
  registry = await startRegistry()
  await registry.seed.repo(registry.org.uid, { name: 'app' })
})
after(() => registry[Symbol.asyncDispose]())

const push = (version: number) =>
  pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', [`musl 1.2.${version}-r0`]))

async function forgetLists(): Promise<void> {
  const { db } = registry.app
  for (const table of ['list_components', 'component_lists'] as const) {
    await db.tx((tx) => tx.run(sql`DELETE FROM ${raw(table)}`))
  }
  await db.tx((tx) => queueMatches(tx, [{ kind: 'backfill', organization: '', item: '' }], new Date().toISOString()))
}

async function listed(): Promise<{ state: number; packages: number }[]> {
  const rows = await registry.app.db.all<{ state: number; packages: number }>(sql`
    SELECT l.state, (SELECT count(*) FROM list_components c WHERE c.list_id = l.id) AS packages FROM component_lists l`)
  return rows.map(({ state, packages }) => ({ state: Number(state), packages: Number(packages) }))
}

test('a package list deleted during the backfill does not remain as an empty list', async () => {
  await push(1)
  await forgetLists()
  const { db } = registry.app
  const kept = await db.all<{ hash: string; packages: string }>(sql`SELECT hash, packages FROM package_lists`)
  await db.tx((tx) => tx.run(sql`DELETE FROM package_lists`))
  await runJob(registry.app, matchPackages)
  assert.deepEqual(await listed(), [])
  for (const { hash, packages } of kept) {
    await db.tx((tx) => tx.run(sql`INSERT INTO package_lists (hash, packages) VALUES (${hash}, ${packages})`))
  }
  await forgetLists()
  await runJob(registry.app, matchPackages)
  assert.deepEqual(await listed(), [{ state: 1, packages: 1 }])
})

test('backfills all package lists, also if they exceed one batch', async () => {
  for (let version = 2; version <= 23; version++) await push(version)
  await forgetLists()
  await runJob(registry.app, matchPackages)
  assert.deepEqual(await listed(), Array(23).fill({ state: 1, packages: 1 }))
  assert.deepEqual(await registry.app.db.all(sql`SELECT kind FROM match_queue`), [])
})
