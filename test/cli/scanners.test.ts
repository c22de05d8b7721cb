// Commands that configure external scanners: omitted values stay the same.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createStorage, run, startInProcess } from '../support/process.ts'

test('keeps scanner settings without an option, so that a new credential does not send images of others to the scanner', async () => {
  await using storage = await createStorage()
  await using _server = await startInProcess(storage)
  const file = join(storage.data, 'credential')
  const of = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(['server', 'scanners', ...args, ...storage.args], {
      env: storage.env,
    })
    return { code, stdout, stderr }
  }
  const set = (...args: string[]) => of('set', 'finder', '--url', 'https://scanner.example.com', ...args)
  const shown = async () => {
    const [{ groups, onPush, registryUrl, hasCredential }] = JSON.parse((await of('list', '-o', 'json')).stdout)
    return { groups, onPush, registryUrl, hasCredential }
  }
  const group = 'a'.repeat(40)
  const said = { groups: [group], onPush: true, registryUrl: 'https://registry.example.com' }

  assert.equal((await set('--in', group, '--on-push', '--registry-url', said.registryUrl)).code, 0)
  assert.deepEqual(await shown(), { ...said, hasCredential: false })
  writeFileSync(file, 'Bearer first\n')
  assert.equal((await set('--credential-file', file)).code, 0)
  assert.deepEqual(await shown(), { ...said, hasCredential: true })
  assert.equal((await set('--everywhere', '--on-request', '--registry-url', '')).code, 0)
  assert.deepEqual(await shown(), { groups: [], onPush: false, registryUrl: '', hasCredential: true })
  for (const both of [
    ['--everywhere', '--in', group],
    ['--on-push', '--on-request'],
  ]) {
    const { code, stderr } = await set(...both)
    assert.deepEqual([code, /cannot be combined/.test(stderr)], [64, true], stderr)
  }
})
