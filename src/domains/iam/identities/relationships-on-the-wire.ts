// Conversion of relationships between the model and messages. In version 1, only the members of static keys have other names.
import { type Instant, toIso } from '#lib/timestamp.ts'
import { memberOf, oneofOf } from '#lib/wire.ts'
import type { Relationship } from './identities.model.ts'

type Choice = { case: string | undefined; value?: string | undefined }
type Keys = { issuer: string; subject: string; issuerKeys: string; audiences: string[] }
type Patterns = { claims: Record<string, string>; claimPatterns: Record<string, string> }

/** Relationship in a message. Static keys have the names of version 2. */
export type RelationshipMessage =
  | { case: 'claimMatch'; value: Patterns & { iss: Choice; sub: Choice; aud: Choice } }
  | { case: 'staticKeys'; value: Keys & { expirationTime?: Instant | undefined } }
  | { case: 'awsIdentity'; value: { awsAccount: string; awsArn: Choice; awsUserId: Choice } }
  | { case: 'servicePrincipal'; value: number }
  | { case: undefined; value?: undefined }

export function readRelationship({ case: kind, value }: RelationshipMessage): Relationship {
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

/** Members of the oneof in a message. Static keys have the names of version 2. */
export function showRelationship({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Relationship) {
  if (claimMatch) {
    const value = {
      iss: oneofOf(claimMatch, 'issuer', 'issuerPattern'),
      sub: oneofOf(claimMatch, 'subject', 'subjectPattern'),
      aud: oneofOf(claimMatch, 'audience', 'audiencePattern'),
      claims: claimMatch.claims ?? {},
      claimPatterns: claimMatch.claimPatterns ?? {},
    }
    return { case: 'claimMatch', value } as const
  }
  if (staticKeys) {
    const { issuer = '', subject = '', issuerKeys = '', expirationTime = '', audiences = [] } = staticKeys
    const value = { issuer, subject, issuerKeys, expirationTime: expirationTime || undefined, audiences }
    return { case: 'staticKeys', value } as const
  }
  if (awsIdentity) {
    const value = {
      awsAccount: awsIdentity.awsAccount ?? '',
      awsArn: oneofOf(awsIdentity, 'arn', 'arnPattern'),
      awsUserId: oneofOf(awsIdentity, 'userId', 'userIdPattern'),
    }
    return { case: 'awsIdentity', value } as const
  }
  if (servicePrincipal === undefined) return { case: undefined } as const
  return { case: 'servicePrincipal', value: servicePrincipal } as const
}
