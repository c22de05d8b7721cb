// Registries elsewhere that repositories follow.
import { readFileSync } from 'node:fs'
import { codes } from '#lib/errors.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiReader } from '../framework/api-pages.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { findNamed, groupAbove, groupOf } from '../framework/names.ts'
import { type Item, v1 } from '../framework/outputs.ts'
import { type Resource, removeOf, verbsOf, wholeNumber } from '../framework/verbs.ts'

type Upstream = Item & {
  name: string
  url: string
  prefix?: string
  username?: string
  allow?: string[]
  requestsPerSecond?: number
  makeRepos?: boolean
  createTime?: string
}

const kind = {
  path: '/registry/v2/upstreams',
  member: 'upstreams',
  words: ['upstream', 'upstreams'],
  list: 'pinfold images upstreams list',
} as const

export const upstream: Resource<Upstream> = {
  ...kind,
  word: 'UPSTREAM',
  fields: [
    { flags: '--name <name>', summary: 'Its new name', only: 'update' },
    { flags: '--url <url>', summary: 'Its origin, such as https://registry.example.com', required: true },
    { flags: '--prefix <path>', summary: 'Stands before every path there, such as library' },
    { flags: '--username <name>', summary: 'The account to ask with; nobody unless given' },
    {
      flags: '--password-file <file>',
      summary: 'A file with its password or token; /dev/stdin reads it from there',
      member: 'password',
      read: (_, file) => passwordIn(file),
    },
    {
      flags: '--allow <pattern>',
      summary: 'Which paths may be followed, as regular expressions; all unless given',
      list: true,
    },
    {
      flags: '--requests-per-second <count>',
      summary: 'How often its host is asked at most; 5 unless given',
      read: wholeNumber('--requests-per-second'),
    },
    {
      flags: '--make-repos <yes|no>',
      summary: 'Whether pulls of paths that are not here make repositories that follow it on demand; no unless given',
      read: (_, given) => yesOrNo(given),
    },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: ({ uid }, names) => names.path(groupAbove(uid)),
    URL: ({ url }) => url,
    PREFIX: ({ prefix = '' }) => prefix,
    USERNAME: ({ username = '' }) => username,
  },
  more: {
    UID: ({ uid }) => uid,
    ALLOW: ({ allow = [] }) => allow.join(' '),
    'REQUESTS/S': ({ requestsPerSecond }) => String(requestsPerSecond ?? ''),
    'MAKES REPOSITORIES': ({ makeRepos = false }) => (makeRepos ? 'yes' : 'no'),
    CREATED: ({ createTime = '' }) => createTime,
  },
  label: ({ name }) => name,
  at: ({ uid, name }, names) => `${names.path(groupAbove(uid))}/${name}`,
  json: v1(),
  find: (api, given) => findNamed(api, kind, given),
  parent: groupOf,
  mentions: ({ uid }) => ({ groups: [groupAbove(uid)] }),
}

function yesOrNo(given: string): boolean {
  if (given === 'yes' || given === 'no') return given === 'yes'
  throw usageError('--make-repos takes yes or no')
}

function passwordIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw usageError(`${file} cannot be read`)
  }
}

const place = {
  flags: '--parent <group>',
  summary: 'The group whose repositories may follow it',
  required: true,
} as const

const removal = removeOf(upstream)

/** After a refused deletion, names the command that lists the mirrors of the upstream. */
const remove: Command = {
  ...removal,
  async run(terminal, options) {
    try {
      return await removal.run(terminal, options)
    } catch (error) {
      if (!(error instanceof ApiError && error.code === codes.FAILED_PRECONDITION.number)) throw error
      const group = groupAbove(await upstream.find(await apiReader(terminal, options), String(options.which)))
      throw failure(`${error.message}\npinfold images repos following ${group} shows which`, error)
    }
  },
}

export const upstreams: Commands = { ...verbsOf(upstream, { place }), delete: remove }
