// People who can grant roles in an organization: its members see them, and nobody else.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertInvalid, ok } from '../support/expect.ts'
import { roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, member, ...scene } = await startScene({ jobs: [] })
after(() => pinfold[Symbol.asyncDispose]())
const { seed } = pinfold
const { uid, name } = scene.org
const at = `/control/v1/grantors:lookup?organization=${encodeURIComponent(name)}`
const owner = await seed.person({ name: 'Ada Lovelace', email: 'ada@acme.example' })
ok(await operator.post(`/iam/v2/roleBindings/${uid}`, { identityUid: owner.uid, roleUid: roleUids.owner }))
await member(roleUids.owner)

test('members of the organization and of its folders see the people who can grant roles', async () => {
  const expected = [{ name: 'Ada Lovelace', email: 'ada@acme.example', roleName: 'owner' }]
  const folder = await seed.group(uid, { name: 'payments' })
  const inFolder = await seed.member(folder.uid, roleUids.viewer)
  const clients = [await member(roleUids.viewer), pinfold.withToken(await pinfold.tokenFor(inFolder.uid)), operator]
  for (const client of clients) assert.deepEqual(ok(await client.get(at)).grantors, expected)
})

test('the answer is the same for a stranger and for an organization that does not exist', async () => {
  const stranger = await scene.foreigner()
  assert.deepEqual(ok(await stranger.get(at)).grantors, [])
  assert.deepEqual(ok(await stranger.get('/control/v1/grantors:lookup?organization=nobody')).grantors, [])
  assertInvalid(await stranger.get('/control/v1/grantors:lookup'), 'organization')
})
