// Reports of other scanners: handed in, or pushed as a referrer, and answered by the methods of version 1.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type Descriptor, type RegistryClient, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo: string
let ownerUid: string
let owner: Client
let ownerPush: RegistryClient
let image: Descriptor
let gone: string
let strangers: string[]
let viewerUid: string
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  ownerUid = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  gone = (await registry.seed.repo(registry.org.uid, { name: 'gone' })).uid
  const elsewhere = await registry.seed.group('', { name: 'elsewhere' })
  const foreign = (await registry.seed.member(elsewhere.uid, roleUids.owner)).uid
  strangers = [(await registry.seed.person()).uid, foreign]
  viewerUid = (await registry.seed.member(registry.org.uid, roleUids.viewer)).uid
  await at('2026-03-01T08:00:00Z')
  // The image has no package database, so the server finds nothing in it.
  image = await pushLayers(ownerPush, 'acme/app', [{ 'bin/tool': 'x' }], 'latest')
})
after(() => registry[Symbol.asyncDispose]())

async function at(time: string): Promise<void> {
  now = new Date(time)
  owner = await registry.as(ownerUid)
  ownerPush = await registry.registryAs(ownerUid)
}

const trivy = () => fixture('scan-reports/trivy-alpine-39.json')
const grype = () => fixture('scan-reports/grype-rhel8-excerpt.json')
const path = (digest = image.digest) => `/registry/v2/repos/${repo}/digests/${digest}/scanReports`
const handIn = (report: Buffer, client = owner, digest = image.digest) =>
  client.post(path(digest), { report: report.toString('base64') })
const read = () => runJob(registry.app, readReports)
const listed = async (digest = image.digest): Promise<Json[]> => ok(await owner.get(path(digest))).reports ?? []
const v1 = async (query: string): Promise<Json[]> => ok(await owner.get(`/registry/v1/vuln_reports?${query}`)).items
const rawOf = (query: string) => owner.get(`/registry/v1/vuln_reports/raw?digest=${image.digest}&${query}`)
const countsOf = async (query = 'from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z'): Promise<Json[]> =>
  ok(await owner.get(`/registry/v1/vuln_reports/counts?repo=app&tag=latest&${query}`)).items

test('an imported report is queued until it is read, and counts from then on', async () => {
  const taken = ok(await handIn(trivy()))
  assert.deepEqual(
    [taken.state, taken.origin, taken.actor, taken.digest],
    ['waiting', 'imported', ownerUid, image.digest],
  )
  assert.deepEqual(await v1(`digest=${image.digest}`), [])
  await read()
  const [one] = await listed()
  assert.deepEqual([one?.state, one?.tool, one?.format, one?.vulnerabilities], ['read', 'trivy', 'trivy', 3])
  const [report, ...more] = await v1(`digest=${image.digest}`)
  assert.deepEqual(more, [])
  assert.deepEqual(report?.scanner, { name: 'TRIVY', version: 'dev', dbBuildTime: null })
  assert.equal(report?.createdAt, '2026-03-01T08:00:00.000Z')
  const found = report.vulnerabilities.find(({ id }: Json) => id === 'CVE-2019-1549')
  assert.deepEqual([found.severity, found.fix], ['MEDIUM', { versions: ['1.1.1d-r0'], state: 'FIXED' }])
  assert.ok(found.purls.includes('pkg:apk/alpine/libcrypto1.1@1.1.1b-r1?arch=x86_64&distro=3.9.4'))
  assert.ok(found.cvss.some(({ score, version }: Json) => score === '5.3' && version === '3.1'))
})

test('the raw report is the imported document, byte by byte', async () => {
  const answer = ok(await rawOf('scanner=TRIVY'))
  assert.equal(answer.rawReport, trivy().toString())
  assertNotFound(await rawOf('scanner=GRYPE'), 'registry.pinfold.dev/VulnReport', image.digest)
  assertNotFound(await rawOf(''), 'registry.pinfold.dev/VulnReport', image.digest)
})

test('lists reports of several scanners, each with the time since when it counts', async () => {
  await at('2026-03-03T08:00:00Z')
  ok(await handIn(gzipSync(grype())))
  await read()
  const names = async (query: string) => (await v1(query)).map(({ scanner }) => scanner.name)
  assert.deepEqual(await names(`digest=${image.digest}`), ['GRYPE', 'TRIVY'])
  assert.deepEqual(await names(`repo_id=${repo}&tag=latest`), ['GRYPE', 'TRIVY'])
  assert.deepEqual(await names(`repo_id=${repo}`), ['GRYPE', 'TRIVY'])
  assert.deepEqual(await names(`digest=${image.digest}&scanner.name=TRIVY`), ['TRIVY'])
  assert.deepEqual(await names(`digest=${image.digest}&scanner.name=GRYPE&scanner.version=0.1.0`), [])
  assert.deepEqual(await names(`digest=${image.digest}&created_since=2026-03-01T08:00:00Z`), ['GRYPE'])
  const [newest] = await v1(`digest=${image.digest}`)
  assert.equal(newest?.scanner.dbBuildTime, '2024-02-22T01:23:26.000Z')
  assert.equal(ok(await rawOf('scanner=GRYPE&created_at=2026-03-05T00:00:00Z')).rawReport, grype().toString())
  assertNotFound(
    await rawOf('scanner=GRYPE&created_at=2026-03-02T00:00:00Z'),
    'registry.pinfold.dev/VulnReport',
    image.digest,
  )
})

test('counts of a day use the newest report of each scanner, and do not change after the day', async () => {
  await at('2026-03-04T08:00:00Z')
  const counts = await countsOf()
  const byDay = counts.map(({ date, cveIds }) => [date.slice(0, 10), cveIds.length])
  assert.deepEqual(byDay, [
    ['2026-03-01', 3],
    ['2026-03-02', 3],
    ['2026-03-03', 6],
    ['2026-03-04', 6],
  ])
  assert.deepEqual(counts[0]!.cveIds, ['CVE-2019-14697', 'CVE-2019-1549', 'CVE-2019-1551'])
  assert.deepEqual(counts[3]!.cveIds.slice(0, 3), counts[0]!.cveIds)
  assert.ok(counts[3]!.cveIds.slice(3).every((id: string) => id.startsWith('CVE-2023-')))
  const yesterday = 'from=2026-03-03T00:00:00Z&to=2026-03-03T23:00:00Z'
  const was = await countsOf(yesterday)
  ok(await handIn(fixture('scan-reports/trivy-gomod.json')))
  await read()
  assert.deepEqual(await countsOf(yesterday), was)
})

test('notes that a scanner sent an unchanged report, without storing it again', async () => {
  await at('2026-03-05T08:00:00Z')
  const before = (await v1(`digest=${image.digest}`)).length
  ok(await handIn(grype()))
  await read()
  const [again, ...others] = await listed()
  assert.deepEqual([again?.state, again?.reason], ['ignored', 'SAME'])
  assert.equal(others.find(({ tool }) => tool === 'grype')?.seenTime, '2026-03-05T08:00:00.000Z')
  assert.equal((await v1(`digest=${image.digest}`)).length, before)
})

test('the older method of version 1 returns our own report, or else the newest of other scanners', async () => {
  const answer = ok(await owner.get(`/registry/v1/repos/${repo}/digests/${image.digest}/vulnreport`))
  assert.equal(answer.scanner.name, 'trivy, grype')
  assert.ok(answer.vulnerabilityMatches.length > 0)
  const ours = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', ['musl 1.2.4-r2']), 'ours')
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-9', 'Alpine:v3.19', 'musl', '')])
  ok(await handIn(trivy(), owner, ours))
  await read()
  const both = ok(await owner.get(`/registry/v1/repos/${repo}/digests/${ours}/vulnreport`))
  assert.equal(both.scanner.name, 'pinfold')
  const names = (await v1(`digest=${ours}`)).map(({ scanner }) => scanner.name).sort()
  assert.deepEqual(names, ['TRIVY', 'UNKNOWN'])
  const counts = ok(await owner.get('/registry/v1/vuln_reports/counts?repo=app&tag=ours')).items
  assert.deepEqual(counts[0].cveIds, ['CVE-2026-9'])
})

test('a referrer counts if its pusher has permission to import reports; otherwise it shows the reason', async () => {
  const pusher = await registry.registryAs(registry.pusher.uid)
  const other = await pushLayers(ownerPush, 'acme/app', [{ 'bin/tool': 'y' }], 'other')
  const sarif = fixture('scan-reports/trivy-alpine-310.sarif.json')
  const referrer = await pushSbom(pusher, 'acme/app', other, sarif, 'application/sarif+json')
  await read()
  const [refused] = await listed(other.digest)
  assert.deepEqual([refused?.state, refused?.reason, refused?.referrer], ['ignored', 'NOT_ALLOWED', referrer.digest])
  assert.deepEqual(await v1(`digest=${other.digest}`), [])
  // A member with the permission pushes the same referrer.
  await pushSbom(ownerPush, 'acme/app', other, sarif, 'application/sarif+json')
  await read()
  const [counted, ...more] = await listed(other.digest)
  assert.deepEqual([counted?.state, counted?.actor, counted?.format, more], ['read', ownerUid, 'sarif', []])
  const [report] = await v1(`digest=${other.digest}`)
  assert.deepEqual(
    report?.vulnerabilities.map(({ id, purls }: Json) => [id, purls]),
    [
      ['CVE-2019-1549', []],
      ['CVE-2019-1551', []],
    ],
  )
})

test('an SBOM referrer is a report only if it names vulnerabilities', async () => {
  const third = await pushLayers(ownerPush, 'acme/app', [{ 'bin/tool': 'z' }], 'third')
  const cyclone = 'application/vnd.cyclonedx+json'
  await pushSbom(ownerPush, 'acme/app', third, fixture('scan-reports/trivy-no-vulnerabilities.cdx.json'), cyclone)
  await read()
  assert.deepEqual(await listed(third.digest), [])
  await pushSbom(ownerPush, 'acme/app', third, fixture('scan-reports/trivy-npm.cdx.json'), cyclone)
  await read()
  assert.deepEqual(
    (await listed(third.digest)).map(({ state, format }) => [state, format]),
    [['read', 'cyclonedx']],
  )
})

test('an unreadable report shows the reason and does not count', async () => {
  const fourth = await pushLayers(ownerPush, 'acme/app', [{ 'bin/tool': '4' }], 'fourth')
  for (const bad of ['{', '{"a":1}', '[]']) ok(await handIn(Buffer.from(bad), owner, fourth.digest))
  const empty = fixture('scan-reports/trivy-no-vulnerabilities.cdx.json')
  ok(await handIn(empty, owner, fourth.digest))
  await read()
  const reasons = (await listed(fourth.digest)).map(({ state, reason }) => `${state} ${reason}`)
  assert.deepEqual(
    reasons,
    ['UNSUPPORTED', 'UNSUPPORTED', 'UNSUPPORTED', 'DAMAGED'].map((one) => `ignored ${one}`),
  )
  assert.deepEqual(await v1(`digest=${fourth.digest}`), [])
})

test('callers without permission to import or see reports get no information about the repository', async () => {
  const viewer = await registry.as(viewerUid)
  for (const uid of strangers) {
    const client = await registry.as(uid)
    assertDenied(await handIn(trivy(), client))
    assertDenied(await client.get(path()))
    assert.deepEqual(ok(await client.get(`/registry/v1/vuln_reports?digest=${image.digest}`)).items ?? [], [])
  }
  assertDenied(await handIn(trivy(), viewer))
  assert.ok(ok(await viewer.get(path())).reports.length > 0)
})

test('an error for an invalid value names the field', async () => {
  assertInvalid(await owner.post(path('sha256:1'), { report: 'e30=' }), 'digest')
  assertInvalid(await owner.post(path(), {}), 'report')
  assertInvalid(await owner.post(path(), { report: gzipSync('{}').subarray(0, 15).toString('base64') }), 'report')
  const bomb = gzipSync(Buffer.alloc(33 * 2 ** 20))
  assertInvalid(await owner.post(path(), { report: bomb.toString('base64') }), 'report')
  const none = `sha256:${'0'.repeat(64)}`
  assertNotFound(await handIn(trivy(), owner, none), 'registry.pinfold.dev/Image', none)
})

const collect = async () => ok(await (await registry.as(operatorUid)).call('POST', '/control/v1/blobs:collect', {}))

test('keeps the raw report while the report is listed, and deletes it with its repository', async () => {
  const there = await ownerPush.pushImage('acme/gone', 'latest')
  const reports = `/registry/v2/repos/${gone}/digests/${there.digest}/scanReports`
  ok(await owner.post(reports, { report: trivy().toString('base64') }))
  await read()
  await at('2026-04-05T08:00:00Z')
  await collect()
  const [{ rawDigest }] = ok(await owner.get(reports)).reports
  const blob = await ownerPush.call('GET', `acme/gone/blobs/${rawDigest}`)
  assert.deepEqual([blob.status, blob.bytes.equals(trivy())], [200, true])
  ok(await owner.delete(`/registry/v2/repos/${gone}`))
  assert.deepEqual(await v1(`digest=${there.digest}`), [])
})
test('manifests that are not referrers are not reports', async () => {
  const config = await ownerPush.pushBlob('acme/app', '{}', types.empty)
  const layer = await ownerPush.pushBlob('acme/app', trivy(), 'application/sarif+json')
  const artifact = {
    schemaVersion: 2,
    mediaType: types.image,
    artifactType: 'application/sarif+json',
    config,
    layers: [layer],
  }
  const { digest } = await ownerPush.pushManifest('acme/app', artifact)
  await read()
  assertNotFound(await owner.get(path(digest)), 'registry.pinfold.dev/Image', digest)
})
