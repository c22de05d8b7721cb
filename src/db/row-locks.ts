// Locks of single rows, for transactions of the isolation `rowLocks`: what they have to agree on, they lock first.
import { type Meeting, raw, type Sql, type Tx } from './sql.ts'

/**
 * `shared`: others may have it too, and nobody changes the key of the row or deletes it. `alone`: nobody else has it alone.
 * `deleting`: nobody else has it at all.
 */
export type RowLock = 'shared' | 'alone' | 'deleting'

const words = { shared: 'FOR KEY SHARE', alone: 'FOR NO KEY UPDATE', deleting: 'FOR UPDATE' } as const
const none = raw('')

/**
 * What ends a SELECT so that the rows which it finds stay locked until the transaction ends. Statements after it see what
 * whoever had the lock before has committed. An embedded database has one writer at a time and needs no word for it.
 */
export function locking(tx: Tx, lock: RowLock): Sql {
  return tx.engine === 'sqlite' ? none : raw(words[lock])
}

/**
 * How many works of one process may be at the same thing with a lock, the one that has it among them: a second one is in line
 * with those of other processes. What is `shared` goes on side by side, and waits only for a deletion.
 */
const mostAt = { shared: 5, alone: 2, deleting: 2 } as const

/** Where those meet who lock what `name` names. */
export function meetingAt(name: string, lock: RowLock): Meeting {
  return { place: lock === 'shared' ? `${name} shared` : name, most: mostAt[lock] }
}

/** Before what `name` names is locked, so that whoever waits for it does not keep a connection that others need. */
export function meetAt(tx: Tx, name: string, lock: RowLock): Promise<void> {
  return tx.meet(meetingAt(name, lock))
}
