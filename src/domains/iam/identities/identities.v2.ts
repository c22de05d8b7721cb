import type { Handlers } from '#app.ts'
import {
  IdentitiesService,
  type Identity as IdentityMessage,
  IdentityMetadataSchema,
  IdentitySchema,
  type ListIdentitiesRequest,
  RelationshipType,
} from '#gen/pinfold/iam/v2/identities_pb.ts'
import { creating, deleting, getting, listing, updating } from '#lib/contract/handlers.ts'
import { contentOf, messageOf } from '#lib/contract/messages.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import {
  type Identity,
  identityFields,
  relationshipTypes,
  toIdentityResource,
  toProfileResource,
} from './identities.model.ts'
import * as service from './identities.service.ts'
import { updateProfile } from './identities.service.ts'
import { readRelationship, showRelationship } from './relationships-on-the-wire.ts'

const storedTypes: Record<number, string> = {
  [RelationshipType.CLAIM_MATCH]: relationshipTypes.claimMatch,
  [RelationshipType.STATIC]: relationshipTypes.staticKeys,
  [RelationshipType.AWS_IDENTITY]: relationshipTypes.awsIdentity,
  [RelationshipType.SERVICE_PRINCIPAL]: relationshipTypes.servicePrincipal,
}

const { method } = IdentitiesService
const toIdentity = messageOf(IdentitySchema)
const toMetadata = messageOf(IdentityMetadataSchema)
const personal = ['uid', 'name', 'givenName', 'familyName', 'company', 'jobTitle'] as const
const rules = { fields: identityFields, defaultOrder: 'uid' }

export const identities: Handlers<typeof IdentitiesService> = {
  getIdentity: getting(service.getIdentity, toMessage),
  listIdentities: listing(method.listIdentities, rules, filterOf, service.listIdentities, toMessage),
  createIdentity: creating(['parent', 'identity'], fromMessage, service.createIdentity, toMessage),
  updateIdentity: updating('identity', fromMessage, service.updateIdentity, toMessage),
  deleteIdentity: deleting('uid', service.deleteIdentity),

  async lookupIdentity(_call, { issuer, subject }) {
    return {
      $typeName: 'pinfold.platform.iam.v2.LookupIdentityResponse',
      uid: service.lookupIdentity(issuer, subject),
    }
  },

  async updateIdentityMetadata(call, { identityMetadata, updateMask }) {
    const value = contentOf(identityMetadata, 'identity_metadata', ...personal)
    return toMetadata(await updateProfile(call, { paths: updateMask?.paths ?? [], value }))
  },
}

export const identityEvents: readonly EventBody[] = [
  eventBody(method.createIdentity, toIdentityResource, toMessage),
  eventBody(method.updateIdentity, toIdentityResource, toMessage),
  deletionBody(method.deleteIdentity),
  eventBody(method.updateIdentityMetadata, toProfileResource, toMetadata),
]

function filterOf({ name, relationshipType }: ListIdentitiesRequest) {
  return { name, relationshipType: storedTypes[relationshipType] ?? '' }
}

function fromMessage(message: IdentityMessage | undefined) {
  const { relationship, ...identity } = contentOf(message, 'identity', 'name', 'description', 'company', 'relationship')
  return { ...identity, ...readRelationship(relationship) }
}

function toMessage(identity: Identity): IdentityMessage {
  return toIdentity({ ...identity, relationship: showRelationship(identity) })
}
