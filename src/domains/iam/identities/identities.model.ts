import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields, namedFields } from '#lib/fields.ts'

/**
 * Conditions for the claims of a token that another issuer signed. Has either an issuer or an issuer pattern, and either a
 * subject or a subject pattern.
 */
export type ClaimMatch = {
  issuer?: string
  issuerPattern?: string
  subject?: string
  subjectPattern?: string
  audience?: string
  audiencePattern?: string
  claims?: Record<string, string>
  claimPatterns?: Record<string, string>
}
/** Accepts tokens that are signed with one of these keys. Used for issuers that the server cannot reach. */
export type StaticKeys = {
  issuer?: string
  subject?: string
  /** JSON Web Key Set, as JSON text. */
  issuerKeys?: string
  /** Time in ISO 8601, in UTC and with milliseconds. */
  expirationTime?: string
  audiences?: string[]
}
export type AwsIdentity = {
  awsAccount?: string
  arn?: string
  arnPattern?: string
  userId?: string
  userIdPattern?: string
}

/** Relationship that defines which outside tokens can act as the identity. Exactly one member is set. */
export type Relationship = {
  claimMatch?: ClaimMatch | undefined
  staticKeys?: StaticKeys | undefined
  awsIdentity?: AwsIdentity | undefined
  /** Number of a ServicePrincipal in the contract: one of the product's own services. */
  servicePrincipal?: number | undefined
}
export const relationshipTypes = {
  claimMatch: 'CLAIM_MATCH',
  staticKeys: 'STATIC',
  awsIdentity: 'AWS_IDENTITY',
  servicePrincipal: 'SERVICE_PRINCIPAL',
} as const satisfies Record<keyof Relationship, string>

/** A workload or a person that can call the API. An identity of a folder has no permissions above this folder. */
export type Identity = Relationship & {
  uid: string
  name: string
  description: string
  company: string
  /** Email address, if the sign-in provider has verified it. An unverified address is in `emailUnverified`. */
  email: string
  emailUnverified: string
  lastSeenTime: string
  createTime: string
  updateTime: string
}

export const toIdentityResource = kindOf<Identity>('identity')

export const identityType = 'iam.pinfold.dev/Identity'

export const identityFields = {
  ...namedFields,
  company: { column: 'company', update: true, pattern: descriptionPattern },
  claimMatch: { column: 'relationship', update: true },
  staticKeys: { column: 'relationship', update: true },
  awsIdentity: { column: 'relationship', update: true },
  servicePrincipal: { column: 'relationship', update: true },
} as const satisfies Fields<Identity>

/** Profile that a person can edit. The names come from the sign-in provider. */
export type PersonProfile = {
  uid: string
  name: string
  givenName: string
  familyName: string
  company: string
  jobTitle: string
}

export const toProfileResource = kindOf<PersonProfile>('person-profile')

export const profileFields = {
  uid: { column: 'uid' },
  name: { column: 'name' },
  givenName: { column: 'given_name' },
  familyName: { column: 'family_name' },
  company: { column: 'company', update: true, pattern: descriptionPattern },
  jobTitle: { column: 'job_title', update: true, pattern: descriptionPattern },
} as const satisfies Fields<PersonProfile>

const day = 24 * 60 * 60 * 1000
/** Longest and default life of static keys, in milliseconds. In version 1, it is shorter. */
export const keyLife = { v1: 30 * day, v2: 365 * day }

export function relationshipKind(relationship: Relationship): keyof Relationship | undefined {
  return (Object.keys(relationshipTypes) as (keyof Relationship)[]).find((kind) => relationship[kind] !== undefined)
}

/** A stored relationship as JSON. Null if the identity does not exist. */
export type RelationshipRow = { relationship: string | null }

/** Subject and issuer of an identity, as shown in a binding. For a condition with a pattern, it is the text of the pattern. */
export function presentedIdentity(row: RelationshipRow): { subject: string; issuer: string } {
  const { claimMatch, staticKeys } = JSON.parse(row.relationship ?? '{}') as Relationship
  return {
    subject: claimMatch?.subject ?? claimMatch?.subjectPattern ?? staticKeys?.subject ?? '',
    issuer: claimMatch?.issuer ?? claimMatch?.issuerPattern ?? staticKeys?.issuer ?? '',
  }
}
