// Settings that were renamed, by their former names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Setting } from '#config/basics.ts'
import { type Config, readConfig, settings } from '#config.ts'
import { newKeyPair, noteKey, vkeyOf } from '#lib/tlog/notes.ts'
import { createStorage, run, startProcess } from '../support/process.ts'
import { eventually } from '../support/receiver.ts'

const provider = '[{"issuer":"https://idp.example","audience":"pinfold"}]'
const witness = `${vkeyOf(noteKey('w.example', 'witness', newKeyPair().publicKey))} https://w.example`

/** The former and the current name of each setting, and two valid values. */
const renamed: readonly [former: string, current: string, value: string, another: string][] = [
  ['PINFOLD_CHECKPOINTS', 'PINFOLD_SQLITE_CHECKPOINTS', 'external', 'server'],
  ['PINFOLD_SPARSE', 'PINFOLD_SPARSE_MANIFESTS', 'indexes', 'all'],
  ['PINFOLD_LEDGER_PROOFS', 'PINFOLD_TRANSPARENCY_LOG', 'public', 'off'],
  ['PINFOLD_LEDGER_WITNESSES', 'PINFOLD_TRANSPARENCY_LOG_WITNESSES', witness, ','],
  ['PINFOLD_PEOPLE_ISSUERS', 'PINFOLD_OIDC_PROVIDERS', provider, '[]'],
  ['PINFOLD_OPEN_SIGN_IN', 'PINFOLD_ALLOW_SELF_REGISTRATION', 'on', 'off'],
  ['PINFOLD_OPEN_ORGANIZATIONS', 'PINFOLD_ALLOW_ORGANIZATION_CREATION', 'on', 'off'],
  ['PINFOLD_DELIVERY_RETRY_FIRST_MS', 'PINFOLD_DELIVERY_RETRY_MIN_MS', '70', '80'],
  ['PINFOLD_DELIVERY_RETRY_MOST_MS', 'PINFOLD_DELIVERY_RETRY_MAX_MS', '700', '800'],
  ['PINFOLD_AUDIT_DAYS', 'PINFOLD_AUDIT_RETENTION_DAYS', '7', '8'],
  ['PINFOLD_VULNERABILITY_GONE_IMAGES', 'PINFOLD_VULNERABILITY_DELETED_IMAGES', '70', '80'],
]

const withoutNames = ({ formerNames: _, ...config }: Config) => config

for (const [former, current, value, another] of renamed) {
  test(`${former} still sets ${current}`, () => {
    const named = [{ former, name: current }]
    const expected = readConfig({ [current]: value })
    assert.deepEqual(expected.formerNames, [])
    const { formerNames, ...config } = readConfig({ [former]: value })
    assert.deepEqual([config, formerNames], [withoutNames(expected), named])
    assert.deepEqual(readConfig({ [former]: value, [current]: value }).formerNames, named)
    assert.deepEqual(readConfig({ [former]: value, [current]: '' }).formerNames, named)
    assert.deepEqual(readConfig({ [former]: '', [current]: value }).formerNames, [])
    const both = `${current} and its former name ${former} have different values; unset ${former}`
    assert.throws(() => readConfig({ [former]: value, [current]: another }), { name: 'ConfigError', message: both })
  })
}

test('the table above contains each former name', () => {
  const all = Object.values<Setting<unknown>>(settings).flatMap(({ env, formerly }) =>
    formerly ? [[formerly, env]] : [],
  )
  assert.deepEqual(all.sort(), renamed.map(([former, current]) => [former, current]).sort())
})

test('an error for an invalid value contains the name that the operator used', () => {
  assert.throws(
    () => readConfig({ PINFOLD_AUDIT_DAYS: 'x' }),
    /^ConfigError: PINFOLD_AUDIT_DAYS must be a whole number/,
  )
})

test('a command warns once for each former name, on standard error', async () => {
  await using storage = await createStorage()
  const former = { PINFOLD_AUDIT_DAYS: '7', PINFOLD_SPARSE: 'all' }
  const { code, stderr } = await run(['migrate', ...storage.args], { env: { ...storage.env, ...former } })
  assert.equal(code, 0)
  assert.deepEqual(stderr.trim().split('\n').sort(), [
    'pinfold: PINFOLD_AUDIT_DAYS is deprecated; use PINFOLD_AUDIT_RETENTION_DAYS instead',
    'pinfold: PINFOLD_SPARSE is deprecated; use PINFOLD_SPARSE_MANIFESTS instead',
  ])
})

test('a server warns of a former name on standard error and in the log', async () => {
  await using storage = await createStorage()
  await using server = await startProcess(storage, { env: { PINFOLD_AUDIT_DAYS: '7' } })
  const logged = /"setting has a deprecated name",.*"former":"PINFOLD_AUDIT_DAYS","name":"PINFOLD_AUDIT_RETENTION_DAYS"/
  await eventually(
    async () => server.output.stderr,
    (text) => logged.test(text),
  )
  const printed = server.output.stderr.match(/^pinfold: PINFOLD_AUDIT_DAYS is deprecated; .*$/gm)
  assert.equal(printed?.length, 1, server.output.stderr)
})
