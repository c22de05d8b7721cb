// What people sign in with, by command.
import type { CommandGroup } from '../shape/command.ts'
import { createOf, describeOf, listOf, removeOf, updateOf } from '../shape/verbs.ts'
import { parentOption } from './groups.ts'
import { mappingsDelete } from './mappings-delete.ts'
import { identityProviders, mappings } from './provider-resources.ts'
import { scim } from './scim.ts'

const ofProvider = {
  flags: '--idp <provider>',
  summary: 'The identity provider: by name, ORG/NAME or uid',
  required: true,
} as const

export const mappingCommands: CommandGroup = {
  name: 'external-group-role-mappings',
  summary: 'Roles for the groups that a provider reports',
  commands: [
    createOf(mappings, { place: ofProvider, named: false }),
    listOf(mappings, {
      argument: '[provider]',
      summary: 'Only those of this provider: its name, ORG/NAME, or its uid',
    }),
    describeOf(mappings),
    mappingsDelete,
  ],
}

export const providerCommands: CommandGroup = {
  name: 'identity-providers',
  summary: 'With what the people of an organisation sign in',
  commands: [
    createOf(identityProviders, { place: parentOption }),
    listOf(identityProviders),
    describeOf(identityProviders),
    updateOf(identityProviders),
    removeOf(identityProviders),
    { ...mappingCommands, name: 'group-mappings' },
    scim,
  ],
}
