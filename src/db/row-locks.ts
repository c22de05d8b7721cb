// Locks of single rows, for transactions of the isolation `rowLocks`: rows that transactions must agree on are locked first.
import { type Meeting, raw, type Sql, type Tx } from './sql.ts'

/**
 * `shared`: others may have it too, and none of them changes the key of the row or deletes it. `alone`: one transaction at a
 * time, beside `shared` ones. `deleting`: no other transaction has any lock.
 */
export type RowLock = 'shared' | 'alone' | 'deleting'

const words = { shared: 'FOR KEY SHARE', alone: 'FOR NO KEY UPDATE', deleting: 'FOR UPDATE' } as const
const none = raw('')

/**
 * End of a SELECT that locks its rows until the transaction ends. Later statements see the commits of the previous owner of the
 * lock. An embedded database has one writer at a time, so the text is empty for it.
 */
export function locking(tx: Tx, lock: RowLock): Sql {
  return tx.engine === 'sqlite' ? none : raw(words[lock])
}

/**
 * The most transactions of one process at the same lock, including the one that has it: a second one waits in line with those of
 * other processes. Transactions with `shared` run side by side, and wait only for a deletion.
 */
const mostAt = { shared: 5, alone: 2, deleting: 2 } as const

/** Meeting of transactions that lock the row or rows called `name`. */
export function meetingAt(name: string, lock: RowLock): Meeting {
  return { place: lock === 'shared' ? `${name} shared` : name, most: mostAt[lock] }
}

/**
 * Enters the meeting before rows are locked, so that a transaction that waits for the lock does not keep a connection that others
 * need.
 */
export function meetAt(tx: Tx, name: string, lock: RowLock): Promise<void> {
  return tx.meet(meetingAt(name, lock))
}
