import { kindOf } from '#lib/events/event-body.ts'
import type { Fields } from '#lib/fields.ts'
import { maxPathLength } from '#lib/oci-names.ts'

/** A registry elsewhere as one account sees it; repos of its group and below can follow what is there. */
export type Upstream = {
  uid: string
  name: string
  /** An origin, such as `https://registry.example.com`. */
  url: string
  /** Stands before every path that is followed there; empty for none. */
  prefix: string
  username: string
  hasPassword: boolean
  /** Which paths may be followed, in RE2 syntax; empty for all. */
  allow: string[]
  requestsPerSecond: number
  /** Whether a pull of what is not here makes a repo that follows it. */
  makeRepos: boolean
  createTime: string
  updateTime: string
}

/** `password` is undefined where it stays as it is. */
export type UpstreamInput = Pick<
  Upstream,
  'name' | 'url' | 'prefix' | 'username' | 'allow' | 'requestsPerSecond' | 'makeRepos'
> & { password: string }

export const anUpstream = kindOf<Upstream>('upstream')

export const upstreamType = 'registry.pinfold.dev/Upstream'

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'

/** The path of a repository elsewhere, which may have one part only. */
export const upstreamPathPattern = new RegExp(`^${component}(?:/${component})*$`)

/** What a client may set, sort by and filter on. */
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
