// Unsigned statements about vulnerabilities: they are shown, and hide no finding until a member adopts them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { sql } from '#db/sql.ts'
import { expireRisksJob } from '#domains/scanning/risks/risks.job.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type RegistryClient, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const zlib = 'pkg:apk/alpine/zlib@1.2.11-r0?arch=x86_64&distro=alpine-3.19'
const openssl = 'pkg:apk/alpine/openssl@3.1.0-r0'
let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo: string
let digest: string
let owner: Client
let viewer: Client
let pusher: RegistryClient
let [ownerUid, viewerUid] = ['', '']
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const member = async (role: string) => (await registry.seed.member(registry.org.uid, role)).uid
  ownerUid = await member(roleUids.owner)
  viewerUid = await member(roleUids.viewer)
  await moveTo('2026-03-01T08:00:00Z')
  const layer = apkLayer('alpine', '3.19.1', ['zlib 1.2.11-r0', 'openssl 3.1.0-r0'])
  digest = await pushAndScan(registry, 'acme/app', layer, 'latest')
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1', 'Alpine:v3.19', 'zlib', '1.2.13-r0'),
    recordAbout('CVE-2026-2', 'Alpine:v3.19', 'openssl', ''),
    recordAbout('ALPINE-3', 'Alpine:v3.19', 'openssl', '', { aliases: ['CVE-2026-3'] }),
  ])
})
after(() => registry[Symbol.asyncDispose]())

async function moveTo(time: string): Promise<void> {
  now = new Date(time)
  owner = await registry.as(ownerUid)
  viewer = await registry.as(viewerUid)
  pusher = await registry.registryAs(ownerUid)
}

const at = (of = digest) => `/registry/v2/repos/${repo}/digests/${of}`
const openVex = (statements: readonly Json[], author = 'Acme') =>
  Buffer.from(JSON.stringify({ '@context': 'https://openvex.dev/ns/v0.2.0', author, version: 1, statements }))
const said = (name: string, status: string, products: readonly string[], more: Json = {}): Json => ({
  ...{ vulnerability: { name }, status, products: products.map((id) => ({ '@id': id })), ...more },
})
const importing = async (...documents: readonly Buffer[]) => {
  for (const one of documents) ok(await owner.post(`${at()}/scanReports`, { report: one.toString('base64') }))
  await runJob(registry.app, readReports)
}
const statements = async (client = owner): Promise<Json[]> =>
  ok(await client.get(`${at()}/statements`)).statements ?? []
const findings = async (): Promise<Json[]> => ok(await owner.get(`${at()}/findings`)).findings
/** Vulnerabilities that count in the report of version 1. */
const counted = async (): Promise<string[]> => {
  const { items } = ok(await owner.get(`/registry/v1/vuln_reports?digest=${digest}`))
  return items[0].vulnerabilities.map(({ id }: Json) => id).sort()
}
const adopt = (statement: string, more: Json = {}, client = owner) =>
  client.post(`/registry/v2/riskAcceptances/${repo}`, {
    ...{ statement, digest, reason: 'we looked ourselves', expireTime: '2026-04-01T00:00:00Z', ...more },
  })
const uidOf = async (vulnerability: string): Promise<string> =>
  (await statements()).find((one) => one.vulnerability === vulnerability)!.uid
const all = ['CVE-2026-1', 'CVE-2026-2', 'CVE-2026-3']

test('an imported document is shown with its subject, and hides no finding', async () => {
  await importing(
    openVex([
      said('CVE-2026-1', 'not_affected', [zlib], { justification: 'vulnerable_code_not_present' }),
      said('CVE-2026-2', 'affected', [openssl]),
      said('CVE-2026-3', 'fixed', [openssl, 'pkg:apk/alpine/libssl3'], { impact_statement: 'patched' }),
      said('CVE-2026-9', 'not_affected', [`pkg:oci/app@${digest}`]),
      said('CVE-2026-8', 'not_affected', [`pkg:oci/app@sha256:${'0'.repeat(64)}`]),
      said('CVE-2026-7', 'not_affected', ['https://products.example.com/app']),
    ]),
  )
  const [report] = ok(await owner.get(`${at()}/scanReports`)).reports
  assert.deepEqual([report.state, report.format, report.tool, report.vulnerabilities], ['stated', 'openvex', 'Acme', 0])
  const listed = await statements(viewer)
  assert.deepEqual(
    listed.map(({ vulnerability, status, author, format }) => [vulnerability, status, author, format]),
    [
      ['CVE-2026-1', 'not_affected', 'Acme', 'openvex'],
      ['CVE-2026-2', 'affected', 'Acme', 'openvex'],
      ['CVE-2026-3', 'fixed', 'Acme', 'openvex'],
      ...['CVE-2026-9', 'CVE-2026-8', 'CVE-2026-7'].map((id) => [id, 'not_affected', 'Acme', 'openvex']),
    ],
  )
  assert.deepEqual(await counted(), all)
  const found = await findings()
  assert.deepEqual(
    found
      .map((one) => [one.vulnerabilities[0], one.statements.map(({ status }: Json) => status), one.acceptedBy])
      .sort(),
    [
      ['CVE-2026-1', ['not_affected'], []],
      ['CVE-2026-2', ['affected'], []],
      ['CVE-2026-3', ['fixed'], []],
    ],
  )
})

test('a document without statements about vulnerabilities is not a report', async () => {
  const { items } = ok(await owner.get(`/registry/v1/vuln_reports?digest=${digest}`))
  assert.deepEqual(
    items.map(({ scanner }: Json) => scanner.name),
    ['UNKNOWN'],
  )
  const bare = (await pusher.pushImage('acme/app', 'bare')).digest
  ok(await owner.post(`${at(bare)}/scanReports`, { report: openVex([]).toString('base64') }))
  await runJob(registry.app, readReports)
  assert.deepEqual(ok(await owner.get(`/registry/v1/vuln_reports?digest=${bare}`)).items, [])
})

test('an adopted statement hides a finding until it expires, sends an event, and names its author', async () => {
  assertDenied(await adopt(await uidOf('CVE-2026-1'), {}, viewer))
  const uid = await uidOf('CVE-2026-1')
  let made: Json = {}
  const events = await eventsOf(registry, async () => {
    made = ok(await adopt(uid))
  })
  assert.deepEqual(
    [made.vulnerability, made.statement, made.stated, made.digest],
    ['CVE-2026-1', uid, 'Acme: not_affected, vulnerable_code_not_present', digest],
  )
  assert.match(made.package, /^pkg:apk\/alpine\/zlib@1\.2\.11-r0$/)
  assert.deepEqual(
    events.map(({ type, body }) => [type, body.stated]),
    [['dev.pinfold.control.scanning.risk.accepted.v1', made.stated]],
  )
  assert.deepEqual(await counted(), ['CVE-2026-2', 'CVE-2026-3'])
  const shown = (await findings()).find((one) => one.vulnerabilities[0] === 'CVE-2026-1')
  assert.equal(shown?.acceptedBy[0].reason, 'we looked ourselves')
  await moveTo('2026-03-31T23:59:59Z')
  assert.deepEqual(await counted(), ['CVE-2026-2', 'CVE-2026-3'])
  await moveTo('2026-04-01T00:00:01Z')
  await runJob(registry.app, expireRisksJob)
  assert.deepEqual(await counted(), all)
})

test('only existing statements can be adopted, and only for their subject', async () => {
  const later = { expireTime: '2026-05-01T00:00:00Z' }
  const refused = async (vulnerability: string, field: string, more: Json = {}) =>
    assertInvalid(await adopt(await uidOf(vulnerability), { ...later, ...more }), `risk_acceptance.${field}`)
  await refused('CVE-2026-2', 'statement')
  await refused('CVE-2026-8', 'statement')
  await refused('CVE-2026-7', 'statement')
  await refused('CVE-2026-3', 'package')
  await refused('CVE-2026-3', 'package', { package: 'pkg:apk/alpine/zlib' })
  await refused('CVE-2026-1', 'vulnerability', { vulnerability: 'CVE-2026-2' })
  await refused('CVE-2026-1', 'digest', { digest: '' })
  await refused('CVE-2026-1', 'reason', { reason: ' ' })
  assertInvalid(await adopt('1.99', later), 'risk_acceptance.statement')
  assertInvalid(await adopt('x', later), 'risk_acceptance.statement')
  const [made, whole] = [
    ok(await adopt(await uidOf('CVE-2026-3'), { ...later, package: openssl })),
    ok(await adopt(await uidOf('CVE-2026-9'), later)),
  ]
  assert.equal(whole.package, '')
  assert.deepEqual(await counted(), ['CVE-2026-1', 'CVE-2026-2'])
  ok(await owner.post(`/registry/v2/riskAcceptances/${made.uid}:revoke`, { reason: 'wrong' }))
  assert.deepEqual(await counted(), all)
})

test('a document pushed as a referrer is shown if its pusher has permission to import reports', async () => {
  const refer = async (client: RegistryClient, author: string) => {
    const layer = await client.pushBlob('acme/app', openVex([said('CVE-2026-2', 'fixed', [])], author), vexType)
    const config = await client.pushBlob('acme/app', '{}', types.empty)
    const subject = { mediaType: types.image, digest, size: 1000 }
    const manifest = {
      schemaVersion: 2,
      mediaType: types.image,
      artifactType: vexType,
      config,
      layers: [layer],
      subject,
    }
    return (await client.pushManifest('acme/app', manifest)).digest
  }
  await refer(await registry.registryAs(registry.pusher.uid), 'Somebody')
  const mine = await refer(pusher, 'Owner')
  await runJob(registry.app, readReports)
  const authors = (await statements()).filter((one) => one.status === 'fixed').map(({ author }) => author)
  assert.ok(authors.includes('Owner') && !authors.includes('Somebody'))
  const { reports } = ok(await owner.get(`${at()}/scanReports`))
  const byReason = reports.map(({ state, reason, referrer }: Json) => [state, reason, referrer === mine])
  assert.deepEqual(byReason.slice(0, 2), [
    ['stated', '', true],
    ['ignored', 'NOT_ALLOWED', false],
  ])
  assert.deepEqual(await counted(), all)
})
const vexType = 'application/vnd.openvex+json'

test('notes a repeated document without storing it again, and stores at most fifty per image', async () => {
  const before = (await statements()).length
  await importing(openVex([said('CVE-2026-2', 'fixed', [openssl])], 'Again'))
  await importing(openVex([said('CVE-2026-2', 'fixed', [openssl])], 'Again'))
  assert.equal((await statements()).length, before + 1)
  const [again] = ok(await owner.get(`${at()}/scanReports`)).reports
  assert.deepEqual([again.state, again.reason], ['ignored', 'SAME'])
  const numbered = Array.from({ length: 52 }, (_, i) =>
    openVex([said('CVE-2026-2', 'fixed', [openssl])], `Number ${i}`),
  )
  await importing(...numbered)
  const authors = (await statements()).map(({ author }) => author)
  assert.deepEqual([authors.length, authors[0], authors.at(-1)], [50, 'Number 51', 'Number 2'])
})

test('adopting a statement about several images adopts only the part about this image', async () => {
  const other = `sha256%3A${'0'.repeat(64)}`
  const part = (image: string) => ({ '@id': image, subcomponents: [{ '@id': openssl }] })
  await importing(
    openVex([
      said('CVE-2026-60', 'not_affected', [`pkg:oci/app@${other}`]),
      said('CVE-2026-61', 'not_affected', ['pkg:oci/other-app']),
      { ...said('CVE-2026-62', 'not_affected', []), products: [part(`pkg:oci/app@${other}`)] },
      said('CVE-2026-63', 'not_affected', [`pkg:oci/app@${other}`, `pkg:oci/app@${digest.replace(':', '%3A')}`]),
      { ...said('CVE-2026-64', 'not_affected', []), products: [part(`pkg:oci/app@${other}`), part(`app@${digest}`)] },
      { ...said('CVE-2026-2', 'fixed', []), products: [part(`pkg:oci/app@${other}`)], status_notes: 'elsewhere' },
    ]),
  )
  const until = { expireTime: '2026-06-01T00:00:00Z' }
  for (const vulnerability of ['CVE-2026-60', 'CVE-2026-61', 'CVE-2026-62'])
    assertInvalid(await adopt(await uidOf(vulnerability), until), 'risk_acceptance.statement')
  assert.equal(ok(await adopt(await uidOf('CVE-2026-63'), until)).package, '')
  const parts = await uidOf('CVE-2026-64')
  assertInvalid(await adopt(parts, { ...until, package: 'pkg:rpm/whatever' }), 'risk_acceptance.package')
  assertInvalid(await adopt(parts, { ...until, package: 'openssl' }), 'risk_acceptance.package')
  assert.match(ok(await adopt(parts, until)).package, /openssl@/)
  const shown = (await findings()).find((one) => one.vulnerabilities[0] === 'CVE-2026-2')
  assert.ok(shown?.statements.every(({ text }: Json) => text !== 'elsewhere'))
})

test('a long report hides no statements of other documents', async () => {
  const before = (await statements()).length
  const description = 'x'.repeat(2000)
  const vulnerabilities = Array.from({ length: 5000 }, (_, i) => ({ id: `CVE-2020-${i}`, description }))
  const analysed = { id: 'CVE-2026-2', analysis: { state: 'in_triage' } }
  const document = { bomFormat: 'CycloneDX', specVersion: '1.6', vulnerabilities: [...vulnerabilities, analysed] }
  await importing(gzipSync(JSON.stringify(document)))
  const row = await registry.app.db.get<{ size: number }>(sql`SELECT max(size) AS size FROM scan_reports`)
  assert.ok(Number(row!.size) > 8 * 2 ** 20)
  assert.ok((await statements()).length >= before)
})

test('shows at most twenty statements for each finding of an image, and 5000 in total', async () => {
  const lines = Array.from({ length: 300 }, (_, i) => `many-${i} 1-r0 many`)
  const many = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), 'many')
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-70', 'Alpine:v3.19', 'many', '')])
  const said25 = Array.from({ length: 25 }, (_, i) => said(`X-${i}`, 'affected', [], { status_notes: `note ${i}` }))
  const named = said25.map((one) => ({ ...one, vulnerability: { ...one.vulnerability, aliases: ['CVE-2026-70'] } }))
  ok(await owner.post(`${at(many)}/scanReports`, { report: openVex(named).toString('base64') }))
  await runJob(registry.app, readReports)
  const { findings: found } = ok(await owner.get(`${at(many)}/findings`))
  const told = found.map((one: Json) => one.statements?.length ?? 0)
  assert.equal(told.length, 300)
  assert.deepEqual([...new Set(told)], [20, 0])
  assert.equal(
    told.reduce((sum: number, one: number) => sum + one, 0),
    5000,
  )
  assert.equal(ok(await owner.get(`${at(many)}/statements`)).statements.length, 25)
})
