import type { Handlers } from '#app.ts'
import { type DeletedRepo, deletedRepoFields } from '#domains/registry/repos/deleted-repos.model.ts'
import {
  type DeletedRepo as DeletedRepoMessage,
  type EraseLedgerResponse,
  LedgersService,
  type ResumeLedgerLogsResponse,
  type RotateLedgerLogKeyResponse,
} from '#gen/pinfold/control/registry/v1/ledgers_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { listResponse, readList } from '#lib/lists/lists.ts'
import { timestamp } from '#lib/timestamp.ts'
import { parentOf } from '#lib/uid.ts'
import { aLogKey, resumedLogs } from '../proofs/logs.model.ts'
import { anErasedLedger, type ErasedLedger } from './erased-ledgers.model.ts'
import * as service from './ledgers.service.ts'

const rules = { fields: deletedRepoFields, defaultOrder: 'delete_time desc' }

export const ledgers: Handlers<typeof LedgersService> = {
  async listDeletedRepos(call, request) {
    const { path } = request
    const listed = await service.listDeletedRepos(call, readList(call, request, rules, { path }))
    return listResponse(
      'pinfold.control.registry.v1.ListDeletedReposResponse',
      'deletedRepos',
      listed,
      toMessage,
      request,
    )
  },

  async getDeletedRepo(call, { uid }) {
    return toMessage(await service.getDeletedRepo(call, uid))
  },

  async eraseLedger(call, { repoUid }) {
    return erasedMessage(await service.eraseLedger(call, repoUid))
  },

  async resumeLedgerLogs(call) {
    return resumedMessage({ logs: await service.resumeLedgerLogs(call) })
  },

  async rotateLedgerLogKey(call, { organizationUid }) {
    return rotatedMessage({ key: await service.rotateLedgerLogKey(call, organizationUid) })
  },
}

export const ledgerEvents: readonly EventBody[] = [
  eventBody(LedgersService.method.eraseLedger, anErasedLedger, erasedMessage),
  eventBody(LedgersService.method.resumeLedgerLogs, resumedLogs, resumedMessage),
  eventBody(LedgersService.method.rotateLedgerLogKey, aLogKey, rotatedMessage),
]

function resumedMessage({ logs }: { logs: number }): ResumeLedgerLogsResponse {
  return { $typeName: 'pinfold.control.registry.v1.ResumeLedgerLogsResponse', logs }
}

function rotatedMessage({ key }: { key: string }): RotateLedgerLogKeyResponse {
  return { $typeName: 'pinfold.control.registry.v1.RotateLedgerLogKeyResponse', key }
}

function erasedMessage({ repoUid, paths, records }: ErasedLedger): EraseLedgerResponse {
  return {
    $typeName: 'pinfold.control.registry.v1.EraseLedgerResponse',
    repoUid,
    paths,
    records: BigInt(records),
  }
}

function toMessage({ uid, path, actor, createTime, deleteTime }: DeletedRepo): DeletedRepoMessage {
  return {
    $typeName: 'pinfold.control.registry.v1.DeletedRepo',
    uid,
    group: parentOf(uid),
    path,
    actor,
    createTime: timestamp(createTime),
    deleteTime: timestamp(deleteTime),
  }
}
