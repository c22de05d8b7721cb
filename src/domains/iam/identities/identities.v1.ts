// Version 1 of identities. It has other names, complete lists, and a PUT that replaces identities. Static keys are valid for at
// most 30 days.
import type { Handlers } from '#app.ts'
import { Identities, type Identity as IdentityMessage, IdentitySchema } from '#gen/pinfold/iam/v1/identities_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { type Identity, keyLife, toIdentityResource } from './identities.model.ts'
import * as service from './identities.service.ts'
import { type RelationshipMessage, readRelationship, showRelationship } from './relationships-on-the-wire.ts'

/** Fields that a PUT replaces. A PUT keeps `company`, which version 1 does not have. */
const replaced = ['name', 'description', 'claim_match', 'static_keys', 'aws_identity', 'service_principal']

const toIdentity = messageOf(IdentitySchema, {
  id: 'uid',
  createdAt: 'createTime',
  updatedAt: 'updateTime',
  lastSeen: 'lastSeenTime',
})

const inV1 = <T>(work: Promise<T>): Promise<T> =>
  withFieldNames({ static_keys: 'static', expiration_time: 'expiration' }, work)

export const identitiesV1: Handlers<typeof Identities> = {
  async create(call, { parentId, identity }) {
    const input = { ...fromMessage(identity), company: '' }
    return toMessage(await inV1(service.createIdentity(call, parentId, input, keyLife.v1)))
  },

  async update(call, identity) {
    const patch = { paths: replaced, value: fromMessage(identity) }
    return toMessage(await inV1(service.updateIdentity(call, identity.id, patch, keyLife.v1)))
  },

  async list(call, { id, uidp }) {
    const filter = { name: '', relationshipType: '' }
    const identities = await wholeList(call, { uidp, id }, filter, service.listIdentities)
    return { $typeName: 'pinfold.platform.iam.IdentityList', items: identities.map(toMessage) }
  },

  async lookup(call, { issuer, subject }) {
    return toMessage(await service.getIdentity(call, service.lookupIdentity(issuer, subject)))
  },

  delete: deleting('id', service.deleteIdentity),
}

export const identityEventsV1: readonly EventBody[] = [
  eventBody(Identities.method.create, toIdentityResource, toMessage),
  eventBody(Identities.method.update, toIdentityResource, toMessage),
  deletionBody(Identities.method.delete),
]

function fromMessage(message: IdentityMessage | undefined) {
  const { relationship, ...identity } = contentOf(message, 'identity', 'name', 'description', 'relationship')
  return { ...identity, ...readRelationship(fromRelationship(relationship)) }
}

/** Renames members of static keys, which have other names in version 1. */
function fromRelationship(relationship: IdentityMessage['relationship']): RelationshipMessage {
  if (relationship.case !== 'static') return relationship
  const { expiration, ...keys } = relationship.value
  return { case: 'staticKeys', value: { ...keys, expirationTime: expiration } }
}

function toMessage(identity: Identity): IdentityMessage {
  const shown = showRelationship(identity)
  if (shown.case !== 'staticKeys') return toIdentity({ ...identity, relationship: shown })
  const { expirationTime: expiration, ...keys } = shown.value
  return toIdentity({ ...identity, relationship: { case: 'static', value: { ...keys, expiration } } })
}
