import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ok } from '../support/expect.ts'
import { roleUids } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { startSignInScene } from '../support/sign-in.ts'

test('a person can list and end their sessions, and an owner those of the organization', async () => {
  await using scene = await startSignInScene()
  const { pinfold, org } = scene
  const { email } = scene.somebody()
  const [here, there] = [await scene.client(), await scene.client()]
  const command = (token: string, ...args: string[]) =>
    run(['sessions', ...args], { env: { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: token } })

  const { stdout } = await command(here.token!, 'list')
  const [head, ...rows] = stdout.trim().split('\n')
  assert.match(head!, /^UID +USER +KIND +ADDRESS +STARTED +LAST USED/)
  assert.equal(rows.filter((row) => row.includes(email)).length, 2)
  const [other, ...more] = rows.filter((row) => !row.endsWith('this session'))
  assert.equal(more.length, 0)
  assert.deepEqual(await command(here.token!, 'revoke', other!.split(' ')[0]!), { code: 0, stdout: '', stderr: '' })
  assert.equal((await there.get('/auth/v1/ok')).status, 401)
  ok(await here.get('/auth/v1/ok'))

  const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const listed = await command(owner.token!, 'list', '--in', org.uid, '-o', 'json')
  const [{ uid }] = JSON.parse(listed.stdout).items
  assert.equal((await command(owner.token!, 'revoke', uid)).code, 1)
  assert.equal((await command(owner.token!, 'revoke', uid, '--in', org.uid)).code, 0)
  assert.equal((await here.get('/auth/v1/ok')).status, 401)
  assert.match((await command(owner.token!, 'list', '--in', org.name)).stdout, /^UID +USER/)
  assert.equal((await command(here.token!, 'revoke', 'x')).code, 64)
})
