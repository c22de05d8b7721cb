import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'
import type { ScimSettings } from './scim-settings.model.ts'

export type Oidc = {
  issuer: string
  clientId: string
  /** Scopes to ask for besides `openid`. */
  additionalScopes: string[]
  /** Claim that lists a person's external groups. Empty if group mappings are off. */
  groupsClaim: string
  /** CorrelationRule of the contract. */
  correlationRule: number
  pkceEnabled: boolean
}

/** Identity provider of an organization. Its client secret is stored separately, and no endpoint returns it. */
export type IdentityProvider = {
  uid: string
  name: string
  description: string
  /** Role that a new person gets at the first sign-in. Empty for none, which is possible only in version 1. */
  defaultRole: string
  oidc: Oidc
  /** Settings of its SCIM endpoint. Undefined until the first token is created. */
  scim?: ScimSettings | undefined
  /** Problem with the discovery document, and the time of the last attempt. Undefined if the document could be read. */
  discovery: Discovery | undefined
  createTime: string
  updateTime: string
}

export type Discovery = { problem: string; checkTime: string }

/** Provider as written by a client: the configuration may be missing, and may have a secret. */
export type ProviderInput = Pick<IdentityProvider, 'name' | 'description' | 'defaultRole'> & {
  oidc?: (Oidc & { clientSecret?: string }) | undefined
}

export const toProviderResource = kindOf<IdentityProvider>('provider')

export const identityProviderType = 'iam.pinfold.dev/IdentityProvider'

export const identityProviderFields = {
  ...namedFields,
  defaultRole: { column: 'default_role', update: true },
  oidc: { column: 'oidc', update: true },
} as const satisfies Fields<IdentityProvider>

/** Values of members that a mask names and the body leaves out. */
export const emptyOidc: Oidc = {
  issuer: '',
  clientId: '',
  additionalScopes: [],
  groupsClaim: '',
  correlationRule: 0,
  pkceEnabled: false,
}

/** SUB_EQUALS_EXTERNAL_ID of the contract's CorrelationRule, which is the default. */
export const subjectRule = 1

/** Longest issuer, client ID, secret, and name of a claim or scope, in characters; and most scopes. */
export const providerLimits = { issuer: 1024, text: 255, secret: 4096, scopes: 50 }

/** A scope as OAuth 2.0 spells it (RFC 6749, section 3.3). */
export const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Claims of the protocol that never hold the name of a group. */
const neverGroups: readonly string[] = [
  ...['iss', 'aud', 'azp', 'exp', 'nbf', 'iat', 'jti', 'nonce', 'auth_time', 'at_hash', 'c_hash', 's_hash', 'sid'],
  ...['email_verified', 'phone_number_verified', 'updated_at', '_claim_names', '_claim_sources', 'hasgroups', 'cnf'],
]

/** Reason why the claim can not hold groups. Empty if it can. */
export function problemOfGroupsClaim(name: string): string {
  if (neverGroups.includes(name)) return 'is a claim of the protocol itself, which never lists groups'
  if (name !== name.trim() || !name.isWellFormed() || /\p{Cc}/u.test(name)) {
    return 'must not start or end with a space or have control characters'
  }
  const isExpression = /^(?:[$/@.]|\{)|\.\.|\.$|[[\]*]/.test(name)
  return isExpression ? 'must be the name of a claim, with dots for nested claims, such as realm_access.roles' : ''
}
