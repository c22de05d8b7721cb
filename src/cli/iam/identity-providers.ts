// Identity providers, with which members of an organization sign in.
import type { ApiReader } from '../framework/api-reader.ts'
import { findNamed, groupAbove, groupOf, type Kind } from '../framework/names.ts'
import { v1 } from '../framework/outputs.ts'
import { type Resource, verbsOf } from '../framework/verbs.ts'
import { parentOption } from './groups.ts'
import { at, description, findRole, group, more, type Named, rename } from './resources.ts'

type Provider = Named & {
  defaultRole?: string
  oidc?: { issuer?: string; clientId?: string }
  scim?: { enabled?: boolean }
}

const providerKind: Kind = {
  path: '/iam/v2/identityProviders',
  member: 'identityProviders',
  words: ['identity provider', 'identity providers'],
}

export const findProvider = (api: ApiReader, given: string): Promise<string> => findNamed(api, providerKind, given)

export const identityProviders: Resource<Provider> = {
  ...providerKind,
  word: 'IDENTITY_PROVIDER',
  fields: [
    rename,
    description,
    {
      flags: '--oidc-issuer <url>',
      summary: 'The issuer, whose discovery document is read',
      member: 'oidc.issuer',
      required: true,
    },
    {
      flags: '--oidc-client-id <id>',
      summary: 'What the provider calls this server',
      member: 'oidc.clientId',
      required: true,
    },
    {
      flags: '--oidc-client-secret <secret>',
      summary: 'The secret that the provider gave out; or --oidc-pkce-enabled',
      member: 'oidc.clientSecret',
    },
    {
      flags: '--oidc-pkce-enabled',
      summary: 'Prove each sign-in by PKCE, with no secret or besides it',
      member: 'oidc.pkceEnabled',
    },
    {
      flags: '--oidc-additional-scopes <names>',
      summary: 'Asked for besides openid, such as email,profile',
      member: 'oidc.additionalScopes',
      list: true,
    },
    {
      flags: '--oidc-groups-claim <name>',
      summary: 'The claim with the groups, for group mappings',
      member: 'oidc.groupsClaim',
    },
    {
      flags: '--oidc-correlation-rule <rule>',
      summary: 'How SCIM and sign-in agree on who is who',
      member: 'oidc.correlationRule',
      only: 'create',
      choices: ['sub', 'oid'],
      read: (_, rule) => `CORRELATION_RULE_${rule.toUpperCase()}_EQUALS_EXTERNAL_ID`,
    },
    { flags: '--default-role <role>', summary: 'The role of whoever signs in with it', required: true, read: findRole },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: group,
    ISSUER: ({ oidc }) => oidc?.issuer ?? '',
    'DEFAULT ROLE': ({ defaultRole = '' }, names) => names.of(defaultRole),
  },
  more: { ...more, 'CLIENT ID': ({ oidc }) => oidc?.clientId ?? '', SCIM: ({ scim }) => (scim?.enabled ? 'on' : '') },
  label: ({ name }) => name,
  at,
  json: v1(),
  find: findProvider,
  parent: groupOf,
  mentions: ({ uid, defaultRole = '' }) => ({ groups: [groupAbove(uid)], roles: [defaultRole] }),
}

export const providerCommands = verbsOf(identityProviders, { place: parentOption })
