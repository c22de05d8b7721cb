// Commands for organizations and folders.
import type { OptionSpec } from '../framework/command.ts'
import { groupAbove, groupOf, organizationOf } from '../framework/names.ts'
import { type Item, v1 } from '../framework/outputs.ts'
import type { Field, Resource } from '../framework/verbs.ts'

type Group = Item & { name: string; description?: string; createTime?: string; verified?: boolean }

const description: Field = { flags: '--description <text>', summary: 'What it is for' }
const rename: Field = { flags: '--name <name>', summary: 'Its new name', only: 'update' }

/** As a person names it, so that the commands can be copied. */
const below = (given: string) => {
  const lists = ['iam folders list', 'iam identities list', 'images repos list'].map((one) => `pinfold ${one} ${given}`)
  return `${lists.join(', ')} show what is in it; delete that first`
}

const groups = {
  path: '/iam/v2/groups',
  member: 'groups',
  fields: [rename, description],
  label: ({ name }: Group) => name,
  more: { UID: ({ uid }: Group) => uid, CREATED: ({ createTime = '' }: Group) => createTime },
  json: v1(),
  mentions: ({ uid }: Group) => ({ groups: [uid] }),
}

export const organizations: Resource<Group> = {
  ...groups,
  word: 'ORGANIZATION',
  words: ['organisation', 'organisations'],
  columns: { NAME: ({ name }) => name, DESCRIPTION: ({ description = '' }) => description },
  path: groups.path,
  at: ({ name }) => name,
  find: organizationOf,
  hints: { taken: 'take another name; pinfold iam organizations list shows those that you can see', inUse: below },
  parent: async () => '',
}

export const folders: Resource<Group> = {
  ...groups,
  word: 'FOLDER',
  words: ['folder', 'folders'],
  columns: { FOLDER: ({ uid }, names) => names.path(uid), DESCRIPTION: ({ description = '' }) => description },
  at: ({ uid }, names) => names.path(uid),
  find: groupOf,
  parent: groupOf,
  hints: { taken: 'take another name; pinfold iam folders list shows those that there are', inUse: below },
  keep: ({ uid }) => groupAbove(uid) !== '',
}

/** The option for the group of a new resource. */
export const parentOption: OptionSpec = {
  flags: '--parent <group>',
  summary: 'Where: an organisation or a folder as ORG or ORG/FOLDER, or its uid',
  required: true,
}
