import type { Tx } from '#db/sql.ts'
import { pathIn } from '#domains/registry/repos/paths.service.ts'
import * as store from './backfill.store.ts'

const rowsAtOnce = 500

/** Queues some rows that are older than the log. Returns 0 if none are left. */
export async function backfillSome(tx: Tx): Promise<number> {
  const next = await store.nextBackfill(tx)
  if (!next) return 0
  const repo = await store.ledgerScopeOf(tx, next.ledger)
  const path = repo.is === 'there' ? await pathIn(tx, repo.group, repo.name) : repo.path
  const end = await store.endOfSlice(tx, next, rowsAtOnce)
  // Queues only rows up to the end of this batch, since other rows are written meanwhile.
  await store.addRowsOfBefore(tx, next, end, path)
  if (end) await store.moveBackfill(tx, { ...next, ...end })
  else await store.endBackfill(tx, next.ledger)
  return rowsAtOnce
}
