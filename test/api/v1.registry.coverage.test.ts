// Coverage gaps never look like a clean image: unread contents, ecosystems without a data source, and outdated sources.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let repo: string
let owner: string
let viewer: Client
before(async () => {
  registry = await startRegistry({ clock: () => now })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  owner = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  await at('2026-03-01T08:00:00Z')
})
after(() => registry[Symbol.asyncDispose]())

async function at(time: string): Promise<void> {
  now = new Date(time)
  viewer = await registry.as(owner)
}

const musl = apkLayer('alpine', '3.19.1', ['musl 1.2.4-r2'])
const push = (layer: Parameters<typeof pushAndScan>[2], tag: string) => pushAndScan(registry, 'acme/app', layer, tag)
const reportsOf = async (digest: string): Promise<Json[]> =>
  ok(await viewer.get(`/registry/v1/vuln_reports?digest=${digest}`)).items
const gapsOf = async (digest: string): Promise<string[]> =>
  ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)).gaps.map(
    ({ reason, subject }: Json) => `${reason} ${subject}`,
  )
/** The days with counts, each with its number of vulnerabilities. */
async function daysOf(tag: string, path = 'counts'): Promise<string[]> {
  const range = `from=2026-03-01T00:00:00Z&to=${now.toISOString()}`
  const { items } = ok(await viewer.get(`/registry/v1/vuln_reports/${path}?repo=app&tag=${tag}&${range}`))
  return items.map(({ date, cveIds }: Json) => `${date.slice(8, 10)} ${cveIds.length}`)
}

test('an image without findings whose packages all have a data source is clean', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5')])
  const digest = await push(musl, 'clean')
  const [report, ...more] = await reportsOf(digest)
  assert.deepEqual([report?.vulnerabilities, more], [[], []])
  assert.deepEqual(await daysOf('clean'), ['01 0'])
  assert.deepEqual(await gapsOf(digest), [])
})

test('an ecosystem without a data source prevents a clean report until a source covers it', async () => {
  const digest = await push({ ...musl, ...pythonPackage('flask', '3.0.0') }, 'python')
  assert.deepEqual(await reportsOf(digest), [])
  assert.deepEqual(await daysOf('python'), [])
  assert.deepEqual(await gapsOf(digest), ['NO_SOURCE PyPI'])

  await at('2026-03-02T08:00:00Z')
  await readSource(registry.app, 'PyPI', [recordAbout('PYSEC-1', 'PyPI', 'django', '4')])
  const [report] = await reportsOf(digest)
  assert.deepEqual([report!.createdAt, report!.vulnerabilities], ['2026-03-02T08:00:00.000Z', []])
  assert.deepEqual(await daysOf('python'), ['02 0'])
})

test('shows findings beside an ecosystem without a source, but no build time of the data', async () => {
  const layer = apkLayer('alpine', '3.19.1', ['openssl 3.1.4-r0'])
  const gem = { 'usr/lib/ruby/gems/3.3.0/specifications/rack-3.0.0.gemspec': gemspec }
  const [covered, partly] = [await push(layer, 'found'), await push({ ...layer, ...gem }, 'partly')]
  const [one] = await reportsOf(covered)
  assert.ok(one?.scanner.dbBuildTime)
  const [other] = await reportsOf(partly)
  assert.equal(other?.vulnerabilities.length, 1)
  assert.equal(other?.scanner.dbBuildTime ?? null, null)
  assert.deepEqual(await daysOf('partly'), ['02 1'])
  const raw = ok(await viewer.get(`/registry/v1/vuln_reports/raw?digest=${partly}`))
  assert.match(JSON.stringify(JSON.parse(raw.rawReport).metadata.properties), /NO_SOURCE RubyGems/)
})

test('a version that cannot be compared counts as a vulnerability of unknown severity', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-2', 'Alpine:v3.19', 'odd', '1-r0')])
  const digest = await push(apkLayer('alpine', '3.19.1', ['odd not-a-version']), 'odd')
  const [report] = await reportsOf(digest)
  const [{ id, severity, fix, details }] = report!.vulnerabilities
  assert.deepEqual([id, severity, fix.state], ['CVE-2026-2', 'UNKNOWN', 'UNKNOWN'])
  assert.match(details, /cannot be compared/)
  const { items } = ok(await viewer.get('/registry/v1/vuln_reports/counts?repo=app&tag=odd'))
  assert.deepEqual([items[0].unknownCveIds, items[0].highCveIds], [['CVE-2026-2'], []])
  assert.deepEqual(await gapsOf(digest), ['VERSION pkg:apk/alpine/odd@not-a-version?arch=x86_64'])
})

test('an image with an unreadable part is not clean', async () => {
  const path = 'usr/lib/python3.12/site-packages/broken-1.dist-info/METADATA'
  const digest = await push({ ...musl, [path]: 'Metadata-Version: 2.1\n' }, 'broken')
  assert.deepEqual(await gapsOf(digest), [`CONTENTS_INCOMPLETE ${path}`])
  assert.deepEqual(await reportsOf(digest), [])
  assert.deepEqual(await daysOf('broken'), [])
})

test('an unreadable or outdated source covers nothing today, and past days do not change', async () => {
  const digest = await push(musl, 'aging')
  assert.deepEqual(await daysOf('aging'), ['02 0'])
  await at('2026-03-03T08:00:00Z')
  await readSource(registry.app, 'Alpine:v3.19', [], 'the server is away')
  assert.deepEqual(await daysOf('aging'), ['02 0'])
  assert.deepEqual(await daysOf('aging', 'counts_cumulative'), ['02 0'])
  assert.deepEqual(await gapsOf(digest), ['SOURCE_FAILED osv/Alpine:v3.19'])
  await at('2026-03-04T08:00:00Z')
  await readSource(registry.app, 'Alpine:v3.19', [])
  assert.deepEqual(await daysOf('aging'), ['02 0', '04 0'])
  assert.deepEqual(await gapsOf(digest), [])
  await at('2026-03-12T09:00:00Z')
  assert.deepEqual(await gapsOf(digest), ['SOURCE_STALE osv/Alpine:v3.19'])
  // Until the evening of the tenth, the last read of the source is less than seven days old.
  assert.deepEqual((await daysOf('aging')).at(-1), '10 0')
})

test('a source covers only releases with records in it, and a part of a release does not cover the whole release', async () => {
  const run = (name: string, ecosystem: string, records: Parameters<typeof readSource>[2]) =>
    readSource(registry.app, ecosystem, records, '', name)
  const digest = await push(apkLayer('alpine', '3.21.2', ['musl 1.2.5-r8']), 'newer')
  // The source claims to cover all of Alpine.
  await run('osv/Alpine', 'Alpine', [recordAbout('ALPINE-1', 'Alpine:v3.20', 'zlib', '1-r0')])
  assert.deepEqual(await gapsOf(digest), ['NO_SOURCE Alpine:v3.21'])
  const main = recordAbout('CVE-2026-3', 'Alpine:v3.21', 'zlib', '1-r0')
  await run('secdb/v3.21/main', 'Alpine:v3.21', [main])
  assert.deepEqual(await gapsOf(digest), ['NO_SOURCE secdb/v3.21/community'])
  assert.deepEqual(await reportsOf(digest), [])
  await run('secdb/v3.21/community', 'Alpine:v3.21', [main])
  assert.deepEqual(await gapsOf(digest), [])
  assert.equal((await reportsOf(digest)).length, 1)
})

const gemspec = `Gem::Specification.new do |s|
  s.name = "rack".freeze
  s.version = "3.0.0"
end
`
