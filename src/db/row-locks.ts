// Locks on single rows, for transactions with the isolation `rowLocks`. Such transactions first lock the rows that must not
// change meanwhile.
import { type ProcessLock, raw, type Sql, type Tx } from './sql.ts'

/**
 * `shared`: several transactions can have the lock, and none can delete the row or change its key. `alone`: one transaction at a
 * time, besides those with `shared`. `deleting`: one transaction, and no other lock on the row.
 */
export type RowLock = 'shared' | 'alone' | 'deleting'

const words = { shared: 'FOR KEY SHARE', alone: 'FOR NO KEY UPDATE', deleting: 'FOR UPDATE' } as const
const none = raw('')

/**
 * Last clause of a SELECT, which locks its rows until the transaction ends. After the wait, later statements see the changes of
 * the previous owner. Empty for SQLite, which has one writer at a time.
 */
export function locking(tx: Tx, lock: RowLock): Sql {
  return tx.engine === 'sqlite' ? none : raw(words[lock])
}

/**
 * Maximum number of transactions of one process at the same lock. One has the lock, and a second one waits in the database, so
 * that it gets its turn among other processes. Transactions with `shared` run at the same time, and wait only for a deletion.
 */
const mostAt = { shared: 5, alone: 2, deleting: 2 } as const

/** Lock of this process for transactions that lock the row or rows called `name`. */
export function processLockOf(name: string, lock: RowLock): ProcessLock {
  return { name: lock === 'shared' ? `${name} shared` : name, most: mostAt[lock] }
}

/**
 * Enters the lock of this process before rows are locked. While a transaction waits here, other transactions can use its
 * connection.
 */
export function enterProcessLock(tx: Tx, name: string, lock: RowLock): Promise<void> {
  return tx.meet(processLockOf(name, lock))
}
