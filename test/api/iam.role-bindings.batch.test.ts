import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { assertDenied, assertInvalid, assertNotFound, assertTaken, eventsOf, ok, snake } from '../support/expect.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v2/roleBindings'
const roleUid = roleUids.viewer
const person = () => randomBytes(20).toString('hex')
const requestFor = (identityUid: string, more: Json = {}) => ({ roleBinding: { identityUid, ...more } })

const { pinfold, org, member } = await startScene()
const owner = await member(roleUids.owner)
after(() => pinfold[Symbol.asyncDispose]())

const batch = (requests: Json[], more: Json = {}): Promise<Answer> => {
  return owner.post(`${path}:batchCreate`, { parent: org.uid, requests, ...more })
}
const bound = async (identity: string): Promise<Json[]> => {
  return ok(await owner.get(`${path}?identity=${identity}`)).roleBindings
}

test('a batch creates up to 25 bindings, in the order of the request', async () => {
  const people = Array.from({ length: 25 }, person)
  const { roleBindings } = ok(await batch(people.map((uid) => requestFor(uid, { roleUid }))))
  assert.deepEqual(
    roleBindings.map((binding: Json) => binding.identityUid),
    people,
  )
  for (const binding of roleBindings) {
    assert.deepEqual(ok(await owner.get(`${path}/${binding.uid}`)), binding)
  }
  assert.equal(ok(await batch([requestFor(person(), { roleUid })])).roleBindings.length, 1)
})

test('refuses an empty batch and one of more than 25', async () => {
  assertInvalid(await batch([]), 'requests')
  assertInvalid(await batch([], { roleUid }), 'requests')
  const tooMany = Array.from({ length: 26 }, () => requestFor(person(), { roleUid }))
  assertInvalid(await batch(tooMany), 'requests')
  assert.deepEqual(await bound(tooMany[0]!.roleBinding.identityUid), [])
})

test('the role of the batch applies to entries without a role', async () => {
  const [one, two] = [person(), person()]
  const { roleBindings } = ok(await batch([requestFor(one), requestFor(two, { roleUid })], { roleUid }))
  assert.deepEqual(
    roleBindings.map((binding: Json) => [binding.identityUid, binding.role.name]),
    [
      [one, 'viewer'],
      [two, 'viewer'],
    ],
  )
  const mixed = ok(await batch([requestFor(one, { roleUid: roleUids.editor }), requestFor(person(), { roleUid })]))
  assert.deepEqual(
    mixed.roleBindings.map((binding: Json) => binding.role.name),
    ['editor', 'viewer'],
  )
})

test('an error names the position of the invalid entry in the batch', async () => {
  const good = requestFor(person(), { roleUid })
  const at = 'requests[1].role_binding'
  const conflict = requestFor(person(), { roleUid: roleUids.editor })
  assertInvalid(await batch([good, conflict], { roleUid }), `${at}.role_uid`)
  assertInvalid(await batch([good, {}]), at)
  assertInvalid(await batch([good, requestFor(person())]), `${at}.role_uid`)
  assertInvalid(await batch([good, requestFor('', { roleUid })]), `${at}.identity_uid`)
  assertInvalid(await batch([good, requestFor('nobody')]), `${at}.identity_uid`, `${at}.role_uid`)
  const folder = await pinfold.seed.group(org.uid)
  const { uid } = await pinfold.seed.identity(folder.uid)
  assertInvalid(await batch([good, requestFor(uid, { roleUid })]), `${at}.identity_uid`)
  assertInvalid(await batch([good, { ...good, parent: folder.uid }]), 'requests[1].parent')
  assert.deepEqual(await bound(good.roleBinding.identityUid), [])
  ok(await batch([{ ...good, parent: org.uid }]))
})

test('validates the parent of a batch like the parent of a single binding', async () => {
  const requests = [requestFor(person(), { roleUid })]
  assertInvalid(await owner.post(`${path}:batchCreate`, { requests }), 'parent')
  assertInvalid(await batch(requests, { parent: 'nonsense' }), 'parent')
  const gone = `${org.uid}/0123456789abcdef`
  assertNotFound(await batch(requests, { parent: gone }), 'iam.pinfold.dev/Group', gone)
  const elsewhere = await pinfold.seed.group()
  assertDenied(await batch(requests, { parent: elsewhere.uid }))
})

test('a batch creates all of its bindings or none', async () => {
  const good = requestFor(person(), { roleUid })
  const missing = 'ab'.repeat(20)
  const gone = `${org.uid}/0123456789abcdef`
  const existing = person()
  const binding = await pinfold.seed.binding(org.uid, existing, roleUid)
  const events = await eventsOf(pinfold, async () => {
    const role = await batch([good, requestFor(person(), { roleUid: missing })])
    assertNotFound(role, 'iam.pinfold.dev/Role', missing)
    assertNotFound(await batch([good, requestFor(gone, { roleUid })]), 'iam.pinfold.dev/Identity', gone)
    const type = 'iam.pinfold.dev/RoleBinding'
    assertTaken(await batch([good, requestFor(existing, { roleUid })]), type, binding.uid)
    assertTaken(await batch([good, good]), type, good.roleBinding.identityUid)
    assertDenied(await batch([good, requestFor(person(), { roleUid: roleUids.operator })]))
  })
  assert.deepEqual(events, [])
  assert.deepEqual(await bound(good.roleBinding.identityUid), [])
})

test('refuses a batch with a role whose capabilities the caller does not hold', async () => {
  const role = await pinfold.seed.role(org.uid, ['role_bindings.create', 'repo.list'])
  const granter = await pinfold.as((await pinfold.seed.member(org.uid, role.uid)).uid)
  const weak = await pinfold.seed.role(org.uid, ['repo.list'])
  const create = (...roles: string[]) => {
    const requests = roles.map((uid) => requestFor(person(), { roleUid: uid }))
    return granter.post(`${path}:batchCreate`, { parent: org.uid, requests })
  }
  ok(await create(weak.uid, weak.uid))
  assertDenied(await create(weak.uid, roleUids.viewer))
})

test('a batch writes one event, for its group', async () => {
  let answer: Json = {}
  const events = await eventsOf(pinfold, async () => {
    const requests = [requestFor(person()), requestFor(person())]
    answer = ok(await pinfold.operator.post(`${path}:batchCreate`, { parent: org.uid, requests, roleUid }))
  })
  assert.deepEqual(events, [
    {
      type: 'dev.pinfold.api.iam.rolebindings.created.batch.v1',
      subject: org.uid,
      group: org.uid,
      audience: 'CUSTOMER',
      actor: operatorUid,
      bodyType: 'pinfold.platform.iam.v2.BatchCreateRoleBindingsResponse',
      body: snake(answer),
    },
  ])
  assert.equal(answer.roleBindings.length, 2)
})
