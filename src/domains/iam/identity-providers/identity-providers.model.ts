import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'
import type { ScimSettings } from './scim-settings.model.ts'

export type Oidc = {
  issuer: string
  clientId: string
  /** OAuth scopes that are requested in addition to `openid`. */
  additionalScopes: string[]
  /** Claim that lists the external groups of a person. Empty if group mappings are not used. */
  groupsClaim: string
  /** Number of a CorrelationRule in the contract. */
  correlationRule: number
  pkceEnabled: boolean
}

/** Identity provider of an organization. The client secret is stored separately and is never returned. */
export type IdentityProvider = {
  uid: string
  name: string
  description: string
  /** Role that a new person gets at the first sign-in. Empty for none, which only version 1 allows. */
  defaultRole: string
  oidc: Oidc
  /** SCIM settings of the provider. Undefined until the first token is created. */
  scim?: ScimSettings | undefined
  /** Problem with the discovery document, and the time of the last attempt. Undefined if there is no problem. */
  discovery: Discovery | undefined
  createTime: string
  updateTime: string
}

export type Discovery = { problem: string; checkTime: string }

/** Provider in a request. The configuration may be missing, or may include a secret. */
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

/** Values of members that the update mask names but the request leaves out. */
export const emptyOidc: Oidc = {
  issuer: '',
  clientId: '',
  additionalScopes: [],
  groupsClaim: '',
  correlationRule: 0,
  pkceEnabled: false,
}

/** Number of SUB_EQUALS_EXTERNAL_ID in CorrelationRule of the contract. This is the default. */
export const subjectRule = 1

/** Longest issuer, client ID or other text, and secret, in characters; and most additional scopes. */
export const providerLimits = { issuer: 1024, text: 255, secret: 4096, scopes: 50 }

/** Pattern of an OAuth 2.0 scope (RFC 6749, section 3.3). */
export const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Claims of the protocol. They cannot list external groups. */
const neverGroups: readonly string[] = [
  ...['iss', 'aud', 'azp', 'exp', 'nbf', 'iat', 'jti', 'nonce', 'auth_time', 'at_hash', 'c_hash', 's_hash', 'sid'],
  ...['email_verified', 'phone_number_verified', 'updated_at', '_claim_names', '_claim_sources', 'hasgroups', 'cnf'],
]

/** Reason why the claim cannot list external groups. Empty if it can. */
export function problemOfGroupsClaim(name: string): string {
  if (neverGroups.includes(name)) return 'is a claim of the protocol itself, which never lists groups'
  if (name !== name.trim() || !name.isWellFormed() || /\p{Cc}/u.test(name)) {
    return 'must not start or end with a space or have control characters'
  }
  const isExpression = /^(?:[$/@.]|\{)|\.\.|\.$|[[\]*]/.test(name)
  return isExpression ? 'must be the name of a claim, with dots for nested claims, such as realm_access.roles' : ''
}
