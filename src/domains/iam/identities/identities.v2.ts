import type { Handlers } from '#app.ts'
import {
  IdentitiesService,
  type Identity as IdentityMessage,
  type IdentityMetadata,
  RelationshipType,
  type ServicePrincipal,
} from '#gen/pinfold/iam/v2/identities_pb.ts'
import { invalid } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { empty, memberOf, oneofOf } from '#lib/wire.ts'
import {
  anIdentity,
  aProfile,
  type Identity,
  identityFields,
  type PersonProfile,
  type Relationship,
  relationshipTypes,
} from './identities.model.ts'
import * as service from './identities.service.ts'
import { updateProfile } from './profiles.service.ts'

const storedTypes: Record<number, string> = {
  [RelationshipType.CLAIM_MATCH]: relationshipTypes.claimMatch,
  [RelationshipType.STATIC]: relationshipTypes.staticKeys,
  [RelationshipType.AWS_IDENTITY]: relationshipTypes.awsIdentity,
  [RelationshipType.SERVICE_PRINCIPAL]: relationshipTypes.servicePrincipal,
}

const rules = { fields: identityFields, defaultOrder: 'uid' }

export const identities: Handlers<typeof IdentitiesService> = {
  async getIdentity(call, { uid }) {
    return toMessage(await service.getIdentity(call, uid))
  },

  async listIdentities(call, request) {
    const { name } = request
    const relationshipType = storedTypes[request.relationshipType] ?? ''
    const listed = await service.listIdentities(call, readList(call, request, rules, { name, relationshipType }))
    return listResponse('pinfold.platform.iam.v2.ListIdentitiesResponse', 'identities', listed, toMessage, request)
  },

  async lookupIdentity(_call, { issuer, subject }) {
    return {
      $typeName: 'pinfold.platform.iam.v2.LookupIdentityResponse',
      uid: service.lookupIdentity(issuer, subject),
    }
  },

  async createIdentity(call, { parent, identity }) {
    return toMessage(await service.createIdentity(call, parent, fromMessage(identity)))
  },

  async updateIdentity(call, { identity, updateMask }) {
    const patch = { paths: updateMask?.paths ?? [], value: fromMessage(identity) }
    return toMessage(await service.updateIdentity(call, identity?.uid ?? '', patch))
  },

  async deleteIdentity(call, { uid }) {
    await service.deleteIdentity(call, uid)
    return empty
  },

  async updateIdentityMetadata(call, { identityMetadata, updateMask }) {
    if (!identityMetadata) throw invalid({ field: 'identity_metadata', description: 'is required' })
    const { uid, name, givenName, familyName, company, jobTitle } = identityMetadata
    const value = { uid, name, givenName, familyName, company, jobTitle }
    return toMetadata(await updateProfile(call, { paths: updateMask?.paths ?? [], value }))
  },
}

export const identityEvents: readonly EventBody[] = [
  eventBody(IdentitiesService.method.createIdentity, anIdentity, toMessage),
  eventBody(IdentitiesService.method.updateIdentity, anIdentity, toMessage),
  deletionBody(IdentitiesService.method.deleteIdentity),
  eventBody(IdentitiesService.method.updateIdentityMetadata, aProfile, toMetadata),
]

function toMetadata(profile: PersonProfile): IdentityMetadata {
  return { $typeName: 'pinfold.platform.iam.v2.IdentityMetadata', ...profile }
}

function fromMessage(identity: IdentityMessage | undefined) {
  if (!identity) throw invalid({ field: 'identity', description: 'is required' })
  const { name, description, company, relationship } = identity
  return { name, description, company, ...toRelationship(relationship) }
}

function toRelationship({ case: kind, value }: IdentityMessage['relationship']): Relationship {
  switch (kind) {
    case 'claimMatch': {
      const { iss, sub, aud, claims, claimPatterns } = value
      return { claimMatch: { ...memberOf(iss), ...memberOf(sub), ...memberOf(aud), claims, claimPatterns } }
    }
    case 'staticKeys': {
      const { issuer, subject, issuerKeys, expirationTime, audiences } = value
      const expires = expirationTime ? { expirationTime: toIso(expirationTime) } : {}
      return { staticKeys: { issuer, subject, issuerKeys, audiences, ...expires } }
    }
    case 'awsIdentity':
      return { awsIdentity: { awsAccount: value.awsAccount, ...memberOf(value.awsArn), ...memberOf(value.awsUserId) } }
    case 'servicePrincipal':
      return { servicePrincipal: value }
    default:
      return {}
  }
}

function toMessage(identity: Identity): IdentityMessage {
  return {
    $typeName: 'pinfold.platform.iam.v2.Identity',
    uid: identity.uid,
    name: identity.name,
    description: identity.description,
    email: identity.email,
    emailUnverified: identity.emailUnverified,
    company: identity.company,
    lastSeenTime: timestamp(identity.lastSeenTime),
    createTime: timestamp(identity.createTime),
    updateTime: timestamp(identity.updateTime),
    relationship: toOneof(identity),
  }
}

function toOneof({
  claimMatch,
  staticKeys,
  awsIdentity,
  servicePrincipal,
}: Relationship): IdentityMessage['relationship'] {
  if (claimMatch) {
    const value: Extract<IdentityMessage['relationship'], { case: 'claimMatch' }>['value'] = {
      $typeName: 'pinfold.platform.iam.v2.Identity.ClaimMatch',
      iss: oneofOf(claimMatch, 'issuer', 'issuerPattern'),
      sub: oneofOf(claimMatch, 'subject', 'subjectPattern'),
      aud: oneofOf(claimMatch, 'audience', 'audiencePattern'),
      claims: claimMatch.claims ?? {},
      claimPatterns: claimMatch.claimPatterns ?? {},
    }
    return { case: 'claimMatch', value }
  }
  if (staticKeys) {
    const value: Extract<IdentityMessage['relationship'], { case: 'staticKeys' }>['value'] = {
      $typeName: 'pinfold.platform.iam.v2.Identity.StaticKeys',
      issuer: staticKeys.issuer ?? '',
      subject: staticKeys.subject ?? '',
      issuerKeys: staticKeys.issuerKeys ?? '',
      expirationTime: staticKeys.expirationTime ? timestamp(staticKeys.expirationTime) : undefined,
      audiences: staticKeys.audiences ?? [],
    }
    return { case: 'staticKeys', value }
  }
  if (awsIdentity) {
    const value: Extract<IdentityMessage['relationship'], { case: 'awsIdentity' }>['value'] = {
      $typeName: 'pinfold.platform.iam.v2.Identity.AWSIdentity',
      awsAccount: awsIdentity.awsAccount ?? '',
      awsArn: oneofOf(awsIdentity, 'arn', 'arnPattern'),
      awsUserId: oneofOf(awsIdentity, 'userId', 'userIdPattern'),
    }
    return { case: 'awsIdentity', value }
  }
  if (servicePrincipal === undefined) return { case: undefined }
  return { case: 'servicePrincipal', value: servicePrincipal as ServicePrincipal }
}
