// Version 1 of identities: other names, lists in full, a PUT that replaces, and static keys that live for 30 days.
import type { Handlers } from '#app.ts'
import {
  Identities,
  type Identity as IdentityMessage,
  type ServicePrincipal,
} from '#gen/pinfold/iam/v1/identities_pb.ts'
import { invalid, withFieldNames } from '#lib/errors.ts'
import { deletionBody, type EventBody, eventBody } from '#lib/events/event-body.ts'
import { wholeList } from '#lib/lists/lists.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import { empty, memberOf, oneofOf } from '#lib/wire.ts'
import { anIdentity, type Identity, keyLife, type Relationship } from './identities.model.ts'
import * as service from './identities.service.ts'

/** Version 1 knows nothing of `company`, so a PUT leaves it as it is. */
const replaced = ['name', 'description', 'claim_match', 'static_keys', 'aws_identity', 'service_principal']

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

  async delete(call, { id }) {
    await service.deleteIdentity(call, id)
    return empty
  },
}

export const identityEventsV1: readonly EventBody[] = [
  eventBody(Identities.method.create, anIdentity, toMessage),
  eventBody(Identities.method.update, anIdentity, toMessage),
  deletionBody(Identities.method.delete),
]

function fromMessage(identity: IdentityMessage | undefined) {
  if (!identity) throw invalid({ field: 'identity', description: 'is required' })
  const { name, description, relationship } = identity
  return { name, description, ...toRelationship(relationship) }
}

function toRelationship({ case: kind, value }: IdentityMessage['relationship']): Relationship {
  switch (kind) {
    case 'claimMatch': {
      const { iss, sub, aud, claims, claimPatterns } = value
      return { claimMatch: { ...memberOf(iss), ...memberOf(sub), ...memberOf(aud), claims, claimPatterns } }
    }
    case 'static': {
      const { issuer, subject, issuerKeys, expiration, audiences } = value
      const expires = expiration ? { expirationTime: toIso(expiration) } : {}
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
    $typeName: 'pinfold.platform.iam.Identity',
    id: identity.uid,
    name: identity.name,
    description: identity.description,
    createdAt: timestamp(identity.createTime),
    updatedAt: timestamp(identity.updateTime),
    lastSeen: timestamp(identity.lastSeenTime),
    relationship: toOneof(identity),
  }
}

type Oneof = IdentityMessage['relationship']

function toOneof({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Relationship): Oneof {
  if (claimMatch) {
    const value: Extract<Oneof, { case: 'claimMatch' }>['value'] = {
      $typeName: 'pinfold.platform.iam.Identity.ClaimMatch',
      iss: oneofOf(claimMatch, 'issuer', 'issuerPattern'),
      sub: oneofOf(claimMatch, 'subject', 'subjectPattern'),
      aud: oneofOf(claimMatch, 'audience', 'audiencePattern'),
      claims: claimMatch.claims ?? {},
      claimPatterns: claimMatch.claimPatterns ?? {},
    }
    return { case: 'claimMatch', value }
  }
  if (staticKeys) {
    const value: Extract<Oneof, { case: 'static' }>['value'] = {
      $typeName: 'pinfold.platform.iam.Identity.StaticKeys',
      issuer: staticKeys.issuer ?? '',
      subject: staticKeys.subject ?? '',
      issuerKeys: staticKeys.issuerKeys ?? '',
      expiration: staticKeys.expirationTime ? timestamp(staticKeys.expirationTime) : undefined,
      audiences: staticKeys.audiences ?? [],
    }
    return { case: 'static', value }
  }
  if (awsIdentity) {
    const value: Extract<Oneof, { case: 'awsIdentity' }>['value'] = {
      $typeName: 'pinfold.platform.iam.Identity.AWSIdentity',
      awsAccount: awsIdentity.awsAccount ?? '',
      awsArn: oneofOf(awsIdentity, 'arn', 'arnPattern'),
      awsUserId: oneofOf(awsIdentity, 'userId', 'userIdPattern'),
    }
    return { case: 'awsIdentity', value }
  }
  if (servicePrincipal === undefined) return { case: undefined }
  return { case: 'servicePrincipal', value: servicePrincipal as ServicePrincipal }
}
