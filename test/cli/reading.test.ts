// Read-only commands of the operator: they create nothing, and call the server in the environment.
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createStorage, run, runProcess, startInProcess } from '../support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-reading-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const reading = [
  ['vulnerabilities', 'status'],
  ['server', 'scanners', 'list'],
  ['vulnerabilities', 'verify'],
  ['server', 'gc', '--dry-run'],
  ['server', 'quotas', 'list'],
  ['server', 'quotas', 'describe', 'acme'],
]

for (const args of reading) {
  test(`${args.join(' ')} creates no data folder`, async () => {
    const { code, stderr } = await runProcess(args, { cwd: folder })
    assert.equal(code, 69, stderr)
    assert.match(stderr, /no server has used data yet/)
    assert.deepEqual(readdirSync(folder), [])
  })
}

test('read-only commands call the server of PINFOLD_API, or open the data folder of --data', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const { stdout: token } = await run(['token', ...storage.args], { env: storage.env })
  const env = { PINFOLD_API: server.url, PINFOLD_TOKEN: token.trim() }
  for (const args of reading.slice(0, -1)) {
    const { code, stderr } = await runProcess(args, { cwd: folder, env })
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
    assert.deepEqual(readdirSync(folder), [])
  }
  const wrong = await runProcess(['vulnerabilities', 'status'], {
    cwd: folder,
    env: { ...env, PINFOLD_TOKEN: 'wrong' },
  })
  assert.notEqual(wrong.code, 0)
  const named = await runProcess(['vulnerabilities', 'status', '--data', join(folder, 'none')], { cwd: folder, env })
  assert.equal(named.code, 69, named.stderr)
  assert.deepEqual(readdirSync(folder), [])
})
