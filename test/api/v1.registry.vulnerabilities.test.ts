// Vulnerability reports of version 1: the known vulnerabilities of an image at any moment, and of a tag on any day.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { beginSource, finishSource, putRecords, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { pushLayers } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo: string
let viewer: Client
let stranger: Client
let owner: string
let strangerUid: string
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  strangerUid = (await registry.seed.person()).uid
  await at('2026-03-01T08:00:00Z')
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens are issued for the current test time. */
async function at(time: string): Promise<void> {
  now = new Date(time)
  viewer = await registry.as(owner)
  stranger = await registry.as(strangerUid)
}
const osRelease = (version: string) => ({ 'etc/os-release': `ID=alpine\nVERSION_ID=${version}\n` })
const packages = (version: string, ...lines: string[]): LayerEntries => ({
  ...osRelease(version),
  'lib/apk/db/installed': lines
    .map((line) => line.split(' '))
    .map(([name, of, origin = name]) => `P:${name}\nV:${of}\nA:x86_64\no:${origin}\n`)
    .join('\n'),
})

async function push(layer: LayerEntries, tag: string): Promise<string> {
  const pusher = await registry.registryAs(registry.pusher.uid)
  const { digest } = await pushLayers(pusher, 'acme/app', [layer], tag)
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)
  return digest
}

async function sync(records: SourceRecord[], more: { name?: string; ecosystem?: string; buildTime?: string } = {}) {
  const { name = 'osv/Alpine:v3.19', ecosystem = 'Alpine:v3.19', buildTime = now.toISOString() } = more
  const work = { app: registry.app, log: registry.app.log }
  const run = await beginSource(work, { name, url: '', licence: 'MIT', ecosystems: [ecosystem] })
  await putRecords(work, run, records)
  await finishSource(work, run, { fingerprint: '', buildTime, complete: false, error: '' })
  await runJob(registry.app, matchPackages)
}

const record = (id: string, name: string, fixed: string, more: Partial<SourceRecord> = {}): SourceRecord => ({
  id,
  aliases: [],
  upstream: [],
  summary: `about ${id}`,
  publishTime: '',
  modifyTime: '',
  withdrawTime: '',
  severities: [{ source: 'nvd', type: 'CVSS_V3', vector: 'CVSS:3.1/AV:N', score: 7.5 }],
  references: [`https://vulnerabilities.test/${id}`],
  affected: [
    {
      ecosystem: 'Alpine:v3.19',
      name,
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed === '' ? [] : [{ fixed }])] }],
      versions: [],
      state: 'affected',
      severity: '',
      qualifiers: {},
    },
  ],
  ...more,
})

const counts = async (query: string, client = viewer) =>
  ok(await client.get(`/registry/v1/vuln_reports/counts?${query}`))
const range = 'repo=app&tag=latest&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z'
const reportsOf = async (query: string, client = viewer): Promise<Json[]> =>
  ok(await client.get(`/registry/v1/vuln_reports?${query}`)).items

let first: string
test('returns no report for an image without a data source, instead of an empty report', async () => {
  first = await push(packages('3.19.1', 'libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2'), 'latest')
  assert.deepEqual(await reportsOf(`digest=${first}`), [])
  assertNotFound(
    await viewer.get(`/registry/v1/vuln_reports/raw?digest=${first}`),
    'registry.pinfold.dev/VulnReport',
    first,
  )
  assert.deepEqual((await counts(range)).items, [])
})

test('a report contains the known data of each vulnerability', async () => {
  await at('2026-03-02T08:00:00Z')
  await sync([record('ALPINE-CVE-2026-1', 'openssl', '3.1.4-r5', { upstream: ['CVE-2026-1'] })], {
    buildTime: '2026-03-02T01:00:00.000Z',
  })
  const [report, ...more] = await reportsOf(`repo_id=${repo}&tag=latest`)
  assert.deepEqual(more, [])
  assert.deepEqual(report, {
    digest: first,
    scanner: { name: 'UNKNOWN', version: 'pinfold 0.1.0', dbBuildTime: '2026-03-02T01:00:00.000Z' },
    createdAt: '2026-03-02T08:00:00.000Z',
    vulnerabilities: [
      {
        id: 'CVE-2026-1',
        aliases: ['ALPINE-CVE-2026-1'],
        purls: ['pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
        description: 'about ALPINE-CVE-2026-1',
        details: '',
        severity: 'HIGH',
        cvss: [{ score: '7.5', version: '3.1' }],
        fix: { versions: ['3.1.4-r5'], state: 'FIXED' },
        relatedUrls: ['https://vulnerabilities.test/ALPINE-CVE-2026-1'],
        locations: ['lib/apk/db/installed'],
      },
    ],
  })
})

test('each change of the findings adds a report, newest first, and older reports do not change', async () => {
  const [before] = await reportsOf(`digest=${first}`)
  await at('2026-03-03T08:00:00Z')
  await sync([record('CVE-2026-2', 'musl', '')])
  const all = await reportsOf(`digest=${first}`)
  assert.deepEqual(
    all.map(({ createdAt }) => createdAt),
    ['2026-03-03T08:00:00.000Z', '2026-03-02T08:00:00.000Z'],
  )
  assert.deepEqual(
    all[0]!.vulnerabilities.map((one: Json) => [one.id, one.fix.state]),
    [
      ['CVE-2026-1', 'FIXED'],
      ['CVE-2026-2', 'NOT_FIXED'],
    ],
  )
  assert.deepEqual(all[1], before)
  assert.deepEqual(await reportsOf(`digest=${first}&createdSince=2026-03-02T08:00:00Z`), [all[0]])
  assert.deepEqual(await reportsOf(`digest=${first}&scanner.name=GRYPE`), [])
})

test('the raw report is a CycloneDX document for any point in time', async () => {
  const raw = ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${first}&createdAt=2026-03-02T20:00:00Z`))
  assert.equal(raw.createdAt, '2026-03-02T08:00:00.000Z')
  const document = JSON.parse(raw.rawReport)
  assert.equal(document.bomFormat, 'CycloneDX')
  assert.deepEqual(
    document.vulnerabilities.map(({ id }: Json) => id),
    ['CVE-2026-1'],
  )
  const newest = JSON.parse(ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${first}`)).rawReport)
  assert.equal(newest.vulnerabilities.length, 2)
  assertNotFound(
    await viewer.get(`/registry/v1/vuln_reports/raw?digest=${first}&createdAt=2026-03-01T20:00:00Z`),
    'registry.pinfold.dev/VulnReport',
    first,
  )
})

test('returns NOT_FOUND for a raw report of another scanner', async () => {
  const path = `/registry/v1/vuln_reports/raw?digest=${first}`
  assertNotFound(await viewer.get(`${path}&scanner=GRYPE`), 'registry.pinfold.dev/VulnReport', first)
  ok(await viewer.get(`${path}&scanner=UNKNOWN`))
})

test('the older format has one match for each package', async () => {
  const report = ok(await viewer.get(`/registry/v1/repos/${repo}/digests/${first}/vulnreport`))
  assert.equal(report.id, `${repo}/${first}`)
  assert.equal(report.reportGeneration, '2026-03-03T08:00:00.000Z')
  assert.deepEqual(report.scanner, { name: 'pinfold', version: '0.1.0' })
  const [match] = report.vulnerabilityMatches
  assert.equal(match.vulnerability.id, 'CVE-2026-1')
  assert.equal(match.vulnerability.severity, 'HIGH')
  assert.equal(match.vulnerability.source, 'osv/Alpine:v3.19')
  assert.deepEqual(match.vulnerability.advisories, {
    'ALPINE-CVE-2026-1': 'https://vulnerabilities.test/ALPINE-CVE-2026-1',
  })
  assert.equal(match.pkg.name, 'libssl3')
  assert.deepEqual(match.fix, { versions: ['3.1.4-r5'], state: 'FIXED' })
})

test('returns counts for each day on which the tag had a known image, the oldest first', async () => {
  await at('2026-03-05T08:00:00Z')
  await push(packages('3.19.1', 'libssl3 3.1.4-r5 openssl', 'musl 1.2.4-r2'), 'latest')
  const { items } = await counts(range)
  assert.deepEqual(
    items.map(({ date, cveIds }: Json) => [date, cveIds]),
    [
      ['2026-03-02T08:00:00.000Z', ['CVE-2026-1']],
      ['2026-03-03T08:00:00.000Z', ['CVE-2026-1', 'CVE-2026-2']],
      ['2026-03-04T00:00:00.000Z', ['CVE-2026-1', 'CVE-2026-2']],
      ['2026-03-05T08:00:00.000Z', ['CVE-2026-2']],
    ],
  )
  const [{ repo: named, tag, vulnCounts, sizeBytes, highCveIds, lowCveIds }] = items
  assert.deepEqual([named, tag, highCveIds, lowCveIds], ['app', 'latest', ['CVE-2026-1'], []])
  assert.deepEqual(
    vulnCounts.map(({ severity, count }: Json) => `${severity} ${count}`),
    ['CRITICAL 0', 'HIGH 1', 'MEDIUM 0', 'LOW 0', 'NEGLIGIBLE 0', 'UNKNOWN 0'],
  )
  assert.ok(Number(sizeBytes) > 0)
})

test('counts the tag latest unless another is named, and pairs of repository and tag override a repository', async () => {
  const inRange = {
    from: timestampFromDate(new Date('2026-03-01T00:00:00Z')),
    to: timestampFromDate(new Date('2026-03-31T00:00:00Z')),
  }
  const asked = async (filter: Json): Promise<string[]> => {
    using grpc = grpcClientOf(registry, Vulnerabilities, viewer.token!)
    const { items } = await grpc.listVulnCountReports({ ...inRange, ...filter })
    return [...new Set(items.map((one) => `${one.repo}:${one.tag}`))]
  }
  assert.deepEqual(await asked({ repo: 'app' }), ['app:latest'])
  assert.deepEqual(await asked({ references: [{ repo: 'app' }] }), ['app:latest'])
  assert.deepEqual(await asked({ references: [{ repo: 'app', tag: 'latest' }], repo: 'none' }), ['app:latest'])
  assert.deepEqual(await asked({ references: [{ repo: 'none', tag: 'latest' }], repo: 'app' }), [])
})

test('counts and reports of past days do not change by a byte after an import today', async () => {
  const yesterday = 'repo=app&tag=latest&from=2026-03-01T00:00:00Z&to=2026-03-05T23:59:59Z'
  await at('2026-03-06T08:00:00Z')
  const ask = async () => {
    const answers = [
      await viewer.get(`/registry/v1/vuln_reports/counts?${yesterday}`),
      await viewer.get(`/registry/v1/vuln_reports/counts_cumulative?${yesterday}`),
      await viewer.get(`/registry/v1/vuln_reports/raw?digest=${first}&createdAt=2026-03-05T00:00:00Z`),
    ]
    return answers.map(({ text }) => text)
  }
  const before = await ask()
  await sync([
    record('ALPINE-CVE-2026-1', 'openssl', '3.1.4-r9', { upstream: ['CVE-2026-1'], summary: 'something else' }),
    record('CVE-2026-2', 'musl', '1.2.4-r0', { severities: [] }),
    record('CVE-2026-3', 'musl', ''),
  ])
  assert.deepEqual(await ask(), before)
  assert.deepEqual((await counts('repo=app&tag=latest')).items[0].cveIds, ['CVE-2026-1', 'CVE-2026-3'])
})

test('cumulative counts add all counts since the first day', async () => {
  const { items } = ok(await viewer.get(`/registry/v1/vuln_reports/counts_cumulative?${range}`))
  assert.deepEqual(items.at(-1).cveIds, ['CVE-2026-1', 'CVE-2026-2', 'CVE-2026-3'])
  const later = ok(
    await viewer.get('/registry/v1/vuln_reports/counts_cumulative?repo=app&tag=latest&from=2026-03-06T00:00:00Z'),
  )
  assert.deepEqual(later.items.at(-1).cveIds, ['CVE-2026-1', 'CVE-2026-3'])
})

test('a deleted tag has no counts after its deletion', async () => {
  await at('2026-03-08T08:00:00Z')
  const { items: tags } = ok(await viewer.get(`/registry/v1/tags?uidp.childrenOf=${repo}&name=latest`))
  ok(await viewer.delete(`/registry/v1/tags/${tags[0].id}`))
  await at('2026-03-09T08:00:00Z')
  const { items } = await counts('repo=acme/app&tag=latest&from=2026-03-07T00:00:00Z')
  assert.deepEqual(
    items.map(({ date }: Json) => date.slice(0, 10)),
    ['2026-03-07'],
  )
})

test('returns nothing to callers without access to the repository, and names invalid parameters', async () => {
  assert.deepEqual(await reportsOf(`digest=${first}`, stranger), [])
  assert.deepEqual(await reportsOf(`repo_id=${repo}`, stranger), [])
  assert.deepEqual((await counts(range, stranger)).items, [])
  assertNotFound(
    await stranger.get(`/registry/v1/vuln_reports/raw?digest=${first}`),
    'registry.pinfold.dev/VulnReport',
    first,
  )
  assertDenied(await stranger.get(`/registry/v1/repos/${repo}/digests/${first}/vulnreport`))
  assertInvalid(await viewer.get('/registry/v1/vuln_reports'), 'repo_id')
  assertInvalid(await viewer.get('/registry/v1/vuln_reports?digest=latest'), 'digest')
  assertInvalid(await viewer.get('/registry/v1/vuln_reports/counts?repo=app&from=2024-01-01T00:00:00Z'), 'from')
  assert.deepEqual((await counts('repo=none&tag=latest')).items, [])
  const folder = ok(await viewer.post(`/iam/v2/groups/${registry.org.uid}`, { name: 'team' })).uid
  ok(await viewer.post(`/registry/v2/repos/${folder}`, { name: 'app' }))
  assertInvalid(await viewer.get('/registry/v1/vuln_reports/counts?repo=app'), 'repo')
})

test('gRPC counts several tags in one request', async () => {
  using grpc = grpcClientOf(registry, Vulnerabilities, await registry.tokenFor(owner))
  const references = [
    { repo: 'acme/app', tag: 'latest' },
    { repo: repo, tag: 'none' },
  ]
  const from = { seconds: BigInt(Date.parse('2026-03-02T00:00:00Z') / 1000), nanos: 0 }
  const { items } = await grpc.listVulnCountReports({ references, from })
  assert.equal(items.length, 6)
  assert.ok(items.every((one) => one.repo === 'acme/app'))
})

test('an approved advisory of an organization applies to its own images until it is deleted', async () => {
  await at('2026-03-10T08:00:00Z')
  const digest = await push(packages('3.19.1', 'musl 1.2.4-r2', 'ours 1-r0'), 'own')
  const operator = await registry.as(operatorUid)
  const idsOf = async () => {
    await runJob(registry.app, matchPackages)
    return (await reportsOf(`digest=${digest}`))[0]!.vulnerabilities.map(({ id }: Json) => id)
  }
  const fixed = (reviewState: string) => ({
    advisoryId: 'TST-0001',
    author: 'tests',
    artifactName: 'ours',
    artifactType: 'apk',
    aliases: ['CVE-2026-9'],
    events: [{ createTime: '2026-03-10T08:00:00.000Z', author: 'tests', reviewState, fixed: { fixedVersion: '2-r0' } }],
  })
  const importOne = async (parent: string, reviewState: string) => {
    const advisories = [{ origin: 'ours', advisory: fixed(reviewState) }]
    const admin = await registry.as(operatorUid)
    return ok(await admin.post('/control/v1/advisories:import', { parent, advisories }))
  }
  await importOne(registry.org.uid, 'REVIEW_STATE_PENDING')
  assert.deepEqual(await idsOf(), ['CVE-2026-3'])
  const other = ok(await operator.post('/iam/v2/groups/', { name: 'other' })).uid
  await importOne(other, 'REVIEW_STATE_APPROVED')
  assert.deepEqual(await idsOf(), ['CVE-2026-3'])

  await at('2026-03-10T09:00:00Z')
  const { advisories } = ok(await viewer.get('/vulnerabilities/v2/advisories'))
  const admin = await registry.as(operatorUid)
  const { uid } = advisories.find(({ aliases }: Json) => aliases.includes('CVE-2026-9'))
  await importOne(registry.org.uid, 'REVIEW_STATE_APPROVED')
  assert.deepEqual(await idsOf(), ['CVE-2026-3', 'CVE-2026-9'])
  await at('2026-03-10T09:10:00Z')
  ok(await admin.delete(`/vulnerabilities/v1/advisories/${uid}`))
  assert.deepEqual(await idsOf(), ['CVE-2026-3'])
})

test('the findings of an image have reasons, and include coverage gaps', async () => {
  await at('2026-03-11T08:00:00Z')
  const of = (digest: string, client = viewer) => client.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)
  const { findings, gaps } = ok(await of(first))
  assert.deepEqual(
    findings.find(({ vulnerabilities: [id] }: Json) => id === 'CVE-2026-1'),
    {
      vulnerabilities: ['CVE-2026-1'],
      purl: 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64',
      locations: [],
      source: 'osv/Alpine:v3.19',
      record: 'ALPINE-CVE-2026-1',
      ecosystem: 'Alpine:v3.19',
      package: 'openssl',
      ranges: '[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"3.1.4-r9"}]}]',
      fixedVersions: ['3.1.4-r9'],
      severity: 'high',
      score: 7.5,
      title: 'something else',
      foundTime: '2026-03-06T08:00:00.000Z',
      public: true,
      acceptedBy: [],
      statements: [],
    },
  )
  assert.deepEqual(gaps, [])
  const uncovered = await push(packages('3.18.0', 'musl 1.2.4-r2'), 'older')
  assert.deepEqual(ok(await of(uncovered)), {
    digest: uncovered,
    findings: [],
    gaps: [{ reason: 'NO_SOURCE', subject: 'Alpine:v3.18', message: 'no data source covers this ecosystem' }],
    coverage: {
      ...{ state: 'NOT_SCANNED', unknownSeverity: 0 },
      summary: 'not scanned: Alpine:v3.18 has no data source',
    },
  })
  const unread = await push({ 'etc/hostname': 'x' }, 'empty')
  assert.equal(ok(await of(unread)).gaps[0].reason, 'CONTENTS_UNREAD')
  const missing = `sha256:${'0'.repeat(64)}`
  assertNotFound(await of(missing), 'registry.pinfold.dev/Image', missing)
  assertInvalid(await of('latest'), 'digest')
  assertDenied(await of(first, stranger))
})
