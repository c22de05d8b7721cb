// Packages of images and vulnerability records: if either changes, the findings are updated, and findings of past days stay.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Package } from '#contents/packages.ts'
import { ident, sql } from '#db/sql.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { findKnown, findKnownNow } from '#domains/scanning/image-findings/image-findings.store.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import {
  type AffectedPackage,
  beginSource,
  finishSource,
  putRecords,
  type SourceRecord,
} from '#domains/scanning/records/records.service.ts'
import { severitiesAt } from '#domains/scanning/reports/report.service.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'

let pinfold: Pinfold
let now = new Date('2026-03-01T00:00:00Z')
before(async () => {
  pinfold = await startPinfold({ clock: () => now })
})
after(() => pinfold[Symbol.asyncDispose]())

const work = () => ({ app: pinfold.app, log: pinfold.app.log })
const organization = 'a'.repeat(40)
const alpine = { id: 'alpine', version: '3.19.1' }
const at = (day: number) => {
  now = new Date(`2026-03-${String(day).padStart(2, '0')}T00:00:00Z`)
}

const apk = (name: string, version: string, origin = name): Package => ({
  kind: 'apk',
  name,
  version,
  origin,
  originVersion: version,
  arch: 'x86_64',
})

async function addList(hash: string, packages: Package[], distribution = alpine): Promise<number> {
  const list = await prepareList(pinfold.app, { hash, distribution }, packages)
  await pinfold.app.db.tx((tx) => completeList(tx, list, organization, now.toISOString()))
  return list.listNo
}

const affected = (name: string, fixed: string, more: Partial<AffectedPackage> = {}): AffectedPackage => ({
  ecosystem: 'Alpine:v3.19',
  name,
  ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
  versions: [],
  state: 'affected',
  severity: '',
  qualifiers: {},
  ...more,
})

const recordOf = (id: string, said: AffectedPackage[], more: Partial<SourceRecord> = {}): SourceRecord => ({
  id,
  aliases: [],
  upstream: [],
  summary: '',
  publishTime: '',
  modifyTime: '',
  withdrawTime: '',
  severities: [],
  references: [],
  affected: said,
  ...more,
})

async function put(name: string, records: SourceRecord[], complete = false): Promise<void> {
  const run = await beginSource(work(), { name, url: '', licence: 'MIT', ecosystems: ['Alpine:v3.19'] })
  await putRecords(work(), run, records)
  await finishSource(work(), run, { fingerprint: '', buildTime: '', complete, error: '' })
}

/** Findings of a package list: id, certainty, severity, start and end. */
async function findings(list: number) {
  await runJob(pinfold.app, matchPackages)
  const known = await findKnown(pinfold.app.db, list, [], 1000)
  return known.map(
    ({ record, component, state, severity, foundTime, goneTime }) =>
      `${record.id} ${component.name} ${state} ${severity} ${foundTime.slice(8, 10)}-${goneTime.slice(8, 10)}`,
  )
}

/** Counted vulnerabilities of a package list, each with its severity. */
async function counted(list: number) {
  const found = await findKnown(pinfold.app.db, list, [], 10_000)
  return Object.fromEntries(severitiesAt({ found }, now.toISOString()))
}

let openssl: number
test('compares a new package with the known records by its name and by its source package', async () => {
  await put('osv/Alpine:v3.19', [
    recordOf('A-1', [affected('openssl', '3.1.4-r5')]),
    recordOf('A-2', [affected('openssl', '3.1.4-r0')]),
    recordOf('A-3', [affected('libssl3', '9-r0', { severity: 'high' })]),
    recordOf('A-4', [affected('openssl', '9-r0', { ecosystem: 'Alpine:v3.18' })]),
  ])
  openssl = await addList('l1', [apk('libssl3', '3.1.4-r2', 'openssl'), apk('musl', '1.2.4-r2')])
  assert.deepEqual(await findings(openssl), ['A-1 libssl3 1 0 01-', 'A-3 libssl3 1 3 01-'])
  assert.deepEqual(await counted(openssl), { 'A-1': 0, 'A-3': 3 })
})

test('finds a later record in existing images, without reading the images again', async () => {
  at(2)
  await put('osv/Alpine:v3.19', [recordOf('A-5', [affected('musl', '1.2.4-r3')])])
  assert.deepEqual(await findings(openssl), ['A-1 libssl3 1 0 01-', 'A-3 libssl3 1 3 01-', 'A-5 musl 1 0 02-'])
})

test('a changed record ends its former findings, which stay stored', async () => {
  at(3)
  await put('osv/Alpine:v3.19', [recordOf('A-5', [affected('musl', '1.2.4-r1')])])
  assert.ok((await findings(openssl)).includes('A-5 musl 1 0 02-03'))
  at(4)
  await put('osv/Alpine:v3.19', [recordOf('A-5', [affected('musl', '1.2.4-r9', { severity: 'low' })])])
  const all = await findings(openssl)
  assert.ok(all.includes('A-5 musl 1 0 02-03') && all.includes('A-5 musl 1 1 04-'), all.join('\n'))
})

test('a withdrawn record ends its findings, and deletes none', async () => {
  at(5)
  await put('osv/Alpine:v3.19', [
    recordOf('A-5', [affected('musl', '1.2.4-r9', { severity: 'low' })], { withdrawTime: now.toISOString() }),
  ])
  const all = await findings(openssl)
  assert.ok(all.includes('A-5 musl 1 0 02-03') && all.includes('A-5 musl 1 1 04-05'), all.join('\n'))
})

test('an invalid version is a coverage gap, not unaffected', async () => {
  const list = await addList('l2', [apk('odd', 'not a version')])
  await put('osv/Alpine:v3.19', [recordOf('A-6', [affected('odd', '1-r0')])])
  assert.deepEqual(await findings(list), ['A-6 odd 2 0 05-'])
  assert.deepEqual(await counted(list), { 'A-6': 0 })
})

test('uses the severity of the package, else CVSS version 4, 3 or 2, else another record of the vulnerability', async () => {
  const list = await addList('l3', [apk('rated', '1-r0')])
  const cvss = (type: 'CVSS_V2' | 'CVSS_V3' | 'CVSS_V4', score: number) => ({ source: '', type, vector: 'x', score })
  const said = [affected('rated', '2-r0')]
  await put('osv/Alpine:v3.19', [
    recordOf('B-1', [affected('rated', '2-r0', { severity: 'medium' })], { severities: [cvss('CVSS_V3', 9.9)] }),
    recordOf('B-2', said, { severities: [cvss('CVSS_V2', 9.9), cvss('CVSS_V3', 9.1), cvss('CVSS_V4', 1)] }),
    recordOf('B-3', said, { upstream: ['CVE-2026-3'] }),
  ])
  assert.deepEqual(await findings(list), ['B-1 rated 1 2 05-', 'B-2 rated 1 1 05-', 'B-3 rated 1 0 05-'])
  at(6)
  await put('nvd', [recordOf('CVE-2026-3', [], { severities: [cvss('CVSS_V3', 9.8)] })])
  const all = await findings(list)
  assert.ok(all.includes('B-3 rated 1 0 05-06') && all.includes('B-3 rated 1 4 06-'), all.join('\n'))
})

test('a record that is withdrawn or changed to another vulnerability no longer gives its severity to others', async () => {
  const list = await addList('l3b', [apk('rerated', '1-r0')])
  const cvss = { source: '', type: 'CVSS_V3' as const, vector: 'x', score: 9.8 }
  await put('osv/Alpine:v3.19', [recordOf('B-4', [affected('rerated', '2-r0')], { upstream: ['CVE-2026-33'] })])
  const held = async () => (await findings(list)).filter((one) => one.endsWith('-'))
  await put('ghsa', [recordOf('GHSA-3', [], { aliases: ['CVE-2026-33'], severities: [cvss] })])
  assert.deepEqual(await held(), ['B-4 rerated 1 4 06-'])
  await put('ghsa', [recordOf('GHSA-3', [], { aliases: ['CVE-2026-34'], severities: [cvss] })])
  assert.deepEqual(await held(), ['B-4 rerated 1 0 06-'])
  await put('ghsa', [recordOf('GHSA-3', [], { aliases: ['CVE-2026-33'], severities: [cvss] })])
  await put('ghsa', [], true)
  assert.deepEqual(await held(), ['B-4 rerated 1 0 06-'])
})

test('a limited list contains the worst findings first, and the current ones', async () => {
  const list = await addList('l3c', [apk('busy', '1-r0')])
  const rated = (id: string, severity: AffectedPackage['severity']) =>
    recordOf(id, [affected('busy', '2-r0', { severity })])
  await put('osv/Alpine:v3.19', [
    rated('D-1', 'low'),
    rated('D-2', 'critical'),
    rated('D-3', 'low'),
    rated('D-4', 'high'),
  ])
  assert.equal((await findings(list)).length, 4)
  const worst = await findKnownNow(pinfold.app.db, list, [], 2)
  assert.deepEqual(
    worst.map(({ record }) => record.id),
    ['D-2', 'D-4'],
  )
  await put('osv/Alpine:v3.19', [rated('D-4', 'medium')])
  await runJob(pinfold.app, matchPackages)
  const most = await findKnown(pinfold.app.db, list, [], 4)
  assert.ok(most.every(({ goneTime }) => goneTime === ''))
})

test('counts aliases once, under the CVE', async () => {
  const list = await addList('l4', [apk('twice', '1-r0'), apk('twice-libs', '1-r0', 'twice')])
  await put('osv/Alpine:v3.19', [
    recordOf('C-1', [affected('twice', '2-r0')], { upstream: ['CVE-2026-4'] }),
    recordOf('GHSA-c', [affected('twice', '2-r0', { severity: 'critical' })], { aliases: ['CVE-2026-4'] }),
  ])
  assert.equal((await findings(list)).length, 4)
  assert.deepEqual(await counted(list), { 'CVE-2026-4': 4 })
})

test('compares all statements about a package, also if they exceed one batch', async () => {
  const list = await addList('l5', [apk('linux', '6.1-r0'), apk('linux-tools', '6.1-r0', 'linux')])
  const many = Array.from({ length: 2500 }, (_, i) =>
    recordOf(`L-${i}`, [affected('linux', i % 2 ? '6.2-r0' : '6.0-r0')]),
  )
  await put('secdb/linux', many)
  await runJob(pinfold.app, matchPackages)
  const known = await findKnown(pinfold.app.db, list, [], 10_000)
  assert.equal(known.length, 2500)
  assert.equal(Object.keys(await counted(list)).length, 1250)
})

async function verify(): Promise<string[]> {
  const found: string[] = []
  for (let after = 'c:0'; after !== ''; ) {
    const { differences, next } = await verifyStep(pinfold.app, after)
    found.push(...differences)
    after = next
  }
  return found
}

test('comparing in batches returns the same findings as one complete comparison', async () => {
  const random = randomFrom(1)
  const pick = (of: number) => random.below(of)
  for (let i = 0; i < 150; i++) {
    const name = `p${pick(6)}`
    const id = `R-${pick(20)}`
    const version = `${pick(5)}-r${pick(3)}`
    if (pick(3) === 0) await addList(`random-${i}`, [apk(name, version), apk(`${name}-libs`, version, name)])
    else if (pick(4) === 0) await put('random', [recordOf(id, [], { severities: [], upstream: [`CVE-1-${pick(5)}`] })])
    else {
      const said = [affected(name, version, { state: pick(5) === 0 ? 'not_affected' : 'affected' })]
      await put('random', [recordOf(id, said, { upstream: [`CVE-1-${pick(5)}`] })])
    }
    if (pick(5) === 0) await runJob(pinfold.app, matchPackages)
  }
  await runJob(pinfold.app, matchPackages)
  assert.deepEqual(await verify(), [])
  await pinfold.app.db.tx((tx) =>
    tx.run(
      sql`UPDATE findings SET gone_time = ${now.toISOString()} WHERE id = (SELECT max(id) FROM findings WHERE gone_time = '')`,
    ),
  )
  assert.match((await verify()).join('\n'), /missing finding/)
})

test('detects wrong finding counts of a package or a package list', async () => {
  for (const table of ['components', 'component_lists'] as const) {
    const more = (by: number) =>
      pinfold.app.db.tx((tx) => tx.run(sql`UPDATE ${ident(table)} SET open_findings = open_findings + ${by}`))
    const before = (await verify()).length
    await more(1)
    assert.ok((await verify()).length > before)
    assert.match((await verify()).join('\n'), /stored count of findings is \d+ instead of \d+/)
    await more(-1)
    assert.equal((await verify()).length, before)
  }
})
