import type { Handlers } from '#app.ts'
import { type FollowMode, followModes } from '#domains/registry/repo-ref.model.ts'
import {
  Follow_History,
  Follow_Mode,
  Follow_ModeSchema,
  Follow_State,
  type Follow as FollowMessage,
  FollowSchema,
  FollowsService,
  UnfollowRepoRequestSchema,
  UpstreamMovedSchema,
} from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { invalid, noKnownValue } from '#lib/errors.ts'
import { type EventBody, eventBody, toDeletionResource } from '#lib/events/event-body.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { changedOrders } from '#lib/lists/orders.ts'
import { readPage } from '#lib/lists/paging.ts'
import { duration, milliseconds } from '#lib/wire.ts'
import {
  type FollowStatus,
  type HistoryApi,
  historyApis,
  toFollowResource,
  toUpstreamMoveResource,
} from './follows.model.ts'
import * as service from './follows.service.ts'
import { type SyncState, syncStates } from './sync-states.model.ts'
import { storedPatternProblem, tagLimits } from './tag-patterns.ts'

const members = { repoUid: 'repo', upstreamUid: 'upstream' } as const
const toFollow = messageOf(FollowSchema, { ...members, waitingCount: 'waiting', historyWaitingCount: 'histories' })

export const follows: Handlers<typeof FollowsService> = {
  async followRepo(call, { repoUid, upstreamUid, path, mode, tags, platforms, interval, staleFor }) {
    const intervalMs = interval && milliseconds(interval)
    const staleForMs = staleFor && milliseconds(staleFor)
    const input = { upstream: upstreamUid, path, mode: modeOf(mode), tags, platforms, intervalMs, staleForMs }
    return withProblem(await service.followRepo(call, repoUid, input))
  },

  async getFollow(call, { repoUid }) {
    return withProblem(await service.getFollow(call, repoUid))
  },

  async listFollows(call, request) {
    const page = readPage(call, request, { fields: changedOrders, defaultOrder: 'uid' }, [request.group])
    const listed = await service.listFollows(call, request.group, page)
    return listResponse('pinfold.control.registry.v1.ListFollowsResponse', 'follows', listed, toMessage, request)
  },

  async checkFollow(call, { repoUid }) {
    return withProblem(await service.checkNow(call, repoUid))
  },

  unfollowRepo: deleting('repoUid', service.unfollowRepo),
}

export const followEvents: readonly EventBody[] = [
  eventBody(FollowsService.method.followRepo, toFollowResource, toMessage),
  eventBody(
    FollowsService.method.unfollowRepo,
    toDeletionResource,
    messageOf(UnfollowRepoRequestSchema, { repoUid: 'uid' }),
  ),
  eventBody(UpstreamMovedSchema, toUpstreamMoveResource, messageOf(UpstreamMovedSchema, members)),
]

function modeOf(mode: Follow_Mode): FollowMode {
  if (mode === Follow_Mode.UNSPECIFIED || mode === Follow_Mode.WATCH) return followModes.watch
  if (mode === Follow_Mode.ON_DEMAND) return followModes.onDemand
  if (mode === Follow_Mode.FULL) return followModes.full
  throw invalid({ field: 'mode', description: noKnownValue(Follow_ModeSchema) })
}

const modes: Record<FollowMode, Follow_Mode> = {
  [followModes.watch]: Follow_Mode.WATCH,
  [followModes.onDemand]: Follow_Mode.ON_DEMAND,
  [followModes.full]: Follow_Mode.FULL,
}
const states: Record<SyncState, Follow_State> = {
  [syncStates.unknown]: Follow_State.WAITING,
  [syncStates.queued]: Follow_State.QUEUED,
  [syncStates.inProgress]: Follow_State.IN_PROGRESS,
  [syncStates.failed]: Follow_State.FAILED,
}

const histories: Record<HistoryApi, Follow_History> = {
  [historyApis.unknown]: Follow_History.UNSPECIFIED,
  [historyApis.service]: Follow_History.SERVICE,
  [historyApis.draft]: Follow_History.DRAFT,
  [historyApis.none]: Follow_History.NONE,
}

/**
 * Adds the problem of the tag patterns to one mirror. Lists leave the problem out, since parsing the patterns of all mirrors
 * would take long.
 */
function withProblem(follow: FollowStatus): FollowMessage {
  const message = toMessage(follow)
  return { ...message, problem: message.problem || storedPatternProblem('tags', follow.tags, tagLimits) }
}

function toMessage(follow: FollowStatus): FollowMessage {
  return toFollow({
    ...follow,
    mode: modes[follow.mode],
    interval: duration(follow.intervalMs),
    staleFor: duration(follow.staleForMs),
    state: states[follow.state],
    history: histories[follow.historyApi],
  })
}
