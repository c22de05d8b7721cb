// Commands that list images by vulnerability or package, and that compare two of them.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { keysOf, pemOf } from '../support/attest.ts'
import { roleUids } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let [first, host] = ['', '']
let env: Record<string, string>
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  await seed.repo(org.uid, { name: 'app' })
  const viewer = await seed.member(org.uid, roleUids.viewer)
  env = { PINFOLD_API: registry.url, PINFOLD_TOKEN: await registry.tokenFor(viewer.uid) }
  host = new URL(registry.url).host
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '3.1.4-r5'),
    recordAbout('CVE-2026-2', 'Alpine:v3.19', 'musl', ''),
  ])
  first = await push(['libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2', 'zlib 1.3-r0'], '1.0')
  await push(['libssl3 3.1.4-r5 openssl', 'musl 1.2.4-r2', 'curl 8-r0'], 'latest')
})
after(() => registry[Symbol.asyncDispose]())

const push = (lines: string[], tag: string) =>
  pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', lines), tag)
const cli = (...args: string[]) => run(args, { env })
const rowsOf = (stdout: string): string[][] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

test('vulnerabilities images lists the images with a vulnerability', async () => {
  const { code, stdout } = await cli('vulnerabilities', 'images', 'CVE-2026-1')
  assert.equal(code, 0)
  assert.deepEqual(rowsOf(stdout), [
    ['IMAGE', 'STATE', 'SEVERITY', 'PACKAGES'],
    [`${host}/acme/app:1.0`, 'affected', 'high', 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
  ])
  const json = JSON.parse((await cli('vulnerabilities', 'images', 'CVE-2026-1', '--in', 'acme', '-o', 'json')).stdout)
  assert.deepEqual([json.items[0].digest, json.unknownImages], [first, 0])
  assert.equal((await cli('vulnerabilities', 'images', 'a b')).code, 1)
})

test('images vulnerabilities lists the findings of an image', async () => {
  const { code, stdout, stderr } = await cli('images', 'vulnerabilities', 'acme/app:1.0')
  assert.deepEqual([code, stderr], [0, ''])
  const head = ['VULNERABILITY', 'SEVERITY', 'PACKAGE', 'FIXED IN', 'STATE', 'EXPLOITED', 'EPSS']
  const openssl = ['CVE-2026-1', 'high', 'pkg:apk/alpine/libssl3@3.1.4-r2', '3.1.4-r5', 'affected']
  const musl = ['CVE-2026-2', 'high', 'pkg:apk/alpine/musl@1.2.4-r2', 'none known', 'affected']
  assert.deepEqual(rowsOf(stdout), [head, openssl, musl])
  const fixable = await cli('images', 'vulnerabilities', 'acme/app:1.0', '--fixable', '--severity', 'high')
  assert.deepEqual(rowsOf(fixable.stdout), [head, openssl])
  const json = JSON.parse((await cli('images', 'vulnerabilities', `acme/app@${first}`, '-o', 'json')).stdout)
  assert.deepEqual([json.digest, json.findings.length, json.gaps, json.coverage.state], [first, 2, [], 'COMPARED'])
  const critical = await cli('images', 'vulnerabilities', 'acme/app:1.0', '--severity', 'critical')
  const none = 'no known vulnerabilities of severity critical; everything was scanned'
  assert.deepEqual([critical.code, critical.stdout.trim().split('\n').at(-1)], [0, none])
  const missing = await cli('images', 'vulnerabilities', 'acme/app:9')
  assert.deepEqual([missing.code, missing.stdout], [1, ''])
})

test('images vulnerabilities names exploited findings, accepted risks and unknown severities', async () => {
  const findings = [
    { record: 'GHSA-1', purl: 'pkg:npm/a@1?x=y', severity: 'unknown', exploited: {}, likelihood: { epss: 0.4321 } },
    { vulnerabilities: ['CVE-1'], record: 'CVE-1', purl: 'pkg:npm/b@1', severity: 'low', acceptedBy: [{}] },
    { vulnerabilities: ['CVE-2'], record: 'CVE-2', purl: 'pkg:npm/c@1', severity: 'negligible', suppressedBy: {} },
  ]
  // Answers the request for findings, and passes other requests on to the server.
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json')
    const headers = { authorization: request.headers.authorization ?? '' }
    if (request.url?.endsWith('/findings')) response.end(JSON.stringify({ digest: first, findings }))
    else response.end(await (await fetch(new URL(request.url!, registry.url), { headers })).text())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const between = { ...env, PINFOLD_API: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const listed = async (...options: string[]) =>
    rowsOf((await run(['images', 'vulnerabilities', 'acme/app', ...options], { env: between })).stdout).slice(1)
  const unknown = ['GHSA-1', 'unknown', 'pkg:npm/a@1', 'none known', 'affected', 'yes', '43.2 %']
  assert.deepEqual(await listed(), [
    unknown,
    ['CVE-1', 'low', 'pkg:npm/b@1', 'none known', 'accepted'],
    ['CVE-2', 'negligible', 'pkg:npm/c@1', 'none known', 'ignored'],
  ])
  assert.deepEqual(await listed('--severity', 'high'), [unknown])
  server.close()
})

test('lists of images have --order-by and --skip', async () => {
  for (const words of [
    ['vulnerabilities', 'images', 'CVE-2026-2'],
    ['packages', 'images', 'musl'],
  ]) {
    const digests = async (...more: string[]) => {
      const { code, stdout, stderr } = await cli(...words, '-o', 'json', ...more)
      assert.equal(code, 0, stderr)
      return (JSON.parse(stdout).items as { digest: string }[]).map(({ digest }) => digest)
    }
    const all = await digests('--order-by', 'repo_uid')
    assert.equal(all.length, 2)
    assert.deepEqual(all, all.toSorted())
    assert.deepEqual(await digests('--order-by', 'repo_uid desc'), all.toReversed())
    assert.deepEqual(await digests('--order-by', 'repo_uid', '--skip', '1'), all.slice(1))
    const cut = await cli(...words, '--order-by', 'repo_uid', '--limit', '1')
    assert.equal(rowsOf(cut.stdout).length, 2)
    assert.match(cut.stderr, /the list has more items; a larger --limit shows them/)
    const past = await cli(...words, '--skip', '2')
    assert.deepEqual([past.code, rowsOf(past.stdout).length], [0, 1])
    const wrong = await cli(...words, '--order-by', 'color')
    assert.equal(wrong.code, 64)
    assert.match(wrong.stderr, /--order-by must name one of: repo_uid/)
  }
})

test('text and exit code for an empty list of images show if everything was scanned', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-3', 'Alpine:v3.19', 'nowhere', '9')])
  const whole = await cli('vulnerabilities', 'images', 'CVE-2026-3')
  assert.deepEqual(
    [whole.code, whole.stdout.trim().split('\n').at(-1)],
    [0, 'no known image has CVE-2026-3; everything was scanned'],
  )
  const unheard = await cli('vulnerabilities', 'images', 'CVE-1999-1')
  assert.equal(unheard.code, 1)
  assert.match(
    unheard.stdout,
    /no known image has CVE-1999-1, but not scanned: CVE-1999-1: no data source has an advisory/,
  )
  const { seed, org } = registry
  await seed.repo(org.uid, { name: 'older' })
  await pushAndScan(registry, 'acme/older', apkLayer('alpine', '3.18.1', ['lonely 1-r0']), 'latest')
  const silent = await cli('vulnerabilities', 'images', 'CVE-2026-3')
  assert.equal(silent.code, 1)
  assert.match(silent.stdout, /, but not scanned: Alpine:v3\.18 has no data source$/m)
  const found = await cli('vulnerabilities', 'images', 'CVE-2026-1')
  assert.equal(found.code, 0)
  assert.match(found.stderr, /not scanned: Alpine:v3\.18: no data source covers this ecosystem \(NO_SOURCE\)/)
  const unscanned = await cli('images', 'vulnerabilities', 'acme/older')
  assert.equal(unscanned.code, 1)
  assert.match(unscanned.stdout, /^no known vulnerabilities, but not scanned: Alpine:v3\.18 has no data source$/m)
  assert.match(unscanned.stderr, /not scanned: Alpine:v3\.18: no data source covers this ecosystem \(NO_SOURCE\)/)
  const same = await cli('images', 'diff', 'acme/app', 'acme/app')
  assert.match(same.stdout, /^no vulnerability differs; everything was scanned$/m)
  const silentPair = await cli('images', 'diff', 'acme/older', 'acme/older')
  assert.match(
    silentPair.stdout,
    /^no known vulnerability differs, but not everything was scanned: image: not scanned: Alpine:v3\.18 has no/m,
  )
  const json = await cli('vulnerabilities', 'images', 'CVE-2026-3', '-o', 'json')
  assert.deepEqual([json.code, JSON.parse(json.stdout).coverage.state], [1, 'NOT_SCANNED'])
})

test('prints the number of unknown images if the server sends no coverage', async () => {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ images: [], unknownImages: 2 }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const older = { ...env, PINFOLD_API: `http://127.0.0.1:${port}` }
  const { code, stdout, stderr } = await run(['vulnerabilities', 'images', 'CVE-2026-3'], { env: older })
  server.close()
  assert.match(stdout, /^no known image has CVE-2026-3$/m)
  assert.match(stderr, /2 images could not be read completely, so they may be affected too/)
  assert.equal(code, 1)
})

test('packages images lists the images with a package', async () => {
  const { stdout } = await cli('packages', 'images', 'openssl', '--range', '<3.1.4-r5')
  assert.deepEqual(rowsOf(stdout).slice(1), [[`${host}/acme/app:1.0`, 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64']])
  assert.equal(rowsOf((await cli('packages', 'images', 'pkg:apk/alpine/musl')).stdout).length, 3)
})

test('packages list shows the packages of an image', async () => {
  const { stdout } = await cli('packages', 'list', 'acme/app:1.0')
  assert.deepEqual(rowsOf(stdout), [
    ['NAME', 'VERSION', 'ECOSYSTEM', 'FROM'],
    ['libssl3', '3.1.4-r2', 'Alpine:v3.19', 'openssl'],
    ['musl', '1.2.4-r2', 'Alpine:v3.19', 'musl'],
    ['zlib', '1.3-r0', 'Alpine:v3.19', 'zlib'],
  ])
  const missing = await cli('packages', 'list', 'acme/app:9')
  assert.deepEqual([missing.code, missing.stdout], [1, ''])
  assert.match(missing.stderr, /acme\/app has no tag 9/)
})

test('images diff shows the differences, and the coverage gaps of both images', async () => {
  const { stdout, stderr } = await cli('images', 'diff', `acme/app@${first}`, 'acme/app')
  assert.deepEqual(rowsOf(stdout).slice(1), [
    ['resolved', 'CVE-2026-1', 'high', 'pkg:apk/alpine/libssl3@3.1.4-r2?arch=x86_64'],
    ['added', 'curl', '8-r0', 'Alpine:v3.19'],
    ['removed', 'zlib', '1.3-r0', 'Alpine:v3.19'],
    ['changed', 'libssl3', '3.1.4-r2 → 3.1.4-r5', 'Alpine:v3.19'],
  ])
  assert.equal(stderr, '')
  const pusher = await registry.registryAs(registry.pusher.uid)
  await pusher.pushImage('acme/app', 'unread')
  assert.match(
    (await cli('images', 'diff', 'acme/app:unread', 'acme/app')).stderr,
    /not scanned of the base: .*\(CONTENTS_UNREAD\)/,
  )
})

test('risks can be accepted, listed and revoked', async () => {
  const owner = await registry.seed.member(registry.org.uid, roleUids.owner)
  const as = { ...env, PINFOLD_TOKEN: await registry.tokenFor(owner.uid) }
  const until = new Date(Date.now() + 86_400_000).toISOString()
  const said = ['--in', `${host}/acme/app`, '--reason', 'not reachable', '--until', until]
  const made = await run(['vulnerabilities', 'risks', 'accept', 'CVE-2026-1', ...said, '-o', 'json'], { env: as })
  assert.equal(made.code, 0, made.stderr)
  const { uid } = JSON.parse(made.stdout)
  const [, row] = rowsOf((await cli('vulnerabilities', 'risks', 'list', '--in', 'acme')).stdout)
  assert.deepEqual([row![0], row![1], row!.at(-1)], [uid, 'CVE-2026-1', 'not reachable'])
  assert.equal(rowsOf((await cli('vulnerabilities', 'images', 'CVE-2026-1')).stdout)[1]![1], 'accepted')
  assert.equal((await cli('vulnerabilities', 'risks', 'revoke', uid)).code, 77)
  assert.equal((await run(['vulnerabilities', 'risks', 'revoke', uid], { env: as })).code, 0)
  assert.equal(rowsOf((await cli('vulnerabilities', 'risks', 'list')).stdout).length, 1)
  const wrong = ['accept', 'CVE-1', '--in', 'acme', '--reason', 'x', '--until', 'soon']
  assert.equal((await cli('vulnerabilities', 'risks', ...wrong)).code, 64)
  const nowhere = await cli('vulnerabilities', 'risks', 'accept', 'CVE-1', '--reason', 'x', '--until', until)
  assert.deepEqual([nowhere.code, /--in/.test(nowhere.stderr)], [64, true], nowhere.stderr)
})

test('trusts, lists and distrusts signers, and never sends a private key', async () => {
  const owner = await registry.seed.member(registry.org.uid, roleUids.owner)
  const as = { ...env, PINFOLD_TOKEN: await registry.tokenFor(owner.uid) }
  const vex = (...args: string[]) => run(['vulnerabilities', 'vex', ...args], { env: as })
  const keys = keysOf.ecdsa!()
  const folder = await mkdtemp(join(tmpdir(), 'pinfold-keys-'))
  const [open, secret] = [join(folder, 'cosign.pub'), join(folder, 'cosign.key')]
  await writeFile(open, pemOf(keys))
  await writeFile(secret, keys.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const until = ['--until', new Date(Date.now() + 86_400_000).toISOString()]
  const made = await vex('trust', 'Acme security', '--in', 'acme', '--key', open, ...until, '-o', 'json')
  assert.equal(made.code, 0, made.stderr)
  const { uid, fingerprint } = JSON.parse(made.stdout)
  const [, row] = rowsOf((await cli('vulnerabilities', 'vex', 'signers')).stdout)
  assert.deepEqual(row!.slice(0, 4), [uid, 'Acme security', fingerprint.slice(0, 16), 'live'])
  assert.match((await vex('trust', 'x', '--in', 'acme', '--key', secret, ...until)).stderr, /private key/)
  assert.equal((await vex('trust', 'x', '--in', 'acme', '--key', join(folder, 'none'), ...until)).code, 64)
  assert.match((await vex('trust', 'x', '--key', open, ...until)).stderr, /--in/)
  for (const content of ['', 'password: secret', `${pemOf(keys)}${' '.repeat(20_000)}`]) {
    await writeFile(secret, content)
    const refused = await vex('trust', 'x', '--in', 'acme', '--key', secret, ...until)
    assert.deepEqual(
      [refused.code, /cosign\.key does not contain a public key in PEM/.test(refused.stderr)],
      [64, true],
      content,
    )
  }
  assert.equal((await cli('vulnerabilities', 'vex', 'distrust', uid)).code, 77)
  const again = await vex('trust', 'Acme', '--in', 'acme', '--key', open, ...until, '-o', 'json')
  const other = JSON.parse(again.stdout).uid
  const still = `Acme security is no longer trusted; its key is still trusted as ${other}\n`
  assert.equal((await vex('distrust', uid)).stdout, still)
  assert.equal((await vex('distrust', other)).stdout, 'Acme is no longer trusted\n')
  await rm(folder, { recursive: true })
})

test('export writes a document and prints its coverage gaps', async () => {
  const { code, stdout } = await cli('vulnerabilities', 'export', 'acme/app:1.0')
  assert.equal(code, 0)
  const document = JSON.parse(stdout)
  assert.deepEqual([document.bomFormat, document.vulnerabilities.length], ['CycloneDX', 2])
  assert.equal(
    JSON.parse((await cli('vulnerabilities', 'export', 'acme/app:1.0', '--format', 'sarif')).stdout).version,
    '2.1.0',
  )
  const vex = JSON.parse((await cli('vulnerabilities', 'export', 'acme/app:1.0', '--format', 'openvex')).stdout)
  assert.equal(vex['@context'], 'https://openvex.dev/ns/v0.2.0')
  assert.equal((await cli('vulnerabilities', 'export', 'acme/app:1.0', '--format', 'spdx')).code, 64)
})
