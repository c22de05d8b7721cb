// Commands for upstreams, the registries from which mirrors copy.
import type { UpstreamJson } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { codes } from '#lib/errors.ts'
import { ApiError } from '../framework/api-client.ts'
import { apiReader } from '../framework/api-pages.ts'
import { failure, usageError } from '../framework/cli-error.ts'
import type { Command, Commands } from '../framework/command.ts'
import { findNamed, groupAbove, groupOf } from '../framework/names.ts'
import { type Named, v1 } from '../framework/outputs.ts'
import { secretIn } from '../framework/user-files.ts'
import { type Resource, removeOf, verbsOf, wholeNumber } from '../framework/verbs.ts'

const kind = {
  path: '/registry/v2/upstreams',
  member: 'upstreams',
  words: ['upstream', 'upstreams'],
  list: 'pinfold mirrors upstreams list',
} as const

export const upstream: Resource<Named & UpstreamJson> = {
  ...kind,
  word: 'UPSTREAM',
  fields: [
    { flags: '--name <name>', summary: 'New name', only: 'update' },
    { flags: '--url <url>', summary: 'Origin of the registry, such as https://registry.example.com', required: true },
    { flags: '--prefix <path>', summary: 'Prefix of all paths at the upstream, such as library' },
    { flags: '--username <name>', summary: 'User name at the upstream; default: anonymous' },
    {
      flags: '--password-file <file>',
      summary: 'File with the password or token of the user; /dev/stdin for standard input',
      member: 'password',
      read: (_, file) => secretIn(file, '--password-file'),
    },
    {
      flags: '--allow <pattern>',
      summary: 'Paths that can be mirrored, as a regular expression; default: all; may be repeated',
      list: true,
    },
    {
      flags: '--requests-per-second <count>',
      summary: 'Maximum number of requests per second to the host; default: 5',
      read: wholeNumber('--requests-per-second'),
    },
    {
      flags: '--make-repos <yes|no>',
      summary:
        'Create a repository that mirrors on demand when a pull names a new path (pull-through cache); default: no',
      read: (_, given) => yesOrNo(given),
    },
  ],
  columns: {
    NAME: ({ name }) => name,
    GROUP: ({ uid }, names) => names.path(groupAbove(uid)),
    URL: ({ url }) => url,
    PREFIX: ({ prefix }) => prefix,
    USERNAME: ({ username }) => username,
  },
  more: {
    UID: ({ uid }) => uid,
    ALLOW: ({ allow = [] }) => allow.join(' '),
    'REQUESTS/S': ({ requestsPerSecond }) => requestsPerSecond?.toString(),
    'PULL-THROUGH': ({ makeRepos = false }) => (makeRepos ? 'yes' : 'no'),
    CREATED: ({ createTime }) => createTime,
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
  throw usageError('--make-repos must be yes or no')
}

const parentSpec = {
  flags: '--in <group>',
  summary: 'Organization or folder whose repositories can mirror it: ORG, ORG/FOLDER or a uid',
  required: true,
  former: ['--parent <group>'],
  default: 'parent',
} as const

const removal = removeOf(upstream)

/** If mirrors prevent the deletion of an upstream, adds the command that lists them. */
const remove: Command = {
  ...removal,
  async run(terminal, options) {
    try {
      return await removal.run(terminal, options)
    } catch (error) {
      if (!(error instanceof ApiError && error.code === codes.FAILED_PRECONDITION.number)) throw error
      const group = groupAbove(await upstream.find(await apiReader(terminal, options), String(options.which)))
      throw failure(`${error.message}\npinfold mirrors list --in ${group} lists its mirrors`, error)
    }
  },
}

export const upstreams: Commands = { ...verbsOf(upstream, { parentSpec }), delete: remove }
