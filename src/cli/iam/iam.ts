// Who may do what: the resources of access, each with the verbs that it has. What not every command needs is loaded by its name.

import type { CommandEntry, CommandGroup } from '../shape/command.ts'
import { createOf, describeOf, listOf, removeOf, updateOf } from '../shape/verbs.ts'
import { removeOrExpired } from './expired-delete.ts'
import { folders, organizations, parentOption } from './groups.ts'
import { identities, invites, roleBindings, roles } from './resources.ts'

const ofProviders = () => import('./provider-commands.ts')

const organizationsCreate: CommandEntry = {
  name: 'create',
  summary: 'Make an organisation',
  load: async () => (await import('./organizations-create.ts')).organizationsCreate,
}

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
        {
          name: 'create',
          summary: 'Make an identity: by its claims, or for GitHub, GitLab, Kubernetes or a cloud',
          load: async () => (await import('./identities-create.ts')).identitiesCreate,
        },
        listOf(identities),
        describeOf(identities),
        updateOf(identities),
        removeOrExpired(identities, ({ staticKeys }) => staticKeys?.expirationTime ?? ''),
        {
          name: 'check',
          summary: 'Explain claim by claim whether a token would become an identity',
          load: async () => (await import('./identities-check.ts')).identitiesCheck,
        },
      ],
    },
    {
      name: 'roles',
      summary: 'Named sets of capabilities',
      commands: [
        createOf(roles, { place: parentOption }),
        {
          name: 'list',
          summary: 'List roles',
          load: async () => (await import('./roles.ts')).rolesList,
        },
        describeOf(roles),
        {
          name: 'update',
          summary: 'Change a role',
          load: async () => (await import('./roles.ts')).rolesUpdate,
        },
        removeOf(roles),
        {
          name: 'capabilities',
          summary: 'What roles are made of',
          load: async () => (await import('./roles.ts')).roleCapabilities,
        },
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
    {
      name: 'access-requests',
      summary: 'Who asks to get into an organisation',
      load: async () => (await import('./access-requests.ts')).accessRequests,
    },
    {
      name: 'identity-providers',
      summary: 'With what the people of an organisation sign in',
      load: async () => (await ofProviders()).providerCommands,
    },
    {
      name: 'external-group-role-mappings',
      summary: 'Roles for the groups that a provider reports',
      load: async () => (await ofProviders()).mappingCommands,
    },
    {
      name: 'account-associations',
      summary: 'Which accounts at clouds belong to a group',
      load: async () => (await import('./associations.ts')).associationCommands,
    },
    {
      name: 'explain',
      summary: 'Say whether an identity may do something at a place, through which roles, and what is missing',
      load: async () => (await import('./explain.ts')).explain,
    },
  ],
}
