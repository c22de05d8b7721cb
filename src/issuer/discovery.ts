import { type Keyring, signingAlgorithm } from './keyring.ts'

/** OpenID Provider Metadata (OpenID Connect Discovery 1.0, section 3). */
function discoveryDocument(issuer: string): object {
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    authorization_endpoint: `${issuer}/oauth`,
    token_endpoint: `${issuer}/oauth/token`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [signingAlgorithm],
  }
}

/** The issuer's documents by path; `undefined` for any other path. */
export function issuerDocument(path: string, issuer: string, keyring: Keyring): object | undefined {
  if (path === '/.well-known/openid-configuration') return discoveryDocument(issuer)
  if (path === '/.well-known/jwks.json') return keyring.jwks()
  return undefined
}
