// Version 1 of role bindings: only lists have more than uids, and the event of a batch is about all of its new bindings.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { RoleBindings } from '#gen/pinfold/iam/v1/role_bindings_pb.ts'
import { assertBlocked, assertDenied, assertInvalid, assertTaken, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/rolebindings'
const { pinfold, operator, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, RoleBindings, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const person = () => randomBytes(20).toString('hex')
const role = roleUids.viewer
const create = (body: Json, client: Client = owner) => client.post(`${path}/${org.uid}`, body)
const put = (id: string, body: Json) => owner.call('PUT', `${path}/${id}`, body)
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items

test('a role binding created in either version is the same in the other; a list contains its group and role', async () => {
  const identity = await pinfold.seed.identity(org.uid, { claimMatch: { issuer: 'https://i.example', subject: 's' } })
  const made = ok(await create({ identity: identity.uid, role }))
  assert.deepEqual(made, { id: made.id, identity: identity.uid, group: org.uid, role })
  const newer = ok(await owner.get(`/iam/v2/roleBindings/${made.id}`))
  assert.deepEqual([newer.identityUid, newer.roleUid], [identity.uid, role])

  const { uid } = await pinfold.seed.binding(org.uid, identity.uid, roleUids.editor)
  const [listed] = (await grpc.list({ id: uid })).items
  assert.deepEqual(
    [listed!.id, listed!.identity, listed!.group!.id, listed!.group!.name],
    [uid, identity.uid, org.uid, org.name],
  )
  assert.deepEqual([listed!.role!.id, listed!.role!.name], [roleUids.editor, 'editor'])
  assert.ok(listed!.role!.capabilities.includes('repo.create'))
  assert.deepEqual([listed!.claimMatchIssuer, listed!.claimMatchSubject], ['https://i.example', 's'])
  const [overRest] = await list(`id=${uid}`)
  assert.equal(overRest!.role.name, 'editor')
})

test('a list shows the email address of a person, verified or not', async () => {
  const folder = await pinfold.seed.group(org.uid)
  for (const addresses of [{ email: 'a@b.example' }, { emailUnverified: 'a@b.example' }]) {
    const { uid } = await pinfold.seed.person(addresses)
    const { id: binding } = ok(await owner.post(`${path}/${folder.uid}`, { identity: uid, role }))
    const shown = async () => {
      const [{ email, emailUnverified }] = (await list(`id=${binding}`)) as [Json]
      return { email, emailUnverified }
    }
    // The API shows no data of a person who has not accepted the binding.
    assert.deepEqual(await shown(), { email: '', emailUnverified: '' })
    const self = await pinfold.as(uid)
    ok(await self.post(`/control/v1/pendingBindings/${binding}:accept`))
    assert.deepEqual(await shown(), { email: '', emailUnverified: '', ...addresses })
  }
})

test('names invalid fields as version 1 spells them', async () => {
  assertInvalid(await create({}), 'identity', 'role')
  assertInvalid(await create({ identity: 'x', role: 'y' }), 'identity', 'role')
  const identity = person()
  const made = ok(await create({ identity, role }))
  assertTaken(await create({ identity, role }), 'iam.pinfold.dev/RoleBinding', made.id)
  assert.equal((await create({ identity: person(), role: `${org.uid}/0123456789abcdef` })).body.code, 5)
  const maker = await scene.holding('CAP_IAM_ROLE_BINDINGS_CREATE')
  assertDenied(await create({ identity: person(), role }, maker))
})

test('a PUT replaces identity and role, but cannot remove the last owner', async () => {
  const { id } = ok(await create({ identity: person(), role }))
  const identity = person()
  assert.deepEqual(ok(await put(id, { identity, role: roleUids.editor })), {
    id,
    identity,
    group: org.uid,
    role: roleUids.editor,
  })
  assertInvalid(await put(id, { identity }), 'role')
  const other = await pinfold.seed.group()
  const { uid } = await pinfold.seed.member(other.uid, roleUids.owner)
  const [last] = await list(`uidp.childrenOf=${other.uid}`, operator)
  assert.equal(last!.identity, uid)
  assertBlocked(await operator.delete(`${path}/${last!.id}`), other.uid, 'LAST_OWNER')
})

test('a batch is a plain JSON list, creates all or nothing, and sends one event with each binding', async () => {
  let deep = org
  for (let i = 0; i < 9; i++) deep = await pinfold.seed.group(deep.uid)
  const people = Array.from({ length: 25 }, person)
  let made: Json[] = []
  const [event, ...more] = await eventsOf(pinfold, async () => {
    const body = people.map((identity) => ({ identity, role }))
    made = ok(await owner.post(`${path}/batch/${deep.uid}`, body)).roleBindings
  })
  assert.deepEqual(
    made.map(({ identity, group }) => [identity, group]),
    people.map((uid) => [uid, deep.uid]),
  )
  assert.deepEqual(more, [])
  assert.equal(event!.type, 'dev.pinfold.api.iam.rolebindings.created.batch.v1')
  assert.deepEqual([event!.subject, event!.group], [made.map(({ id }) => id).join(','), deep.uid])
  assert.equal(event!.bodyType, 'pinfold.platform.iam.RoleBindingBatch')
  assert.deepEqual(event!.body.role_bindings[24], made[24])

  const batch = (body: Json[]) => owner.post(`${path}/batch/${org.uid}`, body)
  assertInvalid(await batch([]), 'role_bindings')
  assertInvalid(await batch(Array.from({ length: 26 }, () => ({ identity: person(), role }))), 'role_bindings')
  assertInvalid(await batch([{ identity: person(), role }, { identity: person() }]), 'role_bindings[1].role')
  const identity = person()
  const roleBindings = [
    { identity, role },
    { identity, role },
  ]
  await assert.rejects(grpc.createBatch({ parent: org.uid, roleBindings }), { code: 6 })
  assert.deepEqual(ok(await owner.get(`/iam/v2/roleBindings?identity=${identity}`)).roleBindings, [])
})

test('a list is complete; a missing or invisible binding returns an empty list', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const uids: string[] = []
  for (let i = 0; i < 52; i++) uids.push((await pinfold.seed.binding(folder.uid, person(), role)).uid)
  const below = `uidp.childrenOf=${folder.uid}`
  assert.deepEqual(
    (await list(below)).map(({ id }) => id),
    uids.toSorted(),
  )
  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=nonsense', `uidp.childrenOf=${missing}`])
    assert.deepEqual(await list(query), [])
  for (const query of [`id=${uids[0]}`, below]) assert.deepEqual(await list(query, stranger), [])
})

test('each deletion returns an empty answer, also the second one, and events have the format of version 1', async () => {
  const type = (verb: string) => `dev.pinfold.api.iam.rolebindings.${verb}.v1`
  let id = ''
  const [identity, next] = [person(), person()]
  const events = await eventsOf(pinfold, async () => {
    id = (await grpc.create({ parent: org.uid, roleBinding: { identity, role } })).id
    await grpc.update({ id, identity: next, role })
    await owner.patch(`/iam/v2/roleBindings/${id}`, { roleUid: roleUids.editor })
    assert.equal((await owner.delete(`${path}/${id}`)).text, '')
    await grpc.delete({ id })
  })
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), id, org.uid, 'pinfold.platform.iam.RoleBinding'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.RoleBinding'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.v2.RoleBinding'],
      [type('deleted'), id, org.uid, 'pinfold.platform.iam.DeleteRoleBindingRequest'],
    ],
  )
  assert.deepEqual(events[1]!.body, { id, identity: next, group: org.uid, role })
  assert.deepEqual(events[3]!.body, { id })
  assert.deepEqual(await list(`id=${id}`), [])
})
