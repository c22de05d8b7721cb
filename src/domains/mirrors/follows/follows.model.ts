import { type FollowMode, followModes } from '#domains/registry/repo-ref.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { type SyncState, syncStates } from './sync-states.model.ts'

/** True if the mode copies content, at the latest with a pull. */
export function bringsContent(mode: FollowMode): boolean {
  return mode !== followModes.watch
}

/** Configuration of a mirror. */
export type Follow = {
  /** The uid of the repo. */
  repo: string
  /** The uid of the upstream. */
  upstream: string
  /** Path at the upstream, below its prefix. */
  path: string
  mode: FollowMode
  /** Tag names, and regular expressions in RE2 syntax for whole names. Empty means all tags. */
  tags: string[]
  /** Platforms to prefetch from an index. Empty means all platforms. */
  platforms: string[]
  intervalMs: number
  /** Time for which stored content is still served while the upstream does not answer. */
  staleForMs: number
  /** Identity that configured the mirror. Tag protection rules apply to it. */
  setter: string
  createTime: string
  updateTime: string
}

/** Progress of a mirror, with the same states as a scheduled sync. */
export type FollowProgress = {
  state: SyncState
  stateTime: string
  problem: string
  /** Number of failures in a row. */
  failures: number
  /** Time at which the last listing of all tags began. Empty before the first. */
  listTime: string
  listDue: string
  dueTime: string
}

/**
 * `checkTime` is when a check was last requested. `waiting` is the number of queued fetches, and `fetchProblem` the reason why
 * one failed. The fields of the history are the same for requests of upstream tag history.
 */
export type FollowStatus = Follow &
  FollowProgress & {
    checkTime: string
    tagCount: number
    waiting: number
    fetchProblem: string
    historyApi: HistoryApi
    histories: number
    historyProblem: string
  }

// The numbers are stored, and are those of the contract.
/** API by which an upstream serves tag history: our own, the draft of distribution-spec#606, or none. */
export const historyApis = { unknown: 0, service: 1, draft: 2, none: 3 } as const
export type HistoryApi = (typeof historyApis)[keyof typeof historyApis]
/** Most assignments that are stored from upstream tag history, for one tag and for one repository. */
export const maxReportedOfTag = 10_000
export const maxReported = 100_000

/** Progress of a new mirror, which is due at once. */
export function newProgress(now: string): FollowProgress {
  return {
    state: syncStates.queued,
    stateTime: now,
    problem: '',
    failures: 0,
    listTime: '',
    listDue: now,
    dueTime: now,
  }
}

/** State at a moment: a mirror whose due time has passed is queued. */
export function withStanding<T extends Pick<FollowProgress, 'state' | 'stateTime' | 'dueTime'>>(
  one: T,
  now: string,
): T {
  const { state, stateTime, dueTime } = one
  if (state !== syncStates.unknown || dueTime > now) return one
  return { ...one, state: syncStates.queued, stateTime: dueTime > stateTime ? dueTime : stateTime }
}

/** A watched tag. */
export type FollowedTag = {
  tag: string
  /** Start of the last check that found the digest in our tag history. Empty before the first. */
  checkedTime: string
  /** Number of checks in a row that did not find the tag. */
  missed: number
}

/** An assignment as it was observed at the upstream. Times are ISO texts; `digest` is empty for a deletion. */
export type UpstreamMove = {
  repo: string
  upstream: string
  path: string
  tag: string
  digest: string
  previousDigest: string
  time: string
  checkedBefore: string
}

export const toFollowResource = kindOf<FollowStatus>('follow')
export const toUpstreamMoveResource = kindOf<UpstreamMove>('upstream move')

export const followType = 'registry.pinfold.dev/Follow'

/** Actor in the tag history and in events: the ingester service principal of the contract. */
export const followerActor = 'SERVICE_PRINCIPAL_INGESTER'

const minuteMs = 60_000
export const usualIntervalMs = 60 * minuteMs
export const shortestIntervalMs = 5 * minuteMs
export const longestIntervalMs = 7 * 24 * 60 * minuteMs
export const usualStaleForMs = 30 * 24 * 60 * minuteMs
export const longestStaleForMs = 3650 * 24 * 60 * minuteMs
/** Time for which pulls rely on the last check of a tag. */
export const freshMs = 5 * minuteMs
/** Shortest time between two checks of a mirror that clients request. */
export const checkedAgainMs = minuteMs
export const maxTagPatterns = 100
export const maxPlatforms = 20
/** Operating system, architecture and optional variant, as image configurations name them. */
export const platformPattern = /^[a-z0-9]{1,32}\/[a-z0-9_]{1,32}(?:\/[a-z0-9.]{1,32})?$/
/** Most tags that one mirror watches. */
export const maxFollowedTags = 5000
/** Most tags in the list of an upstream. Only those that match are watched. */
export const maxListedTags = 100_000
/** Checks in a row that must miss a tag before it counts as deleted, and the time between them. */
export const missesOfDeletion = 3
export const missedAgainMs = 20 * minuteMs
