// Commands for admission policies.
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

const cli = (...args: string[]) => run(['policies', 'admission', ...args], { env })
const rowsOf = (stdout: string): string[][] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

test('creates, lists, checks, updates and deletes admission policies', async () => {
  const rule = ['--severity', 'high', '--fixable', '--after-days', '0']
  const made = await cli('create', 'no-fixable', '--in', 'acme', ...rule, '-o', 'json')
  assert.equal(made.code, 0, made.stderr)
  const gate = JSON.parse(made.stdout) as Json
  assert.deepEqual([gate.mode, gate.vulnerabilities.leastSeverity], ['DRY_RUN', 'HIGH'])
  assert.deepEqual(rowsOf((await cli('list')).stdout), [
    ['UID', 'NAME', 'MODE', 'CONDITION'],
    [gate.uid, 'no-fixable', 'dry-run', 'no fixable vulnerabilities, high or worse; unknown severity counts as high'],
  ])
  const why = 'it has 1 fixable vulnerability of severity high or worse'
  const tried = await cli('check', 'acme/app')
  assert.equal(tried.code, 0, 'a dry run denies nothing')
  assert.deepEqual(rowsOf(tried.stdout)[1], ['no-fixable', 'dry-run', 'denied', why])
  const changed = await cli('update', gate.uid, '--mode', 'enforce', '--rename', 'strict')
  assert.equal(changed.stdout, `changed the admission policy ${gate.uid}\n`, changed.stderr)
  const refused = await cli('check', `acme/app@${digest}`)
  assert.deepEqual([refused.code, rowsOf(refused.stdout)[1]], [1, ['strict', 'enforce', 'denied', why]])
  assert.equal((await cli('update', gate.uid, '--end-of-life')).code, 0)
  assert.equal(rowsOf((await cli('list')).stdout)[1]![3], 'not past the end of life')
  assert.equal((await cli('delete', gate.uid)).stdout, `deleted the admission policy ${gate.uid}\n`)
  assert.equal(rowsOf((await cli('list')).stdout).length, 1)
})

test('check exits with 1 if an enforced policy cannot be checked, and with 0 if its mode is dry-run', async (t) => {
  const rule = ['--severity', 'critical', '--mode', 'enforce']
  const made = await cli('create', 'broken', '--in', 'acme/app', ...rule, '-o', 'json')
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

test('an exemption allows a digest until it is revoked', async () => {
  const made = await cli('create', 'young', '--in', 'acme/app', '--min-age-days', '7', '--mode', 'enforce')
  assert.equal(made.code, 0, made.stderr)
  assert.equal((await cli('check', 'acme/app')).code, 1)
  const until = new Date(Date.now() + 86_400_000).toISOString()
  const except = await cli('exemptions', 'create', digest, '--in', 'acme', '--reason', 'a fix', '--until', until)
  assert.match(except.stdout, new RegExp(`^${digest} is exempt until ${until}: `))
  const [, row] = rowsOf((await cli('exemptions', 'list')).stdout)
  assert.deepEqual([row![1], row![2], row!.at(-1)], [digest, until, 'a fix'])
  const passed = await cli('check', 'acme/app', '-o', 'json')
  const { items } = JSON.parse(passed.stdout) as Json
  assert.deepEqual([passed.code, items[0].parameters.exception], [0, row![0]])
  assert.equal((await cli('exemptions', 'revoke', row![0]!)).stdout, `${digest} is no longer exempt\n`)
  assert.equal((await cli('check', 'acme/app')).code, 1)
})

test('refuses a policy without a scope, and one with an invalid number', async () => {
  assert.equal((await cli('create', 'a', '--severity', 'high')).code, 64)
  assert.equal((await cli('create', 'a', '--in', 'acme', '--min-age-days', 'many')).code, 64)
  assert.equal((await cli('update', 'acme')).code, 64)
  const wrong = await cli('create', 'a', '--in', 'acme')
  assert.deepEqual([wrong.code, /vulnerabilities/.test(wrong.stderr)], [1, true], wrong.stderr)
})

test('finds a policy by its name, and refuses an invalid uid with the command that lists uids', async () => {
  const made = await cli('create', 'named', '--in', 'acme', '--min-age-days', '7', '-o', 'json')
  const { uid } = JSON.parse(made.stdout) as Json
  assert.equal((await cli('update', 'named', '--mode', 'off')).stdout, `changed the admission policy ${uid}\n`)
  const empty = await cli('delete', '')
  assert.deepEqual([empty.code, /admission policy.* empty/.test(empty.stderr)], [64, true], empty.stderr)
  const missing = await cli('delete', 'acme/none')
  assert.equal(missing.code, 1)
  assert.match(missing.stderr, /no admission policy .*none.*\n.*pinfold policies admission list/)
  assert.equal((await cli('delete', 'acme/named')).stdout, `deleted the admission policy ${uid}\n`)
  const revoked = await cli('exemptions', 'revoke', 'EXCEPTION')
  assert.equal(revoked.code, 64)
  assert.match(revoked.stderr, /EXCEPTION is not a uid; pinfold policies admission exemptions list lists/)
})

test('a check of an unscanned image reports this, and a preview shows the changes', async () => {
  const { seed, org } = registry
  await seed.repo(org.uid, { name: 'quiet' })
  await pushAndScan(registry, 'acme/quiet', apkLayer('alpine', '3.18.1', ['musl 1-r0']), 'latest')
  const made = await cli('create', 'any', '--in', 'acme/quiet', '--severity', 'any', '--mode', 'enforce')
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
  assert.equal((await cli('create', 'old', '--in', 'acme/rated', ...rule)).code, 0)
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
