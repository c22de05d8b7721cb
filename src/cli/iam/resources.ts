// Descriptions of the resources of access management, from which their commands are generated.
import type { AccountAssociationJson } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import type { GroupInviteJson } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import type { IdentityJson } from '#gen/pinfold/iam/v2/identities_pb.ts'
import type { RoleBindingIdentityJson, RoleBindingJson } from '#gen/pinfold/iam/v2/role_bindings_pb.ts'
import type { RoleJson } from '#gen/pinfold/iam/v2/roles_pb.ts'
import { isUid } from '#lib/uid.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import { asListed, findIdentity, findNamed, groupAbove, groupOf, type Kind } from '../framework/names.ts'
import { type Columns, type Item, type Named, type Names, v1 } from '../framework/outputs.ts'
import type { Field, Resource } from '../framework/verbs.ts'

type Identity = Named & IdentityJson
type Binding = Item & RoleBindingJson
type Invite = Item & GroupInviteJson

export const description: Field = { flags: '--description <text>', summary: 'Description' }
export const rename: Field = { flags: '--name <name>', summary: 'New name', only: 'update' }
export const group = ({ uid }: Item, names: Names) => names.path(groupAbove(uid))
export const more: Columns<Item & { createTime?: string }> = {
  UID: ({ uid }) => uid,
  CREATED: ({ createTime }) => createTime,
}
export const at = (item: Named, names: Names) => [names.path(groupAbove(item.uid)), item.name].filter(Boolean).join('/')
const inGroup = ({ uid }: Item) => ({ groups: [groupAbove(uid)] })

const roleKind: Kind = { path: '/iam/v2/roles', member: 'roles', words: ['role', 'roles'] }
const bindingKind: Kind = {
  path: '/iam/v2/roleBindings',
  member: 'roleBindings',
  words: ['role binding', 'role bindings'],
  list: 'pinfold members list',
}
const inviteKind: Kind = { path: '/iam/v2/groupInvites', member: 'groupInvites', words: ['invitation', 'invitations'] }

export const findRole = (api: ApiReader, given: string): Promise<string> => findNamed(api, roleKind, given)

const claim = (name: string, member: string, what: string): Field[] => [
  { flags: `--${name} <text>`, summary: what, member: `claimMatch.${member}` },
  {
    flags: `--${name}-pattern <regex>`,
    summary: `${what}: regular expression that matches all of it`,
    member: `claimMatch.${member}Pattern`,
  },
]

/** Claims that the token of an outside issuer must have. */
export const claimFields: readonly Field[] = [
  ...claim('identity-issuer', 'issuer', 'Issuer of the tokens'),
  ...claim('subject', 'subject', 'Subject of the tokens'),
  ...claim('audience', 'audience', 'Audience of the tokens, if it is not this server'),
  {
    flags: '--claim <name=value>',
    summary: 'Further claim that the tokens must have; may be repeated',
    member: 'claimMatch.claims',
    map: true,
  },
  {
    flags: '--claim-pattern <name:regex>',
    summary: 'Further claim that must match a regular expression; may be repeated',
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
  path: '/iam/v2/identities',
  member: 'identities',
  words: ['identity', 'identities'],
  word: 'IDENTITY',
  fields: [rename, description, ...claimFields],
  columns: {
    NAME: ({ name }) => name,
    GROUP: group,
    KIND: kindOf,
    'LAST SEEN': ({ lastSeenTime }) => lastSeenTime,
  },
  more: { ...more, DESCRIPTION: ({ description }) => description },
  label: ({ name }) => name,
  at,
  json: v1({ lastSeenTime: 'lastSeen' }),
  find: findIdentity,
  parent: groupOf,
  mentions: inGroup,
  filters: [
    { flags: '--name <name>', summary: 'Only identities with this name', query: (_, name) => ({ name: String(name) }) },
    {
      flags: '--relationship <kind>',
      summary: 'Only identities that sign in this way',
      choices: Object.keys(relationships),
      query: (_, kind) => ({ relationship_type: `RELATIONSHIP_TYPE_${relationships[String(kind)]}` }),
    },
    { flags: '--expired', summary: 'Only identities whose keys have expired', query: () => ({}) },
  ],
  keep: (item, { expired, relationship }) => {
    const isPullToken = item.staticKeys?.issuer === 'pinfold-pull-token'
    if (relationship === 'pull_token' && !isPullToken) return false
    return expired !== true || (item.staticKeys?.expirationTime ?? '9') <= new Date().toISOString()
  },
}

function kindOf({ claimMatch, staticKeys, awsIdentity, servicePrincipal }: Identity): string {
  if (claimMatch) return 'claim match'
  if (staticKeys) return 'static keys'
  return awsIdentity ? 'aws' : servicePrincipal ? 'service principal' : ''
}

export const roles: Resource<Named & RoleJson> = {
  ...roleKind,
  word: 'ROLE',
  fields: [
    rename,
    description,
    {
      flags: '--capabilities <names>',
      summary: 'Capabilities of the role, separated by commas, such as repo.list,tag.list',
      list: true,
      required: true,
    },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: (item, names) => group(item, names) || '(built-in)',
    CAPABILITIES: ({ capabilities = [] }) => String(capabilities.length),
    DESCRIPTION: ({ description }) => description,
  },
  more,
  label: ({ name }) => name,
  at,
  json: v1(),
  find: findRole,
  parent: groupOf,
  mentions: inGroup,
  filters: [{ flags: '--managed', summary: 'Only built-in roles', query: () => ({ 'uidp.in_root': 'true' }) }],
}

const who = ({ name, email, uid }: RoleBindingIdentityJson = {}): string => name || email || uid || ''
const asWhat = ({ identity, role }: Binding): string => `${who(identity)} as ${who(role)}`

export const roleBindings: Resource<Binding> = {
  ...bindingKind,
  word: 'ROLE_BINDING',
  called: "Role binding: 'IDENTITY as ROLE', 'GROUP/IDENTITY as ROLE' if several groups have one, or a uid",
  fields: [
    {
      flags: '--identity <identity>',
      summary: 'Identity: name, GROUP/NAME or uid',
      member: 'identityUid',
      required: true,
      read: findIdentity,
    },
    {
      flags: '--role <role>',
      summary: 'Role: name, GROUP/NAME or uid',
      member: 'roleUid',
      required: true,
      read: findRole,
    },
  ],
  columns: { IDENTITY: ({ identity }) => who(identity), ROLE: ({ role }) => who(role), GROUP: group },
  more: { ...more, 'IDENTITY UID': ({ identity }) => identity?.uid },
  label: asWhat,
  at: (item, names) => [group(item, names), asWhat(item)].join('/'),
  json: v1(),
  find: asListed(bindingKind, asWhat, groupOf),
  parent: groupOf,
  mentions: inGroup,
  filters: [
    {
      flags: '--identity <identity>',
      summary: 'Only role bindings of this identity: name, GROUP/NAME or uid',
      query: async (api, given) => ({ identity: await findIdentity(api, String(given)) }),
    },
    {
      flags: '--role <role>',
      summary: 'Only role bindings with this role: name, GROUP/NAME or uid',
      query: async (api, given) => ({ role: await findRole(api, String(given)) }),
    },
  ],
}

/** Converts a duration in hours or days, such as `168h` or `7d`, to the form of the API. */
function ttlOf(_api: ApiReader, given: string): string {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(given) ?? []
  if (!count) throw usageError('--ttl must be a number of hours or days, such as 168h or 7d')
  return `${Number(count) * (unit === 'd' ? 86_400 : 3600)}s`
}

/** Name of an invitation: its email address. An invitation without an address has only its uid. */
const forWhom = ({ email, uid }: Invite): string => email || uid

export const invites: Resource<Invite> = {
  ...inviteKind,
  word: 'INVITE',
  called: 'Email address of the invitation, GROUP/ADDRESS if several have this address, or a uid',
  fields: [
    {
      flags: '--role <role>',
      summary: 'Role of the invited users: name, GROUP/NAME or uid',
      member: 'roleUid',
      required: true,
      read: findRole,
    },
    {
      flags: '--ttl <time>',
      summary: 'Time until the invitation expires, such as 12h or 30d; default: 7d',
      usual: '7d',
      read: ttlOf,
    },
    { flags: '--email <address>', summary: 'Email address of the only user who can accept' },
    { flags: '--single-use', summary: 'Only one user can accept the invitation' },
  ],
  columns: {
    GROUP: group,
    ROLE: ({ role, roleUid = '' }, names) => role?.name ?? names.of(roleUid),
    EMAIL: ({ email }) => email,
    EXPIRES: ({ expirationTime }) => expirationTime,
  },
  more: {
    LINK: ({ link }) => link,
    CODE: ({ code }) => code,
    UID: ({ uid }) => uid,
    'SINGLE USE': ({ singleUse }) => (singleUse ? 'yes' : ''),
  },
  label: (item) => item.code || forWhom(item),
  at: (item, names) => `${group(item, names)}/${forWhom(item)}`,
  json: v1({ expirationTime: 'expiration' }),
  find: asListed(inviteKind, forWhom, groupOf),
  parent: groupOf,
  mentions: ({ uid, roleUid = '' }) => ({ groups: [groupAbove(uid)], roles: [roleUid] }),
}

/** Links of a group to cloud accounts. A group has at most one association, so commands select it by the group. */
export const associations: Resource<Named & AccountAssociationJson> = {
  path: '/iam/v2/accountAssociations',
  member: 'accountAssociations',
  word: 'ACCOUNT_ASSOCIATION',
  words: ['cloud account', 'cloud accounts'],
  called: 'Group of the cloud accounts: ORG, ORG/FOLDER or a uid',
  fields: [],
  columns: {
    GROUP: ({ uid }, names) => names.path(uid),
    NAME: ({ name }) => name,
    AWS: ({ amazon }) => amazon?.account,
    GCP: ({ google }) => google?.projectId,
    AZURE: ({ azure }) => azure?.tenantId,
  },
  more,
  label: ({ name }) => name,
  at: ({ uid }, names) => names.path(uid),
  json: v1(),
  find: (api, given) => (isUid(given) ? Promise.resolve(given) : groupOf(api, given)),
  parent: groupOf,
  mentions: ({ uid }) => ({ groups: [uid] }),
}
