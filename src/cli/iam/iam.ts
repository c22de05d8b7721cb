// Who may do what: the resources of access, each with the verbs that it has.

import type { CommandGroup } from '../shape/command.ts'
import { createOf, describeOf, listOf, removeOf, updateOf } from '../shape/verbs.ts'
import { accessRequests } from './access-requests.ts'
import { associationCommands } from './associations.ts'
import { removeOrExpired } from './expired-delete.ts'
import { explain } from './explain.ts'
import { folders, organizations, parentOption } from './groups.ts'
import { identitiesCheck } from './identities-check.ts'
import { identitiesCreate } from './identities-create.ts'
import { mappingsDelete } from './mappings-delete.ts'
import { organizationsCreate } from './organizations-create.ts'
import { identityProviders, mappings } from './provider-resources.ts'
import { identities, invites, roleBindings, roles } from './resources.ts'
import { roleCapabilities, rolesList, rolesUpdate } from './roles.ts'
import { scim } from './scim.ts'

const ofProvider = {
  flags: '--idp <provider>',
  summary: 'The identity provider: by name, ORG/NAME or uid',
  required: true,
} as const

const mappingCommands = [
  createOf(mappings, { place: ofProvider, named: false }),
  listOf(mappings, { argument: '[provider]', summary: 'Only those of this provider: its name, ORG/NAME, or its uid' }),
  describeOf(mappings),
  mappingsDelete,
]

export const iam: CommandGroup = {
  name: 'iam',
  summary: 'Organisations, folders, identities, roles and who has them',
  commands: [
    {
      name: 'organizations',
      summary: 'Organisations: what stands at the top',
      commands: [
        organizationsCreate,
        listOf(organizations, { summary: '', query: { 'uidp.in_root': 'true' } }),
        describeOf(organizations),
        updateOf(organizations),
        removeOf(organizations, ' that is empty'),
      ],
    },
    {
      name: 'folders',
      summary: 'Folders, in an organisation or in each other',
      commands: [
        createOf(folders, { place: parentOption }),
        listOf(folders),
        describeOf(folders),
        updateOf(folders),
        removeOf(folders, ' that is empty'),
      ],
    },
    {
      name: 'identities',
      summary: 'Whom tokens can act as: workloads and people',
      commands: [
        identitiesCreate,
        listOf(identities),
        describeOf(identities),
        updateOf(identities),
        removeOrExpired(identities, ({ staticKeys }) => staticKeys?.expirationTime ?? ''),
        identitiesCheck,
      ],
    },
    {
      name: 'roles',
      summary: 'Named sets of capabilities',
      commands: [
        createOf(roles, { place: parentOption }),
        rolesList,
        describeOf(roles),
        rolesUpdate,
        removeOf(roles),
        roleCapabilities,
      ],
    },
    {
      name: 'role-bindings',
      summary: 'Which identity has which role, and where',
      commands: [
        createOf(roleBindings, { place: parentOption, named: false }),
        listOf(roleBindings),
        describeOf(roleBindings),
        updateOf(roleBindings),
        removeOf(roleBindings),
      ],
    },
    {
      name: 'invites',
      summary: 'Codes by which people join a group',
      commands: [
        createOf(invites, { place: parentOption, named: false }),
        listOf(invites),
        describeOf(invites),
        removeOrExpired(invites, ({ expirationTime = '' }) => expirationTime),
      ],
    },
    accessRequests,
    {
      name: 'identity-providers',
      summary: 'With what the people of an organisation sign in',
      commands: [
        createOf(identityProviders, { place: parentOption }),
        listOf(identityProviders),
        describeOf(identityProviders),
        updateOf(identityProviders),
        removeOf(identityProviders),
        { name: 'group-mappings', summary: 'Roles for the groups that a provider reports', commands: mappingCommands },
        scim,
      ],
    },
    {
      name: 'external-group-role-mappings',
      summary: 'Roles for the groups that a provider reports',
      commands: mappingCommands,
    },
    {
      name: 'account-associations',
      summary: 'Which accounts at clouds belong to a group',
      commands: associationCommands,
    },
    explain,
  ],
}
