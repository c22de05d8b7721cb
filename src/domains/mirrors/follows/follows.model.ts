import { type FollowMode, followModes } from '#domains/registry/repo-ref.model.ts'
import { kindOf } from '#lib/events/event-body.ts'
import { type SyncState, syncStates } from './sync-states.model.ts'

/** Whether content comes here, with a pull at the latest. */
export function bringsContent(mode: FollowMode): boolean {
  return mode !== followModes.watch
}

/** What a repo follows. */
export type Follow = {
  /** The uid of the repo. */
  repo: string
  /** The uid of the upstream. */
  upstream: string
  /** Below the prefix of the upstream. */
  path: string
  mode: FollowMode
  /** Names, and regular expressions in RE2 syntax for whole names; empty for all. */
  tags: string[]
  /** Of which the images of an index are brought beforehand; empty for all. */
  platforms: string[]
  intervalMs: number
  /** For how long what is here is served while the upstream does not answer. */
  staleForMs: number
  /** Who has set it, whom rules of who moves tags judge. */
  setter: string
  createTime: string
  updateTime: string
}

/** How the following goes, as the copying of a repo does. */
export type FollowProgress = {
  state: SyncState
  stateTime: string
  problem: string
  /** In a row. */
  failures: number
  /** When the last look at the list of all tags began; empty before the first. */
  listTime: string
  listDue: string
  dueTime: string
}

/**
 * `checkTime` is when somebody last asked for a look at once, `waiting` is how many manifests are still to be brought, and
 * `fetchProblem` why one was not; the same of the tags whose past is still to be asked for.
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
/** How an upstream tells of the past of its tags: as ours does, by the draft of distribution-spec#606, or not at all. */
export const historyApis = { unknown: 0, service: 1, draft: 2, none: 3 } as const
export type HistoryApi = (typeof historyApis)[keyof typeof historyApis]
/** How many told moves are kept of one tag, and of one repo. */
export const maxToldOfTag = 10_000
export const maxTold = 100_000

/** Begins at once. */
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

/** As it stands at a moment: what is due waits for its turn, since it is due. */
export function withStanding<T extends Pick<FollowProgress, 'state' | 'stateTime' | 'dueTime'>>(
  one: T,
  now: string,
): T {
  const { state, stateTime, dueTime } = one
  if (state !== syncStates.unknown || dueTime > now) return one
  return { ...one, state: syncStates.queued, stateTime: dueTime > stateTime ? dueTime : stateTime }
}

/** A tag that is looked at. */
export type FollowedTag = {
  tag: string
  /** When the last look began that saw it as the ledger has it; empty before the first. */
  checkedTime: string
  /** How many looks in a row have not found it. */
  missed: number
}

/** A move as it was seen. Times are ISO texts; `digest` is empty for a deletion. */
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

export const aFollow = kindOf<FollowStatus>('follow')
export const anUpstreamMove = kindOf<UpstreamMove>('upstream move')

export const followType = 'registry.pinfold.dev/Follow'

/** Who the ledger and the events say it was: the product's own service of the contract that takes in what is elsewhere. */
export const followerActor = 'SERVICE_PRINCIPAL_INGESTER'

const minuteMs = 60_000
export const usualIntervalMs = 60 * minuteMs
export const shortestIntervalMs = 5 * minuteMs
export const longestIntervalMs = 7 * 24 * 60 * minuteMs
export const usualStaleForMs = 30 * 24 * 60 * minuteMs
export const longestStaleForMs = 3650 * 24 * 60 * minuteMs
/** How long a look counts for those who pull. */
export const freshMs = 5 * minuteMs
/** How often anybody may have a repo looked at before that is due. */
export const checkedAgainMs = minuteMs
export const maxTagPatterns = 100
export const maxPlatforms = 20
/** An operating system, an architecture, and perhaps a variant, as images name them. */
export const platformPattern = /^[a-z0-9]{1,32}\/[a-z0-9_]{1,32}(?:\/[a-z0-9.]{1,32})?$/
/** How many tags one repo follows. */
export const maxFollowedTags = 5000
/** How many names the list of an upstream may have, of which those count that match. */
export const maxListedTags = 100_000
/** How many looks in a row have to miss a tag before it counts as deleted, and how far they are apart. */
export const missesOfDeletion = 3
export const missedAgainMs = 20 * minuteMs
