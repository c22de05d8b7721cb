import { deletedRepoType } from '#domains/registry/repos/removals.model.ts'
import type { Resource } from '#lib/resource.ts'
import { ledgerLogType } from './proofs/logs.model.ts'

export const resources: readonly Resource[] = [
  // A deleted repository is not a scope, since it has nothing below it.
  { type: deletedRepoType, table: 'deleted_repos', kinds: ['deleted_repos'], uid: 'none', groupDeletion: 'stays' },
  // The log of an organization remains after the deletion of the organization, since it was signed.
  { type: ledgerLogType, table: 'ledger_logs', kinds: [], uid: 'none', groupDeletion: 'stays' },
]
