// Values in messages over gRPC that JSON cannot contain, and that the reader of JSON refuses.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { create, type DescField, type DescMethod, ScalarType } from '@bufbuild/protobuf'
import { buildEndpoints, isStreaming } from '#api/methods.ts'
import { services } from '#api/services.ts'
import type { Call } from '#app.ts'
import { nodeList } from '#db/listing.ts'
import { listFrom } from '#domains/iam/groups/list-nodes.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService, RelationshipType } from '#gen/pinfold/iam/v2/identities_pb.ts'
import type { Page } from '#lib/lists/paging.ts'
import { startPinfold } from '../support/pinfold.ts'
import { openGrpc } from '../support/raw-grpc.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

const grpc = openGrpc(pinfold.port)
after(() => grpc[Symbol.dispose]())

/** Code of a call as the operator, with the field of its BadRequest. */
async function refused(desc: DescMethod, init: object): Promise<[code: number, field: string | undefined]> {
  const { token } = pinfold.operator
  const { code, details } = await grpc.call(desc, create(desc.input, init as never), { token })
  return [code, details.find((detail) => 'fieldViolations' in detail)?.fieldViolations[0].field]
}

/** The field with the value. A list gets it as its only element. */
function withValue(field: DescField, value: unknown): object {
  const held = field.fieldKind === 'list' ? [value] : value
  return field.oneof ? { [field.oneof.localName]: { case: field.localName, value: held } } : { [field.localName]: held }
}

const unary = buildEndpoints(services).filter((endpoint) => !isStreaming(endpoint))

test('refuses a text with the character U+0000 in each field of each method, and names the field', async () => {
  let fields = 0
  for (const { desc } of unary) {
    for (const field of desc.input.fields) {
      if (field.scalar !== ScalarType.STRING || field.fieldKind === 'map') continue
      fields++
      const at = field.fieldKind === 'list' ? `${field.name}[0]` : field.name
      assert.deepEqual(await refused(desc, withValue(field, 'a\0b')), [3, at], desc.name)
    }
  }
  assert.ok(fields > 200)
})

test('refuses an unknown enum value in each method, and names the field', async () => {
  let fields = 0
  for (const { desc } of unary) {
    for (const field of desc.input.fields) {
      if (!field.enum || field.fieldKind === 'map') continue
      fields++
      const at = field.fieldKind === 'list' ? `${field.name}[0]` : field.name
      assert.deepEqual(await refused(desc, withValue(field, 99_999)), [3, at], desc.name)
    }
  }
  assert.ok(fields > 10)
})

test('does not list all identities for a filter with an unknown value', async () => {
  const { listIdentities } = IdentitiesService.method
  assert.deepEqual(await refused(listIdentities, { relationshipType: 99 }), [3, 'relationship_type'])
  assert.deepEqual(await refused(listIdentities, { relationshipType: RelationshipType.STATIC }), [0, undefined])
})

test('checks nested messages, and names the path of the field', async () => {
  const { createGroup, listGroups } = GroupsService.method
  const cases: [DescMethod, object, string][] = [
    [createGroup, { group: { name: 'a', status: 99 } }, 'group.status'],
    [createGroup, { group: { name: 'a', resourceLimits: { 'x\0': 1 } } }, 'group.resource_limits["x\0"]'],
    [listGroups, { uidp: { ids: ['a', 'b\0'] } }, 'uidp.ids[1]'],
    [
      IdentitiesService.method.createIdentity,
      withRelationship({ case: 'servicePrincipal', value: 99 }),
      'identity.service_principal',
    ],
  ]
  for (const [method, init, field] of cases) assert.deepEqual(await refused(method, init), [3, field])
})

function withRelationship(relationship: object): object {
  return { identity: { name: 'a', relationship } }
}

test('ignores invalid values of fields that the update mask does not name', async () => {
  const { updateGroup } = GroupsService.method
  const { uid } = (await pinfold.operator.post('/iam/v2/groups', { name: 'masked' })).body
  const changed = { uid, name: 'renamed', description: 'a\0b', status: 99 }
  const update = (...paths: string[]) => refused(updateGroup, { group: changed, updateMask: { paths } })
  assert.deepEqual(await update('name'), [0, undefined])
  assert.deepEqual(await update('name', 'description'), [3, 'description'])
  assert.deepEqual(await update('*'), [3, 'description'])
  assert.deepEqual(await update(), [3, 'description'])
})

test('a list whose two reads throw at once fails as a whole', async () => {
  const throws = () => {
    throw new Error('thrown at once')
  }
  const source = { list: async () => throws(), count: throws }
  const call = { app: { db: undefined } } as unknown as Call
  await assert.rejects(listFrom(call, { page: {} as Page, filter: {} }, [], source), /thrown at once/)
  const { count } = nodeList({} as never, () => ({}), throws)
  await assert.rejects(count(undefined as never, [], {}), /thrown at once/)
})
