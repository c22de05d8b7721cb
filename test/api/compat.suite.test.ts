// Runs tests of other files as a client of another product: see test/support/vendor.ts.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '../..')
const files = globSync(
  [
    'test/api/{,v1.}iam.{account-associations,groups,roles,terms}.test.ts',
    'test/api/{,v1.}iam.group-invites.test.ts',
    'test/api/{,v1.}registry.repos.test.ts',
    'test/api/registry.repos.masks.test.ts',
    'test/api/iam.role-bindings.test.ts',
    'test/api/events.deliveries.test.ts',
    'test/oci/history.test.ts',
  ],
  { cwd: root },
)

test('the API tests pass with the names of a vendor', { timeout: 840_000 }, async () => {
  assert.equal(files.length, 16)
  // Without this change the child process would report as part of the current test run. All files share this process, which loads
  // the program once.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', '--test-isolation=none', '--test-reporter=tap', ...files]
  const child = spawn(join(root, 'bin/pinfold-node'), args, { cwd: root, env: { ...env, PINFOLD_TEST_VENDOR: 'acme' } })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  const failed = out.split('\n').filter((line) => line.startsWith('not ok'))
  assert.deepEqual([code, failed], [0, []], [...failed, out.slice(-10_000)].join('\n'))
  assert.ok(Number(/^# pass (\d+)$/m.exec(out)?.[1]) > 100, out.slice(-1000))
})
