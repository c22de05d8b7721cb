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

/** Where agents call the API as tools: for OAuth a resource of its own, below the URL. */
export const toolsPath = '/mcp'

const resourcePath = '/.well-known/oauth-protected-resource'

/** Where an agent without a token reads who issues them. */
export const toolsMetadataPath: string = resourcePath + toolsPath

/** Protected Resource Metadata (RFC 9728): who issues the tokens for what is served below `path`. */
function protectedResource(issuer: string, path: string): object {
  return {
    resource: issuer + path,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    resource_name: 'Pinfold',
    resource_documentation: `${issuer}/docs`,
  }
}

/** The documents of the issuer, and of what its tokens open, by path. */
export function issuerDocuments(issuer: string, keyring: Keyring): Record<string, () => object> {
  return {
    '/.well-known/openid-configuration': () => discoveryDocument(issuer, keyring),
    '/.well-known/jwks.json': () => keyring.jwks(),
    [resourcePath]: () => protectedResource(issuer, ''),
    [toolsMetadataPath]: () => protectedResource(issuer, toolsPath),
  }
}
