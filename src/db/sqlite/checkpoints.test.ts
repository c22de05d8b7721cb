import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { sql } from '../sql.ts'
import { type Checkpoints, createCheckpoints } from './checkpoints.ts'
import { openSqlite } from './sqlite.ts'

test('checkpoints commits to the database file while the writing connection stays open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pinfold-checkpoints-'))
  const [file, copy] = [join(folder, 'a.db'), join(folder, 'copy.db')]
  using db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE items (name TEXT)')
  const checkpoints = createCheckpoints(file, 10)
  const arrived = async (): Promise<number> => {
    await copyFile(file, copy)
    using alone = new DatabaseSync(copy)
    try {
      if (!alone.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'items'").get()) return 0
      return Number(alone.prepare('SELECT count(*) AS n FROM items').get()!.n)
    } catch (error) {
      // Half of a checkpoint was copied to the database file.
      assert.match(String(error), /malformed/)
      return -1
    }
  }
  for (let wanted = 1; wanted <= 2; wanted++) {
    db.exec("INSERT INTO items VALUES ('a')")
    assert.equal(await arrived(), wanted - 1)
    checkpoints.note(1)
    for (let tries = 0; (await arrived()) !== wanted && tries < 500; tries++) await sleep(10)
    assert.equal(await arrived(), wanted)
  }
  checkpoints.note(1)
  await checkpoints.close()
  await checkpoints.close()
  await rm(folder, { recursive: true })
})

/** Calls `note`, and returns the thread that starts because of the call. */
async function threadFor(checkpoints: Checkpoints): Promise<Worker> {
  const begun = once(process, 'worker')
  checkpoints.note(1)
  const [thread] = (await begun) as [Worker]
  return thread
}

/** Waits until the thread has ended. A sleep would not be enough, because `close` waits for a thread that has not failed yet. */
const exitOf = (thread: Worker) => new Promise<void>((resolve) => thread.once('exit', () => resolve()))

test('closes at once after its thread failed', async () => {
  const checkpoints = createCheckpoints(join(tmpdir(), 'nowhere', 'a.db'), 1)
  await exitOf(await threadFor(checkpoints))
  await checkpoints.close()
})

test('starts another thread for the next commit after a thread failed', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'pinfold-checkpoints-'))
  const folder = join(parent, 'later')
  const checkpoints = createCheckpoints(join(folder, 'a.db'), 1)
  await exitOf(await threadFor(checkpoints))
  await exitOf(await threadFor(checkpoints))
  await mkdir(folder)
  await once(await threadFor(checkpoints), 'message')
  await checkpoints.close()
  await rm(parent, { recursive: true })
})

test('writers wait for a running checkpoint when the log is long, however short its time', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pinfold-checkpoints-'))
  const file = join(folder, 'a.db')
  const heldAt = async (bytes: number): Promise<boolean> => {
    await writeFile(`${file}-wal`, '')
    await truncate(`${file}-wal`, bytes)
    const checkpoints = createCheckpoints(file)
    // Writing for more than 100 ms starts a checkpoint.
    checkpoints.note(101)
    checkpoints.note(1)
    const isHeld = checkpoints.hold() !== undefined
    await checkpoints.close()
    return isHeld
  }
  assert.equal(await heldAt(47 * 2 ** 20), false)
  assert.equal(await heldAt(49 * 2 ** 20), true)
  await rm(folder, { recursive: true })
})

test('the log stays short with continuous writers', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pinfold-checkpoints-'))
  const file = join(folder, 'a.db')
  const db = openSqlite(file)
  await db.tx((tx) => tx.run(sql`CREATE TABLE items (name TEXT)`))
  const write = async () => {
    for (let i = 0; i < 500; i++) await db.tx((tx) => tx.run(sql`INSERT INTO items VALUES (${'x'.repeat(1 << 16)})`))
  }
  // 125 MiB. A commit would checkpoint by itself at 64 MiB.
  await Promise.all([write(), write(), write(), write()])
  const { size } = await stat(`${file}-wal`)
  assert.ok(size < 64 * 2 ** 20, `${size} bytes`)
  await db.close()
  await rm(folder, { recursive: true })
})
