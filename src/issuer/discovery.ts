import type { Keyring } from './keyring.ts'

/** Where a program asks to be let in by a person with another device (RFC 8628). */
export const devicesPath = '/oauth/device_authorization'

/** What the server does; each of these is in its documents, and nothing else. */
export type Offered = { grants: readonly string[]; scopes: readonly string[]; devices: boolean }

/** OpenID Provider Metadata (OpenID Connect Discovery 1.0, section 3). */
function discoveryDocument(issuer: string, keyring: Keyring, { grants, scopes, devices }: Offered): object {
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    authorization_endpoint: `${issuer}/oauth`,
    token_endpoint: `${issuer}/oauth/token`,
    ...(devices && { device_authorization_endpoint: issuer + devicesPath }),
    grant_types_supported: grants,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    scopes_supported: scopes,
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    claims_parameter_supported: false,
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
export function issuerDocuments(issuer: string, keyring: Keyring, offered: Offered): Record<string, () => object> {
  return {
    '/.well-known/openid-configuration': () => discoveryDocument(issuer, keyring, offered),
    '/.well-known/jwks.json': () => keyring.jwks(),
    [resourcePath]: () => protectedResource(issuer, ''),
    [toolsMetadataPath]: () => protectedResource(issuer, toolsPath),
  }
}
