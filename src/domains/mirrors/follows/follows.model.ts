import { type FollowMode, followModes } from '#domains/registry/repo-ref.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { type SyncState, syncStates } from './sync-states.model.ts'

/** True if mirrors with this mode store content of the upstream, at the latest when it is pulled. */
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
  /** Patterns of the mirrored tags: tag names, and regular expressions in RE2 syntax for whole names. Empty means all tags. */
  tags: string[]
  /** Platforms to prefetch from an index. Empty means all platforms. */
  platforms: string[]
  intervalMs: number
  /** Time for which stored tags are still served if the upstream does not answer. */
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
  /** Start of the last list of all tags. Empty before the first list. */
  listTime: string
  listDue: string
  dueTime: string
}

/**
 * `checkTime` is the time of the last request for a check. `waiting` is the number of queued fetches, and `fetchProblem` is the
 * reason why one of them failed. `histories` and `historyProblem` are the same for requests of upstream tag history.
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

// The numbers are stored, and they are the enum numbers of the API.
/** API with which an upstream serves its tag history: the API of this product, the draft of distribution-spec#606, or none. */
export const historyApis = { unknown: 0, service: 1, draft: 2, none: 3 } as const
export type HistoryApi = (typeof historyApis)[keyof typeof historyApis]
/** Most assignments from upstream tag history that are stored for one tag, and for one repository. */
export const maxReportedOfTag = 10_000
export const maxReported = 100_000

/** Progress of a new mirror. Its first check is due at once. */
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

/** Adjusts the state to the present time: a mirror whose due time has passed is queued. */
export function withCurrentState<T extends Pick<FollowProgress, 'state' | 'stateTime' | 'dueTime'>>(
  one: T,
  now: string,
): T {
  const { state, stateTime, dueTime } = one
  if (state !== syncStates.unknown || dueTime > now) return one
  return { ...one, state: syncStates.queued, stateTime: dueTime > stateTime ? dueTime : stateTime }
}

/** A tag that the mirror watches at the upstream. */
export type FollowedTag = {
  tag: string
  /** Start of the last check in which the upstream had the digest of our tag history. Empty before the first such check. */
  checkedTime: string
  /** Number of checks in a row in which the upstream did not have the tag. */
  missed: number
}

/** An assignment observed at the upstream. Times are ISO texts. An empty `digest` means that the tag was deleted. */
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

/** Actor in the tag history and in events: the ingester service principal of the API. */
export const followerActor = 'SERVICE_PRINCIPAL_INGESTER'

const minuteMs = 60_000
export const usualIntervalMs = 60 * minuteMs
export const shortestIntervalMs = 5 * minuteMs
export const longestIntervalMs = 7 * 24 * 60 * minuteMs
export const usualStaleForMs = 30 * 24 * 60 * minuteMs
export const longestStaleForMs = 3650 * 24 * 60 * minuteMs
/** Time for which pulls use the last check of a tag without another check. */
export const freshMs = 5 * minuteMs
/** Shortest time between two checks of a mirror that clients request. */
export const checkedAgainMs = minuteMs
export const maxTagPatterns = 100
export const maxPlatforms = 20
/** Operating system, architecture and optional variant, as image configurations name them. */
export const platformPattern = /^[a-z0-9]{1,32}\/[a-z0-9_]{1,32}(?:\/[a-z0-9.]{1,32})?$/
/** Most tags that one mirror watches. */
export const maxFollowedTags = 5000
/** Most tags in the tag list of an upstream. The mirror watches only tags that match its patterns. */
export const maxListedTags = 100_000
/** Number of checks in a row in which a tag must be missing before it counts as deleted, and the time between these checks. */
export const missesOfDeletion = 3
export const missedAgainMs = 20 * minuteMs
