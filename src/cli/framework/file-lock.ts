// Lock between the processes of a user on a machine. The process that creates the file has the lock until the file is removed.
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { failure } from './cli-error.ts'

/** Nobody who works keeps it that long. */
const staleMs = 150_000
const waitMs = 180_000

/** Does the work while nobody else with the same file does. The folder of the file has to be there. */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const own = `${file}.${randomUUID()}`
  writeFileSync(own, String(process.pid), { mode: 0o600, flag: 'wx' })
  try {
    for (const until = Date.now() + waitMs; !take(own, file); await sleep(20 + Math.random() * 40)) {
      if (Date.now() > until) throw failure(`another command has kept ${file} for too long`)
      if (isLeft(file)) giveUp(file)
    }
    try {
      return await work()
    } finally {
      rmSync(file, { force: true })
    }
  } finally {
    rmSync(own, { force: true })
  }
}

/** The file appears with what is in it, so that nobody reads an empty one. */
function take(own: string, file: string): boolean {
  try {
    linkSync(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** True if the process that created the lock has ended, or has held it for too long. */
function isLeft(file: string): boolean {
  try {
    if (Date.now() - statSync(file).mtimeMs > staleMs) return true
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Removes a stale lock. If several processes try, one succeeds, and it does not remove the lock of a later owner. */
function giveUp(file: string): void {
  const aside = `${file}.${randomUUID()}`
  try {
    renameSync(file, aside)
    // It may have changed hands between the look and now: then it goes back.
    if (!isLeft(aside)) take(aside, file)
  } catch {
    // Somebody else was quicker.
  } finally {
    rmSync(aside, { force: true })
  }
}
