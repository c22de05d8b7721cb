import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { maxPathLength } from '#lib/oci-names.ts'

/**
 * Another registry, and the account that this server uses there. Repositories in the group of the upstream, and below it, can
 * mirror from it.
 */
export type Upstream = {
  uid: string
  name: string
  /** Origin of the registry, such as `https://registry.example.com`. */
  url: string
  /** Prefix of all mirrored paths at the upstream. Empty if there is none. */
  prefix: string
  username: string
  hasPassword: boolean
  /** Patterns in RE2 syntax for paths that may be mirrored. Empty means all paths. */
  allow: string[]
  requestsPerSecond: number
  /** True if a pull of a missing image creates a repository that mirrors it. */
  makeRepos: boolean
  createTime: string
  updateTime: string
}

/** Upstream in a request. If `password` is undefined, the stored password is kept. */
export type UpstreamInput = Pick<
  Upstream,
  'name' | 'url' | 'prefix' | 'username' | 'allow' | 'requestsPerSecond' | 'makeRepos'
> & { password: string }

export const toUpstreamResource = kindOf<Upstream>('upstream')

export const upstreamType = 'registry.pinfold.dev/Upstream'

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'

/** Path of a repository at another registry. It may have only one component. */
export const upstreamPathPattern = new RegExp(`^${component}(?:/${component})*$`)

/** Fields that a client can set or sort by, and their valid values. */
export const upstreamFields = {
  uid: { column: 'uid', sort: true },
  name: {
    column: 'name',
    sort: true,
    update: true,
    required: true,
    pattern: /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/,
    maxLength: 255,
  },
  url: { column: 'url', update: true, required: true, maxLength: 300 },
  prefix: {
    column: 'prefix',
    update: true,
    pattern: new RegExp(`^(?:${component}(?:/${component})*)?$`),
    maxLength: maxPathLength,
  },
  username: { column: 'username', update: true, pattern: /^[^:\p{Cc}]*$/u, maxLength: 512 },
  allow: { column: 'allow', update: true },
  requestsPerSecond: { column: 'requests_per_second', update: true },
  makeRepos: { column: 'make_repos', update: true },
  createTime: { column: 'create_time', sort: true },
  updateTime: { column: 'update_time', sort: true },
} as const satisfies Fields<Upstream>

export const maxUpstreams = 100
export const maxAllowed = 20
export const maxPassword = 16_384
export const usualRequestsPerSecond = 5
export const maxRequestsPerSecond = 20
