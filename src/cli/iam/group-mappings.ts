// Mappings from groups of an identity provider to roles.
import type { ExternalGroupRoleMappingJson } from '#gen/pinfold/iam/v2/external_group_role_mappings_pb.ts'
import { apiReader } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { asListed, groupOf, type Kind } from '../framework/names.ts'
import { confirm, type Item, v1 } from '../framework/outputs.ts'
import { optionalArgument, type Resource, removeOf, unlessMissing, verbsOf } from '../framework/verbs.ts'
import { findProvider } from './identity-providers.ts'
import { findRole, more } from './resources.ts'

type Mapping = Item & ExternalGroupRoleMappingJson

const mappingKind: Kind = {
  path: '/iam/v2/externalGroupRoleMappings',
  member: 'externalGroupRoleMappings',
  words: ['group mapping', 'group mappings'],
  list: 'pinfold identity-providers group-mappings list',
  above: 'PROVIDER',
}

const reported = ({ externalGroupId = '' }: Mapping): string => externalGroupId

const mappings: Resource<Mapping> = {
  ...mappingKind,
  word: 'GROUP_MAPPING',
  called: 'External group, PROVIDER/GROUP if several providers have this group, or the uid of a mapping',
  fields: [
    {
      flags: '--external-group-id <id>',
      summary: 'External group, as the tokens of the provider name it',
      required: true,
    },
    {
      flags: '--role <role>',
      summary: 'Role of the members of the group: name, GROUP/NAME or uid',
      member: 'roleUid',
      required: true,
      read: findRole,
    },
    {
      flags: '--in <group>',
      summary: 'Organization or folder of the role: ORG, ORG/FOLDER or a uid',
      member: 'scope',
      required: true,
      read: groupOf,
      former: ['--scope <group>'],
    },
  ],
  columns: {
    'EXTERNAL GROUP': reported,
    ROLE: ({ roleUid = '' }, names) => names.of(roleUid),
    SCOPE: ({ scope = '' }, names) => names.path(scope),
  },
  more,
  label: reported,
  at: (item, names) => `${names.path(item.scope ?? '')}/${reported(item)}`,
  json: v1({ identityProviderUid: 'identityProviderUidp', roleUid: 'roleUidp' }),
  find: asListed(mappingKind, reported, findProvider),
  parent: findProvider,
  mentions: ({ scope = '', roleUid = '' }) => ({ groups: [scope], roles: [roleUid] }),
}

const usual = removeOf(mappings)

/** Deletes one mapping, or all mappings of an identity provider. */
const remove: Command = {
  ...usual,
  arguments: [optionalArgument(usual, 'not with --all')],
  options: [
    { flags: '--all', summary: 'Delete all group mappings of the provider that --idp names' },
    { flags: '--idp <provider>', summary: 'Identity provider, with --all: name, ORG/NAME or uid' },
    ...usual.options,
  ],
  async run(terminal, options) {
    const { which, all, idp } = options
    if (all !== true) {
      if (which === undefined) throw usageError('nothing was deleted: name a group mapping, or give --all and --idp')
      return usual.run(terminal, options)
    }
    if (which !== undefined || idp === undefined) {
      throw usageError('nothing was deleted: --all needs --idp PROVIDER, and no group mapping as an argument')
    }
    const api = await apiReader(terminal, options)
    return unlessMissing(terminal, options, async () => {
      const provider = await findProvider(api, String(idp))
      const { items } = await api.list<{ uid: string }>(mappings.path, mappings.member, {
        'uidp.children_of': provider,
      })
      await confirm(terminal, options.yes, `delete ${items.length} group mappings of ${idp}`)
      for (const { uid } of items) await api.call('DELETE', `${mappings.path}/${uid}`)
      terminal.say(`Deleted ${items.length} group mappings of ${idp}`)
    })
  },
}

const parentSpec = {
  flags: '--idp <provider>',
  summary: 'Identity provider: name, ORG/NAME or uid',
  required: true,
} as const

const listed = {
  argument: '[provider]',
  summary: 'Only group mappings of this identity provider: name, ORG/NAME or uid',
}

export const mappingCommands: Commands = { ...verbsOf(mappings, { parentSpec, named: false, listed }), delete: remove }
