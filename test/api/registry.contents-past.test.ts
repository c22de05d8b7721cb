// Reports of past days do not change when an image is read again, and are deleted with the image.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { sweepScanning } from '#domains/scanning/cleanup/cleanup.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let owner: string
let viewer: Client
let kept: string
let gone: string
before(async () => {
  registry = await startRegistry({ clock: () => now })
  kept = (await registry.seed.repo(registry.org.uid, { name: 'kept' })).uid
  gone = (await registry.seed.repo(registry.org.uid, { name: 'gone' })).uid
  await registry.seed.repo(registry.org.uid, { name: 'back' })
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  await at('2026-03-01T08:00:00Z')
})
after(() => registry[Symbol.asyncDispose]())

async function at(time: string): Promise<void> {
  now = new Date(time)
  viewer = await registry.as(owner)
}

const ecosystem = 'Alpine:v3.19'
const reportsOf = async (digest: string): Promise<Json[]> =>
  ok(await viewer.get(`/registry/v1/vuln_reports?digest=${digest}`)).items
const idsOf = (report: Json | undefined): string[] => report?.vulnerabilities.map(({ id }: Json) => id)

async function rows(table: 'component_lists' | 'components' | 'findings' | 'suppressions'): Promise<number> {
  const counts = {
    component_lists: sql`SELECT count(*) AS total FROM component_lists`,
    components: sql`SELECT count(*) AS total FROM components`,
    findings: sql`SELECT count(*) AS total FROM findings`,
    suppressions: sql`SELECT count(*) AS total FROM suppressions`,
  }
  return Number((await registry.app.db.get<{ total: number }>(counts[table]))!.total)
}
const allRows = async () => [await rows('component_lists'), await rows('components'), await rows('findings')]

async function differences(): Promise<string[]> {
  const found: string[] = []
  for (let step = 'c:0'; step !== ''; ) {
    const { differences: some, next } = await verifyStep(registry.app, step)
    found.push(...some)
    step = next
  }
  return found
}

const sbom = JSON.stringify({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  components: [{ type: 'library', name: 'late', version: '1.0', purl: 'pkg:pypi/late@1.0' }],
})

test('reports and counts of past days do not change by a byte after an SBOM adds packages', async () => {
  await readSource(registry.app, ecosystem, [recordAbout('CVE-2026-1', ecosystem, 'openssl', '9-r0')])
  await readSource(registry.app, 'PyPI', [recordAbout('CVE-2026-2', 'PyPI', 'late', '2.0')])
  const pusher = await registry.registryAs(registry.pusher.uid)
  const image = await pushLayers(pusher, 'acme/kept', [apkLayer('alpine', '3.19.1', ['openssl 3-r0'])], 'latest')
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)

  await at('2026-03-03T08:00:00Z')
  const yesterday = 'repo=kept&tag=latest&from=2026-03-01T00:00:00Z&to=2026-03-02T23:59:59Z'
  const ask = async () => {
    const answers = [
      await viewer.get(`/registry/v1/vuln_reports/counts?${yesterday}`),
      await viewer.get(`/registry/v1/vuln_reports/counts_cumulative?${yesterday}`),
      await viewer.get(`/registry/v1/vuln_reports/raw?digest=${image.digest}&createdAt=2026-03-02T20:00:00Z`),
    ]
    return answers.map(({ text }) => text)
  }
  const told = await ask()
  const [report] = await reportsOf(image.digest)
  await pushSbom(
    await registry.registryAs(registry.pusher.uid),
    'acme/kept',
    image,
    sbom,
    'application/vnd.cyclonedx+json',
  )
  await runJob(registry.app, readImages)
  // The image now has other contents, which have not been compared yet.
  assert.deepEqual(await reportsOf(image.digest), [report])
  await runJob(registry.app, matchPackages)

  assert.deepEqual(await ask(), told)
  const [newest, ...before] = await reportsOf(image.digest)
  assert.deepEqual([newest!.createdAt, idsOf(newest)], ['2026-03-03T08:00:00.000Z', ['CVE-2026-1', 'CVE-2026-2']])
  assert.deepEqual(before, [report])
  const { items } = ok(await viewer.get('/registry/v1/vuln_reports/counts?repo=kept&tag=latest'))
  assert.deepEqual(items[0].cveIds, ['CVE-2026-1', 'CVE-2026-2'])
})

test('a past report stays available after a later part of the same import arrives', async () => {
  await at('2026-03-04T08:00:00.000Z')
  const digest = await pushAndScan(registry, 'acme/kept', apkLayer('alpine', '3.19.1', ['zlib 1-r0', 'openssl 3-r0']))
  const told = []
  for (const seconds of ['10', '20', '30']) {
    await at(`2026-03-04T09:00:${seconds}.000Z`)
    await readSource(registry.app, ecosystem, [recordAbout(`CVE-2026-4${seconds}`, ecosystem, 'zlib', '9-r0')])
    const { createdAt, rawReport } = ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${digest}`))
    told.push({ createdAt, rawReport })
  }
  assert.equal((await reportsOf(digest)).length, 3)
  for (const { createdAt, rawReport } of told) {
    const again = ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${digest}&createdAt=${createdAt}`))
    assert.deepEqual([again.createdAt, again.rawReport], [createdAt, rawReport])
  }
})

test('deletes the package list of a deleted repository, unless other repositories use it', async () => {
  await at('2026-03-05T08:00:00Z')
  const before = await allRows()
  await readSource(registry.app, ecosystem, [recordAbout('CVE-2026-5', ecosystem, 'only', '9-r0')])
  const owned = { ...apkLayer('alpine', '3.19.1', ['only 1-r0', 'openssl 3-r0']), ...pythonPackage('late', '1.0') }
  const digest = await pushAndScan(registry, 'acme/gone', owned, 'latest')
  assert.deepEqual(idsOf((await reportsOf(digest))[0]), ['CVE-2026-1', 'CVE-2026-2', 'CVE-2026-5'])
  assert.deepEqual(await allRows(), [before[0]! + 1, before[1]! + 1, before[2]! + 1])

  ok(await viewer.delete(`/registry/v2/repos/${gone}`))
  await runJob(registry.app, sweepScanning)
  // The package list may belong to an image that is about to be pushed.
  assert.equal(await rows('component_lists'), before[0]! + 1)
  await at('2026-03-06T09:00:00Z')
  assert.deepEqual(await runJob(registry.app, sweepScanning), { lists: 1, packages: 1, signed: 0 })
  assert.deepEqual(await allRows(), before)
  assert.deepEqual(await differences(), [])
  assert.deepEqual(await runJob(registry.app, sweepScanning), { lists: 0, packages: 0, signed: 0 })

  const back = await pushAndScan(registry, 'acme/back', owned, 'latest')
  assert.deepEqual(idsOf((await reportsOf(back))[0]), ['CVE-2026-1', 'CVE-2026-2', 'CVE-2026-5'])
  assert.deepEqual(await differences(), [])
})

test('a digest that a tag pointed to earlier keeps its reports, including those of its earlier contents', async () => {
  const lists = await rows('component_lists')
  const { digest } = ok(await viewer.get(`/registry/v1/tags?uidp.childrenOf=${kept}&name=latest`)).items[0]
  await pushAndScan(registry, 'acme/kept', apkLayer('alpine', '3.19.1', ['musl 1-r0']), 'latest')
  const told = await reportsOf(digest)
  await at('2026-03-09T08:00:00Z')
  await runJob(registry.app, sweepScanning)
  assert.equal(await rows('component_lists'), lists + 1)
  assert.deepEqual(await reportsOf(digest), told)
})
