// Statements that all tables of nodes share, with the table of roles.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { deleteRole, findRole, insertRole, patchRole, roleList, rolesByUid } from '#domains/iam/roles/roles.store.ts'
import { newUid } from '#lib/uid.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const time = '2026-01-01T00:00:00.000Z'
const roleOf = (group: string, name: string) => ({
  uid: newUid(group),
  name,
  description: '',
  capabilities: [1],
  createTime: time,
  updateTime: time,
})

/** Names of the roles below a group, in the order of the list by name. */
async function namesBelow(group: string): Promise<string[]> {
  const order = { field: 'name', column: 'name', desc: false }
  const page = { order, after: undefined, size: 100, skip: 0, binding: '' }
  const roles = await roleList.list(pinfold.app.db, [{ below: group }], page, { name: '' })
  return roles.map(({ name }) => name)
}

test('refuses a second node with the same name below one parent, and leaves the lists as they were', async () => {
  const { app, seed } = pinfold
  const [group, other] = [(await seed.group()).uid, (await seed.group()).uid]
  const insert = (role: ReturnType<typeof roleOf>) => app.db.tx((tx) => insertRole(tx, role))
  const [first, second] = [roleOf(group, 'first'), roleOf(group, 'second')]
  assert.deepEqual(await Promise.all([first, second].map(insert)), [true, true])

  const again = roleOf(group, 'first')
  assert.equal(await insert(again), false)
  assert.equal(await findRole(app.db, again.uid), undefined)
  assert.equal(await insert(roleOf(other, 'first')), true)
  assert.deepEqual([await namesBelow(group), await namesBelow(other)], [['first', 'second'], ['first']])

  const renamed = { ...second, name: 'first' }
  assert.equal(await app.db.tx((tx) => patchRole(tx, second, renamed)), false)
  assert.deepEqual(await findRole(app.db, second.uid), second)
  assert.deepEqual(await namesBelow(group), ['first', 'second'])
})

test('moves a renamed node in the lists, and accepts an update that keeps the name', async () => {
  const { app, seed } = pinfold
  const { uid: group } = await seed.group()
  const [a, c] = [roleOf(group, 'a'), roleOf(group, 'c')]
  for (const role of [a, c]) await app.db.tx((tx) => insertRole(tx, role))

  const kept = { ...a, description: 'reads', capabilities: [2, 3] }
  assert.equal(await app.db.tx((tx) => patchRole(tx, a, kept)), true)
  assert.deepEqual(await findRole(app.db, a.uid), kept)
  assert.equal(await app.db.tx((tx) => patchRole(tx, kept, { ...kept, name: 'd' })), true)
  assert.deepEqual(await namesBelow(group), ['c', 'd'])
})

test('deletes a node from its table and the lists once', async () => {
  const { app, seed } = pinfold
  const { uid: group } = await seed.group()
  const role = roleOf(group, 'gone')
  await app.db.tx((tx) => insertRole(tx, role))
  assert.equal(await app.db.tx((tx) => deleteRole(tx, role)), true)
  assert.equal(await app.db.tx((tx) => deleteRole(tx, role)), false)
  assert.deepEqual([await findRole(app.db, role.uid), await namesBelow(group)], [undefined, []])
})

test('finds more nodes by uid than one statement takes, without missing and repeated ones', async () => {
  const { app, seed } = pinfold
  const { uid: group } = await seed.group()
  const roles = Array.from({ length: 501 }, (_, i) => roleOf(group, `role-${i}`))
  await app.db.tx(async (tx) => {
    for (const role of roles) await insertRole(tx, role)
  })
  const uids = roles.map(({ uid }) => uid)
  const found = await rolesByUid(app.db, [newUid(group), ...uids, ...uids])
  assert.deepEqual([...found.keys()].sort(), [...uids].sort())
  assert.deepEqual(found.get(uids[500]!), roles[500])
})
