// Lock between the processes of a user on a machine. The process that creates the file has the lock until the file is removed.
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { failure } from './cli-error.ts'

/** No command holds the lock for this long. */
const staleMs = 150_000
const waitMs = 180_000

/** Runs the work while no other process with the same lock file does. The folder of the file has to exist. */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const own = `${file}.${randomUUID()}`
  writeFileSync(own, String(process.pid), { mode: 0o600, flag: 'wx' })
  try {
    for (const until = Date.now() + waitMs; !take(own, file); await sleep(20 + Math.random() * 40)) {
      if (Date.now() > until)
        throw failure(
          `nothing was done: another pinfold command has locked ${file} for 3 minutes; end it, then try again`,
        )
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

/** The file appears with its content, so that no process reads an empty one. */
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
    // The lock may have a new owner since the check; then the file is put back.
    if (!isLeft(aside)) take(aside, file)
  } catch {
    // Another process was quicker.
  } finally {
    rmSync(aside, { force: true })
  }
}
