// Reports of version 1 that combine several records, sources and states of a source.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { SourceRecord } from '#domains/scanning/records/records.service.ts'
import { ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const ecosystem = 'Alpine:v3.19'
let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let [repo, other, owner, digest] = ['', '', '', '']
let viewer: Client
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  other = (await registry.seed.repo(registry.org.uid, { name: 'other' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  const lines = ['libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2', 'zlib 1-r0']
  digest = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), 'latest')
})
after(() => registry[Symbol.asyncDispose]())

async function at(time: string): Promise<void> {
  now = new Date(time)
  viewer = await registry.as(owner)
}
/** A record, with its data about the package. */
const record = (id: string, name: string, affected: Json, more: Partial<SourceRecord> = {}): SourceRecord => {
  const one = recordAbout(id, ecosystem, name, '', more)
  return { ...one, affected: one.affected.map((said) => ({ ...said, ...affected })) }
}
const newest = async (query = `digest=${digest}`): Promise<Json> =>
  ok(await viewer.get(`/registry/v1/vuln_reports?${query}`)).items[0]
const older = async (): Promise<Json> => ok(await viewer.get(`/registry/v1/repos/${repo}/digests/${digest}/vulnreport`))

test('counts two records of one vulnerability in an image once, under the CVE, with the higher severity', async () => {
  await at('2026-03-02T08:00:00Z')
  await readSource(registry.app, ecosystem, [
    record('ALPINE-CVE-2026-5', 'openssl', { severity: 'medium' }, { upstream: ['CVE-2026-5'] }),
  ])
  await at('2026-03-03T08:00:00Z')
  const ghsa = record('GHSA-aaaa-bbbb-cccc', 'openssl', { severity: 'critical' }, { aliases: ['CVE-2026-5'] })
  await readSource(registry.app, ecosystem, [ghsa], '', 'osv/Alpine')
  const { findings } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`))
  assert.deepEqual(findings.map((one: Json) => one.record).sort(), ['ALPINE-CVE-2026-5', 'GHSA-aaaa-bbbb-cccc'])
  const { vulnerabilities } = await newest()
  assert.deepEqual(
    vulnerabilities.map(({ id, aliases, severity, purls }: Json) => ({ id, aliases, severity, purls })),
    [
      {
        ...{ id: 'CVE-2026-5', severity: 'CRITICAL', aliases: ['ALPINE-CVE-2026-5', 'GHSA-aaaa-bbbb-cccc'] },
        purls: ['pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
      },
    ],
  )
  for (const kind of ['counts', 'counts_cumulative']) {
    const [item] = ok(await viewer.get(`/registry/v1/vuln_reports/${kind}?repo=app&tag=latest`)).items
    assert.deepEqual([item.cveIds, item.critCveIds, item.medCveIds], [['CVE-2026-5'], ['CVE-2026-5'], []])
    assert.deepEqual(
      item.vulnCounts.map(({ severity, count }: Json) => `${severity} ${count}`),
      ['CRITICAL 1', 'HIGH 0', 'MEDIUM 0', 'LOW 0', 'NEGLIGIBLE 0', 'UNKNOWN 0'],
    )
  }
  assert.equal((await older()).vulnerabilityMatches.length, 1)
})

test('the time of a report is the time of its oldest source', async () => {
  assert.equal((await newest()).scanner.dbBuildTime, '2026-03-02T08:00:00.000Z')
  assert.equal((await older()).vulnerabilityDbLastBuildTime, '2026-03-02T08:00:00.000Z')
})

test('a vulnerability is reported as will not fix, unless another source contradicts', async () => {
  await at('2026-03-04T08:00:00Z')
  await readSource(registry.app, ecosystem, [
    record('CVE-2026-6', 'musl', { state: 'wont_fix' }),
    record('CVE-2026-7', 'musl', { state: 'wont_fix' }),
  ])
  await readSource(
    registry.app,
    ecosystem,
    [record('GHSA-dddd-eeee-ffff', 'musl', {}, { aliases: ['CVE-2026-7'] })],
    '',
    'osv/Alpine',
  )
  const { vulnerabilities } = await newest()
  const fixes = vulnerabilities.map(({ id, fix }: Json) => [id, fix.state, fix.versions])
  assert.deepEqual(fixes.slice(1), [
    ['CVE-2026-6', 'WONT_FIX', []],
    ['CVE-2026-7', 'NOT_FIXED', []],
  ])
  const match = (await older()).vulnerabilityMatches.find((one: Json) => one.vulnerability.id === 'CVE-2026-6')
  assert.equal(match.fix.state, 'WONT_FIX')
})

test('the older format reports negligible severity as low', async () => {
  await at('2026-03-05T08:00:00Z')
  await readSource(registry.app, ecosystem, [record('CVE-2026-8', 'zlib', { severity: 'negligible' })])
  const ours = (await newest()).vulnerabilities.find(({ id }: Json) => id === 'CVE-2026-8')
  const match = (await older()).vulnerabilityMatches.find((one: Json) => one.vulnerability.id === 'CVE-2026-8')
  assert.deepEqual([ours.severity, match.vulnerability.severity], ['NEGLIGIBLE', 'LOW'])
})

test('the older format contains the time of the last check, also without changes', async () => {
  const { reportGeneration, lastSeen } = await older()
  assert.deepEqual([reportGeneration, lastSeen], ['2026-03-05T08:00:00.000Z', '2026-03-05T08:00:00.000Z'])
  await at('2026-03-06T08:00:00Z')
  await readSource(registry.app, ecosystem, [record('CVE-2026-8', 'zlib', { severity: 'negligible' })])
  const later = await older()
  assert.deepEqual([later.reportGeneration, later.lastSeen], ['2026-03-05T08:00:00.000Z', '2026-03-06T08:00:00.000Z'])
})

test('a request with a digest and a repository returns the report of the digest', async () => {
  const all = await newest()
  assert.deepEqual(await newest(`repo_id=${other}&digest=${digest}`), all)
  assert.deepEqual(ok(await viewer.get(`/registry/v1/vuln_reports?repo_id=${other}`)).items, [])
})
