// Mappings that give roles to the groups that a provider reports.
import { apiReader } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { asListed, groupOf, type Kind } from '../framework/names.ts'
import { confirm, type Item, v1 } from '../framework/outputs.ts'
import { type Resource, removeOf, unlessMissing, verbsOf } from '../framework/verbs.ts'
import { findProvider } from './identity-providers.ts'
import { findRole, more } from './resources.ts'

type Mapping = Item & { identityProviderUid?: string; externalGroupId?: string; roleUid?: string; scope?: string }

const mappingKind: Kind = {
  path: '/iam/v2/externalGroupRoleMappings',
  member: 'externalGroupRoleMappings',
  words: ['group mapping', 'group mappings'],
  list: 'pinfold iam external-group-role-mappings list',
  above: 'PROVIDER',
}

const reported = ({ externalGroupId = '' }: Mapping): string => externalGroupId

const mappings: Resource<Mapping> = {
  ...mappingKind,
  word: 'GROUP_MAPPING',
  called: 'the external group, PROVIDER/GROUP where several providers report one of that name',
  fields: [
    {
      flags: '--external-group-id <id>',
      summary: 'The group, as the provider writes it in its tokens',
      required: true,
    },
    { flags: '--role <role>', summary: 'The role of its members', member: 'roleUid', required: true, read: findRole },
    { flags: '--scope <organisation>', summary: 'Where they have it', required: true, read: groupOf },
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

/** Deletes one mapping, or all of a provider at once. */
const remove: Command = {
  ...usual,
  arguments: [{ name: '[which]', summary: `${usual.arguments![0]!.summary}; none with --all` }],
  options: [
    { flags: '--all', summary: 'All of one provider, with --idp' },
    { flags: '--idp <provider>', summary: 'With --all: the identity provider, by name, ORG/NAME or uid' },
    ...usual.options,
  ],
  async run(terminal, options) {
    const { which, all, idp } = options
    if (all !== true) {
      if (which === undefined) throw usageError('name a group mapping, or give --all and --idp')
      return usual.run(terminal, options)
    }
    if (which !== undefined || idp === undefined) {
      throw usageError('--all deletes the group mappings of a provider: it needs --idp, and no name')
    }
    const api = await apiReader(terminal, options)
    return unlessMissing(terminal, options, async () => {
      const provider = await findProvider(api, String(idp))
      const { items } = await api.list<{ uid: string }>(mappings.path, mappings.member, {
        'uidp.children_of': provider,
      })
      await confirm(terminal, options.yes, `delete ${items.length} group mappings of ${idp}`)
      for (const { uid } of items) await api.call('DELETE', `${mappings.path}/${uid}`)
      terminal.say(`deleted ${items.length} group mappings of ${idp}`)
    })
  },
}

const place = {
  flags: '--idp <provider>',
  summary: 'The identity provider: by name, ORG/NAME or uid',
  required: true,
} as const

const listed = {
  argument: '[provider]',
  summary: 'Only those of this provider: its name, ORG/NAME, or its uid',
}

export const mappingCommands: Commands = { ...verbsOf(mappings, { place, named: false, listed }), delete: remove }
