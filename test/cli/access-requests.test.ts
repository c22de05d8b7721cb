import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putRequest } from '#domains/iam/access-requests/access-requests.store.ts'
import { newUid } from '#lib/uid.ts'
import { ok } from '../support/expect.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'

test('owners can list access requests and answer them', async () => {
  await using pinfold = await startPinfold()
  const { uid: org } = await pinfold.seed.group('', { name: 'acme' })
  const owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  const command = (...args: string[]) =>
    run(['access-requests', ...args], { env: { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: owner.token! } })
  const asks = async (email: string) => {
    const { uid: identityUid } = await pinfold.seed.person()
    const [now, later] = ['2026-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z']
    const request = { uid: newUid(org), identityUid, name: 'Jo', email, state: 'waiting' as const }
    await pinfold.app.db.tx((tx) => putRequest(tx, { ...request, createTime: now, askTime: now, expireTime: later }))
    return request
  }
  const [first, second] = [await asks('one@acme.example'), await asks('two@acme.example')]
  const { stdout } = await command('list', 'acme')
  assert.match(stdout, /^UID +EMAIL +NAME +REQUESTED/)
  for (const { email } of [first, second]) assert.ok(stdout.includes(email))

  const approved = await command('approve', first.uid, '--role', 'viewer')
  const binding = ok(await pinfold.operator.get(`/iam/v2/roleBindings/${approved.stdout.trim()}`))
  assert.deepEqual([binding.identity.uid, binding.roleUid], [first.identityUid, roleUids.viewer])
  assert.deepEqual(await command('deny', second.uid), { code: 0, stdout: '', stderr: '' })
  assert.deepEqual(JSON.parse((await command('list', org, '-o', 'json')).stdout), { items: [] })
  assert.equal((await command('deny', second.uid)).code, 1)
  assert.equal((await command('deny', 'x')).code, 64)
})
