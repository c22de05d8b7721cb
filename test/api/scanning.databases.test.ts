// Findings and coverage gaps of images by their package databases, from a push to the API.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { ok } from '../support/expect.ts'
import { type LayerEntries, tarOf } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let viewer: Client
let repo = ''
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  repo = (await seed.repo(org.uid, { name: 'app' })).uid
  viewer = await registry.as((await seed.member(org.uid, roleUids.viewer)).uid)
  const records: [ecosystem: string, name: string, fixed: string][] = [
    ['Debian:12', 'curl', '8.0-2'],
    ['Alpine:v3.19', 'openssl', '3.1.4-r5'],
    ['PyPI', 'flask', '3.0.0'],
  ]
  for (const [ecosystem, name, fixed] of records) {
    await readSource(registry.app, ecosystem, [recordAbout(`CVE-2026-${name}`, ecosystem, name, fixed)])
  }
})
after(() => registry[Symbol.asyncDispose]())

/** The vulnerabilities that are found in an image, and where it was not scanned. */
async function scan(layer: LayerEntries | Buffer): Promise<{ found: string[]; gaps: string[] }> {
  const digest = await pushAndScan(registry, 'acme/app', layer)
  const { findings, gaps } = ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`))
  return {
    found: findings.flatMap((one: Json) => one.vulnerabilities).sort(),
    gaps: gaps.map(({ subject, message }: Json) => `${subject} ${message}`.trim()),
  }
}

const debian = { 'etc/os-release': 'ID=debian\nVERSION_ID="12"\n' }
const flask = pythonPackage('flask', '2.0.0')

test('finds vulnerabilities of dpkg packages in each state with files on disk', async () => {
  const database = (state: string) => ({
    ...debian,
    'var/lib/dpkg/status': `Package: libcurl4\nStatus: ${state}\nSource: curl\nVersion: 8.0-1\nArchitecture: amd64\n`,
  })
  for (const state of ['install ok half-configured', 'deinstall ok installed', 'install ok triggers-awaited']) {
    assert.deepEqual(await scan(database(state)), { found: ['CVE-2026-curl'], gaps: [] }, state)
  }
  const { found } = await scan({ ...database('deinstall ok config-files'), ...flask })
  assert.deepEqual(found, ['CVE-2026-flask'])
})

test('reports a coverage gap for an entry without a version, and finds vulnerabilities of the others', async () => {
  const layer = apkLayer('alpine', '3.19', ['libssl3 3.1.4-r2 openssl'])
  const broken = { ...layer, 'lib/apk/db/installed': `${layer['lib/apk/db/installed']}\nP:musl\nA:x86_64\n` }
  assert.deepEqual(await scan(broken), {
    found: ['CVE-2026-openssl'],
    gaps: ['lib/apk/db/installed UNIDENTIFIED: an apk package without a version: musl'],
  })
})

test('reports a coverage gap for a distribution without a readable database, also beside language packages', async () => {
  const missing = (id: string) => `UNIDENTIFIED: no package database of ${id} could be read`
  assert.deepEqual(await scan({ ...debian, ...flask }), { found: ['CVE-2026-flask'], gaps: [missing('debian')] })
  const arch = { 'etc/os-release': 'ID=arch\n', 'var/lib/pacman/local/curl-8-1/desc': '%NAME%\ncurl\n' }
  assert.deepEqual(await scan({ ...arch, ...flask }), {
    found: ['CVE-2026-flask'],
    gaps: [missing('arch'), 'var/lib/pacman/local UNSUPPORTED: packages of pacman are not supported: 1'],
  })
  const linked = {
    'etc/os-release': 'ID=alpine\nVERSION_ID=3.19\n',
    'lib/apk/db/installed': { type: 'symlink' as const, linkname: '/opt/installed' },
    'opt/installed': 'P:openssl\nV:3.1.4-r2\n',
  }
  assert.deepEqual(await scan({ ...linked, ...flask }), {
    found: ['CVE-2026-flask'],
    gaps: [
      missing('alpine'),
      'lib/apk/db/installed UNSUPPORTED: the file is a link to opt/installed, which was not read',
    ],
  })
})

test('finds vulnerabilities in a zstd layer with several frames', async () => {
  const archive = await tarOf(apkLayer('alpine', '3.19', ['libssl3 3.1.4-r2 openssl']))
  const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2])
  const frames = [archive.subarray(0, 512), archive.subarray(512)].map((part) => zstdCompressSync(part))
  const layer = Buffer.concat([skippable, frames[0]!, skippable, frames[1]!, skippable])
  assert.deepEqual(await scan(layer), { found: ['CVE-2026-openssl'], gaps: [] })
})
