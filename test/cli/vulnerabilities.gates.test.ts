// Commands for admission gates.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Json, roleUids } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let digest = ''
let env: Record<string, string>
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  await seed.repo(org.uid, { name: 'app' })
  const owner = await seed.member(org.uid, roleUids.owner)
  env = { PINFOLD_API: registry.url, PINFOLD_TOKEN: await registry.tokenFor(owner.uid) }
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1', 'Alpine:v3.19', 'openssl', '9')])
  const layer = apkLayer('alpine', '3.19.1', ['libssl3 3.1.4-r2 openssl'])
  digest = await pushAndScan(registry, 'acme/app', layer, 'latest')
})
after(() => registry[Symbol.asyncDispose]())

const cli = (...args: string[]) => run(['vulnerabilities', 'gates', ...args], { env })
const rowsOf = (stdout: string): string[][] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

test('gates are made, listed, asked, changed and deleted', async () => {
  const rule = ['--severity', 'high', '--fixable', '--after-days', '0']
  const made = await cli('create', 'no-fixable', '--group', 'acme', ...rule, '-o', 'json')
  assert.equal(made.code, 0, made.stderr)
  const gate = JSON.parse(made.stdout) as Json
  assert.deepEqual([gate.mode, gate.vulnerabilities.leastSeverity], ['DRY_RUN', 'HIGH'])
  assert.deepEqual(rowsOf((await cli('list')).stdout), [
    ['UID', 'NAME', 'MODE', 'RULE'],
    [gate.uid, 'no-fixable', 'dry-run', 'no fixable vulnerabilities, high or worse; unknown severity counts as high'],
  ])
  const why = 'it has 1 fixable vulnerability of severity high or worse'
  const tried = await cli('check', 'acme/app')
  assert.equal(tried.code, 0, 'it only tells')
  assert.deepEqual(rowsOf(tried.stdout)[1], ['no-fixable', 'dry-run', 'denied', why])
  const changed = await cli('update', gate.uid, '--mode', 'enforce', '--rename', 'strict')
  assert.equal(changed.stdout, `changed the gate ${gate.uid}\n`, changed.stderr)
  const refused = await cli('check', `acme/app@${digest}`)
  assert.deepEqual([refused.code, rowsOf(refused.stdout)[1]], [1, ['strict', 'enforce', 'denied', why]])
  assert.equal((await cli('update', gate.uid, '--end-of-life')).code, 0)
  assert.equal(rowsOf((await cli('list')).stdout)[1]![3], 'no end of life')
  assert.equal((await cli('delete', gate.uid)).stdout, `deleted the gate ${gate.uid}\n`)
  assert.equal(rowsOf((await cli('list')).stdout).length, 1)
})

test('check exits with 1 if an enforced gate could not be asked, and with 0 if that gate only reports', async (t) => {
  const made = await cli(
    'create',
    'broken',
    '--image',
    'acme/app',
    '--severity',
    'critical',
    '--mode',
    'enforce',
    '-o',
    'json',
  )
  const { uid } = JSON.parse(made.stdout) as Json
  assert.equal((await cli('check', 'acme/app')).code, 0, made.stderr)
  t.mock.method(registry.app.gates, 'verdict', () => Promise.reject(new Error('the disk is away')))
  const failed = await cli('check', 'acme/app')
  assert.deepEqual(
    [failed.code, rowsOf(failed.stdout)[1]],
    [1, ['broken', 'enforce', 'error', 'the policy could not be checked, because of an error in the server']],
  )
  assert.equal((await cli('update', uid, '--mode', 'dry-run')).code, 0)
  assert.equal((await cli('check', 'acme/app')).code, 0)
  assert.equal((await cli('delete', uid)).code, 0)
})

test('an exception lets a digest through, is listed and revoked', async () => {
  const made = await cli('create', 'young', '--image', 'acme/app', '--min-age-days', '7', '--mode', 'enforce')
  assert.equal(made.code, 0, made.stderr)
  assert.equal((await cli('check', 'acme/app')).code, 1)
  const until = new Date(Date.now() + 86_400_000).toISOString()
  const except = await cli('except', digest, '--group', 'acme', '--reason', 'a fix', '--until', until)
  assert.match(except.stdout, new RegExp(`^${digest} passes until ${until}: `))
  const [, row] = rowsOf((await cli('exceptions')).stdout)
  assert.deepEqual([row![1], row![2], row!.at(-1)], [digest, until, 'a fix'])
  const passed = await cli('check', 'acme/app', '-o', 'json')
  const { items } = JSON.parse(passed.stdout) as Json
  assert.deepEqual([passed.code, items[0].parameters.exception], [0, row![0]])
  assert.equal((await cli('revoke', row![0]!)).stdout, `${digest} passes no more\n`)
  assert.equal((await cli('check', 'acme/app')).code, 1)
})

test('a gate without a scope, or with an invalid number, is a usage error', async () => {
  assert.equal((await cli('create', 'a', '--severity', 'high')).code, 64)
  assert.equal((await cli('create', 'a', '--group', 'acme', '--min-age-days', 'many')).code, 64)
  assert.equal((await cli('update', 'acme')).code, 64)
  const wrong = await cli('create', 'a', '--group', 'acme')
  assert.deepEqual([wrong.code, /vulnerabilities/.test(wrong.stderr)], [1, true], wrong.stderr)
})

test('a gate is named by its name, and an invalid uid is refused with the command that lists them', async () => {
  const made = await cli('create', 'named', '--group', 'acme', '--min-age-days', '7', '-o', 'json')
  const { uid } = JSON.parse(made.stdout) as Json
  assert.equal((await cli('update', 'named', '--mode', 'off')).stdout, `changed the gate ${uid}\n`)
  const empty = await cli('delete', '')
  assert.deepEqual([empty.code, /say which gate/.test(empty.stderr)], [64, true], empty.stderr)
  const missing = await cli('delete', 'acme/none')
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /there is no gate none in acme .*\n.*pinfold vulnerabilities gates list shows/)
  assert.equal((await cli('delete', 'acme/named')).stdout, `deleted the gate ${uid}\n`)
  const revoked = await cli('revoke', 'EXCEPTION')
  assert.equal(revoked.code, 64)
  assert.match(revoked.stderr, /EXCEPTION is no uid; pinfold vulnerabilities gates exceptions shows/)
})

test('a check of an unscanned image says so, and a preview shows the changes', async () => {
  const { seed, org } = registry
  await seed.repo(org.uid, { name: 'quiet' })
  await pushAndScan(registry, 'acme/quiet', apkLayer('alpine', '3.18.1', ['musl 1-r0']), 'latest')
  const made = await cli('create', 'any', '--image', 'acme/quiet', '--severity', 'any', '--mode', 'enforce')
  assert.equal(made.code, 0, made.stderr)
  const checked = await cli('check', 'acme/quiet')
  const why = 'it has no known vulnerabilities, but not scanned: Alpine:v3.18 has no data source'
  assert.deepEqual([checked.code, rowsOf(checked.stdout)[1]], [0, ['any', 'enforce', 'allowed', why]])
  const unrated = recordAbout('CVE-2026-2', 'Alpine:v3.19', 'unrated', '9')
  unrated.affected[0]!.severity = ''
  await readSource(registry.app, 'Alpine:v3.19', [unrated])
  await seed.repo(org.uid, { name: 'rated' })
  await pushAndScan(registry, 'acme/rated', apkLayer('alpine', '3.19.1', ['unrated 1-r0']), 'latest')
  const rule = ['--severity', 'high', '--unknown-severity', 'not-counted', '--mode', 'enforce']
  assert.equal((await cli('create', 'old', '--image', 'acme/rated', ...rule)).code, 0)
  assert.match((await cli('check', 'acme/rated')).stdout, /1 finding of unknown severity, not counted by this policy/)
  const shown = rowsOf((await cli('preview')).stdout)
  const host = new URL(registry.url).host
  assert.deepEqual(
    shown.slice(1).map(([gate, mode, image]) => [gate, mode, image]),
    [['old', 'enforce', `${host}/acme/rated:latest`]],
  )
  assert.equal((await cli('update', 'acme/rated/old', '--severity', 'high', '--unknown-severity', 'high')).code, 0)
  assert.equal(rowsOf((await cli('preview')).stdout).length, 1)
  assert.equal((await cli('check', 'acme/rated')).code, 1)
})
