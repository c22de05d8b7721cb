// Commands for repositories, which are named by their paths.
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Commands } from '../framework/command.ts'
import { groupAbove, groupOf } from '../framework/names.ts'
import { oneFormats, outputOf, v1 } from '../framework/outputs.ts'
import { registryOf } from '../framework/session.ts'
import { bodyOf, describeOf, type Field, listOf, type Resource, shownOne, updateOf } from '../framework/verbs.ts'
import { imageNamed, imageNameOf, type Repo } from './image-names.ts'

const tiers = ['APPLICATION', 'BASE', 'FIPS', 'AI', 'DEVTOOLS', 'COMMERCIAL']
const fields: readonly Field[] = [
  { flags: '--description <text>', summary: 'Description' },
  {
    flags: '--tier <tier>',
    summary: 'Catalog tier; only operators can set it',
    member: 'catalogTier',
    choices: tiers,
    read: (_, tier) => `CATALOG_TIER_${tier}`,
  },
]

const repo: Resource<Repo> = {
  path: '/registry/v2/repos',
  member: 'repos',
  word: 'REPO',
  words: ['repository', 'repositories'],
  fields,
  columns: {
    REPOSITORY: ({ uid, name }, names) => `${names.path(groupAbove(uid))}/${name}`,
    UPDATED: ({ updateTime }) => updateTime,
    DESCRIPTION: ({ description }) => description,
  },
  more: { UID: ({ uid }) => uid, CREATED: ({ createTime }) => createTime },
  label: ({ uid, name }, names) => `${names.path(groupAbove(uid))}/${name}`,
  at: ({ uid, name }, names) => `${names.path(groupAbove(uid))}/${name}`,
  json: v1(),
  find: async (api, given) => (await imageNamed(api, given)).repo,
  parent: groupOf,
  mentions: ({ uid }) => ({ groups: [groupAbove(uid)] }),
  filters: [
    {
      flags: '--name <name>',
      summary: 'Only repositories with this name',
      query: (_, name) => ({ name: String(name) }),
    },
  ],
}

/** The path contains the group, so the command has no option for it. */
const create = apiCommand({
  arguments: [{ name: '<repository>', summary: 'Repository to create: ORG/NAME or ORG/FOLDER/NAME' }],
  options: [
    ...fields.map(({ flags, summary, choices }) => ({ flags, summary, ...(choices && { choices }) })),
    outputOf(oneFormats),
  ],
  async run(api, options) {
    const { path } = imageNameOf(String(options.repository), registryOf(api.session))
    const at = path.lastIndexOf('/')
    if (isUid(path) || at < 0)
      throw usageError(`no repository was created: ${path} has no organization; give ORG/NAME or ORG/FOLDER/NAME`)
    const parent = await groupOf(api, path.slice(0, at))
    const body = { name: path.slice(at + 1), ...(await bodyOf(api, fields, options)) }
    const made = (await api.call('POST', `${repo.path}/${parent}`, body)) as Repo
    return shownOne(api, repo, made)
  },
})

export const repos: Commands = { list: listOf(repo), create, describe: describeOf(repo), update: updateOf(repo) }
