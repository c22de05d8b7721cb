// Commands for organizations and folders.
import type { GroupJson } from '#gen/pinfold/iam/v2/groups_pb.ts'
import type { OptionSpec } from '../framework/command.ts'
import { groupAbove, groupOf, organizationOf } from '../framework/names.ts'
import { type Named, v1 } from '../framework/outputs.ts'
import type { Resource } from '../framework/verbs.ts'
import { description, more, rename } from './resources.ts'

type Group = Named & GroupJson

/** Next step for a group that is not empty. The commands have the group's name as the user typed it, so they can be copied. */
const below = (given: string) => {
  const lists = ['folders', 'identities', 'repos'].map((noun) => `pinfold ${noun} list --in ${given}`)
  return `delete its content first; to list it: ${lists.join(', ')}`
}

const groups = {
  path: '/iam/v2/groups',
  member: 'groups',
  fields: [rename, description],
  label: ({ name }: Group) => name,
  more,
  json: v1(),
  mentions: ({ uid }: Group) => ({ groups: [uid] }),
}

export const organizations: Resource<Group> = {
  ...groups,
  word: 'ORGANIZATION',
  words: ['organization', 'organizations'],
  called: 'Name of the organization, or a uid',
  columns: { NAME: ({ name }) => name, DESCRIPTION: ({ description }) => description },
  path: groups.path,
  at: ({ name }) => name,
  find: organizationOf,
  hints: { taken: 'choose another name; to list the organizations that you can see: pinfold orgs list', inUse: below },
  parent: async () => '',
}

export const folders: Resource<Group> = {
  ...groups,
  word: 'FOLDER',
  words: ['folder', 'folders'],
  called: 'Folder: ORG/FOLDER or a uid',
  columns: { FOLDER: ({ uid }, names) => names.path(uid), DESCRIPTION: ({ description }) => description },
  at: ({ uid }, names) => names.path(uid),
  find: groupOf,
  parent: groupOf,
  hints: { taken: 'choose another name; to list the folders: pinfold folders list', inUse: below },
  keep: ({ uid }) => groupAbove(uid) !== '',
}

/** Option for the group in which a resource is created. */
export const parentOption: OptionSpec = {
  flags: '--in <group>',
  summary: 'Organization or folder to create it in: ORG, ORG/FOLDER or a uid; default: default.group of your defaults',
  required: true,
  former: ['--parent <group>'],
  default: 'parent',
}
