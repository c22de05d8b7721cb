// Limits of one request for summaries: findings, time, and content that is read to determine sizes and configurations.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { assertBlocked, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let shop: string
before(async () => {
  registry = await startRegistry()
  shop = (await registry.seed.group(registry.org.uid, { name: 'shop' })).uid
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5')])
})
after(() => registry[Symbol.asyncDispose]())

const seedRepo = async (name: string, group = shop): Promise<string> => (await registry.seed.repo(group, { name })).uid
const push = (name: string, lines: string[], tag?: string) =>
  pushAndScan(registry, name, apkLayer('alpine', '3.19.1', lines), tag)
const get = async (path: string): Promise<Json> => ok(await registry.operator.get(`/registry/v2/${path}`))

/** Calls `onRead` with each query of the work. */
async function observe<T>(onRead: (text: string) => void, work: () => Promise<T>): Promise<T> {
  const { db } = registry.app
  const { all, get: one } = db
  db.all = <R>(query: Sql) => {
    onRead(JSON.stringify(query))
    return all.call(db, query) as Promise<R[]>
  }
  db.get = <R>(query: Sql) => {
    onRead(JSON.stringify(query))
    return one.call(db, query) as Promise<R | undefined>
  }
  try {
    return await work()
  } finally {
    Object.assign(db, { all, get: one })
  }
}

test('refuses the layers of an image whose configuration has too many members', async () => {
  const repo = await seedRepo('large')
  const client = await registry.registryAs(registry.pusher.uid)
  const config = { architecture: 'amd64', os: 'linux', config: { Env: Array.from({ length: 20_001 }, () => '') } }
  const pushed = await client.pushBlob('acme/shop/large', JSON.stringify(config), types.config)
  const image = await client.pushManifest('acme/shop/large', imageOf(pushed, []))
  const platform = { architecture: 'amd64', os: 'linux' }
  const index = await client.pushManifest('acme/shop/large', indexOf([{ ...image, platform } as Descriptor]))
  const path = `/registry/v2/repos/${repo}/digests/${index.digest}/layers`
  assertBlocked(await registry.operator.get(path), index.digest, 'IMAGE_TOO_LARGE')
})

test('leaves out sizes once one request has read 32 MiB to determine them', async () => {
  const client = await registry.registryAs(registry.pusher.uid)
  const large = JSON.stringify({ architecture: 'amd64', os: 'linux', author: 'a'.repeat(4_000_000) })
  const digests: string[] = []
  const repos: string[] = []
  for (let i = 0; i < 10; i++) {
    repos.push(await seedRepo(`sized${i}`))
    for (const name of i === 0 ? Array.from({ length: 10 }, () => 'sized0') : [`sized${i}`]) {
      const config = await client.pushBlob(`acme/shop/${name}`, large, types.config)
      const layer = await client.pushBlob(`acme/shop/${name}`, `layer ${digests.length}`)
      const tag = `v${digests.length}`
      digests.push((await client.pushManifest(`acme/shop/${name}`, imageOf(config, [layer]), tag)).digest)
    }
  }
  const sized = (images: Json[]) => images.map(({ size }) => size !== undefined)
  const some = [...Array.from({ length: 8 }, () => true), false, false]
  const { images } = await get(`repos/${repos[0]}/imageSummaries?digests=${digests.slice(0, 10).join(',')}`)
  assert.deepEqual(sized(images), some)
  const { scopes } = ok(await registry.operator.post('/registry/v2/scopeSummaries:get', { uids: repos }))
  assert.deepEqual(sized(scopes.map(({ newestImage }: Json) => newestImage)), some)
})

test('an overview stops after the image at which its time is over', async () => {
  const late = (await registry.seed.group(registry.org.uid, { name: 'late' })).uid
  await seedRepo('app', late)
  for (const i of [1, 2, 3, 4]) await push('acme/late/app', ['libssl3 3.1.4-r2 openssl', `p${i} 1-r0`], `v${i}`)
  const { now } = performance
  let passed = 0
  performance.now = () => now.call(performance) + passed
  try {
    const onRead = (text: string) => {
      if (text.includes('risk_acceptances')) passed += 1500
    }
    const { examined, incomplete } = await observe(onRead, () => get(`imageOverview/${late}`))
    assert.deepEqual([examined, incomplete], [2, true])
  } finally {
    performance.now = now
  }
})

test('reads the findings of no further image once the images have too many', async () => {
  const many = (await registry.seed.group(registry.org.uid, { name: 'many' })).uid
  const repo = await seedRepo('app', many)
  const digests: string[] = []
  for (const i of [1, 2, 3, 4, 5]) {
    digests.push(await push('acme/many/app', ['libssl3 3.1.4-r3 openssl', `q${i} 1-r0`], `v${i}`))
  }
  // Former findings of the package that all images have.
  await registry.app.db.tx((tx) =>
    tx.run(sql`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
      INSERT INTO findings (component_id, affected_id, place, state, severity, found_time, gone_time)
      SELECT f.component_id, f.affected_id, f.place, f.state, f.severity, f.found_time, f.found_time
        FROM n CROSS JOIN (SELECT * FROM findings ORDER BY id DESC LIMIT 1) f`),
  )
  let reads = 0
  const onRead = (text: string) => {
    if (text.includes('list_components') && text.includes('findings f')) reads++
  }
  const path = `repos/${repo}/imageSummaries?digests=${digests.join(',')}`
  const { images } = await observe(onRead, () => get(path))
  const states = images.map(({ coverage }: Json) => coverage.state)
  assert.deepEqual(states, ['COMPARED', ...Array.from({ length: 4 }, () => 'NOT_SCANNED')])
  // One query for all images together, which has too many rows, and one for each of the first two images.
  assert.equal(reads, 3)
})
