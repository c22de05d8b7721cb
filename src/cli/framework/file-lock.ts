// Lock between processes of one user on one machine. The process that creates the lock file has the lock until the file is
// removed.
import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { failure } from './cli-error.ts'

/** Age after which a lock is stale, since no command needs the lock for this long. */
const staleMs = 150_000
const waitMs = 180_000

/** Runs the work while this process has the lock. Waits while another process has it. The folder of the lock file must exist. */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const own = `${file}.${randomUUID()}`
  writeFileSync(own, String(process.pid), { mode: 0o600, flag: 'wx' })
  try {
    for (const until = Date.now() + waitMs; !take(own, file); await sleep(20 + Math.random() * 40)) {
      if (Date.now() > until)
        throw failure(
          `nothing was done: another pinfold command has locked ${file} for 3 minutes; end it, then try again`,
        )
      if (isStale(file)) giveUp(file)
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

/** The file is written under another name first, so no process reads an empty lock file. */
function take(own: string, file: string): boolean {
  try {
    linkSync(own, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** True if the process that has the lock has ended, or has had the lock for too long. */
function isStale(file: string): boolean {
  try {
    if (Date.now() - statSync(file).mtimeMs > staleMs) return true
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Removes a stale lock. If several processes try this, one succeeds, and the lock of a new owner is not removed. */
function giveUp(file: string): void {
  const aside = `${file}.${randomUUID()}`
  try {
    renameSync(file, aside)
    // Since the check, another process may have taken the lock. Then its file is restored.
    if (!isStale(aside)) take(aside, file)
  } catch {
    // Another process has already removed the stale lock.
  } finally {
    rmSync(aside, { force: true })
  }
}
