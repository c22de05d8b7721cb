import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdentitySchema } from '#gen/pinfold/iam/v1/identities_pb.ts'
import { GroupSchema } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { AdvisorySchema } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { AppError } from '../errors.ts'
import { timestamp } from '../timestamp.ts'
import { contentOf, messageOf } from './messages.ts'

const time = '2026-08-01T12:00:00.000Z'
const group = { name: 'acme', description: '', resourceLimits: {}, verified: true, kind: 2, status: 1 }

test('creates a message with times and renamed fields, and without unset fields', () => {
  const toMessage = messageOf(GroupSchema, { uid: 'id' })
  const value = { ...group, id: 'u', createTime: time, updateTime: undefined as unknown as string, other: 1 }
  assert.deepEqual(toMessage(value), {
    $typeName: 'pinfold.platform.iam.v2.Group',
    ...group,
    uid: 'u',
    createTime: timestamp(time),
  })
})

test('creates nested messages of lists and oneofs, and keeps existing messages', () => {
  const identity = { id: 'u', name: 'a', description: '' }
  const value = { issuer: 'i', subject: 's', issuerKeys: '{}', audiences: [], expiration: time }
  const made = messageOf(IdentitySchema)({ ...identity, relationship: { case: 'static', value } })
  const $typeName = 'pinfold.platform.iam.Identity.StaticKeys'
  const message = { $typeName, ...value, expiration: timestamp(time) } as const
  assert.deepEqual(made.relationship, { case: 'static', value: message })
  const again = messageOf(IdentitySchema)({ ...identity, relationship: { case: 'static', value: message } })
  assert.equal(again.relationship.value, message)
  assert.deepEqual(messageOf(IdentitySchema)({ ...identity, relationship: { case: undefined } }).relationship, {
    case: undefined,
  })

  const texts = ['advisoryId', 'author', 'artifactName', 'artifactType', 'artifactArchitecture'] as const
  const components = ['componentName', 'componentLocation', 'componentType'] as const
  const empty = Object.fromEntries([...texts, ...components].map((name) => [name, ''])) as Record<
    (typeof texts)[number] | (typeof components)[number],
    string
  >
  const lists = { aliases: ['CVE-1'], events: [], severities: [{ type: 1, score: '9.8' }] }
  assert.deepEqual(messageOf(AdvisorySchema)({ uid: 'u', ...empty, ...lists }).severities, [
    { $typeName: 'pinfold.platform.vulnerabilities.v2.Severity', type: 1, score: '9.8' },
  ])
})

test('copies only the named fields of a message, and refuses a missing one', () => {
  const message = messageOf(GroupSchema)({ ...group, uid: 'u' })
  assert.deepEqual(contentOf(message, 'group', 'name', 'kind', 'createTime'), { name: 'acme', kind: 2 })
  assert.throws(
    () => contentOf(undefined as typeof message | undefined, 'group', 'name'),
    (error) =>
      error instanceof AppError && error.code === 'INVALID_ARGUMENT' && /group/.test(JSON.stringify(error.details)),
  )
})
