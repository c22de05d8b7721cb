import type { Keyring } from './keyring.ts'

/** Path of the device authorization endpoint (RFC 8628). */
export const devicesPath = '/oauth/device_authorization'

/** Features of the server that its discovery documents list. */
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

/** Path of the MCP endpoint, with tools for agents. In OAuth, this endpoint is a protected resource of its own. */
export const toolsPath = '/mcp'

const resourcePath = '/.well-known/oauth-protected-resource'

/** Path of the metadata from which an MCP client without a token learns the issuer. */
export const toolsMetadataPath: string = resourcePath + toolsPath

/** Protected Resource Metadata (RFC 9728) of the resource at `path`. It names this server as the issuer of tokens. */
function protectedResource(issuer: string, path: string): object {
  return {
    resource: issuer + path,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    resource_name: 'Pinfold',
    resource_documentation: `${issuer}/docs`,
  }
}

/** Metadata documents of the issuer and of its protected resources, by path. */
export function issuerDocuments(issuer: string, keyring: Keyring, offered: Offered): Record<string, () => object> {
  return {
    '/.well-known/openid-configuration': () => discoveryDocument(issuer, keyring, offered),
    '/.well-known/jwks.json': () => keyring.jwks(),
    [resourcePath]: () => protectedResource(issuer, ''),
    [toolsMetadataPath]: () => protectedResource(issuer, toolsPath),
  }
}
