// Limits on transactions of this process that lock the same row. Each waits for the lock with a connection of its own, which
// could use up all connections. Only a few run at once for each lock, and for all locks together. The others wait here without a
// connection.
import { busy } from '#lib/errors.ts'
import type { ProcessLock } from '../sql.ts'

/**
 * Thrown when a transaction has to release its connection. It runs again once `Turn.wait` has resolved. Not an Error, since a
 * stack trace is never used and is expensive to create.
 */
export class LockFull implements ProcessLock {
  readonly name: string
  readonly most: number

  constructor({ name, most }: ProcessLock) {
    this.name = name
    this.most = most
  }
}

/** Locks that one transaction has entered, kept across its retries. */
export type Turn = {
  /** Enters a lock. Throws LockFull if the lock or the total limit is full, or if other transactions already wait. */
  enter(meeting: ProcessLock): void
  /**
   * Leaves all entered locks and waits for the full one. Rejects with UNAVAILABLE if too many transactions wait, or if this
   * transaction has waited too long in total. A transaction that needs two locks may wait for each of them repeatedly.
   */
  wait(crowded: LockFull): Promise<void>
  leave(): void
}

type LockUsers = { inside: number; waiting: (() => void)[] }

export type LockLimits = {
  /** Maximum number of running transactions, for all locks together. */
  mostInside: number
  /** Maximum number of transactions that wait for one lock, or for the total limit. */
  mostWaiting: number
  /** Milliseconds that a transaction may wait in total, counted from the start of its first wait. */
  waitMs: number
  monotonic?: () => number
}

/** Name of the total limit in the table of locks. */
const anywhere = ''

export function createLockLimits({
  mostInside,
  mostWaiting,
  waitMs,
  monotonic = () => performance.now(),
}: LockLimits): () => Turn {
  const locks = new Map<string, LockUsers>()
  const everybody = { name: anywhere, most: mostInside }

  const leave = (name: string): void => {
    const lock = locks.get(name)!
    const next = lock.waiting.shift()
    // The longest waiting transaction enters in place of the one that leaves, so no new transaction can enter first.
    if (next) next()
    else if (--lock.inside === 0) locks.delete(name)
  }

  return () => {
    const held = new Set<string>()
    let until: number | undefined
    const leaveAll = (): void => {
      for (const name of held) leave(name)
      held.clear()
    }
    const enter = (meeting: ProcessLock): void => {
      const { name, most } = meeting
      if (held.has(name)) return
      const lock = locks.get(name) ?? { inside: 0, waiting: [] }
      if (lock.inside >= most || lock.waiting.length > 0) throw new LockFull(meeting)
      lock.inside++
      locks.set(name, lock)
      held.add(name)
    }
    return {
      enter(meeting) {
        enter(meeting)
        enter(everybody)
      },
      async wait({ name, most }) {
        // Waiting for one lock while holding another could cause a deadlock, so the transaction leaves all locks first. A running
        // transaction never waits here, so a transaction that waits only for the total limit can keep its locks.
        if (name !== anywhere) leaveAll()
        const now = monotonic()
        until ??= now + waitMs
        if (now >= until) throw tooMany()
        const lock = locks.get(name)
        if (!lock || lock.inside < most) return
        if (lock.waiting.length >= mostWaiting) throw tooMany()
        await new Promise<void>((resolve, reject) => {
          const go = (): void => {
            clearTimeout(timer)
            held.add(name)
            resolve()
          }
          const timer = setTimeout(() => {
            lock.waiting.splice(lock.waiting.indexOf(go), 1)
            reject(tooMany())
          }, until! - now)
          lock.waiting.push(go)
        })
      },
      leave: leaveAll,
    }
  }
}

const tooMany = () => busy('too many writes to the same part of the database are waiting; try again')
