import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/**
 * Locks the database file, so that no second server can open it. SQLite has one writer, and each server would cache rows that the
 * other changes. The operating system releases the lock when the process ends. Returns `undefined` if another process still has
 * the lock after `timeout` milliseconds.
 */
export function takeServeLock(file: string, timeout = 0): { release(): void } | undefined {
  closeSync(openSync(file, 'a', 0o600))
  const lock = new DatabaseSync(file, { timeout })
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if ((error as { errcode?: number }).errcode === 5) return undefined
    throw error
  }
  return { release: () => lock.close() }
}

/**
 * True if no process has the lock. Several checks can run at once, and a server that starts meanwhile waits only for a moment.
 */
export function isServeLockFree(file: string): boolean {
  if (!existsSync(file)) return true
  const lock = new DatabaseSync(file, { readOnly: true, timeout: 0 })
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get()
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === 5) return false
    throw error
  } finally {
    lock.close()
  }
}
