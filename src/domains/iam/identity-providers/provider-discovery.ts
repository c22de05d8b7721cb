// What an identity provider must publish before an organisation can sign in with it (OpenID Connect Discovery 1.0).
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { type Outgoing, OutgoingError, type OutgoingReason } from '#lib/net/outgoing.ts'

/** These say that the URL is one that we never ask; the others may be gone with the next attempt. */
const permanent: readonly OutgoingReason[] = ['bad-url', 'insecure', 'private-address']

/** What lets the server ask there all the same. */
const settings: Partial<Record<OutgoingReason, string>> = {
  insecure: 'PINFOLD_ALLOW_INSECURE_ISSUERS=on lets the server ask it',
  'private-address': 'PINFOLD_ISSUERS_PRIVATE lists those that the server may ask',
}

/**
 * Asks the provider. INVALID_ARGUMENT for one that cannot be signed in with, that says it has no S256 although `pkce` is
 * wanted, or that we never ask, such as one at a private address. Answers why its document cannot be read, with an empty
 * text when it can. Never call it inside a transaction.
 */
export async function checkDiscovery(outgoing: Outgoing, issuer: string, pkce: boolean): Promise<string> {
  const metadata = await readMetadata(outgoing, issuer)
  if (typeof metadata === 'string') return metadata
  const lacks = (member: string, value: string) => {
    const listed = metadata[member]
    return Array.isArray(listed) && !listed.includes(value)
  }
  const problems: FieldViolation[] = []
  const say = (field: string, description: string) => problems.push({ field: `oidc.${field}`, description })
  if (metadata.issuer !== issuer) say('issuer', 'is not what the discovery document there calls itself')
  for (const endpoint of ['authorization_endpoint', 'token_endpoint', 'jwks_uri']) {
    if (typeof metadata[endpoint] !== 'string') say('issuer', `has no ${endpoint} in its discovery document`)
  }
  if (lacks('grant_types_supported', 'authorization_code') || lacks('response_types_supported', 'code')) {
    say('issuer', 'does not offer the authorization code grant')
  }
  // A document without the list says nothing about PKCE, and many providers that have it do not list it.
  if (pkce && lacks('code_challenge_methods_supported', 'S256')) {
    say('pkce_enabled', 'cannot be on: the provider says that it has no S256')
  }
  refuseIfAny(problems)
  return ''
}

async function readMetadata(outgoing: Outgoing, issuer: string): Promise<Record<string, unknown> | string> {
  try {
    const document = await outgoing.getJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
    return (document ?? {}) as Record<string, unknown>
  } catch (error) {
    if (error instanceof OutgoingError && permanent.includes(error.reason)) {
      const setting = settings[error.reason] ? `; ${settings[error.reason]}` : ''
      refuseIfAny([{ field: 'oidc.issuer', description: `cannot be asked: ${error.message}${setting}` }])
    }
    if (!(error instanceof OutgoingError)) throw error
    return `the discovery document cannot be read: ${error.message}`
  }
}
