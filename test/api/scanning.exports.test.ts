// Findings of an image as documents of other formats: counted, accepted and suppressed findings, and coverage gaps.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readScanReport } from '#contents/reports/read-report.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { checkCycloneDx, checkOpenVex, checkSarif } from '../support/exported-documents.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

const eco = 'Alpine:v3.19'
const now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo = ''
let [image, clean, partly] = ['', '', '']
let owner: Client
before(async () => {
  registry = await startRegistry({ clock: () => now })
  const { seed, org } = registry
  repo = (await seed.repo(org.uid, { name: 'app' })).uid
  owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const cvss = {
    source: '',
    type: 'CVSS_V3' as const,
    vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N',
    score: 7.5,
  }
  const more = { summary: 'It leaks', severities: [cvss], references: ['https://example.com/1'] }
  await readSource(registry.app, eco, [
    recordAbout('ALPINE-CVE-2026-1', eco, 'openssl', '3.1.4-r5', { upstream: ['CVE-2026-1'], ...more }),
    recordAbout('CVE-2026-2', eco, 'musl', ''),
    recordAbout('CVE-2026-3', eco, 'odd', '9'),
    recordAbout('ALPINE-CVE-2026-4', eco, 'py3-flask', '2.0.0-r3', { upstream: ['CVE-2026-4'] }),
  ])
  await readSource(registry.app, 'PyPI', [recordAbout('GHSA-aaaa', 'PyPI', 'flask', '3', { aliases: ['CVE-2026-4'] })])
  const lines = [
    'libssl3 3.1.4-r2 openssl',
    'libcrypto3 3.1.4-r2 openssl',
    'musl 1-r0',
    'odd strange',
    'py3-flask 2.0.0-r3',
  ]
  const layer = apkLayer('alpine', '3.19.1', lines)
  const folder = 'usr/lib/python3.12/site-packages/flask-2.0.0.dist-info'
  image = await pushAndScan(registry, 'acme/app', {
    ...layer,
    ...pythonPackage('flask', '2.0.0'),
    'lib/apk/db/installed': `${String(layer['lib/apk/db/installed'])}F:${folder}\nR:METADATA\n`,
  })
  clean = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', ['zlib 1-r0']))
  partly = await pushAndScan(registry, 'acme/app', { ...apkLayer('alpine', '3.18.1', ['musl 1-r0']) })
  const risk = { vulnerability: 'CVE-2026-2', reason: 'not reachable', expireTime: '2026-12-31T00:00:00Z' }
  ok(await owner.post(`/registry/v2/riskAcceptances/${repo}`, risk))
})
after(() => registry[Symbol.asyncDispose]())

const path = (digest: string, format: string) => `/registry/v2/repos/${repo}/digests/${digest}/findings/${format}`
async function exported(digest: string, format: string): Promise<Json> {
  const answer = ok(await owner.get(path(digest, format)))
  assert.equal(answer.format, format)
  return JSON.parse(answer.document)
}

test('CycloneDX contains each vulnerability with its packages, and its assessment as analysis', async () => {
  const document = await exported(image, 'cyclonedx')
  checkCycloneDx(document)
  const said = document.vulnerabilities.map((one: Json) => [one.id, one.analysis?.state ?? '', one.affects.length])
  assert.deepEqual(said.sort(), [
    ['CVE-2026-1', '', 2],
    ['CVE-2026-2', 'exploitable', 1],
    ['CVE-2026-3', 'in_triage', 1],
    ['CVE-2026-4', 'not_affected', 1],
  ])
  const of = (id: string) => document.vulnerabilities.find((one: Json) => one.id === id)
  assert.equal(of('CVE-2026-1').recommendation, 'Update libcrypto3, libssl3 to 3.1.4-r5.')
  assert.deepEqual(of('CVE-2026-1').references, [{ id: 'ALPINE-CVE-2026-1', source: { name: 'ALPINE' } }])
  assert.match(of('CVE-2026-2').analysis.detail, /until 2026-12-31.* not reachable/)
  assert.match(of('CVE-2026-4').analysis.detail, /according to ALPINE-CVE-2026-4 of osv\/Alpine:v3.19/)
  assert.equal(document.metadata.component.version, image)
  assert.match(
    document.metadata.component.purl,
    /^pkg:oci\/app@sha256%3A[0-9a-f]{64}\?repository_url=[^:]+%3A\d+\/acme\/app$/,
  )
  const [gap] = document.metadata.properties
  assert.deepEqual([gap.name, gap.value.startsWith('VERSION pkg:apk/alpine/odd@strange')], ['coverage gap', true])
  // A program that reads the export as a scanner report gets all vulnerabilities.
  assert.equal(readScanReport(Buffer.from(JSON.stringify(document))).vulnerabilities.length, 4)
})

test('OpenVEX contains each vulnerability of the image with its packages as subcomponents', async () => {
  const document = await exported(image, 'openvex')
  checkOpenVex(document)
  const said = document.statements.map(({ vulnerability, status, products }: Json) => {
    return [vulnerability.name, status, products[0].subcomponents.length]
  })
  assert.deepEqual(said.sort(), [
    ['CVE-2026-1', 'affected', 2],
    ['CVE-2026-2', 'affected', 1],
    ['CVE-2026-3', 'under_investigation', 1],
    ['CVE-2026-4', 'not_affected', 1],
  ])
  const accepted = document.statements.find(({ vulnerability }: Json) => vulnerability.name === 'CVE-2026-2')
  assert.match(accepted.action_statement, /^Risk accepted by \S+ until/)
  assert.match(document.tooling, /The image was not scanned completely: VERSION/)
  assert.deepEqual(document.statements[0].products[0].hashes, { 'sha-256': image.slice(7) })
})

test('SARIF has a result for each package, and marks ignored findings as suppressed', async () => {
  const document = await exported(image, 'sarif')
  checkSarif(document)
  const [run] = document.runs
  const said = run.results.map((one: Json) => [one.ruleId, one.level, one.suppressions?.length ?? 0])
  assert.deepEqual(said.sort(), [
    ['CVE-2026-1', 'error', 0],
    ['CVE-2026-1', 'error', 0],
    ['CVE-2026-2', 'error', 1],
    ['CVE-2026-3', 'none', 0],
    ['CVE-2026-4', 'error', 1],
  ])
  assert.equal(run.invocations[0].executionSuccessful, false)
  assert.equal(run.tool.driver.rules.find(({ id }: Json) => id === 'CVE-2026-1').properties['security-severity'], '7.5')
  assert.equal(readScanReport(Buffer.from(JSON.stringify(document))).vulnerabilities.length, 4)
})

test('an export shows an image without findings as clean only if it has no coverage gap', async () => {
  const whole = await exported(clean, 'cyclonedx')
  checkCycloneDx(whole)
  assert.deepEqual([whole.vulnerabilities, whole.metadata.properties], [[], undefined])
  const part = await exported(partly, 'cyclonedx')
  checkCycloneDx(part)
  assert.deepEqual(part.vulnerabilities, [])
  assert.match(part.metadata.properties[0].value, /^NO_SOURCE Alpine:v3.18/)
  const [run] = (await exported(partly, 'sarif')).runs
  assert.deepEqual([run.results, run.invocations[0].executionSuccessful], [[], false])
  assert.equal((await exported(clean, 'sarif')).runs[0].invocations[0].executionSuccessful, true)
  // An OpenVEX document has at least one statement, so an empty document is invalid.
  for (const digest of [clean, partly])
    assertBlocked(await owner.get(path(digest, 'openvex')), digest, 'NOTHING_TO_STATE')
  const { message } = (await owner.get(path(partly, 'openvex'))).body
  assert.match(message, /not scanned completely: NO_SOURCE Alpine:v3.18/)
})

test('exporting requires permission to see findings, and errors name the field', async () => {
  assertDenied(await (await registry.as((await registry.seed.person()).uid)).get(path(image, 'cyclonedx')))
  assertInvalid(await owner.get(path(image, 'spdx')), 'format')
  assertInvalid(await owner.get(path('latest', 'cyclonedx')), 'digest')
  const none = `sha256:${'0'.repeat(64)}`
  assertNotFound(await owner.get(path(none, 'sarif')), 'registry.pinfold.dev/Image', none)
})
