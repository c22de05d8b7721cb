import type { Keyring } from './keyring.ts'

/** Path at which a program requests a device code (RFC 8628). */
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

/** Path of the tools for agents. In OAuth, it is a resource of its own below the URL. */
export const toolsPath = '/mcp'

const resourcePath = '/.well-known/oauth-protected-resource'

/** Path at which an agent without a token finds the issuer. */
export const toolsMetadataPath: string = resourcePath + toolsPath

/** Protected Resource Metadata (RFC 9728): issuer of the tokens for the resource at `path`. */
function protectedResource(issuer: string, path: string): object {
  return {
    resource: issuer + path,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    resource_name: 'Pinfold',
    resource_documentation: `${issuer}/docs`,
  }
}

/** Documents of the issuer and of the resources that accept its tokens, by path. */
export function issuerDocuments(issuer: string, keyring: Keyring, offered: Offered): Record<string, () => object> {
  return {
    '/.well-known/openid-configuration': () => discoveryDocument(issuer, keyring, offered),
    '/.well-known/jwks.json': () => keyring.jwks(),
    [resourcePath]: () => protectedResource(issuer, ''),
    [toolsMetadataPath]: () => protectedResource(issuer, toolsPath),
  }
}
