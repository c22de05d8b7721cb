// Checks of the discovery document of an identity provider (OpenID Connect Discovery 1.0).
import { type FieldViolation, refuseIfAny } from '#lib/errors.ts'
import { type Outgoing, OutgoingError, type OutgoingReason } from '#lib/net/outgoing.ts'

/** Reasons for which the server will never request this URL. For other reasons, a later attempt may succeed. */
const permanent: readonly OutgoingReason[] = ['bad-url', 'insecure', 'private-address']

/** Settings with which the operator can allow the request, by reason. */
const settings: Partial<Record<OutgoingReason, string>> = {
  insecure: 'the operator can allow it with PINFOLD_ALLOW_INSECURE_ISSUERS=on',
  'private-address': 'the operator can allow it in PINFOLD_ISSUERS_PRIVATE',
}

/**
 * Reads and checks the discovery document of a provider. If the document cannot be read, returns the reason; otherwise returns an
 * empty text. Throws INVALID_ARGUMENT if the provider does not support our sign-in, or lacks S256 although `pkce` is set. Throws
 * INVALID_ARGUMENT if the server never requests its address. Must not be called inside of a transaction, since it waits for the
 * network.
 */
export async function checkDiscovery(outgoing: Outgoing, issuer: string, pkce: boolean): Promise<string> {
  const metadata = await readMetadata(outgoing, issuer)
  if (typeof metadata === 'string') return metadata
  const lacks = (member: string, value: string) => {
    const listed = metadata[member]
    return Array.isArray(listed) && !listed.includes(value)
  }
  const problems: FieldViolation[] = []
  const addProblem = (field: string, description: string) => problems.push({ field: `oidc.${field}`, description })
  if (metadata.issuer !== issuer) addProblem('issuer', 'differs from the issuer in its discovery document')
  for (const endpoint of ['authorization_endpoint', 'token_endpoint', 'jwks_uri']) {
    if (typeof metadata[endpoint] !== 'string') addProblem('issuer', `has no ${endpoint} in its discovery document`)
  }
  if (lacks('grant_types_supported', 'authorization_code') || lacks('response_types_supported', 'code')) {
    addProblem('issuer', 'does not support the authorization code grant')
  }
  // Many providers support PKCE without listing its methods. So a document without this list is accepted.
  if (pkce && lacks('code_challenge_methods_supported', 'S256')) {
    addProblem('pkce_enabled', 'must be off, because the provider does not support S256')
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
      refuseIfAny([{ field: 'oidc.issuer', description: `cannot be used: ${error.message}${setting}` }])
    }
    if (!(error instanceof OutgoingError)) throw error
    return `the discovery document cannot be read: ${error.message}`
  }
}
