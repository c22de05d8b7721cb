import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toReadmeResource, toRepoResource } from '#domains/registry/repos/repos.model.ts'
import { TestEventSchema } from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { PushEventSchema } from '#gen/pinfold/registry/events_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { type EventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { buildEventTable } from './event-table.ts'
import { versionOf } from './methods.ts'
import { eventBodies, services } from './services.ts'

const table = buildEventTable(services, eventBodies)

test('each declared event of a served method has a body, and each registered body has an event', () => {
  assert.ok(eventBodies.length > 35)
  for (const body of eventBodies) {
    const others = eventBodies.filter((one) => one !== body)
    assert.throws(
      () => buildEventTable(services, others),
      /has no body|no event body is registered/,
      `${body.of.name} ${body.kind}`,
    )
  }
})

test('throws for a second body of a method, and for the body of a method without an event', () => {
  const [first] = eventBodies
  assert.throws(() => buildEventTable(services, [...eventBodies, first!]), /has two body messages for/)
  const silent: EventBody = { ...first!, of: ReposService.method.getRepo }
  assert.throws(() => buildEventTable(services, [...eventBodies, silent]), /GetRepo declares no event/)
})

test('two methods can write the same event with different bodies', () => {
  const bodyType = (kind: string) => table.find('registry.repo.updated', 'v2', kind).bodyType
  assert.equal(bodyType(toRepoResource.kind), 'pinfold.platform.registry.v2.Repo')
  assert.equal(bodyType(toReadmeResource.kind), 'pinfold.platform.registry.v2.RepoReadme')
  assert.throws(
    () => bodyType('group'),
    /no body is registered for the event .*registry.repo.updated and the resource kind group/,
  )
})

test('uses the body of the called version, or of the newest version without one', () => {
  const find = (version: 'v1' | 'v2' | undefined) => table.find('iam.group.updated', version, 'group')
  assert.equal(find('v1').bodyType, 'pinfold.platform.iam.Group')
  const group = { uid: 'ab', name: 'acme', description: '', resourceLimits: {} }
  assert.match(find('v1').render(group), /^\{"id":"ab",/)
  assert.match(find('v2').render(group), /^\{"uid":"ab",/)
  assert.equal(find('v2').bodyType, 'pinfold.platform.iam.v2.Group')
  assert.equal(find(undefined).bodyType, 'pinfold.platform.iam.v2.Group')
  assert.equal(find('v1').type, find('v2').type)
  // If the called version has no message of its own, the event uses the message of the newest version.
  assert.equal(
    table.find('registry.repo.updated', 'v1', toReadmeResource.kind).bodyType,
    'pinfold.platform.registry.v2.RepoReadme',
  )
})

test('the body of a deletion event is its request, or null', () => {
  const deletion = (name: 'iam.roles.deleted' | 'iam.account_associations.deleted') => {
    return table.find(name, 'v2', toDeletionResource.kind).render({ uid: 'ab' })
  }
  assert.equal(deletion('iam.roles.deleted'), '{"uid":"ab"}')
  assert.equal(deletion('iam.account_associations.deleted'), 'null')
})

test('the message of an event without a method declares it', () => {
  const sources = eventBodies.flatMap(({ of, kind }) => {
    if (of !== TestEventSchema && of !== PushEventSchema) return []
    return table.find(kind === 'test' ? 'control.events.subscription.test' : 'registry.push', undefined, kind).source
  })
  assert.deepEqual(sources.sort(), ['', '/events/v2/subscriptions:sendTest'])
})

test('lists all methods that write an event, with or without a handler', () => {
  assert.deepEqual([...table.methods('registry.repo.created')].sort(), [
    'pinfold.platform.registry.Registry/CreateRepo',
    'pinfold.platform.registry.v2.ReposService/CreateRepo',
  ])
  assert.equal(table.methods('iam.identity_providers.scim_token.revoked').length, 2)
  assert.deepEqual(table.methods('registry.tag.updated'), ['pinfold.platform.registry.Registry/UpdateTag'])
  assert.deepEqual(table.methods('registry.pull'), [])
})

test('the version of a method is the version of its package', () => {
  assert.equal(versionOf(ReposService.method.getRepo), 'v2')
  assert.equal(versionOf(Groups.method.list), 'v1')
  const control = services.find(({ desc }) => desc.typeName.startsWith('pinfold.control.'))!
  assert.equal(versionOf(control.desc.methods[0]!), undefined)
})
