// Verdicts of admission policies and lists of findings: completely compared, not scanned, or of unknown severity.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { pushLayers } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
/** Verdicts are cached for a short time of this clock. */
let machine = 0
let operator: Client
before(async () => {
  registry = await startRegistry({ monotonic: () => machine })
  operator = registry.operator
})
after(() => registry[Symbol.asyncDispose]())

let count = 0
async function scene(layer: LayerEntries, rule: Json = {}, mode = 'ENFORCE') {
  const name = `acme/covered${count++}`
  const digest = await pushAndScan(registry, name, layer, 'latest')
  const { repo } = await registry.app.paths.find(name)
  machine += 60_000
  const gate = ok(await operator.post(`/registry/v2/gates/${repo!.uid}`, { name: 'gate', mode, vulnerabilities: rule }))
  return { name, digest, repo: repo!.uid, gate: gate.uid as string }
}
type Scene = Awaited<ReturnType<typeof scene>>

const alpine = (...lines: string[]): LayerEntries => apkLayer('alpine', '3.19.1', lines)
async function checked({ repo, digest }: Pick<Scene, 'repo' | 'digest'>): Promise<Json> {
  machine += 60_000
  return ok(await operator.post(`/registry/v1/repos/${repo}:checkPolicies`, { digest })).results[0]
}
const findingsOf = async ({ repo, digest }: Scene): Promise<Json> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`))
const pull = async ({ name, digest }: Scene) => {
  machine += 60_000
  return (await registry.registryAs(registry.puller.uid)).call('GET', `${name}/manifests/${digest}`)
}
/** The severity of a record that no source has rated. */
const unrated = (id: string, name: string) => {
  const record = recordAbout(id, 'Alpine:v3.19', name, '9')
  return { ...record, affected: record.affected.map((one) => ({ ...one, severity: '' as const })) }
}

test('without a data source, allows an image, and the verdict contains that it was not scanned', async () => {
  const made = await scene(alpine('musl 1-r0'))
  const { result, parameters, coverage, gaps } = await checked(made)
  assert.equal(result, 'RESULT_ALLOWED')
  assert.equal(parameters.reason, 'it has no known vulnerabilities, but not scanned: Alpine:v3.19 has no data source')
  assert.deepEqual([coverage.state, coverage.unknownSeverity], ['NOT_SCANNED', 0])
  assert.deepEqual(
    gaps.map(({ reason, subject }: Json) => `${reason} ${subject}`),
    ['NO_SOURCE Alpine:v3.19'],
  )
  const found = await findingsOf(made)
  assert.deepEqual([found.findings, found.coverage], [[], coverage])
  const list = ok(await operator.get(`/registry/v2/vulnerableImages?vulnerability=CVE-2026-1&scopeUid=${made.repo}`))
  assert.deepEqual([list.images, list.coverage.state], [[], 'NOT_SCANNED'])
  assert.match(
    list.coverage.summary,
    /^not scanned: Alpine:v3\.19 has no data source, CVE-2026-1: no data source has an/,
  )
  const path = `/registry/v2/repos/${made.repo}/digests/${made.digest}/findings/cyclonedx`
  assert.equal(ok(await operator.get(path)).coverage.state, 'NOT_SCANNED')
})

test('a strict admission policy denies unscanned content with the reason', async () => {
  const made = await scene(alpine('musl 2-r0'), { unknown: 'DENY' })
  const refused = await pull(made)
  assert.equal(refused.status, 403)
  assert.equal(refused.body.errors[0].detail.reason, 'not scanned: Alpine:v3.19 has no data source')
})

test('reports an image that waits to be read, or is never read, as not scanned', async () => {
  const made = await scene(alpine('musl 3-r0'))
  const pusher = await registry.registryAs(registry.pusher.uid)
  const { digest } = await pushLayers(pusher, made.name, [alpine('waits 1-r0')], 'waits')
  const reasonOf = async (of: string) => (await checked({ repo: made.repo, digest: of })).parameters.reason
  assert.match(await reasonOf(digest), /^not scanned: the image has not been read yet$/)
  await runJob(registry.app, readImages)
  assert.match(await reasonOf(digest), /^not scanned: the packages have not been compared with advisories yet$/)
  const none = await pushAndScan(registry, made.name, { 'etc/hostname': 'x' })
  assert.match(await reasonOf(none), /, but not scanned: no package database or SBOM was found in the image$/)
})

test('reports an image whose packages were all compared as scanned', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '9'),
    unrated('CVE-2026-2', 'unrated'),
  ])
  const made = await scene(alpine('musl 4-r0'), { leastSeverity: 'HIGH' })
  const { parameters, coverage, gaps } = await checked(made)
  assert.equal(parameters.reason, 'it has no known vulnerabilities of severity high or worse; everything was scanned')
  assert.deepEqual(coverage, { state: 'COMPARED', unknownSeverity: 0, summary: 'everything was scanned' })
  assert.deepEqual([gaps, (await findingsOf(made)).coverage], [[], coverage])
  const asked = async (id: string) =>
    ok(await operator.get(`/registry/v2/vulnerableImages?vulnerability=${id}&scopeUid=${made.repo}`))
  assert.deepEqual((await asked('CVE-2026-1')).coverage, coverage)
  const unheard = await asked('CVE-1999-1')
  assert.deepEqual(
    [unheard.coverage.state, unheard.gaps.map(({ reason }: Json) => reason)],
    ['NOT_SCANNED', ['NO_RECORD']],
  )
})

test('a search does not report an image without packages as compared', async () => {
  const made = await scene(alpine('musl 8-r0'))
  const digest = await pushAndScan(registry, made.name, { 'etc/hostname': 'empty' }, 'empty')
  // The row of an image with an empty package list.
  await registry.app.db.tx((tx) => tx.run(sql`UPDATE image_contents SET state = 1 WHERE digest = ${digest}`))
  const { gaps } = await findingsOf({ ...made, digest })
  assert.deepEqual(
    gaps.map(({ message }: Json) => message),
    ['no packages were found in the image'],
  )
  const path = `/registry/v2/vulnerableImages?vulnerability=CVE-2026-1&scopeUid=${made.repo}`
  const { images, coverage, unknownImages } = ok(await operator.get(path))
  assert.deepEqual([images, coverage.state, unknownImages], [[], 'NOT_SCANNED', 1])
})

test('a search reports unknown ecosystems, and names none of other organizations', async () => {
  const { db } = registry.app
  const made = await scene(alpine('musl 7-r0'))
  const asked = async (scope = `&scopeUid=${made.repo}`) => {
    const { gaps } = ok(await operator.get(`/registry/v2/vulnerableImages?vulnerability=CVE-2026-1${scope}`))
    return gaps.map(({ reason, subject }: Json) => `${reason} ${subject}`.trim())
  }
  assert.deepEqual(await asked(), [])
  const setTo = (ecosystems: string) =>
    db.tx((tx) =>
      tx.run(sql`
        UPDATE component_lists SET ecosystems = ${ecosystems}
         WHERE hash = (SELECT packages FROM image_contents WHERE digest = ${made.digest})`),
    )
  await setTo('')
  assert.deepEqual(await asked(), ['NOT_COMPARED'], 'a list of before')
  assert.ok((await asked('')).includes('NOT_COMPARED'), 'a list of before anywhere')
  await setTo('["Alpine:v3.19"]')
  assert.ok(!(await asked('')).includes('NOT_COMPARED'))

  const numbers = (most: number) =>
    sql`(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${most}) SELECT i FROM n) AS many`
  await db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO component_lists (hash, distribution, distribution_version, ecosystem, ecosystems, state, packages,
             create_time, match_time)
      SELECT 'other' || i, 'other', '1', '', '["Secret:' || i || '"]', 1, 0, '', '2026' FROM ${numbers(1001)}`)
    const { id } = (await tx.get<{ id: number }>(sql`SELECT id FROM repos WHERE uid = ${made.repo}`))!
    await tx.run(sql`
      INSERT INTO image_contents (repo_id, digest, state, source, packages, distribution, distribution_version, reason,
             message, read_time)
      SELECT ${id}, 'many' || i, 1, 2, c.packages, c.distribution, c.distribution_version, '', '', ''
        FROM ${numbers(2001)}, image_contents c WHERE c.digest = ${made.digest}`)
  })
  assert.deepEqual(await asked(), ['NOT_COMPARED'], 'a scope of many images')
  assert.ok((await asked('')).includes('NOT_COMPARED'), 'more ecosystems than are looked at')
  await db.tx(async (tx) => {
    await tx.run(sql`DELETE FROM component_lists WHERE distribution = 'other'`)
    await tx.run(sql`DELETE FROM image_contents WHERE digest LIKE 'many%'`)
  })
})

test('a new policy treats unknown severity as high; otherwise the verdict shows the number of such findings', async () => {
  const made = await scene(alpine('unrated 1-r0'), { leastSeverity: 'HIGH' })
  const reasonOf = async () => {
    const { result, parameters, coverage } = await checked(made)
    return [result, parameters.reason, coverage.unknownSeverity]
  }
  const high = 'it has 1 vulnerability of severity high or worse, 1 of them with unknown severity, which counts as high'
  assert.deepEqual(await reasonOf(), ['RESULT_DENIED', high, 0])
  assert.equal((await pull(made)).body.errors[0].detail.reason, high)
  const change = async (vulnerabilities: Json) =>
    ok(await operator.call('PATCH', `/registry/v2/gates/${made.gate}`, { vulnerabilities }))
  await change({ leastSeverity: 'HIGH', unknownSeverity: 'NOT_COUNTED' })
  const left = '1 finding of unknown severity, not counted by this policy'
  const none = 'it has no known vulnerabilities of severity high or worse'
  assert.deepEqual(await reasonOf(), ['RESULT_ALLOWED', `${none}; everything was scanned; ${left}`, 1])
  assert.equal((await pull(made)).status, 200)
  await change({ leastSeverity: 'CRITICAL', unknownSeverity: 'COUNTED_AS_HIGH' })
  const critical = 'it has no known vulnerabilities of severity critical'
  assert.deepEqual(await reasonOf(), ['RESULT_ALLOWED', `${critical}; everything was scanned; ${left}`, 1])
  await change({})
  assert.deepEqual(await reasonOf(), ['RESULT_DENIED', 'it has 1 vulnerability', 0])
  assert.deepEqual((await findingsOf(made)).coverage, {
    ...{ state: 'COMPARED', unknownSeverity: 1 },
    summary: 'everything was scanned; 1 finding of unknown severity',
  })
})

test('a denial lists findings of unknown severity that the policy does not count', async () => {
  const rule = { leastSeverity: 'HIGH', unknownSeverity: 'NOT_COUNTED' }
  const made = await scene(alpine('unrated 1-r0', 'libssl3 3.1.4-r2 openssl'), rule)
  assert.equal(
    (await pull(made)).body.errors[0].detail.reason,
    'it has 1 vulnerability of severity high or worse; 1 finding of unknown severity, not counted by this policy',
  )
})

test('a preview lists images that the policy would deny if unknown severities counted as high', async () => {
  const rule = { leastSeverity: 'HIGH', unknownSeverity: 'NOT_COUNTED' }
  const made = await scene(alpine('unrated 2-r0'), rule)
  await pushAndScan(registry, made.name, alpine('musl 5-r0'), 'clean')
  await pushAndScan(registry, made.name, alpine('unrated 2-r0', 'libssl3 3.1.4-r2 openssl'), 'refused')
  const preview = async (client = operator) => client.post(`/registry/v2/gates/${made.gate}:previewSeverities`, {})
  const { images, next } = ok(await preview())
  assert.deepEqual([images.map(({ digest, tags }: Json) => [digest, tags]), next], [[[made.digest, ['latest']]], ''])
  assert.match(images[0].reason, /1 of them with unknown severity, which counts as high$/)
  assertDenied(await preview(await registry.as((await registry.seed.person()).uid)))
  const expireTime = new Date(Date.now() + 86_400_000).toISOString()
  const exception = { digest: made.digest, reason: 'no network', expireTime }
  ok(await operator.post(`/registry/v2/gateExceptions/${made.repo}`, exception))
  machine += 60_000
  assert.deepEqual(ok(await preview()).images, [], 'an exception lets it through')
  ok(
    await operator.call('PATCH', `/registry/v2/gates/${made.gate}`, { vulnerabilities: { leastSeverity: 'CRITICAL' } }),
  )
  assert.deepEqual(ok(await preview()), { images: [], next: '' })
  const missing = `${made.repo}/${'0'.repeat(16)}`
  assertNotFound(
    await operator.post(`/registry/v2/gates/${missing}:previewSeverities`, {}),
    'registry.pinfold.dev/Gate',
    missing,
  )
})

test('a preview of a draft counts the images that it would deny, by their latest tags, and stores nothing', async () => {
  const made = await scene(alpine('unrated 3-r0', 'libssl3 3.1.4-r2 openssl'))
  await pushAndScan(registry, made.name, alpine('musl 7-r0'), 'clean')
  await pushAndScan(registry, made.name, alpine('musl 7-r0'), 'same')
  const draft = { name: 'draft', vulnerabilities: { leastSeverity: 'HIGH' } }
  const preview = async (gate: Json = draft, client = operator, parent = made.repo) =>
    client.post(`/registry/v2/gates/${parent}:preview`, { gate })
  const { images, ...counts } = ok(await preview())
  assert.deepEqual(counts, { checkedCount: 2, deniedCount: 1, waitingCount: 0, complete: true })
  assert.deepEqual(
    images.map(({ repository, digest, tag }: Json) => [repository, digest, tag]),
    [[made.name, made.digest, 'latest']],
  )
  assert.match(images[0].reason, /severity high or worse/)
  const inGroup = ok(await preview(draft, operator, made.repo.slice(0, 40)))
  assert.ok(inGroup.checkedCount > 2 && inGroup.deniedCount >= 1, JSON.stringify(inGroup))
  assert.equal(ok(await operator.get(`/registry/v2/gates?scopeUid=${made.repo}`)).gates.length, 1)

  const expireTime = new Date(Date.now() + 86_400_000).toISOString()
  const exception = { digest: made.digest, reason: 'no network', expireTime }
  ok(await operator.post(`/registry/v2/gateExceptions/${made.repo}`, exception))
  machine += 60_000
  assert.equal(ok(await preview()).deniedCount, 0, 'an exemption lets it through')

  assertInvalid(await preview({ name: 'draft' }), 'vulnerabilities')
  assertDenied(await preview(draft, await registry.as((await registry.seed.person()).uid)))
  const missing = `${made.repo.slice(0, 40)}/${'0'.repeat(16)}`
  assertNotFound(await preview(draft, operator, missing), 'iam.pinfold.dev/Group', missing)
})

test('a preview leaves out images that are not stored, and lists those of the latest tags first', async () => {
  const layer = alpine('unrated 3-r0', 'libssl3 3.1.4-r2 openssl')
  const made = await scene(layer)
  const other = await pushAndScan(registry, made.name, alpine('libssl3 3.1.4-r1 openssl'), 'other')
  await pushAndScan(registry, made.name, layer, '2026-01-01')
  const records = [{ time: '2026-01-01T00:00:00.000Z', digest: `sha256:${'0'.repeat(64)}` }]
  ok(await operator.post('/control/v1/tagHistory:import', { repoUid: made.repo, tags: [{ name: 'past', records }] }))
  const gate = { name: 'draft', vulnerabilities: { leastSeverity: 'HIGH' } }
  const { images, checkedCount, complete } = ok(
    await operator.post(`/registry/v2/gates/${made.repo}:preview`, { gate }),
  )
  assert.deepEqual([checkedCount, complete], [2, true])
  assert.deepEqual(
    images.map(({ digest, tag }: Json) => [digest, tag]),
    [
      [made.digest, '2026-01-01'],
      [other, 'other'],
    ],
  )
})

test('imported records are not a missing source, and no image counts as completely compared with them', async () => {
  const made = await scene({ ...alpine('musl 6-r0'), ...pythonPackage('flask', '2.0.0') })
  const { beginSource, finishSource, putRecords } = await import('#domains/scanning/records/records.service.ts')
  const work = { app: registry.app, log: registry.app.log }
  const bring = async (name: string, ecosystems: string[]) => {
    const run = await beginSource(work, { name, url: 'file:///', licence: 'unknown', ecosystems })
    await putRecords(work, run, [recordAbout('PYSEC-1', 'PyPI', 'django', '4')])
    await finishSource(work, run, { fingerprint: '', buildTime: '', complete: false, error: '' })
  }
  await bring('import/osv', [])
  const { parameters, gaps } = await checked(made)
  assert.deepEqual(
    [gaps.map(({ reason, subject }: Json) => `${reason} ${subject}`), parameters.reason],
    [
      ['SOURCE_IMPORTED PyPI'],
      'it has no known vulnerabilities, but PyPI: compared only with imported advisories, which may be incomplete',
    ],
  )
  await bring('import/osv/PyPI', ['PyPI'])
  assert.equal((await checked(made)).coverage.state, 'COMPARED')
})
