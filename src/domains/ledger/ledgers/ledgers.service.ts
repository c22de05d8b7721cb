// Tag histories of deleted repositories. Callers with access can list them, and the operator can erase them.
import type { Call } from '#app.ts'
import { listNodes } from '#domains/iam/groups/list-nodes.ts'
import { emit } from '#domains/outbox/emit.ts'
import * as store from '#domains/registry/repos/ledgers.store.ts'
import { type DeletedRepo, type DeletedRepoFilter, deletedRepoType } from '#domains/registry/repos/removals.model.ts'
import { deleteHistory } from '#domains/registry/tags/tag-history.store.ts'
import { failedPrecondition, found } from '#lib/errors.ts'
import type { ListQuery } from '#lib/lists/lists.ts'
import type { Listed } from '#lib/lists/paging.ts'
import {
  type ErasedLedger,
  ledgerLogType,
  resumedLogs,
  toErasedLedgerResource,
  toLogKeyResource,
} from '../proofs/logs.model.ts'
import { endLogs, suspendedOrganizations } from '../proofs/logs.store.ts'
import { rotateLogKey } from '../proofs/sequence.service.ts'

export async function listDeletedRepos(call: Call, query: ListQuery<DeletedRepoFilter>): Promise<Listed<DeletedRepo>> {
  return listNodes(call, query, store.deletedRepoList)
}

export async function getDeletedRepo(call: Call, uid: string): Promise<DeletedRepo> {
  return found(await store.findDeletedRepo(call.app.db, uid), deletedRepoType, uid)
}

/** A tag history may have millions of rows, so its transaction keeps temporary data on disk. */
const ofAnySize = { aside: 'disk' } as const

/**
 * Erases the tag history of a deleted repository permanently. Throws if a new repository of the same path writes to this history.
 */
export async function eraseLedger(call: Call, repoUid: string): Promise<ErasedLedger> {
  const erased = await call.app.db.tx(async (tx): Promise<ErasedLedger> => {
    const { ledger } = found(await store.findDeletedRepo(tx, repoUid), deletedRepoType, repoUid)
    const writer = await store.writerOf(tx, ledger)
    if (writer !== '') {
      const why = 'A new repository with the same path continues it, or the old content is still being deleted.'
      const description = `the tag history is in use. ${why} Delete the new repository, or try again later.`
      throw failedPrecondition({ type: 'LEDGER_IN_USE', subject: writer, description })
    }
    const gone = await store.deletedReposOf(tx, ledger)
    for (const one of gone) await store.deleteDeletedRepo(tx, one)
    const records = await deleteHistory(tx, ledger)
    await store.deleteLedger(tx, ledger)
    const all: ErasedLedger = { repoUid, paths: [...new Set(gone.map(({ path }) => path))], records }
    const about = { subject: repoUid, resource: toErasedLedgerResource(all) }
    await emit(tx, call, 'control.registry.ledger.erased', about)
    return all
  }, ofAnySize)
  call.log.info('tag history erased', erased)
  return erased
}

/** Replaces suspended logs by new logs. Returns the number of replaced logs. */
export async function resumeLedgerLogs(call: Call): Promise<number> {
  const logs = await call.app.db.tx(async (tx) => {
    const ended = await suspendedOrganizations(tx)
    if (ended.length > 0) await endLogs(tx, 'suspended')
    for (const { organization, logs } of ended) {
      const about = { subject: organization, group: organization, resource: resumedLogs({ logs }) }
      await emit(tx, call, 'control.registry.ledger.resumed', about)
    }
    return ended.reduce((sum, one) => sum + one.logs, 0)
  })
  if (logs > 0) call.log.info('suspended transparency logs replaced', { logs })
  return logs
}

/** Gives the transparency log of the organization a new key, and returns the new key. */
export async function rotateLedgerLogKey(call: Call, organization: string): Promise<string> {
  const key = await call.app.db.tx(
    async (tx) => {
      const made = found(await rotateLogKey(tx, call.app, organization), ledgerLogType, organization)
      const about = { subject: organization, group: organization, resource: toLogKeyResource({ key: made }) }
      await emit(tx, call, 'control.registry.ledger.key_rotated', about)
      return made
    },
    // The transaction locks the row of the log.
    { isolation: 'rowLocks' },
  )
  call.log.info('key of a transparency log rotated', { organization })
  return key
}
