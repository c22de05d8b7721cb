import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertDenied, ok } from '../support/expect.ts'
import { roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'

test('a person sees who created their bindings, accepts one organization and refuses another', async () => {
  await using pinfold = await startPinfold()
  const { uid } = await pinfold.seed.person()
  const person = await pinfold.as(uid)
  const bound = async (name: string) => {
    const org = await pinfold.seed.group('', { name })
    const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
    const body = { identityUid: uid, roleUid: roleUids.viewer }
    return { org: org.uid, uid: ok(await owner.post(`/iam/v2/roleBindings/${org.uid}`, body)).uid as string }
  }
  const [wanted, unwanted] = [await bound('wanted'), await bound('unwanted')]
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: person.token! }
  const command = (...args: string[]) => run(['invitations', ...args], { env })

  const { stdout } = await command('pending')
  assert.match(stdout, /^UID +ORGANIZATION +SCOPE +ROLE +GRANTED BY +TIME\n/)
  for (const one of ['wanted', 'unwanted']) assert.match(stdout, new RegExp(` ${one} +${one} +viewer +identity-\\d `))
  assert.deepEqual(await command('accept', wanted.uid), { code: 0, stdout: `${wanted.uid}\n`, stderr: '' })
  assert.deepEqual(await command('decline', unwanted.uid), { code: 0, stdout: '', stderr: '' })
  assert.deepEqual(JSON.parse((await command('pending', '-o', 'json')).stdout), { items: [] })
  ok(await person.get(`/iam/v2/groups/${wanted.org}`))
  assertDenied(await person.get(`/iam/v2/groups/${unwanted.org}`))

  assert.equal((await command('accept', unwanted.uid)).code, 1)
  assert.equal((await command('decline', 'not-a-uid')).code, 64)
})
