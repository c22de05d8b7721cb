// Inputs that other scanners and registries handle wrongly, from `test/data/cases/cases.json`, with their expected results.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { readOsv } from '#sources/osv.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers, pushSbom } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'
import { pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

type SbomCase = { name: string; document: Json; expect: { packages?: string[]; gaps?: number; matches?: string } }
type PythonCase = { installed?: string; record: { events?: Json[]; versions?: string[] }; expect: string }

const cases = JSON.parse(fixture('cases/cases.json').toString()) as Json
const sboms = cases.sbom as SbomCase[]
const python = (cases.python as PythonCase[]).filter(({ installed }) => installed !== undefined)
const counting = cases['dpkg states that count'] as string[]
const notCounting = cases['dpkg states that do not'] as string[]

let registry: TestRegistry
let repo = ''
let viewer: Client
let pusher: RegistryClient
const digests = new Map<string, string>()

before(async () => {
  registry = await startRegistry()
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  viewer = await registry.as(registry.pusher.uid)
  pusher = await registry.registryAs(registry.pusher.uid)
  const { app } = registry
  await readSource(
    app,
    'Go',
    Object.entries({
      'github.com/Masterminds/goutils': { fixed: '1.1.1' },
      'github.com/golang-jwt/jwt/v5': { fixed: '5.2.2' },
      'github.com/golang-jwt/jwt': {},
      stdlib: { fixed: '1.21.1' },
    }).map(([module, end]) => {
      const affected = { package: { ecosystem: 'Go', name: module } }
      const ranges = [
        { type: 'SEMVER', events: [{ introduced: '0' }, end].filter((one) => Object.keys(one).length > 0) },
      ]
      return readOsv(
        JSON.stringify({ id: module, modified: '2026-01-01T00:00:00Z', affected: [{ ...affected, ranges }] }),
      )
    }),
  )
  await readSource(app, 'Debian:12', [recordAbout('Debian:12', 'Debian:12', 'openssl', '3.0.12')])
  await readSource(app, 'Debian:11', [recordAbout('Debian:11', 'Debian:11', 'openssl', '3.0.12')])
  const records = python.map(({ installed, record: { events, versions } }, i) => {
    const affected = { package: { ecosystem: 'PyPI', name: installed!.split(' ')[0] }, versions }
    const ranges = events === undefined ? [] : [{ type: 'ECOSYSTEM', events }]
    return readOsv(
      JSON.stringify({ id: `PYSEC-${i}`, modified: '2026-01-01T00:00:00Z', affected: [{ ...affected, ranges }] }),
    )
  })
  await readSource(app, 'PyPI', records)
  for (const { name, document } of sboms) {
    const image = await pushLayers(pusher, 'acme/app', [{ 'app/server': name }])
    const type = 'bomFormat' in document ? 'application/vnd.cyclonedx+json' : 'application/spdx+json'
    await pushSbom(pusher, 'acme/app', image, JSON.stringify(document), type)
    digests.set(name, image.digest)
  }
  const push = async (key: string, layer: LayerEntries) =>
    void digests.set(key, (await pushLayers(pusher, 'acme/app', [layer])).digest)
  for (const { installed } of python) {
    const [name, version] = installed!.split(' ') as [string, string]
    await push(installed!, pythonPackage(name, version))
  }
  for (const state of [...counting, ...notCounting]) {
    await push(state, {
      'etc/os-release': 'ID=debian\nVERSION_ID="12"\n',
      'var/lib/dpkg/status': `Package: openssl\nStatus: ${state}\nArchitecture: amd64\nVersion: 3.0.11-1~deb12u1\n\n`,
    })
  }
  await runJob(app, readImages)
  await runJob(app, matchPackages)
})
after(() => registry[Symbol.asyncDispose]())

const ask = async (key: string, what: string): Promise<Json> =>
  ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digests.get(key)}/${what}`))
const packagesOf = async (key: string): Promise<string[]> =>
  (await ask(key, 'packages')).packages.map((one: Json) => [one.ecosystem, one.name, one.version].join(' ')).sort()
const recordsOf = async (key: string): Promise<string[]> => {
  const { findings } = await ask(key, 'findings')
  return [...new Set<string>(findings.map(({ record }: Json) => record))].sort()
}
/** Number of packages in the coverage gaps of an image. */
const missedIn = (gaps: Json[]): number =>
  gaps.reduce((sum, { message }) => sum + Number(/ has (\d+) packages? /.exec(message)?.[1] ?? 0), 0)

for (const { name, expect } of sboms) {
  test(`SBOM: ${name}`, async () => {
    if (expect.packages) assert.deepEqual(await packagesOf(name), expect.packages.toSorted())
    if (expect.gaps !== undefined) assert.equal(missedIn((await ask(name, 'packages')).gaps), expect.gaps)
    // Such as "records of A, none of B".
    const wanted = /^records of ([^\s,]+)/.exec(expect.matches ?? '')?.[1]
    if (wanted !== undefined) assert.deepEqual(await recordsOf(name), [wanted])
    assert.ok(expect.packages ?? wanted)
  })
}

for (const [i, { installed, expect }] of python.entries()) {
  test(`Python: ${installed} is ${expect} by record ${i}`, async () => {
    assert.equal((await recordsOf(installed!)).includes(`PYSEC-${i}`), expect === 'affected')
  })
}

test('a version range finds a local version of Python', async () => {
  const query = `name=torch&versionRange=${encodeURIComponent('<=2.0.1')}`
  const { images } = ok(await viewer.get(`/registry/v2/imagesWithPackage?${query}`))
  assert.ok(images.some(({ digest }: Json) => digest === digests.get('torch 2.0.1+cu118')))
})

for (const state of [...counting, ...notCounting]) {
  const counts = counting.includes(state)
  test(`dpkg: a package with the state "${state}" ${counts ? 'counts' : 'does not count'}`, async () => {
    const wanted = counts ? ['Debian:12 openssl 3.0.11-1~deb12u1'] : []
    assert.deepEqual(await packagesOf(state), wanted)
    assert.deepEqual(await recordsOf(state), counts ? ['Debian:12'] : [])
  })
}
