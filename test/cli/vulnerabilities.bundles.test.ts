// Bundle of vulnerability sources as one artifact: packed on one machine, and read on another one without internet access.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { type Answer, osv, startMirror } from '../support/mirror.ts'
import type { Json } from '../support/pinfold.ts'
import { createStorage, type Env, run, startInProcess, type TestStorage, tokenOf } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'
import { zipOf } from '../support/zip.ts'

const secdb = JSON.stringify({
  packages: [{ pkg: { name: 'openssl', secfixes: { '3.0.8-r0': ['CVE-2022-4203'], '0': ['CVE-2022-1'] } } }],
})
const npm = {
  id: 'GHSA-1',
  modified: '2026-11-20T00:00:00Z',
  summary: 'Größe',
  severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }],
  affected: [
    {
      package: { ecosystem: 'npm', name: '@x/y' },
      ranges: [{ type: 'SEMVER', events: [{ introduced: '1.0.0' }, { last_affected: '1.4.0' }] }],
    },
    { package: { ecosystem: 'npm', name: 'z' }, versions: ['1.0.0'] },
  ],
}
const withdrawn = osv('PYSEC-2', '1.2', { withdrawn: '2026-11-21T00:00:00Z' })
const files = (): Record<string, Answer> => ({
  'osv/PyPI/all.zip': { body: zipOf({ 'PYSEC-1.json': osv('PYSEC-1'), 'PYSEC-2.json': withdrawn }) },
  'osv/npm/all.zip': { body: zipOf({ 'GHSA-1.json': JSON.stringify(npm) }) },
  'secdb/v3.20/main.json': { body: secdb },
  'osv/Chainguard/all.zip': { body: zipOf({ 'CGA-1.json': osv('CGA-1') }) },
  'debian-tracker': { body: '{}' },
})
const names = ['osv/PyPI', 'osv/npm', 'secdb/v3.20/main']
const picked = (some: readonly string[]) => some.flatMap((name) => ['--source', name])

const packing = (target: string, mirror: { url: string }, some: readonly string[], env: Env = {}) =>
  run(['vulnerabilities', 'pack', target, '--mirror', mirror.url, ...picked(some)], { env })
const syncing = (storage: TestStorage, args: readonly string[], env: Env = {}) =>
  run(['vulnerabilities', 'sync', ...storage.args, ...args], { env: { ...storage.env, ...env } })
const statusOf = async (storage: TestStorage): Promise<Record<string, Json>> => {
  const { stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
  return Object.fromEntries((JSON.parse(stdout) as Json[]).map((one) => [one.name, one]))
}
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex')

test('a bundle is packed, copied through a registry, and gives the same records without network access to the sources', async () => {
  await using online = await createStorage()
  await using inside = await createStorage()
  await using mirror = await startMirror(files())
  const folder = join(online.data, 'bundle')
  const packed = await packing(folder, mirror, [...names, 'osv/Chainguard', 'debian-tracker'])
  assert.equal(packed.code, 0)
  assert.deepEqual(packed.stderr.split('\n'), [
    'pinfold: osv/Chainguard was left out: its license (CC-BY-NC-ND-4.0) forbids redistribution',
    'pinfold: debian-tracker was left out: its license (unknown) forbids redistribution',
    '',
  ])
  assert.match(packed.stdout, /^osv\/PyPI: 2 records, \d+ bytes\nosv\/npm: 1 records, /)
  assert.ok(!mirror.asked().some((path) => /Chainguard|debian/.test(path)))

  await using server = await startInProcess(inside)
  const registry = new URL(server.url).host
  const reference = `${registry}/acme/vulnerabilities:latest`
  const docker = join(inside.data, 'docker')
  mkdirSync(docker)
  const token = await tokenOf(inside, ['--audience', registry])
  const auth = Buffer.from(`_token:${token}`).toString('base64')
  writeFileSync(join(docker, 'config.json'), JSON.stringify({ auths: { [registry]: { auth } } }))
  const body = JSON.stringify({ name: 'acme' })
  const headers = { authorization: `Bearer ${await tokenOf(inside)}`, 'content-type': 'application/json' }
  assert.equal((await fetch(`${server.url}/iam/v2/groups`, { method: 'POST', headers, body })).status, 200)

  // Copies the folder like a registry client.
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
  const blob = (digest: string) => readFileSync(join(folder, 'blobs/sha256', digest.slice(7)))
  const manifest = blob(index.manifests[0].digest).toString()
  const client = registryClient(server.url, token)
  const { config, layers, artifactType } = JSON.parse(manifest)
  assert.equal(artifactType, 'application/vnd.pinfold.vulnerability-data.v1+json')
  assert.deepEqual(
    readdirSync(join(folder, 'blobs/sha256')).sort(),
    [index.manifests[0], config, ...layers].map(({ digest }: Json) => digest.slice(7)).sort(),
  )
  for (const { digest } of [config, ...layers]) await client.pushBlob('acme/vulnerabilities', blob(digest))
  await client.pushManifest('acme/vulnerabilities', manifest, 'latest')

  const anonymous = await syncing(inside, ['--from', reference], { DOCKER_CONFIG: join(inside.data, 'none') })
  assert.equal(anonymous.code, 1)
  assert.match(anonymous.stderr, /answered 40[13]|refused a token/)
  const env = { DOCKER_CONFIG: docker }
  mirror.asked()
  const read = await syncing(inside, ['--from', reference], env)
  assert.deepEqual(read, {
    code: 0,
    stdout: [
      'osv/PyPI: 2 new, 0 changed, 0 unchanged, 0 withdrawn',
      'osv/npm: 1 new, 0 changed, 0 unchanged, 0 withdrawn',
      'secdb/v3.20/main: 2 new, 0 changed, 0 unchanged, 0 withdrawn\n',
    ].join('\n'),
    stderr: '',
  })
  assert.deepEqual(mirror.asked(), [])
  const { url, licence, ecosystems } = (await statusOf(inside))['secdb/v3.20/main']!
  assert.deepEqual([url, licence, ecosystems], [`oci://${reference}`, 'CC-BY-SA-4.0', ['Alpine:v3.20']])
  // Unchanged sources that the command pushes have the same layers, which are not read again.
  const pushed = await packing(reference, mirror, names, env)
  assert.deepEqual([pushed.code, pushed.stderr], [0, ''])
  assert.ok(pushed.stdout.endsWith(`oci://${reference}: ${index.manifests[0].digest}\n`))
  assert.match((await syncing(inside, ['--from', reference], env)).stdout, /^osv\/PyPI: 0 new, 0 changed, 0 unchanged/)

  // Each record equals the record that the sources themselves give.
  const args = ['--mirror', mirror.url, ...picked(names)]
  assert.equal((await syncing(online, args)).code, 0)
  assert.equal(
    (await syncing(inside, [...args, '--full'])).stdout,
    [
      'osv/PyPI: 0 new, 0 changed, 2 unchanged, 0 withdrawn',
      'osv/npm: 0 new, 0 changed, 1 unchanged, 0 withdrawn',
      'secdb/v3.20/main: 0 new, 0 changed, 2 unchanged, 0 withdrawn\n',
    ].join('\n'),
  )
})

test('a broken layer leaves its source unchanged, and the other layers are read', async () => {
  await using storage = await createStorage()
  await using mirror = await startMirror(files())
  const folder = join(storage.data, 'bundle')
  await packing(folder, mirror, names)
  assert.equal((await syncing(storage, ['--from', folder])).code, 0)
  const layerOf = (name: string) => {
    const { manifests } = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
    const blob = (digest: string) => join(folder, 'blobs/sha256', digest.slice(7))
    const { config } = JSON.parse(readFileSync(blob(manifests[0].digest), 'utf8'))
    const { sources } = JSON.parse(readFileSync(blob(config.digest), 'utf8'))
    return blob(sources.find((one: Json) => one.name === name).digest)
  }
  mirror.files['osv/PyPI/all.zip'] = { body: zipOf({ 'PYSEC-3.json': osv('PYSEC-3') }) }
  mirror.files['osv/npm/all.zip'] = { body: zipOf({ 'GHSA-1.json': JSON.stringify({ ...npm, summary: 'Other' }) }) }
  await packing(folder, mirror, names)
  const good = readFileSync(layerOf('osv/PyPI'))
  const changed = Buffer.from(good)
  changed[good.length - 3]! ^= 1
  for (const [bytes, reason] of [
    [changed, 'the layer does not match its digest'],
    [good.subarray(1), 'the layer is missing, or has another length'],
  ] as const) {
    writeFileSync(layerOf('osv/PyPI'), bytes)
    const { code, stdout } = await syncing(storage, ['--from', folder])
    assert.equal(code, 1)
    assert.match(
      stdout,
      new RegExp(`^osv/PyPI: failed, and keeps its former data: ${reason}\nosv/npm: 0 new, [01] changed`),
    )
    const { 'osv/PyPI': state } = await statusOf(storage)
    assert.deepEqual([state?.records, state?.error], ['2', reason])
  }
  writeFileSync(layerOf('osv/PyPI'), good)
  assert.match(
    (await syncing(storage, ['--from', folder])).stdout,
    /^osv\/PyPI: 1 new, 0 changed, 0 unchanged, 2 withdrawn$/m,
  )
})

test('a layer with an invalid line changes nothing in its source, even if its digest is correct', async () => {
  await using storage = await createStorage()
  await using mirror = await startMirror(files())
  const folder = join(storage.data, 'bundle')
  await packing(folder, mirror, ['osv/PyPI'])
  const blobs = join(folder, 'blobs/sha256')
  const index = JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8'))
  const read = (digest: string) => readFileSync(join(blobs, digest.slice(7)))
  const put = (content: Buffer | string) => {
    const bytes = Buffer.from(content)
    writeFileSync(join(blobs, sha256(bytes)), bytes)
    return { digest: `sha256:${sha256(bytes)}`, size: bytes.length }
  }
  const manifest = JSON.parse(read(index.manifests[0].digest).toString())
  const config = JSON.parse(read(manifest.config.digest).toString())
  const lines = zstdDecompressSync(read(manifest.layers[0].digest)).toString()
  const first = JSON.parse(lines.split('\n')[0]!)
  const use = (text: string, more: Json = {}) => {
    const layer = { ...manifest.layers[0], ...put(zstdCompressSync(text)) }
    const facts = { ...config, sources: [{ ...config.sources[0], digest: layer.digest, ...more }] }
    const described = { ...manifest.config, ...put(JSON.stringify(facts)) }
    const one = put(JSON.stringify({ ...manifest, config: described, layers: [layer] }))
    writeFileSync(
      join(folder, 'index.json'),
      JSON.stringify({ ...index, manifests: [{ ...index.manifests[0], ...one }] }),
    )
  }
  const wrong = (change: Json) => `${lines.split('\n')[0]}\n${JSON.stringify({ ...first, id: 'X', ...change })}\n`
  for (const [text, reason] of [
    [lines.slice(0, -1), /the last line has no line break/],
    [`${lines}{\n`, /line 3: the document is not valid JSON/],
    [lines.slice(lines.indexOf('\n') + 1), /the layer has 1 records instead of 2/],
    [wrong({ aliases: 'x' }), /line 2: aliases must be a list/],
    [wrong({ affected: [{ ...first.affected[0], state: 'constructor' }] }), /affected\[0\]\.state must be one of/],
    [wrong({ affected: [{ ...first.affected[0], ranges: [{ type: 'GIT' }] }] }), /ranges\[0\]\.type must be one of/],
    [wrong({ severities: [{ type: 'CVSS_V3', score: '9' }] }), /severities\[0\]\.score must be a number/],
    [`${'x'.repeat(17 * 1024 * 1024)}\n`, /has more than 16777216 bytes/],
  ] as const) {
    use(text)
    const { code, stdout } = await syncing(storage, ['--from', folder])
    assert.equal(code, 1)
    assert.match(stdout, /^osv\/PyPI: failed, and keeps its former data: /)
    assert.match(stdout, reason)
  }
  assert.equal((await statusOf(storage))['osv/PyPI']?.records, '0')
  // An incomplete source withdraws no records.
  use(lines)
  assert.match((await syncing(storage, ['--from', folder])).stdout, /^osv\/PyPI: 2 new, /)
  use(`${lines.split('\n')[0]}\n`, { complete: false, records: 1 })
  assert.match((await syncing(storage, ['--from', folder])).stdout, /: 0 new, 0 changed, 1 unchanged, 0 withdrawn$/m)
  use(lines, { name: 'osv/../x' })
  assert.equal((await syncing(storage, ['--from', folder])).code, 64)
})

test('omits unreadable sources from a bundle, and refuses to write into a folder with other files', async () => {
  await using storage = await createStorage()
  await using mirror = await startMirror(files())
  const folder = join(storage.data, 'bundle')
  mirror.files['osv/npm/all.zip'] = { body: zipOf({ 'GHSA-1.json': JSON.stringify(npm), 'X.json': '{' }) }
  const { code, stdout, stderr } = await packing(folder, mirror, ['osv/npm', 'osv/Go'])
  assert.equal(code, 1)
  assert.match(stdout, /^osv\/npm: 1 records, \d+ bytes\nfile:/)
  assert.match(stderr, /^pinfold: osv\/npm\/X\.json: the document is not valid JSON$/m)
  assert.match(stderr, /^pinfold: osv\/Go: was left out: the response had status 404$/m)

  const none = join(storage.data, 'none')
  assert.equal((await packing(none, mirror, ['osv/Go'])).code, 1)
  assert.equal(existsSync(none), false)
  const other = join(storage.data, 'other')
  mkdirSync(other)
  writeFileSync(join(other, 'mine.txt'), 'x')
  const refused = await packing(other, mirror, ['osv/npm'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /the folder contains other files than a bundle/)
  assert.deepEqual(readdirSync(other), ['mine.txt'])

  for (const from of ['acme', 'https://example.com/a:b', 'example.com/A:b', 'example.com/a@sha256:x']) {
    assert.equal((await syncing(storage, ['--from', from])).code, 64, from)
    assert.equal((await packing(from, mirror, ['osv/npm'])).code, 64, from)
  }
  const empty = await syncing(storage, ['--from', other])
  assert.deepEqual([empty.code, empty.stdout], [1, ''])
  assert.match(empty.stderr, /the folder is not a bundle/)
  assert.equal((await syncing(storage, ['--from', folder, '--mirror', mirror.url])).code, 64)
  const missing = await syncing(storage, ['--from', folder, '--source', 'osv/PyPI'])
  assert.equal(missing.code, 1)
  assert.match(missing.stdout, /^osv\/PyPI: failed, and keeps its former data: is not in the bundle$/m)
})
