import type { Handlers } from '#app.ts'
import { type DeletedRepo, deletedRepoFields } from '#domains/registry/repos/removals.model.ts'
import {
  type DeletedRepo as DeletedRepoMessage,
  DeletedRepoSchema,
  EraseLedgerResponseSchema,
  LedgersService,
  ResumeLedgerLogsResponseSchema,
  RotateLedgerLogKeyResponseSchema,
} from '#gen/pinfold/control/registry/v1/ledgers_pb.ts'
import { getting, listing } from '#lib/contract/handlers.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { parentOf } from '#lib/uid.ts'
import { resumedLogs, toErasedLedgerResource, toLogKeyResource } from '../proofs/logs.model.ts'
import * as service from './ledgers.service.ts'

const { method } = LedgersService
const rules = { fields: deletedRepoFields, defaultOrder: 'delete_time desc' }
const toRepo = messageOf(DeletedRepoSchema)
const toErased = messageOf(EraseLedgerResponseSchema)
const toResumed = messageOf(ResumeLedgerLogsResponseSchema)
const toRotated = messageOf(RotateLedgerLogKeyResponseSchema)

export const ledgers: Handlers<typeof LedgersService> = {
  listDeletedRepos: listing(
    method.listDeletedRepos,
    rules,
    ({ path }) => ({ path }),
    service.listDeletedRepos,
    toMessage,
  ),
  getDeletedRepo: getting(service.getDeletedRepo, toMessage),

  async eraseLedger(call, { repoUid }) {
    return toErased(await service.eraseLedger(call, repoUid))
  },

  async resumeLedgerLogs(call) {
    return toResumed({ logs: await service.resumeLedgerLogs(call) })
  },

  async rotateLedgerLogKey(call, { organizationUid }) {
    return toRotated({ key: await service.rotateLedgerLogKey(call, organizationUid) })
  },
}

export const ledgerEvents: readonly EventBody[] = [
  eventBody(method.eraseLedger, toErasedLedgerResource, toErased),
  eventBody(method.resumeLedgerLogs, resumedLogs, toResumed),
  eventBody(method.rotateLedgerLogKey, toLogKeyResource, toRotated),
]

function toMessage(repo: DeletedRepo): DeletedRepoMessage {
  return toRepo({ ...repo, group: parentOf(repo.uid) })
}
