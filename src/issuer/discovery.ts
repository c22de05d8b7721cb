import type { Keyring } from './keyring.ts'

/** OpenID Provider Metadata (OpenID Connect Discovery 1.0, section 3). */
function discoveryDocument(issuer: string, keyring: Keyring): object {
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    authorization_endpoint: `${issuer}/oauth`,
    token_endpoint: `${issuer}/oauth/token`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: keyring.algorithms(),
  }
}

/** The issuer's documents by path. */
export function issuerDocuments(issuer: string, keyring: Keyring): Record<string, () => object> {
  return {
    '/.well-known/openid-configuration': () => discoveryDocument(issuer, keyring),
    '/.well-known/jwks.json': () => keyring.jwks(),
  }
}
