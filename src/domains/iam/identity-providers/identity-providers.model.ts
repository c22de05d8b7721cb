import { kindOf } from '#lib/events/event-body.ts'
import { type Fields, namedFields } from '#lib/fields.ts'
import type { ScimSettings } from './scim-settings.model.ts'

export type Oidc = {
  issuer: string
  clientId: string
  /** Scopes to ask for besides `openid`. */
  additionalScopes: string[]
  /** The claim that lists a person's external groups; empty: group mappings are off. */
  groupsClaim: string
  /** The contract's CorrelationRule. */
  correlationRule: number
  pkceEnabled: boolean
}

/** The sign-in of an organisation. Its client secret is stored beside it and leaves through no door. */
export type IdentityProvider = {
  uid: string
  name: string
  description: string
  /** What a new person is bound to at the first sign-in; empty for nothing, which only version 1 can say. */
  defaultRole: string
  oidc: Oidc
  /** Its SCIM endpoint; absent until it has a token. */
  scim?: ScimSettings | undefined
  /** Why its discovery document could not be read, and when that was tried last; undefined when it could. */
  discovery: Discovery | undefined
  createTime: string
  updateTime: string
}

export type Discovery = { problem: string; checkTime: string }

/** As a client writes it: the configuration may be missing, and may hold a secret. */
export type ProviderInput = Pick<IdentityProvider, 'name' | 'description' | 'defaultRole'> & {
  oidc?: (Oidc & { clientSecret?: string }) | undefined
}

export const aProvider = kindOf<IdentityProvider>('provider')

export const identityProviderType = 'iam.pinfold.dev/IdentityProvider'

export const identityProviderFields = {
  ...namedFields,
  defaultRole: { column: 'default_role', update: true },
  oidc: { column: 'oidc', update: true },
} as const satisfies Fields<IdentityProvider>

/** What a member is when a mask names it and the body leaves it out. */
export const emptyOidc: Oidc = {
  issuer: '',
  clientId: '',
  additionalScopes: [],
  groupsClaim: '',
  correlationRule: 0,
  pkceEnabled: false,
}

/** CorrelationRule SUB_EQUALS_EXTERNAL_ID, which an unset one means. */
export const subjectRule = 1

/** The longest issuer, client id and name of a claim or scope; the longest secret; how many scopes. */
export const providerLimits = { issuer: 1024, text: 255, secret: 4096, scopes: 50 }

/** A scope as OAuth 2.0 spells it (RFC 6749, section 3.3). */
export const scopePattern = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Claims of the protocol that never hold the name of a group. */
const neverGroups: readonly string[] = [
  ...['iss', 'aud', 'azp', 'exp', 'nbf', 'iat', 'jti', 'nonce', 'auth_time', 'at_hash', 'c_hash', 's_hash', 'sid'],
  ...['email_verified', 'phone_number_verified', 'updated_at', '_claim_names', '_claim_sources', 'hasgroups', 'cnf'],
]

/** Why no token can have groups under this name; empty when one can. */
export function problemOfGroupsClaim(name: string): string {
  if (neverGroups.includes(name)) return 'names a claim of the protocol, which lists no groups'
  if (name !== name.trim() || !name.isWellFormed() || /\p{Cc}/u.test(name)) {
    return 'must not start or end with a space or hold control characters'
  }
  const isExpression = /^(?:[$/@.]|\{)|\.\.|\.$|[[\]*]/.test(name)
  return isExpression
    ? 'must be the name of a claim, with dots between the names of objects, such as realm_access.roles'
    : ''
}
