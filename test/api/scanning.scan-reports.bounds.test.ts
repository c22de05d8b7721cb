// Limits on scanner reports that are stored, answered and hidden by other reports.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkUsage } from '../support/check-usage.ts'
import { assertError, assertNotFound, ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'

let registry: TestRegistry
let repo: string
let owner: Client
let ownerPush: RegistryClient
before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const { uid } = await registry.seed.member(registry.org.uid, roleUids.owner)
  owner = await registry.as(uid)
  ownerPush = await registry.registryAs(uid)
})
after(() => registry[Symbol.asyncDispose]())

const push = async (content: string, tag = content): Promise<string> =>
  (await pushLayers(ownerPush, 'acme/app', [{ 'bin/tool': content }], tag)).digest
const path = (digest: string, of = repo) => `/registry/v2/repos/${of}/digests/${digest}/scanReports`
async function handIn(digest: string, report: Buffer, of = repo): Promise<void> {
  ok(await owner.post(path(digest, of), { report: report.toString('base64') }))
  await runJob(registry.app, readReports)
}
const trivy = () => fixture('scan-reports/trivy-alpine-39.json')
const grype = () => fixture('scan-reports/grype-rhel8-excerpt.json')
const v1 = async (query: string): Promise<Json[]> => ok(await owner.get(`/registry/v1/vuln_reports?${query}`)).items
const older = (digest: string) => owner.get(`/registry/v1/repos/${repo}/digests/${digest}/vulnreport`)
const idsOf = ({ vulnerabilityMatches }: Json): string[] =>
  [...new Set<string>(vulnerabilityMatches.map(({ vulnerability }: Json) => vulnerability.id))].sort()

test('refuses an answer that would repeat a long description for each package, and suggests a smaller request', async () => {
  const digest = await push('wide')
  const Vulnerabilities = Array.from({ length: 10 * 500 }, (_, i) => {
    const Description = i % 500 === 0 ? 'x'.repeat(4000) : ''
    return {
      VulnerabilityID: `CVE-2026-${i % 10}`,
      PkgName: `p${i}`,
      InstalledVersion: '1',
      Title: Description,
      Description,
    }
  })
  for (let i = 0; i < 10; i++)
    Object.assign(Vulnerabilities[i]!, { Title: 'y'.repeat(4000), Description: 'x'.repeat(4000) })
  await handIn(digest, Buffer.from(JSON.stringify({ SchemaVersion: 2, Results: [{ Vulnerabilities }] })))
  const answer = await older(digest)
  assertError(answer, 429, 8, 'LIST_TOO_LONG')
  assert.match(answer.body.message, /ListVulnReports/)
  const [report] = await v1(`digest=${digest}`)
  assert.deepEqual([report?.vulnerabilities.length, report?.vulnerabilities[0].purls.length], [10, 500])
})

test('lists the newest reports that fit into one answer', async () => {
  const digest = await push('long')
  await handIn(digest, trivy())
  await handIn(digest, grype())
  assert.deepEqual((await v1(`digest=${digest}`)).length, 2)
  const { db } = registry.app
  const resize = (size: number) =>
    db.tx((tx) => tx.run(sql`UPDATE scan_reports SET size = size + ${size} WHERE tool = 'grype'`))
  await resize(32 * 2 ** 20)
  assert.deepEqual(
    (await v1(`digest=${digest}`)).map(({ scanner }) => scanner.name),
    ['GRYPE'],
  )
  assertError(await older(digest), 429, 8, 'LIST_TOO_LONG')
  await resize(-32 * 2 ** 20)
})

test('counts the latest report of each scanner, and a report of one scanner hides none of another', async () => {
  const digest = await push('both', 'both')
  await handIn(digest, grype())
  await handIn(digest, trivy())
  const answer = ok(await older(digest))
  assert.deepEqual([answer.scanner.name, idsOf(answer).length], ['trivy, grype', 6])
  const [counts] = ok(await owner.get('/registry/v1/vuln_reports/counts?repo=app&tag=both')).items
  assert.deepEqual(counts.cveIds, idsOf(answer))
  // A report without a vulnerability scan contains no vulnerabilities, so it hides no other report.
  await handIn(
    digest,
    Buffer.from(JSON.stringify({ SchemaVersion: 2, ArtifactName: 'a', Results: [{ Class: 'secret' }] })),
  )
  await handIn(
    digest,
    Buffer.from(JSON.stringify({ version: '2.1.0', runs: [{ tool: { driver: { name: 'trivy' } } }] })),
  )
  const reasons = ok(await owner.get(path(digest))).reports.map(({ reason }: Json) => reason)
  assert.deepEqual(reasons, ['NOT_SCANNED', 'NOT_SCANNED', '', ''])
  assert.deepEqual(idsOf(ok(await older(digest))), idsOf(answer))
})

test('reports of the same image by another organization hide no report', async () => {
  const digest = await push('shared')
  await handIn(digest, trivy())
  const elsewhere = await registry.seed.group('', { name: 'elsewhere' })
  const { uid } = await registry.seed.repo(elsewhere.uid, { name: 'app' })
  await registry.app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO scan_reports (repo_id, organization, digest, origin, referrer, raw_digest, actor, take_time, state, due_time,
             scanner, tool, create_time, seen_time)
      SELECT (SELECT id FROM repos WHERE uid = ${uid}), ${elsewhere.uid}, ${digest}, 1, '', '', '', '2026', 2, '', 2, 'trivy',
             '2026', '2026'
        FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) SELECT i FROM n) AS many`),
  )
  assert.equal((await v1(`digest=${digest}`)).length, 1)
  const raw = await owner.get(`/registry/v1/vuln_reports/raw?digest=${digest}&scanner=TRIVY`)
  assert.equal(ok(raw).rawReport, trivy().toString())
})

test('stored reports count for the quota until the image or the repository is deleted', async () => {
  const digest = await push('charged')
  const before = (await checkUsage(registry)).get(registry.org.uid)!.bytes
  // These reports are new, so the server does not store their blobs yet.
  const [first, second] = [trivy(), grype()].map((bytes) => Buffer.from(JSON.stringify(JSON.parse(bytes.toString()))))
  await handIn(digest, first!)
  const kept = (await checkUsage(registry)).get(registry.org.uid)!.bytes - before
  assert.ok(kept > first!.length + 2000)
  const limits = [{ name: 'bytes', limit: String(before + kept + second!.length + 10) }]
  ok(await registry.operator.post('/control/v1/quotas:set', { organization: registry.org.uid, limits }))
  await handIn(digest, second!)
  const [refused] = ok(await owner.get(path(digest))).reports
  assert.deepEqual([refused.state, refused.reason], ['ignored', 'QUOTA_EXCEEDED'])
  ok(
    await registry.operator.post('/control/v1/quotas:set', {
      organization: registry.org.uid,
      limits: [{ name: 'bytes' }],
    }),
  )
  assert.equal((await ownerPush.call('DELETE', `acme/app/manifests/${digest}`)).status, 202)
  assertNotFound(await owner.get(path(digest)), 'registry.pinfold.dev/Image', digest)
  assert.deepEqual(await v1(`digest=${digest}`), [])
  await checkUsage(registry)
  const gone = (await registry.seed.repo(registry.org.uid, { name: 'gone' })).uid
  const { digest: other } = await pushLayers(ownerPush, 'acme/gone', [{ 'bin/tool': 'gone' }], 'x')
  await handIn(other, trivy(), gone)
  ok(await owner.delete(`/registry/v2/repos/${gone}`))
  await checkUsage(registry)
})
