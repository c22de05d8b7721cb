import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, type DescMethod } from '@bufbuild/protobuf'
import { aReadme, aRepo } from '#domains/registry/repos/repos.model.ts'
import { TestEventSchema } from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { GroupSchema } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { PushEventSchema } from '#gen/pinfold/registry/events_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { aDeletion, type EventBody } from '#lib/events/event-body.ts'
import { buildEventTable } from './event-table.ts'
import { versionOf } from './methods.ts'
import { eventBodies, services } from './services.ts'

const table = buildEventTable(services, eventBodies)

/** What a method of the first version would be, with the same event. */
function olderMethod(method: DescMethod): DescMethod {
  return { ...method, output: GroupSchema, parent: { ...method.parent, typeName: 'pinfold.platform.iam.Groups' } }
}

const older: EventBody = {
  of: olderMethod(GroupsService.method.updateGroup),
  kind: 'group',
  toMessage: ({ uid }: { uid: string }) => create(GroupSchema, { id: uid }),
}

test('each event that is declared and served has its body, and no registration is superfluous', () => {
  assert.ok(eventBodies.length > 35)
  for (const body of eventBodies) {
    const others = eventBodies.filter((one) => one !== body)
    assert.throws(() => buildEventTable(services, others), /has no body/, `${body.of.name} ${body.kind}`)
  }
})

test('a body of what declares no event, and a second body, are refused', () => {
  const [first] = eventBodies
  assert.throws(() => buildEventTable(services, [...eventBodies, first!]), /has two bodies for/)
  const silent: EventBody = { ...first!, of: ReposService.method.getRepo }
  assert.throws(() => buildEventTable(services, [...eventBodies, silent]), /GetRepo declares no event/)
})

test('two methods may write the same event with different bodies', () => {
  const bodyType = (kind: string) => table.find('registry.repo.updated', 'v2', kind).bodyType
  assert.equal(bodyType(aRepo.kind), 'pinfold.platform.registry.v2.Repo')
  assert.equal(bodyType(aReadme.kind), 'pinfold.platform.registry.v2.RepoReadme')
  assert.throws(() => bodyType('group'), /registry.repo.updated has no body for group/)
})

test('the body follows the version that was called, and is that of the newest where none was', () => {
  const both = buildEventTable(services, [...eventBodies, older])
  const find = (version: 'v1' | 'v2' | undefined) => both.find('iam.group.updated', version, 'group')
  assert.equal(find('v1').bodyType, 'pinfold.platform.iam.Group')
  assert.match(find('v1').render({ uid: 'ab' }), /^\{"id":"ab",/)
  assert.equal(find('v2').bodyType, 'pinfold.platform.iam.v2.Group')
  assert.equal(find(undefined).bodyType, 'pinfold.platform.iam.v2.Group')
  assert.equal(find('v1').type, find('v2').type)
  // Where the called version has no shape of its own, the newest serves.
  assert.equal(both.find('iam.roles.created', 'v1', 'role').bodyType, 'pinfold.platform.iam.v2.Role')
})

test('the body of a deletion is its request, or null', () => {
  const deletion = (name: 'iam.roles.deleted' | 'iam.account_associations.deleted') => {
    return table.find(name, 'v2', aDeletion.kind).render({ uid: 'ab' })
  }
  assert.equal(deletion('iam.roles.deleted'), '{"uid":"ab"}')
  assert.equal(deletion('iam.account_associations.deleted'), 'null')
})

test('events that belong to no method are declared by their message', () => {
  const sources = eventBodies.flatMap(({ of, kind }) => {
    if (of !== TestEventSchema && of !== PushEventSchema) return []
    return table.find(kind === 'test' ? 'control.events.subscription.test' : 'registry.push', undefined, kind).source
  })
  assert.deepEqual(sources.sort(), ['', '/events/v2/subscriptions:sendTest'])
})

test('the methods that write an event, whether they are served or not', () => {
  assert.deepEqual([...table.methods('registry.repo.created')].sort(), [
    'pinfold.platform.registry.Registry/CreateRepo',
    'pinfold.platform.registry.v2.ReposService/CreateRepo',
  ])
  assert.equal(table.methods('iam.identity_providers.scim_token.revoked').length, 1)
  assert.deepEqual(table.methods('registry.pull'), [])
})

test('the version of a method is that of its package', () => {
  assert.equal(versionOf(ReposService.method.getRepo), 'v2')
  assert.equal(versionOf(olderMethod(GroupsService.method.getGroup)), 'v1')
  const control = services.find(({ desc }) => desc.typeName.startsWith('pinfold.control.'))!
  assert.equal(versionOf(control.desc.methods[0]!), undefined)
})
