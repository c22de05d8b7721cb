import { deletedRepoType } from '#domains/registry/repos/removals.model.ts'
import type { Resource } from '#lib/resource.ts'
import { ledgerLogType } from './proofs/logs.model.ts'

export const resources: readonly Resource[] = [
  // No scope any more, since nothing can be below a deleted repository.
  { type: deletedRepoType, table: 'deleted_repos', kinds: ['deleted_repos'], uid: 'none', groupDeletion: 'stays' },
  // The log of an organization outlives it, since it was signed.
  { type: ledgerLogType, table: 'ledger_logs', kinds: [], uid: 'none', groupDeletion: 'stays' },
]
