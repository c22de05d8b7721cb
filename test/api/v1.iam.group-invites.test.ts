// Version 1 of invitations: the request has no wrapper object, and one request can create a group together with an invitation.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { GroupInvites } from '#gen/pinfold/iam/v1/group_invites_pb.ts'
import { assertDenied, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/group_invites'
let now = Date.parse('2026-03-01T12:00:00.000Z')
const { pinfold, operator, org, ...scene } = await startScene({ clock: () => new Date(now) })
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const clients: { [Symbol.dispose](): void }[] = []
const grpcAs = (client: Client) => {
  const grpc = grpcClientOf(pinfold, GroupInvites, client.token)
  clients.push(grpc)
  return grpc
}
const grpc = grpcAs(owner)
after(async () => {
  for (const client of clients) client[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const role = roleUids.viewer
const ttl = { seconds: 3600n }
const create = (body: Json, client: Client = owner) =>
  client.post(`${path}/${org.uid}`, { role, ttl: '3600s', ...body })
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items

test('an invitation created in either version is the same in the other; only its creation returns the code', async () => {
  const made = ok(await create({ email: 'a@b.example', singleUse: true }))
  assert.match(made.code, /^eyJncnAi/)
  assert.deepEqual([made.expiration, made.role.name], ['2026-03-01T13:00:00.000Z', 'viewer'])
  assert.ok(made.role.capabilities.includes('repo.list'))
  const newer = ok(await owner.get(`/iam/v2/groupInvites/${made.id}`))
  assert.deepEqual([newer.roleUid, newer.email, newer.singleUse, newer.code], [role, 'a@b.example', true, ''])

  now += 1000
  const later = await pinfold.seed.invite(org.uid, roleUids.editor)
  const { items } = await grpc.list({ group: org.uid })
  assert.deepEqual(
    items.map(({ id }) => id),
    [later.uid, made.id],
  )
  const [listed] = await list(`keyId=${made.keyId}`)
  const { id, expiration, keyId, role: itsRole } = made
  assert.deepEqual(listed, {
    ...{ id, expiration, keyId, role: itsRole, email: 'a@b.example', singleUse: true },
    createdAt: '2026-03-01T12:00:00.000Z',
  })
})

test('names invalid fields as version 1 spells them', async () => {
  assertInvalid(await create({ role: 'x' }), 'role')
  assertInvalid(await create({ role: '' }), 'role')
  assertInvalid(await create({ ttl: '0s' }), 'ttl')
  assertInvalid(await create({ ttl: '2592001s' }), 'ttl')
  assertInvalid(await owner.get(`${path}?group=nonsense`), 'group')
  const inviter = await scene.holding('CAP_IAM_GROUP_INVITES_CREATE', 'CAP_IAM_ROLE_BINDINGS_CREATE')
  assertDenied(await create({}, inviter))
})

test('returns an empty list for a missing and for an invisible invitation', async () => {
  const { id } = ok(await create({}))
  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=x', `group=${missing}`]) assert.deepEqual(await list(query), [], query)
  for (const query of [`id=${id}`, `group=${org.uid}`]) assert.deepEqual(await list(query, stranger), [], query)
  const folder = await pinfold.seed.group(org.uid)
  assert.deepEqual(await list(`group=${folder.uid}`), [])
})

test('creates a group together with its invitation or neither, and the caller does not own the group', async () => {
  let invite: Json = {}
  const group = `${org.uid}/v1 invited`
  const [made, offered, ...more] = await eventsOf(pinfold, async () => {
    invite = await grpc.createWithGroup({ group, role, ttl })
  })
  const parent = invite.id.slice(0, -17)
  assert.deepEqual(more, [])
  assert.deepEqual(
    [made, offered].map((event) => [event!.type, event!.subject, event!.bodyType]),
    [
      ['dev.pinfold.api.iam.group.created.v1', parent, 'pinfold.platform.iam.Group'],
      ['dev.pinfold.api.iam.group_invite.created.v1', invite.id, 'pinfold.platform.iam.GroupInvite'],
    ],
  )
  assert.equal(ok(await owner.get(`/iam/v2/groups/${parent}`)).name, 'v1 invited')
  assert.deepEqual(ok(await owner.get(`/iam/v2/roleBindings?group=${parent}`)).roleBindings, [])

  const counted = async () => ok(await owner.get(`/iam/v2/groups?uidp.children_of=${org.uid}`)).totalCount
  const before = await counted()
  await assert.rejects(grpc.createWithGroup({ group, role, ttl }), { code: 6 })
  const noRole = `${org.uid}/0123456789abcdef`
  await assert.rejects(grpc.createWithGroup({ group: `${org.uid}/new`, role: noRole, ttl }), { code: 5 })
  await assert.rejects(grpc.createWithGroup({ group: `${org.uid}/new`, role }), { code: 3, fields: ['ttl'] })
  await assert.rejects(grpc.createWithGroup({ group: `${org.uid}/No`, role, ttl }), { code: 3, fields: ['group'] })
  await assert.rejects(grpc.createWithGroup({ group: 'x/new', role, ttl }), { code: 3, fields: ['group'] })
  assert.equal(await counted(), before)

  // Only the operator can create an organization with an invitation, also on a server where each person can create organizations.
  for (const client of [owner, stranger]) {
    await assert.rejects(grpcAs(client).createWithGroup({ group: 'v1 org', role, ttl }), { code: 7 })
  }
  await assert.rejects(grpcAs(stranger).createWithGroup({ group: `${org.uid}/new`, role, ttl }), { code: 7 })
  const inviter = await scene.holding('CAP_IAM_GROUP_INVITES_CREATE', 'CAP_IAM_ROLE_BINDINGS_CREATE', 'CAP_REPO_LIST')
  await assert.rejects(grpcAs(inviter).createWithGroup({ group: `${org.uid}/new`, role, ttl }), { code: 7 })
  const { uid: lister } = await pinfold.seed.role(org.uid, ['CAP_REPO_LIST'])
  const maker = await scene.holding('CAP_IAM_GROUPS_CREATE', 'CAP_REPO_LIST')
  await assert.rejects(grpcAs(maker).createWithGroup({ group: `${org.uid}/new`, role: lister, ttl }), { code: 7 })
  const ofOrg = await grpcAs(operator).createWithGroup({ group: 'v1 org', role: roleUids.owner, ttl })
  assert.match(ofOrg.id, /^[0-9a-f]{40}\/[0-9a-f]{16}$/)
})

test('a deletion returns an empty answer, and events contain neither code nor key', async () => {
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    id = (await grpc.create({ group: org.uid, role, ttl })).id
    assert.equal((await owner.delete(`${path}/${id}`)).text, '')
  })
  const type = (verb: string) => `dev.pinfold.api.iam.group_invite.${verb}.v1`
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), id, org.uid, 'pinfold.platform.iam.GroupInvite'],
      [type('deleted'), id, org.uid, 'pinfold.platform.iam.DeleteGroupInviteRequest'],
    ],
  )
  assert.deepEqual([events[0]!.body.code, events[0]!.body.key_id, events[0]!.body.id], ['', '', id])
  assert.deepEqual(events[1]!.body, { id })
  assert.deepEqual(await list(`id=${id}`), [])
  await assert.rejects(grpc.delete({ id }), { code: 5 })
})
