import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { checkLists } from '../support/check-lists.ts'
import {
  assertBlocked,
  assertDenied,
  assertInvalid,
  assertNotFound,
  assertTimes,
  eventsOf,
  ok,
} from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

const type = 'iam.pinfold.dev/GroupInvite'
const base = '/iam/v2/groupInvites'
const event = (name: string) => `dev.pinfold.api.iam.group_invite.${name}.v1`
const day = 24 * 60 * 60 * 1000

let pinfold: Pinfold
let org: string
let owner: Client
let viewer: Client
/** Identities of the two members, for new tokens after a change of the clock. */
let uids: { owner: string; viewer: string }
let time = Date.parse('2026-03-01T12:00:00.000Z')

before(async () => {
  pinfold = await startPinfold({ clock: () => new Date(time) })
  org = (await pinfold.seed.group()).uid
  const [first, second] = [
    await pinfold.seed.member(org, roleUids.owner),
    await pinfold.seed.member(org, roleUids.viewer),
  ]
  uids = { owner: first.uid, viewer: second.uid }
  await pass(0)
})
after(() => pinfold[Symbol.asyncDispose]())

async function pass(milliseconds: number): Promise<void> {
  time += milliseconds
  owner = await pinfold.as(uids.owner)
  viewer = await pinfold.as(uids.viewer)
}

const create = (change: Json = {}, client = owner, parent = org) => {
  return client.post(`${base}/${parent}`, { roleUid: roleUids.viewer, ttl: '3600s', ...change })
}

test('an invitation shows its code only once, and its role always', async () => {
  const created = ok(await create({ email: 'jane@example.com', singleUse: true, ttl: '604800.5s' }))
  assertTimes(created, 'createTime', 'updateTime', 'expirationTime')
  assert.match(created.uid, new RegExp(`^${org}/[0-9a-f]{16}$`))
  assert.ok(created.code.startsWith('eyJncnAi'), created.code)
  assert.equal(created.expirationTime, new Date(time + 7 * day + 500).toISOString())
  assert.equal(created.updateTime, created.createTime)
  assert.equal(created.ttl, undefined)
  assert.partialDeepStrictEqual(created, { roleUid: roleUids.viewer, email: 'jane@example.com', singleUse: true })
  assert.partialDeepStrictEqual(created.role, { uid: roleUids.viewer, name: 'viewer' })
  const role = ok(await viewer.get(`/iam/v2/roles/${roleUids.viewer}`))
  assert.deepEqual(created.role.capabilities, role.capabilities)

  const read = ok(await viewer.get(`${base}/${created.uid}`))
  assert.deepEqual(read, { ...created, code: '', link: '' })
  const listed = ok(await viewer.get(`${base}?key_id=${created.keyId}`))
  assert.deepEqual([listed.groupInvites, listed.totalCount], [[read], '1'])
  assert.equal((await owner.patch(`${base}/${created.uid}`, {})).status, 405)
})

test('the code of an invitation cannot be computed from the stored data', async () => {
  const created = ok(await create())
  const says = JSON.parse(Buffer.from(created.code, 'base64').toString()) as Json
  assert.deepEqual(Object.keys(says), ['grp', 'role', 'kid', 'exp', 'jti', 'sig'])
  assert.deepEqual([says.grp, says.role, says.kid], [org, roleUids.viewer, created.keyId])
  const row = await pinfold.app.db.get<Json>(sql`SELECT * FROM group_invites WHERE uid = ${created.uid}`)
  const stored = Object.values(row!).map((value) => (value instanceof Uint8Array ? Buffer.from(value) : String(value)))
  for (const secret of [created.code, says.sig, Buffer.from(says.sig, 'base64url')]) {
    assert.ok(stored.every((value) => !value.includes(secret)))
  }
  assert.notEqual(ok(await create()).keyId, created.keyId)
})

test('the lifetime of an invitation is above zero and at most 30 days', async () => {
  for (const ttl of ['1s', '0.001s', '2592000s']) ok(await create({ ttl }))
  for (const ttl of ['0s', '-1s', '0.0001s', '2592000.001s', '315576000000s'])
    assertInvalid(await create({ ttl }), 'ttl')
  for (const ttl of ['x', 5, '5m']) assertInvalid(await create({ ttl }), 'ttl')
  assertInvalid(await owner.post(`${base}/${org}`, { roleUid: roleUids.viewer }), 'ttl')
  assertInvalid(await owner.post(`${base}/${org}`, {}), 'role_uid', 'ttl')
  assertInvalid(await create({ roleUid: 'x' }), 'role_uid')
  for (const email of ['x', 'a b@example.com', '@', 'a@b@c', `${'x'.repeat(254)}@example.com`]) {
    assertInvalid(await create({ email }), 'email')
  }
})

test('refuses to create an invitation for a role with capabilities that the creator does not hold', async () => {
  const role = await pinfold.seed.role(org, ['group_invites.create', 'role_bindings.create'])
  const manager = await pinfold.as((await pinfold.seed.member(org, role.uid)).uid)
  assertDenied(await create({}, manager))
  ok(await create({ roleUid: role.uid }, manager))
  assertDenied(await create({ roleUid: roleUids.operator }))
  assertDenied(await create({}, viewer))
  const half = await pinfold.seed.role(org, ['group_invites.create', 'repo.list'])
  assertDenied(await create({ roleUid: half.uid }, await pinfold.as((await pinfold.seed.member(org, half.uid)).uid)))
  const elsewhere = (await pinfold.seed.role((await pinfold.seed.group()).uid, ['repo.list'])).uid
  assertNotFound(await create({ roleUid: elsewhere }), 'iam.pinfold.dev/Role', elsewhere)
  const missing = `${org}/${'0'.repeat(16)}`
  assertNotFound(await create({}, owner, missing), 'iam.pinfold.dev/Group', missing)
})

test('lists the newest invitation first', async () => {
  const folder = (await pinfold.seed.group(org)).uid
  const uids: string[] = []
  for (let i = 0; i < 3; i++) {
    time += 1000
    uids.unshift(ok(await create({}, owner, folder)).uid)
  }
  const listed = async (query: string) => {
    const answer = ok(await viewer.get(`${base}?uidp.children_of=${folder}&${query}`))
    return (answer.groupInvites as Json[]).map(({ uid }) => uid)
  }
  assert.deepEqual(await listed(''), uids)
  assert.deepEqual(await listed('order_by=created_at desc'), uids)
  assert.deepEqual(await listed('order_by=updated_at'), uids.toReversed())
  assert.deepEqual(await listed('order_by=uid'), uids.toSorted())
  assertInvalid(await viewer.get(`${base}?order_by=email`), 'order_by')
})

test('a role cannot be deleted until its invitations expire; expired invitations stay listed for a while', async () => {
  const folder = (await pinfold.seed.group(org)).uid
  const role = (await pinfold.seed.role(folder, ['repo.list'])).uid
  const invite = ok(await create({ roleUid: role }, owner, folder))
  assertBlocked(await owner.delete(`/iam/v2/roles/${role}`), role, 'RESOURCE_IN_USE')
  await pass(3600 * 1000)
  assert.equal((await owner.delete(`/iam/v2/roles/${role}`)).status, 200)
  const read = ok(await owner.get(`${base}/${invite.uid}`))
  assert.deepEqual([read.roleUid, read.role], [role, undefined])

  await pass(8 * day)
  assert.equal((await owner.get(`${base}/${invite.uid}`)).status, 200)
  ok(await create({}, owner, folder))
  assertNotFound(await owner.get(`${base}/${invite.uid}`), type, invite.uid)
})

test('an invitation can be revoked once, and is deleted with its group', async () => {
  const invite = ok(await create({}))
  assertDenied(await viewer.delete(`${base}/${invite.uid}`))
  const gone = await owner.delete(`${base}/${invite.uid}`)
  assert.deepEqual([gone.status, gone.text], [200, ''])
  assertNotFound(await owner.delete(`${base}/${invite.uid}`), type, invite.uid)

  const folder = ok(await owner.post(`/iam/v2/groups/${org}`, { name: 'folder that goes' })).uid
  const inside = ok(await create({}, owner, folder))
  assert.equal((await owner.delete(`/iam/v2/groups/${folder}`)).status, 200)
  assertNotFound(await owner.get(`${base}/${inside.uid}`), type, inside.uid)
  await checkLists(pinfold)
})

test('events contain neither the code nor the key of an invitation', async () => {
  let invite: Json = {}
  const events = await eventsOf(pinfold, async () => {
    invite = ok(await create({ email: 'jane@example.com' }))
    await create({ ttl: '0s' })
    await owner.delete(`${base}/${invite.uid}`)
  })
  const [created, deleted] = events
  assert.equal(events.length, 2)
  assert.deepEqual([created!.type, created!.subject, created!.group], [event('created'), invite.uid, org])
  const told = Object.entries(created!.body as Json).filter(([, value]) => value !== '' && value !== false)
  assert.deepEqual(Object.fromEntries(told), { uid: invite.uid, expiration_time: invite.expirationTime })
  assert.deepEqual(deleted!.body, { uid: invite.uid })
})
