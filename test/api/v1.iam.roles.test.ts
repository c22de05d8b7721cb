// Version 1 of roles: capabilities by their dotted names, lists in full, and a PUT that replaces.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Roles } from '#gen/pinfold/iam/v1/roles_pb.ts'
import { assertBlocked, assertDenied, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/roles'
const { pinfold, operator, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, Roles, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const create = (body: Json, client: Client = owner) => client.post(`${path}/${org.uid}`, body)
const put = (id: string, body: Json) => owner.call('PUT', `${path}/${id}`, body)
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items
const names = (roles: Json[]) => roles.map(({ name }) => name)

test('a role created in either version is the same in the other, with capabilities spelled differently', async () => {
  const made = ok(await create({ name: 'both', description: 'one', capabilities: ['repo.list', 'groups.list'] }))
  assert.deepEqual([made.name, made.capabilities], ['both', ['groups.list', 'repo.list']])
  const newer = ok(await owner.get(`/iam/v2/roles/${made.id}`))
  assert.deepEqual(newer.capabilities, ['CAP_IAM_GROUPS_LIST', 'CAP_REPO_LIST'])

  const { uid } = await pinfold.seed.role(org.uid, ['CAP_TAG_LIST'], { name: 'newer' })
  const { items } = await grpc.list({ id: uid })
  assert.deepEqual(
    items.map((role) => [role.id, role.name, role.capabilities]),
    [[uid, 'newer', ['tag.list']]],
  )
})

test('names unknown, internal and missing capabilities, and denies those that the caller does not hold', async () => {
  assertInvalid(await create({ name: 'wrong', capabilities: ['no.such'] }), 'capabilities')
  assertInvalid(await create({ name: 'wrong', capabilities: ['CAP_REPO_LIST'] }), 'capabilities')
  for (const name of ['internal', 'repo.internal.admin']) {
    assertInvalid(await create({ name: 'wrong', capabilities: [name] }, operator), 'capabilities')
  }
  assertInvalid(await create({ name: 'wrong', capabilities: [] }), 'capabilities')
  assertInvalid(await create({ capabilities: ['repo.list'] }), 'name')
  const maker = await scene.holding('CAP_IAM_ROLES_CREATE')
  assertDenied(await create({ name: 'more', capabilities: ['repo.list'] }, maker))
})

test('accepts each capability that clients know, except internal ones', async () => {
  const capabilities = [
    'gulfstream',
    'clusters.discover',
    'libraries.request_groups.items.update',
    'skills.harden.read',
  ]
  const made = ok(await create({ name: 'elsewhere', capabilities }, operator))
  assert.deepEqual(made.capabilities.toSorted(), capabilities.toSorted())
  assertInvalid(await create({ name: 'inside', capabilities: ['rex.class.use'] }, operator), 'capabilities')
})

test('a PUT replaces a custom role, and is refused for built-in roles', async () => {
  const { id } = ok(await create({ name: 'put', description: 'text', capabilities: ['repo.list', 'tag.list'] }))
  const after = ok(await put(id, { name: 'put', capabilities: ['repo.list'] }))
  assert.deepEqual([after.description, after.capabilities], ['', ['repo.list']])
  assertInvalid(await put(id, { name: 'put' }), 'capabilities')
  const changed = await operator.call('PUT', `${path}/${roleUids.viewer}`, { name: 'x', capabilities: ['repo.list'] })
  assertBlocked(changed, roleUids.viewer, 'BUILT_IN')
})

test('finds built-in roles by name and below /, and custom roles below their group', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const { uid } = await pinfold.seed.role(folder.uid, ['CAP_REPO_LIST'], { name: 'mine' })
  const builtIn = names(await list('parent=/'))
  assert.ok(builtIn.includes('viewer') && builtIn.includes('owner') && !builtIn.includes('mine'))
  assert.deepEqual(names(await list('uidp.inRoot=true')), builtIn)
  assert.deepEqual(
    (await list('name=viewer')).map(({ id }) => id),
    [roleUids.viewer],
  )
  assert.deepEqual(
    (await list('parent=/&name=viewer')).map(({ id }) => id),
    [roleUids.viewer],
  )
  assert.deepEqual(
    (await list('name=mine')).map(({ id }) => id),
    [uid],
  )
  assert.deepEqual(
    (await list(`parent=${folder.uid}`)).map(({ id }) => id),
    [uid],
  )
  assert.deepEqual(await list(`parent=${folder.uid}&uidp.childrenOf=${org.uid}`), [])
  assert.deepEqual(await list(`id=${roleUids.viewer}&parent=${folder.uid}`), [])
  assert.deepEqual(
    (await list(`id=${roleUids.viewer}`)).map(({ name }) => name),
    ['viewer'],
  )
  assertInvalid(await owner.get(`${path}?parent=nonsense`), 'parent')

  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=nonsense', `parent=${missing}`]) assert.deepEqual(await list(query), [])
  for (const query of [`id=${uid}`, `parent=${folder.uid}`]) assert.deepEqual(await list(query, stranger), [])
})

test('refuses to delete a role in use; another deletion returns an empty answer', async () => {
  const { id } = ok(await create({ name: 'used', capabilities: ['repo.list'] }))
  const identity = await pinfold.seed.identity(org.uid)
  const binding = await pinfold.seed.binding(org.uid, identity.uid, id)
  assertBlocked(await owner.delete(`${path}/${id}`), id, 'RESOURCE_IN_USE')
  await operator.delete(`/iam/v2/roleBindings/${binding.uid}`)
  assert.equal((await owner.delete(`${path}/${id}`)).text, '')
  assert.deepEqual(await list(`id=${id}`), [])
  await assert.rejects(grpc.delete({ id }), { code: 5 })
})

test('events have the format of the called version', async () => {
  const type = (verb: string) => `dev.pinfold.api.iam.roles.${verb}.v1`
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    const role = { name: 'told', capabilities: ['repo.list'] }
    id = (await grpc.create({ parentId: org.uid, role })).id
    await grpc.update({ id, ...role, description: 'two' })
    await owner.patch(`/iam/v2/roles/${id}`, { description: 'three' })
    await grpc.delete({ id })
  })
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), id, org.uid, 'pinfold.platform.iam.Role'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.Role'],
      [type('updated'), id, org.uid, 'pinfold.platform.iam.v2.Role'],
      [type('deleted'), id, org.uid, 'pinfold.platform.iam.DeleteRoleRequest'],
    ],
  )
  assert.deepEqual(events[1]!.body, { id, name: 'told', description: 'two', capabilities: ['repo.list'] })
  assert.deepEqual(events[3]!.body, { id })
})
