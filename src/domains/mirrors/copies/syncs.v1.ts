import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { SyncStatus_Status } from '#gen/pinfold/registry/v1/syncs_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { type SyncState, syncStates } from '../follows/sync-states.model.ts'
import * as service from './syncs.service.ts'

export const syncsV1: Handlers<typeof Registry> = {
  async getRepoCountBySource(call, { id }) {
    const count = await service.countCopies(call, id)
    return { $typeName: 'pinfold.platform.registry.RepoCount', count: BigInt(count) }
  },

  async getSyncStatus(call, { repoId }) {
    return toMessage(await service.getSyncStatus(call, repoId))
  },

  async listSyncStatuses(call, { registryId }) {
    const statuses = await service.listSyncStatuses(call, registryId)
    const items = statuses.map((one) => {
      const repoStatus = toMessage(one)
      return { $typeName: 'pinfold.platform.registry.RepoSyncStatus', repoId: one.repo, repoStatus } as const
    })
    return { $typeName: 'pinfold.platform.registry.SyncStatusList', items }
  },
}

const numbers: Record<SyncState, SyncStatus_Status> = {
  [syncStates.unknown]: SyncStatus_Status.UNKNOWN,
  [syncStates.queued]: SyncStatus_Status.QUEUED,
  [syncStates.inProgress]: SyncStatus_Status.IN_PROGRESS,
  [syncStates.failed]: SyncStatus_Status.FAILED,
}

function toMessage({ state, since }: { state: SyncState; since?: string }) {
  const createTime = since === undefined ? {} : { createTime: timestamp(since) }
  return { $typeName: 'pinfold.platform.registry.SyncStatus', status: numbers[state], ...createTime } as const
}
