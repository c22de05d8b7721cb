// The command that searches everything by a part of its name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { indexNames } from '#domains/search/index-names.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'

test('search prints the best matches first, of the chosen kinds and group', async () => {
  await using pinfold = await startPinfold()
  const { seed } = pinfold
  const org = await seed.group('', { name: 'acme' })
  const team = await seed.group(org.uid, { name: 'pay team' })
  await seed.repo(org.uid, { name: 'my-pay', description: 'Old' })
  await seed.repo(team.uid, { name: 'payments', description: 'Takes money' })
  const owner = await seed.member(org.uid, roleUids.owner)
  await runJob(pinfold.app, indexNames)
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: await pinfold.tokenFor(owner.uid) }
  const cli = (...args: string[]) => run(['search', ...args], { env })
  const lines = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/\s+/g, ' ').trim())

  const { code, stdout, stderr } = await cli('PAY')
  assert.equal(code, 0, stderr)
  assert.deepEqual(lines(stdout), [
    'KIND NAME DETAIL',
    'folder acme/pay team',
    'repository acme/pay team/payments Takes money',
    'repository acme/my-pay Old',
  ])
  const json = JSON.parse((await cli('payments', '-o', 'json')).stdout) as { items: { kind: string; match: string }[] }
  assert.deepEqual(
    json.items.map(({ kind, match }) => [kind, match]),
    [['repository', 'exact']],
  )
  assert.deepEqual(lines((await cli('pay', '--kind', 'folder')).stdout).slice(1), ['folder acme/pay team'])
  const inTeam = await cli('pay', '--kind', 'repository', '--in', 'acme/pay team')
  assert.deepEqual(lines(inTeam.stdout).slice(1), ['repository acme/pay team/payments Takes money'])
  const limited = await cli('pay', '--limit', '1')
  assert.equal(lines(limited.stdout).length, 2)
  assert.match(limited.stderr, /the list has more items; a larger --limit shows them/)
  assert.match((await cli('nothing-like-this')).stderr, /no name that you can list contains this text/)
  const wrong = await cli('pay', '--kind', 'pods')
  assert.equal(wrong.code, 64)
  assert.match(wrong.stderr, /--kind must be some of organization, folder/)
})
