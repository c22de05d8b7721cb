import assert from 'node:assert/strict'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCheckpoints } from './checkpoints.ts'

test('what was committed reaches the database itself while the connection that wrote it stays open', async () => {
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
      // Half of a checkpoint was copied.
      assert.match(String(error), /malformed/)
      return -1
    }
  }
  for (let wanted = 1; wanted <= 2; wanted++) {
    db.exec("INSERT INTO items VALUES ('a')")
    assert.equal(await arrived(), wanted - 1)
    checkpoints.note()
    for (let tries = 0; (await arrived()) !== wanted && tries < 500; tries++) await sleep(10)
    assert.equal(await arrived(), wanted)
  }
  checkpoints.note()
  await checkpoints.close()
  await checkpoints.close()
  await rm(folder, { recursive: true })
})

test('a thread that fails is no trouble for whoever closes', async () => {
  const checkpoints = createCheckpoints(join(tmpdir(), 'nowhere', 'a.db'), 1)
  checkpoints.note()
  await sleep(5)
  await checkpoints.close()
})
