// Commands of the operator for the transparency logs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { vkeyOf } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { runJob } from '../support/background-jobs.ts'
import { onPostgres, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { plantTag } from '../support/tags.ts'

test('the operator can rotate the key of a log, and resume suspended logs', async (t) => {
  if (onPostgres) return t.skip('a schema of a test has no address of its own')
  await using pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid as string
  const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
  await plantTag(pinfold, repo, 'v1')
  await runJob(pinfold.app, sequenceLedgers)
  const { data } = pinfold.app.config
  const env = { PINFOLD_API: pinfold.url }
  const cli = (...args: string[]) => run(['server', 'transparency-log', ...args, '--data', data], { env })
  const rotated = await cli('rotate-key', org)
  assert.equal(rotated.code, 0, rotated.stderr)
  const { logs } = parsePolicy((await pinfold.operator.get(`/ledger/${org}/policy`)).text)
  assert.deepEqual(logs.map(vkeyOf).at(-1), rotated.stdout.trim())
  assert.match((await cli('rotate-key', 'nowhere')).stderr, /no organi[sz]ation .*nowhere/)
  assert.match((await cli('rotate-key', '0'.repeat(40))).stderr, /not found/)

  const asked = await cli('resume')
  assert.equal(asked.code, 64)
  assert.match(asked.stderr, /give --yes to replace the logs/)
  assert.equal((await cli('resume', '--yes')).stdout, 'replaced 0 transparency logs\n')
})

test('refuses an empty name for erase, limits and rotate', async (t) => {
  if (onPostgres) return t.skip('a schema of a test has no address of its own')
  await using pinfold = await startPinfold()
  const org = (await pinfold.seed.group('', { name: 'acme' })).uid as string
  const repo = (await pinfold.seed.repo(org, { name: 'app' })).uid as string
  await plantTag(pinfold, repo, 'v1')
  await pinfold.operator.delete(`/registry/v2/repos/${repo}`)
  const { data } = pinfold.app.config
  const deleted = async () => (await pinfold.operator.get('/registry/v2/deletedRepos')).body.deletedRepos.length
  const before = await deleted()
  for (const args of [
    ['server', 'transparency-log', 'erase', '', '--yes'],
    ['server', 'transparency-log', 'erase', 'acme/', '--yes'],
    ['server', 'transparency-log', 'rotate-key', ''],
    ['server', 'quotas', 'set', '', '--bytes', '1'],
    ['server', 'quotas', 'describe', ''],
  ]) {
    const { code, stderr } = await run([...args, '--data', data], { env: { PINFOLD_API: pinfold.url } })
    assert.equal(code, 64, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, /(?:repository|organi[sz]ation).* empty/)
  }
  assert.deepEqual([before, await deleted()], [1, 1])
})
