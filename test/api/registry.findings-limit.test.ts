// Limit on the findings of one image. The image reports a coverage gap above the limit, and other images stay complete and are
// not delayed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { emitVulnerabilityEvents } from '#domains/scanning/changes/changes.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { setWithin } from '#domains/scanning/lists/lists.store.ts'
import { packageItem } from '#domains/scanning/queue/queue.model.ts'
import { queueMatches } from '#domains/scanning/queue/queue.store.ts'
import { beginSource, putRecords } from '#domains/scanning/records/records.service.ts'
import { runJob } from '../support/background-jobs.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const bound = 2000
/** Maximum findings that the comparison of one package can add before package lists are counted, with its last batch. */
const turn = 1200

let registry: TestRegistry
let now = new Date('2026-03-01T08:00:00Z')
let repo: string
let owner: string
let viewer: Client
before(async () => {
  registry = await startRegistry({ clock: () => now, vulnerabilityFindingsPerImage: bound })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  viewer = await registry.as(owner)
})
after(() => registry[Symbol.asyncDispose]())

const ecosystem = 'Alpine:v3.19'
const source = { url: '', licence: 'MIT', ecosystems: [ecosystem] }
/** Twice the limit, if all findings were kept. */
const packages = 80
const records = Array.from({ length: 50 }, (_, i) => recordAbout(`CVE-2026-${i}`, ecosystem, 'big', '2-r0'))
const many = (prefix: string) => Array.from({ length: packages }, (_, i) => `${prefix}${i} 1-r${i} big`)

async function at(time: string): Promise<void> {
  now = new Date(time)
  viewer = await registry.as(owner)
}

const push = (lines: readonly string[], tag: string) =>
  pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), tag)
const shownOf = (digest: string): Promise<Json> =>
  viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`).then(ok)
const gapsOf = async (digest: string): Promise<string[]> => (await shownOf(digest)).gaps.map((one: Json) => one.reason)

async function open(prefix: string): Promise<number> {
  const row = await registry.app.db.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM findings f JOIN components c ON c.id = f.component_id
     WHERE f.gone_time = '' AND c.name LIKE ${`${prefix}%`}`)
  return Number(row!.total)
}

async function differences(): Promise<string[]> {
  const found: string[] = []
  for (let after = 'c:0'; after !== ''; ) {
    const step = await verifyStep(registry.app, after)
    assert.equal(step.waiting, 0)
    found.push(...step.differences)
    after = step.next
  }
  return found
}

let first: string
test('records that arrive after an image add findings up to the limit, and the image shows that it is incomplete', async () => {
  first = await push(many('a'), 'first')
  await readSource(registry.app, ecosystem, records)
  const found = await open('a')
  assert.ok(found > bound && found <= bound + turn, `${found}`)
  assert.ok((await gapsOf(first)).includes('LIMIT'))
  assert.deepEqual(await differences(), [])
})

test('an image pushed after the records gets findings only up to the limit', async () => {
  const second = await push(many('b'), 'second')
  const found = await open('b')
  assert.ok(found > bound && found <= bound + turn, `${found}`)
  assert.ok((await gapsOf(second)).includes('LIMIT'))
  assert.deepEqual(await differences(), [])
})

test('finds all vulnerabilities in another image that shares a package with an image above the limit', async () => {
  await at('2026-03-02T08:00:00Z')
  const other = await push(['a79 1-r79 big', 'b79 1-r79 big'], 'other')
  assert.deepEqual([(await shownOf(other)).findings.length, await gapsOf(other)], [100, []])
  const before = (await open('a')) + (await open('b'))
  await readSource(registry.app, ecosystem, [recordAbout('CVE-2026-900', ecosystem, 'big', '2-r0')])
  assert.equal((await shownOf(other)).findings.length, 102)
  assert.equal((await open('a')) + (await open('b')), before + 2)
  assert.deepEqual(await differences(), [])
})

test('counts a finding in a shared package in both images, also if one image is above the limit', async () => {
  const counted = async () => {
    const rows = await registry.app.db.all<{ open: number }>(sql`
      SELECT l.open_findings AS open FROM component_lists l WHERE l.over_limit = 1 ORDER BY l.id`)
    return rows.map(({ open }) => Number(open))
  }
  const [ofFirst = 0, ofSecond] = await counted()
  const found = await open('a')
  await push(['a0 1-r0 big'], 'late')
  assert.ok((await open('a')) > found)
  assert.deepEqual(await counted(), [ofFirst + (await open('a')) - found, ofSecond])
  assert.deepEqual(await differences(), [])
})

test('finds all vulnerabilities of an image once withdrawn records bring it below the limit', async () => {
  await at('2026-03-03T08:00:00Z')
  const withdrawn = records.slice(10).map((one) => ({ ...one, withdrawTime: '2026-03-03T00:00:00.000Z' }))
  await readSource(registry.app, ecosystem, withdrawn)
  assert.equal(await open('a'), 11 * packages)
  assert.ok(!(await gapsOf(first)).includes('LIMIT'))
  assert.deepEqual(await differences(), [])
})

const told = async (work: () => Promise<unknown>): Promise<Json[]> => {
  const events = await eventsOf(registry, async () => {
    await work()
    await runJob(registry.app, emitVulnerabilityEvents)
  })
  return events.filter(({ type }) => type.includes('.vulnerability.'))
}
const ofThird = (events: readonly Json[], kind: string) =>
  events
    .filter(({ type, body }) => type.includes(`.${kind}.`) && body.tags.some(({ tag }: Json) => tag === 'third'))
    .map(({ body }) => body.vulnerability)
    .sort()

test('reports findings withdrawn above the limit as resolved once the image is below the limit', async () => {
  await at('2026-03-04T08:00:00Z')
  const third = await push(many('c'), 'third')
  await told(async () => undefined)
  await at('2026-03-05T08:00:00Z')
  const more = Array.from({ length: 40 }, (_, i) => recordAbout(`CVE-2027-${i}`, ecosystem, 'big', '2-r0'))
  const found = ofThird(await told(() => readSource(registry.app, ecosystem, more)), 'found')
  assert.ok((await gapsOf(third)).includes('LIMIT'))
  assert.ok(found.length > 0)
  await at('2026-03-06T08:00:00Z')
  const withdrawn = more.map((one) => ({ ...one, withdrawTime: '2026-03-06T00:00:00.000Z' }))
  const events = await told(() => readSource(registry.app, ecosystem, withdrawn))
  assert.ok(!(await gapsOf(third)).includes('LIMIT'))
  assert.deepEqual(ofThird(events, 'resolved'), found)
  assert.deepEqual(await differences(), [])
})

test('reports findings as resolved if they are withdrawn just before the image is compared again', async () => {
  const { app } = registry
  await at('2026-03-07T08:00:00Z')
  const more = Array.from({ length: 40 }, (_, i) => recordAbout(`CVE-2028-${i}`, ecosystem, 'big', '2-r0'))
  const found = ofThird(await told(() => readSource(app, ecosystem, more)), 'found')
  assert.ok(found.length > 0)
  await at('2026-03-08T08:00:00Z')
  const events = await told(async () => {
    const run = await beginSource({ app }, { name: `osv/${ecosystem}`, ...source })
    const withdrawn = more.map((one) => ({ ...one, withdrawTime: '2026-03-08T00:00:00.000Z' }))
    await putRecords({ app }, run, withdrawn)
    // The package list is counted before the queued comparison of its package.
    const item = { kind: 'package', organization: '', item: packageItem(ecosystem, 'big') } as const
    await app.db.tx(async (tx) => {
      await tx.run(sql`DELETE FROM match_queue`)
      const over = await tx.all<{ id: number }>(sql`SELECT id FROM component_lists WHERE over_limit = 1`)
      assert.ok(over.length > 0)
      for (const { id } of over) await setWithin(tx, Number(id), now.toISOString())
      const lists = over.map(({ id }) => ({ kind: 'list', organization: '', item: String(id) }) as const)
      await queueMatches(tx, lists, now.toISOString())
    })
    await runJob(app, matchPackages)
    await app.db.tx((tx) => queueMatches(tx, [item], now.toISOString()))
    await runJob(app, matchPackages)
  })
  assert.deepEqual(ofThird(events, 'resolved'), found)
  assert.deepEqual(await differences(), [])
})
