// The resources of access, a row each.
import { isUid } from '#lib/uid.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import { CliError, exitCodes } from '../shape/command.ts'
import { findNamed, groupAbove, groupOf, type Kind } from '../shape/names.ts'
import type { Columns, Item, Names } from '../shape/outputs.ts'
import { v1 } from '../shape/v1-names.ts'
import { type Field, onlyUid, type Resource } from '../shape/verbs.ts'

type Named = Item & { name: string; description?: string; createTime?: string }
type Identity = Named & {
  lastSeenTime?: string
  email?: string
  claimMatch?: object
  staticKeys?: { expirationTime?: string }
  awsIdentity?: object
  servicePrincipal?: string
}
type Role = Named & { capabilities?: string[] }
type Part = { uid?: string; name?: string; email?: string }
type Binding = Item & { identity?: Part; group?: Part; role?: Part; createTime?: string }
type Invite = Item & {
  roleUid?: string
  role?: Part
  email?: string
  expirationTime?: string
  singleUse?: boolean
  code?: string
  keyId?: string
}
type Provider = Named & {
  defaultRole?: string
  oidc?: { issuer?: string; clientId?: string }
  scim?: { enabled?: boolean }
}
type Mapping = Item & { identityProviderUid?: string; externalGroupId?: string; roleUid?: string; scope?: string }

const description: Field = { flags: '--description <text>', summary: 'What it is for', member: 'description' }
const rename: Field = { flags: '--name <name>', summary: 'Its new name', member: 'name', only: 'update' }
const group = ({ uid }: Item, names: Names) => names.path(groupAbove(uid))
const more: Columns<Item & { createTime?: string }> = {
  UID: ({ uid }) => uid,
  CREATED: ({ createTime = '' }) => createTime,
}
const at = (item: Item & { name: string }, names: Names) =>
  [names.path(groupAbove(item.uid)), item.name].filter(Boolean).join('/')
const inGroup = ({ uid }: Item) => ({ groups: [groupAbove(uid)] })

const identityKind: Kind = { path: '/iam/v2/identities', member: 'identities', words: ['identity', 'identities'] }
const roleKind: Kind = { path: '/iam/v2/roles', member: 'roles', words: ['role', 'roles'] }
const providerKind: Kind = {
  path: '/iam/v2/identityProviders',
  member: 'identityProviders',
  words: ['identity provider', 'identity providers'],
}

export const findRole = (api: ApiReader, given: string): Promise<string> => findNamed(api, roleKind, given)
export const findIdentity = (api: ApiReader, given: string): Promise<string> => findNamed(api, identityKind, given)
export const findProvider = (api: ApiReader, given: string): Promise<string> => findNamed(api, providerKind, given)

const claim = (name: string, member: string, what: string): Field[] => [
  { flags: `--${name} <text>`, summary: `${what}, exactly`, member: `claimMatch.${member}` },
  {
    flags: `--${name}-pattern <regex>`,
    summary: `${what}, as a whole by a regular expression`,
    member: `claimMatch.${member}Pattern`,
  },
]

/** What the token of an outside issuer must say. */
export const claimFields: readonly Field[] = [
  ...claim('identity-issuer', 'issuer', 'The issuer of the tokens'),
  ...claim('subject', 'subject', 'The subject of the tokens'),
  ...claim('audience', 'audience', 'The audience of the tokens, unless it is this server'),
  {
    flags: '--claim <name=value>',
    summary: 'A further claim, exactly; may be repeated',
    member: 'claimMatch.claims',
    map: true,
  },
  {
    flags: '--claim-pattern <name:regex>',
    summary: 'A further claim, by a regular expression; may be repeated',
    member: 'claimMatch.claimPatterns',
    map: true,
  },
]

const relationships: Record<string, string> = {
  claim_match: 'CLAIM_MATCH',
  static: 'STATIC',
  aws: 'AWS_IDENTITY',
  service_principal: 'SERVICE_PRINCIPAL',
  pull_token: 'STATIC',
}

export const identities: Resource<Identity> = {
  ...identityKind,
  word: 'IDENTITY',
  fields: [rename, description, ...claimFields],
  columns: {
    NAME: ({ name }) => name,
    GROUP: group,
    KIND: kindOf,
    'LAST SEEN': ({ lastSeenTime = '' }) => lastSeenTime,
  },
  more: { ...more, DESCRIPTION: ({ description = '' }) => description },
  label: ({ name }) => name,
  at,
  json: v1({ lastSeenTime: 'lastSeen' }),
  find: findIdentity,
  parent: groupOf,
  mentions: inGroup,
  filters: [
    { flags: '--name <name>', summary: 'Only those of this name', query: (_, name) => ({ name: String(name) }) },
    {
      flags: '--relationship <kind>',
      summary: 'Only those that sign in this way',
      choices: Object.keys(relationships),
      query: (_, kind) => ({ relationship_type: `RELATIONSHIP_TYPE_${relationships[String(kind)]}` }),
    },
    { flags: '--expired', summary: 'Only those whose keys have expired', query: () => ({}) },
  ],
  keep: (item, { expired, relationship }) => {
    const isPullToken = (item.staticKeys as { issuer?: string } | undefined)?.issuer === 'pinfold-pull-token'
    if (relationship === 'pull_token' && !isPullToken) return false
    return expired !== true || (item.staticKeys?.expirationTime ?? '9') <= new Date().toISOString()
  },
}

function kindOf({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Identity): string {
  if (claimMatch) return 'claim match'
  if (staticKeys) return 'static keys'
  return awsIdentity ? 'aws' : servicePrincipal ? 'service principal' : ''
}

export const roles: Resource<Role> = {
  ...roleKind,
  word: 'ROLE',
  fields: [
    rename,
    description,
    {
      flags: '--capabilities <names>',
      summary: 'What it allows, such as repo.list,tag.list; an update replaces them',
      member: 'capabilities',
      list: true,
      required: true,
    },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: (item, names) => group(item, names) || '(built-in)',
    CAPABILITIES: ({ capabilities = [] }) => String(capabilities.length),
    DESCRIPTION: ({ description = '' }) => description,
  },
  more,
  label: ({ name }) => name,
  at,
  json: v1(),
  find: findRole,
  parent: groupOf,
  mentions: inGroup,
  filters: [{ flags: '--managed', summary: 'Only the built-in ones', query: () => ({ 'uidp.in_root': 'true' }) }],
}

const who = ({ name, email, uid }: Part = {}): string => name || email || uid || ''

export const roleBindings: Resource<Binding> = {
  path: '/iam/v2/roleBindings',
  member: 'roleBindings',
  word: 'ROLE_BINDING',
  words: ['role binding', 'role bindings'],
  fields: [
    {
      flags: '--identity <identity>',
      summary: 'Who: by name, GROUP/NAME or uid',
      member: 'identityUid',
      required: true,
      read: findIdentity,
    },
    {
      flags: '--role <role>',
      summary: 'Which role: by name, GROUP/NAME or uid',
      member: 'roleUid',
      required: true,
      read: findRole,
    },
  ],
  columns: { IDENTITY: ({ identity }) => who(identity), ROLE: ({ role }) => who(role), GROUP: group },
  more: { ...more, 'IDENTITY UID': ({ identity }) => identity?.uid ?? '' },
  label: ({ identity, role }) => `${who(identity)} as ${who(role)}`,
  at: (item, names) => [group(item, names), `${who(item.identity)} as ${who(item.role)}`].join('/'),
  json: v1(),
  find: onlyUid,
  parent: groupOf,
  mentions: inGroup,
  filters: [
    {
      flags: '--identity <identity>',
      summary: 'Only those of this identity',
      query: async (api, given) => ({ identity: await findIdentity(api, String(given)) }),
    },
    {
      flags: '--role <role>',
      summary: 'Only those of this role',
      query: async (api, given) => ({ role: await findRole(api, String(given)) }),
    },
  ],
}

/** Hours, as `168h`, or days. */
function ttlOf(_api: ApiReader, given: string): string {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(given) ?? []
  if (!count) throw new CliError(exitCodes.usage, '--ttl must be hours or days, such as 168h or 7d')
  return `${Number(count) * (unit === 'd' ? 86_400 : 3600)}s`
}

export const invites: Resource<Invite> = {
  path: '/iam/v2/groupInvites',
  member: 'groupInvites',
  word: 'INVITE',
  words: ['invite', 'invites'],
  fields: [
    { flags: '--role <role>', summary: 'The role that they get', member: 'roleUid', required: true, read: findRole },
    {
      flags: '--ttl <time>',
      summary: 'How long it is good for, such as 168h or 7d',
      member: 'ttl',
      required: true,
      read: ttlOf,
    },
    { flags: '--email <address>', summary: 'Only whoever has this address', member: 'email' },
    { flags: '--single-use', summary: 'Good for one person', member: 'singleUse' },
  ],
  columns: {
    GROUP: group,
    ROLE: ({ role, roleUid = '' }, names) => role?.name ?? names.of(roleUid),
    EMAIL: ({ email = '' }) => email,
    EXPIRES: ({ expirationTime = '' }) => expirationTime,
  },
  more: {
    CODE: ({ code = '' }) => code,
    UID: ({ uid }) => uid,
    'SINGLE USE': ({ singleUse }) => (singleUse ? 'yes' : ''),
  },
  label: ({ code, keyId, uid }) => code || keyId || uid,
  at: (item, names) => `${group(item, names)}/${item.email || item.keyId || item.uid}`,
  json: v1({ expirationTime: 'expiration' }),
  find: onlyUid,
  parent: groupOf,
  mentions: ({ uid, roleUid = '' }) => ({ groups: [groupAbove(uid)], roles: [roleUid] }),
}

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
    {
      flags: '--default-role <role>',
      summary: 'The role of whoever signs in with it',
      member: 'defaultRole',
      required: true,
      read: findRole,
    },
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

export const mappings: Resource<Mapping> = {
  path: '/iam/v2/externalGroupRoleMappings',
  member: 'externalGroupRoleMappings',
  word: 'GROUP_MAPPING',
  words: ['group mapping', 'group mappings'],
  fields: [
    {
      flags: '--external-group-id <id>',
      summary: 'The group, as the provider writes it in its tokens',
      member: 'externalGroupId',
      required: true,
    },
    { flags: '--role <role>', summary: 'The role of its members', member: 'roleUid', required: true, read: findRole },
    { flags: '--scope <organisation>', summary: 'Where they have it', member: 'scope', required: true, read: groupOf },
  ],
  columns: {
    'EXTERNAL GROUP': ({ externalGroupId = '' }) => externalGroupId,
    ROLE: ({ roleUid = '' }, names) => names.of(roleUid),
    SCOPE: ({ scope = '' }, names) => names.path(scope),
  },
  more,
  label: ({ externalGroupId = '' }) => externalGroupId,
  at: ({ externalGroupId = '', scope = '' }, names) => `${names.path(scope)}/${externalGroupId}`,
  json: v1({ identityProviderUid: 'identityProviderUidp', roleUid: 'roleUidp' }),
  find: onlyUid,
  parent: findProvider,
  mentions: ({ scope = '', roleUid = '' }) => ({ groups: [scope], roles: [roleUid] }),
}

type Association = Named & {
  amazon?: { account?: string }
  google?: { projectId?: string }
  azure?: { tenantId?: string }
}

/** One for each group, which is how it is named. */
export const associations: Resource<Association> = {
  path: '/iam/v2/accountAssociations',
  member: 'accountAssociations',
  word: 'ACCOUNT_ASSOCIATION',
  words: ['account association', 'account associations'],
  fields: [],
  columns: {
    GROUP: ({ uid }, names) => names.path(uid),
    NAME: ({ name }) => name,
    AWS: ({ amazon }) => amazon?.account ?? '',
    GCP: ({ google }) => google?.projectId ?? '',
    AZURE: ({ azure }) => azure?.tenantId ?? '',
  },
  more,
  label: ({ name }) => name,
  at: ({ uid }, names) => names.path(uid),
  json: v1(),
  find: (api, given) => (isUid(given) ? Promise.resolve(given) : groupOf(api, given)),
  parent: groupOf,
  mentions: ({ uid }) => ({ groups: [uid] }),
}
