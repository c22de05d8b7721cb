// Version 1 of groups: the same groups, events and rights as version 2, with other names and formats.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Groups, OrgKind } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/groups'
const { pinfold, operator, org, ...scene } = await startScene()
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, Groups, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

const put = (id: string, body: Json, client: Client = owner) => client.call('PUT', `${path}/${id}`, body)
const list = async (query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${path}?${query}`)).items

test('a group created in either version is the same in the other', async () => {
  const made = ok(await owner.post(`${path}/${org.uid}`, { name: 'both', description: 'one' }))
  const newer = ok(await owner.get(`/iam/v2/groups/${made.id}`))
  assert.deepEqual([newer.uid, newer.name, newer.description], [made.id, 'both', 'one'])

  const folder = ok(await owner.post(`/iam/v2/groups/${made.id}`, { name: 'newer' }))
  const [older] = await list(`id=${folder.uid}`)
  assert.deepEqual([older!.id, older!.name, older!.status], [folder.uid, 'newer', 'ORG_STATUS_READY'])
  assert.deepEqual(
    (await grpc.list({ id: folder.uid })).items.map(({ id, name }) => [id, name]),
    [[folder.uid, 'newer']],
  )
})

test('accepts an empty parent, a uid, the start of a uid, or a name', async () => {
  const top = ok(await operator.post(`${path}/`, { name: 'v1 top' }))
  assert.match(top.id, /^[0-9a-f]{40}$/)
  assertDenied(await owner.post(`${path}/`, { name: 'v1 own top' }))

  const folder = await pinfold.seed.group(org.uid, { name: 'v1 folder' })
  const parents = [folder.uid, folder.uid.slice(0, -4), 'v1 folder']
  for (const [i, parent] of parents.entries()) {
    const { id } = await grpc.create({ parent, group: { name: `by ${i}` } })
    assert.equal(id.slice(0, -17), folder.uid, parent)
  }
  const ofOrg = await grpc.create({ parent: org.uid.slice(0, 12), group: { name: 'by a short start' } })
  assert.equal(ofOrg.id.slice(0, 40), org.uid)
  // A prefix that several uids share matches none of them.
  for (let i = 0; i < 17; i++) await pinfold.seed.group(folder.uid)
  const starts = (await list(`uidp.childrenOf=${folder.uid}`)).map(({ id }) => id.slice(0, folder.uid.length + 2))
  const twice = starts.find((start, i) => starts.indexOf(start) !== i)!
  await assert.rejects(grpc.create({ parent: twice, group: { name: 'which' } }), { code: 3, fields: ['parent'] })
  const foreign = await pinfold.seed.group()
  await assert.rejects(grpc.create({ parent: foreign.uid.slice(0, 12), group: { name: 'where' } }), { code: 5 })
})

test('a PUT clears omitted fields, except those that only the operator can set', async () => {
  const { uid } = await pinfold.seed.group(org.uid, { name: 'put', description: 'text' })
  assert.equal(ok(await put(uid, { name: 'put again' })).description, '')
  assertInvalid(await put(uid, {}), 'name')
  assertNotFound(
    await put(`${org.uid}/0123456789abcdef`, { name: 'gone' }),
    'iam.pinfold.dev/Group',
    `${org.uid}/0123456789abcdef`,
  )

  const verified = ok(
    await operator.post(`${path}/`, { name: 'put.example.com', verified: true, kind: 'ORG_KIND_DEV' }),
  )
  const byOwner = await scene.member(roleUids.owner, verified.id)
  const kept = ok(await put(verified.id, { name: 'put.example.com', description: 'new' }, byOwner))
  assert.deepEqual([kept.verified, kept.kind, kept.description], [true, 'ORG_KIND_DEV', 'new'])
  assertDenied(await put(verified.id, { name: 'put.example.com', kind: 'ORG_KIND_INFRA' }, byOwner))
  // A folder shows the kind of its organization, and is replaced without naming it.
  const folder = await grpcOf(operator).create({ parent: verified.id, group: { name: 'in it' } })
  assert.equal(folder.kind, OrgKind.DEV)
  assert.equal(ok(await put(folder.id, { name: 'in it', description: 'new' }, operator)).kind, 'ORG_KIND_DEV')

  const emptied = ok(await put(verified.id, { name: 'put.example.com' }, operator))
  assert.equal(emptied.verified, false)
})

test('a list is complete; a missing or invisible group returns an empty list', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const uids: string[] = []
  for (let i = 0; i < 55; i++) uids.push((await pinfold.seed.group(folder.uid, { name: `f${i}` })).uid)
  const found = (await list(`uidp.childrenOf=${folder.uid}`)).map(({ id }) => id)
  assert.deepEqual(found, uids.toSorted())
  assert.deepEqual(
    (await list(`uidp.childrenOf=${folder.uid}&name=f7`)).map(({ id }) => id),
    [uids[7]],
  )

  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=nonsense', `uidp.childrenOf=${missing}`]) {
    assert.deepEqual(await list(query), [], query)
  }
  for (const query of [`id=${org.uid}`, `uidp.descendantsOf=${org.uid}`, 'name=f7']) {
    assert.deepEqual(await list(query, stranger), [], query)
  }
  assertInvalid(await owner.get(`${path}?uidp.childrenOf=nonsense`), 'uidp.children_of')
})

test('a deletion returns an empty answer, and is refused while the group is not empty', async () => {
  const folder = await pinfold.seed.group(org.uid)
  const { uid } = await pinfold.seed.group(folder.uid)
  assertBlocked(await owner.delete(`${path}/${folder.uid}`), folder.uid, 'RESOURCE_NOT_EMPTY')
  assert.equal((await owner.delete(`${path}/${uid}`)).text, '')
  assert.deepEqual(await list(`id=${uid}`), [])
  assertNotFound(await owner.delete(`${path}/${uid}`), 'iam.pinfold.dev/Group', uid)
  await grpc.delete({ id: folder.uid })
  assert.equal((await owner.get(`/iam/v2/groups/${folder.uid}`)).status, 404)
})

test('events have the format of the called version', async () => {
  const type = (verb: string) => `dev.pinfold.api.iam.group.${verb}.v1`
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    id = ok(await owner.post(`${path}/${org.uid}`, { name: 'told' })).id
    await put(id, { name: 'told', description: 'two' })
    await owner.patch(`/iam/v2/groups/${id}`, { description: 'three' })
    await owner.delete(`${path}/${id}`)
  })
  assert.deepEqual(
    events.map((event) => [event.type, event.subject, event.group, event.bodyType]),
    [
      [type('created'), id, id, 'pinfold.platform.iam.Group'],
      [type('updated'), id, id, 'pinfold.platform.iam.Group'],
      [type('updated'), id, id, 'pinfold.platform.iam.v2.Group'],
      [type('deleted'), id, org.uid, 'pinfold.platform.iam.DeleteGroupRequest'],
    ],
  )
  assert.deepEqual([events[1]!.body.id, events[1]!.body.description], [id, 'two'])
  assert.deepEqual(events[3]!.body, { id })
})

const grpcOf = (client: Client) => {
  const other = grpcClientOf(pinfold, Groups, client.token)
  after(() => other[Symbol.dispose]())
  return other
}
