// Identity providers for the sign-in of members.
import type { IdentityProviderJson } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { findNamed, groupAbove, groupOf, type Kind } from '../framework/names.ts'
import { type Named, v1 } from '../framework/outputs.ts'
import { type Resource, verbsOf } from '../framework/verbs.ts'
import { parentOption } from './groups.ts'
import { at, description, findRole, group, more, rename } from './resources.ts'

const providerKind: Kind = {
  path: '/iam/v2/identityProviders',
  member: 'identityProviders',
  words: ['identity provider', 'identity providers'],
}

export const findProvider = (api: ApiReader, given: string): Promise<string> => findNamed(api, providerKind, given)

export const identityProviders: Resource<Named & IdentityProviderJson> = {
  ...providerKind,
  word: 'IDENTITY_PROVIDER',
  fields: [
    rename,
    description,
    {
      flags: '--oidc-issuer <url>',
      summary: 'Issuer URL of the provider, with an OpenID Connect discovery document',
      member: 'oidc.issuer',
      required: true,
    },
    {
      flags: '--oidc-client-id <id>',
      summary: 'Client ID of this server at the provider',
      member: 'oidc.clientId',
      required: true,
    },
    {
      flags: '--oidc-client-secret <secret>',
      summary: 'Client secret of this server; not needed with --oidc-pkce-enabled',
      member: 'oidc.clientSecret',
    },
    {
      flags: '--oidc-pkce-enabled',
      summary: 'Use PKCE for each sign-in, with or without a client secret',
      member: 'oidc.pkceEnabled',
    },
    {
      flags: '--oidc-additional-scopes <names>',
      summary: 'OAuth scopes to request besides openid, separated by commas, such as email,profile',
      member: 'oidc.additionalScopes',
      list: true,
    },
    {
      flags: '--oidc-groups-claim <name>',
      summary: 'Claim with the groups of the user, for group mappings',
      member: 'oidc.groupsClaim',
    },
    {
      flags: '--oidc-correlation-rule <rule>',
      summary: 'Claim of the token that equals externalId of the SCIM user',
      member: 'oidc.correlationRule',
      only: 'create',
      choices: ['sub', 'oid'],
      read: (_, rule) => `CORRELATION_RULE_${rule.toUpperCase()}_EQUALS_EXTERNAL_ID`,
    },
    {
      flags: '--default-role <role>',
      summary: 'Role of users who sign in with the provider: name, GROUP/NAME or uid',
      required: true,
      read: findRole,
    },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: group,
    ISSUER: ({ oidc }) => oidc?.issuer,
    'DEFAULT ROLE': ({ defaultRole = '' }, names) => names.of(defaultRole),
  },
  more: { ...more, 'CLIENT ID': ({ oidc }) => oidc?.clientId, SCIM: ({ scim }) => (scim?.enabled ? 'on' : '') },
  label: ({ name }) => name,
  at,
  json: v1(),
  find: findProvider,
  parent: groupOf,
  mentions: ({ uid, defaultRole = '' }) => ({ groups: [groupAbove(uid)], roles: [defaultRole] }),
}

export const providerCommands = verbsOf(identityProviders, { parentSpec: parentOption })
