// Advisories of one organization, and packages with a common name, cost other organizations at most their share.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Package } from '#contents/packages.ts'
import { sql } from '#db/sql.ts'
import { mostOwn } from '#domains/scanning/findings/findings.model.ts'
import { componentsNamed } from '#domains/scanning/findings/findings.store.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { isOwnFullAt, textAt, turnsOf } from '#domains/scanning/image-findings/image-findings.model.ts'
import { findKnown, findKnownNow } from '#domains/scanning/image-findings/image-findings.store.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import { beginSource, putRecords, putSlice, retire } from '#domains/scanning/records/records.service.ts'
import { findCurrent } from '#domains/scanning/records/records.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { recordAbout } from '../support/scanning.ts'

let pinfold: Pinfold
let sourceNo: number
before(async () => {
  pinfold = await startPinfold()
  const work = { app: pinfold.app, log: pinfold.app.log }
  sourceNo = (await beginSource(work, { name: 'own', url: '', licence: '', ecosystems: [] })).sourceNo
})
after(() => pinfold[Symbol.asyncDispose]())

const [organization, other] = ['a'.repeat(40), 'b'.repeat(40)]
const now = () => pinfold.app.clock().toISOString()
const apk = (name: string, origin = name): Package => {
  return { kind: 'apk', name, version: '1-r0', origin, originVersion: '1-r0', arch: 'x86_64' }
}

async function addList(hash: string, packages: Package[]): Promise<number> {
  const list = await prepareList(pinfold.app, { hash, distribution: { id: 'alpine', version: '3.19' } }, packages)
  await pinfold.app.db.tx((tx) => completeList(tx, list, organization, now()))
  await runJob(pinfold.app, matchPackages)
  return list.listNo
}

const about = (i: number, organization: string) => ({
  record: recordAbout(`CVE-2026-${i}`, 'apk', 'ssl', '9'),
  organization,
  hash: `${organization} ${i}`,
})
const put = (count: number, organization: string, from = 0) =>
  pinfold.app.db.tx((tx) => {
    const said = Array.from({ length: count }, (_, i) => about(from + i, organization))
    return putSlice(tx, { sourceNo, generation: 0, now: now() }, said)
  })
const known = (list: number, organization: string) => findKnownNow(pinfold.app.db, list, [organization], 20_000)

async function differences(): Promise<string[]> {
  const found: string[] = []
  for (let step = 'c:0'; step !== ''; ) {
    const { differences: some, next } = await verifyStep(pinfold.app, step)
    found.push(...some)
    step = next
  }
  return found
}

test('stores a limited number of records per organization and package, and notes that there are more', async () => {
  const list = await addList('l1', [apk('ssl'), apk('ssl-dev', 'ssl')])
  await put(mostOwn + 60, organization)
  await put(5, other, 5000)
  await runJob(pinfold.app, matchPackages)
  const all = await known(list, organization)
  assert.equal(all.length, 2 * mostOwn)
  assert.equal(isOwnFullAt(all, now()), true)
  assert.deepEqual(await differences(), [])
  const others = await known(list, other)
  assert.deepEqual([others.length, isOwnFullAt(others, now())], [10, false])
})

test('withdrawn records free space for others, and a new package gets the same records', async () => {
  const list = await addList('l2', [apk('ssl'), apk('ssl-doc', 'ssl')])
  const before = (await known(list, organization)).map(({ record }) => record.id)
  assert.ok(!before.includes(`CVE-2026-${mostOwn}`))
  await pinfold.app.db.tx(async (tx) => retire(tx, await findCurrent(tx, sourceNo, ['CVE-2026-0']), now()))
  await runJob(pinfold.app, matchPackages)
  const after = (await known(list, organization)).map(({ record }) => record.id)
  assert.deepEqual(
    [after.length, after.includes('CVE-2026-0'), after.includes(`CVE-2026-${mostOwn}`)],
    [2 * mostOwn, false, true],
  )
  assert.deepEqual(await differences(), [])
})

test('records of organizations wait in separate queues', async () => {
  await put(1, organization, 7000)
  await put(1, other, 7001)
  await put(1, '', 7002)
  const waiting = await pinfold.app.db.all<{ place: string; item: string }>(sql`
    SELECT place, item FROM match_queue ORDER BY place`)
  assert.deepEqual(
    waiting.map(({ place, item }) => [place, item]),
    ['', organization, other].map((one) => [one, 'apk\nssl']),
  )
  await runJob(pinfold.app, matchPackages)
})

test('a page of packages with one name reads only rows with this name', { skip: onPostgres }, async () => {
  const asked: string[] = []
  const reader = {
    all: async (query: Parameters<typeof pinfold.app.db.plan>[0]) => {
      asked.push(await pinfold.app.db.plan(query))
      return []
    },
    get: async () => undefined,
  }
  await componentsNamed(reader, 'ssl', { after: 5, upTo: 100, most: 10 })
  assert.match(asked[0]!, /n USING COVERING INDEX components_by_name \(name=\? AND id>\? AND id<\?\)/)
  assert.match(asked[0]!, /o USING INDEX components_by_origin \(origin=\? AND id>\? AND id<\?\)/)
})

test('finds all components of a name in pages, each once', async () => {
  const packages = Array.from({ length: 30 }, (_, i) => [apk(`x${i}`, 'many'), { ...apk('many'), version: `${i}-r0` }])
  await addList('l3', packages.flat())
  const found: number[] = []
  for (let after = 0; ; ) {
    const page = await componentsNamed(pinfold.app.db, 'many', { after, upTo: Number.MAX_SAFE_INTEGER, most: 7 })
    found.push(...page.map(({ componentNo }) => componentNo))
    if (page.length === 0) break
    after = page.at(-1)!.componentNo
  }
  assert.deepEqual([found.length, new Set(found).size], [60, 60])
})

test('a record with changed text starts and ends no finding, and earlier reports keep the former text', async () => {
  const { app } = pinfold
  const work = { app, log: app.log }
  const say = async (summary: string, fixed = '9', references: string[] = []) => {
    const run = await beginSource(work, { name: 'texts', url: '', licence: '', ecosystems: ['Alpine:v3.19'] })
    const said = recordAbout('CVE-2026-9000', 'Alpine:v3.19', 'worded', fixed, { summary, references })
    const counts = await putRecords(work, run, [said])
    await runJob(app, matchPackages)
    return counts
  }
  await say('first')
  const list = await addList('l4', [apk('worded')])
  const [before] = await findKnown(app.db, list, [], 10)
  assert.deepEqual(await say('second', '9', ['https://example.com/2']), { created: 0, updated: 1, unchanged: 0 })
  const [after, ...others] = await findKnown(app.db, list, [], 10)
  assert.deepEqual(
    [after!.findingNo, after!.foundTime, after!.goneTime, others],
    [before!.findingNo, before!.foundTime, '', []],
  )
  assert.deepEqual([after!.record.summary, textAt(after!, before!.foundTime).summary], ['second', 'first'])
  assert.deepEqual(textAt(after!, before!.foundTime).references, [])
  assert.equal(turnsOf(after!).length, turnsOf(before!).length + 1)
  assert.deepEqual(await say('second', '9', ['https://example.com/2']), { created: 0, updated: 0, unchanged: 1 })
  // A changed version range creates another finding, and the former finding keeps both of its texts.
  await say('third', '10')
  const [ended, open] = await findKnown(app.db, list, [], 10)
  assert.notEqual(ended!.goneTime, '')
  assert.deepEqual([ended!.record.summary, ended!.record.past.length], ['second', 1])
  assert.deepEqual([open!.record.summary, open!.record.past.length], ['third', 0])
  assert.deepEqual(await differences(), [])
})

test('refuses to verify findings after a position that no response had', async () => {
  for (const after of ['x', 'c:', 'c:x', 'c:-1', 'c:1e5', 'l:1:2', '1', 'c:1234567890123456']) {
    assertInvalid(await pinfold.operator.post('/control/v1/findings:verify', { after }), 'after')
  }
  ok(await pinfold.operator.post('/control/v1/findings:verify', { after: 'l:0' }))
})
