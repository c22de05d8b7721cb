import { kindOf } from '#lib/events/event-body.ts'
import { descriptionPattern, type Fields, namedFields } from '#lib/fields.ts'

/** Matches the claims of a token that another issuer signed. Exactly one of each pair of issuer and subject. */
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
/** Matches tokens signed with the given keys, for issuers that cannot be reached. */
export type StaticKeys = {
  issuer?: string
  subject?: string
  /** A JSON Web Key Set, as text. */
  issuerKeys?: string
  /** ISO 8601 UTC with milliseconds. */
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

/** Relationship that lets an outside token act as the identity. Exactly one member is set. */
export type Relationship = {
  claimMatch?: ClaimMatch | undefined
  staticKeys?: StaticKeys | undefined
  awsIdentity?: AwsIdentity | undefined
  /** The contract's ServicePrincipal: one of the product's own services. */
  servicePrincipal?: number | undefined
}
export const relationshipTypes = {
  claimMatch: 'CLAIM_MATCH',
  staticKeys: 'STATIC',
  awsIdentity: 'AWS_IDENTITY',
  servicePrincipal: 'SERVICE_PRINCIPAL',
} as const satisfies Record<keyof Relationship, string>

/** A workload or a person that can call the API. An identity of a folder has no rights above it. */
export type Identity = Relationship & {
  uid: string
  name: string
  description: string
  company: string
  /** Address that the sign-in provider has verified. Otherwise `emailUnverified` is set. */
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

/** Profile of a person, which they can edit. The names are those from the provider. */
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
/** Longest and default life of static keys, in milliseconds. Version 1 has a shorter one. */
export const keyLife = { v1: 30 * day, v2: 365 * day }

export function relationshipKind(relationship: Relationship): keyof Relationship | undefined {
  return (Object.keys(relationshipTypes) as (keyof Relationship)[]).find((kind) => relationship[kind] !== undefined)
}

/** A relationship as stored: JSON, or null if the identity does not exist. */
export type RelationshipRow = { relationship: string | null }

/** The subject and issuer that a binding shows for an identity: exact values, or else the text of the patterns. */
export function presentedIdentity(row: RelationshipRow): { subject: string; issuer: string } {
  const { claimMatch, staticKeys } = JSON.parse(row.relationship ?? '{}') as Relationship
  return {
    subject: claimMatch?.subject ?? claimMatch?.subjectPattern ?? staticKeys?.subject ?? '',
    issuer: claimMatch?.issuer ?? claimMatch?.issuerPattern ?? staticKeys?.issuer ?? '',
  }
}
