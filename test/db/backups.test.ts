// Results of a backup with faults during the backup.
import assert from 'node:assert/strict'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Db, raw, sql } from '#db/sql.ts'
import { backup } from '../../src/maintenance/backup.ts'
import { holdContents } from '../../src/maintenance/hold-contents.ts'
import { onPostgres, startPinfold } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'
import { startRegistry } from '../support/registry.ts'

test('a backup hold keeps contents while it is renewed in time, also after a database outage', async () => {
  await using pinfold = await startPinfold({ jobs: [] })
  const holdMs = 500
  let now = Date.now()
  let isAway = false
  let asked = 0
  const db: Db = {
    ...pinfold.app.db,
    tx(work, options) {
      asked++
      return isAway ? Promise.reject(new Error('away')) : pinfold.app.db.tx(work, options)
    },
  }
  const skew = { now: () => new Date(now), measure: async () => {} }
  const until = async () =>
    Date.parse((await pinfold.app.db.get<{ until: string }>(sql`SELECT until FROM backups`))!.until)
  const isRenewed = () => eventually(until, (found) => found === now + holdMs)
  const asksAgain = (times: number) => {
    const before = asked
    return eventually(
      async () => asked,
      (found) => found >= before + times,
    )
  }

  const held = await holdContents(db, skew, 'backup', holdMs)
  now += holdMs - 1
  await isRenewed()
  isAway = true
  await asksAgain(2)
  now += holdMs - 1
  isAway = false
  await isRenewed()
  await held.check()

  isAway = true
  now += holdMs
  await assert.rejects(held.check(), /garbage collection was not stopped all the time/)
  isAway = false
  await isRenewed()
  await assert.rejects(held.check(), /garbage collection was not stopped all the time/, 'what was lost stays lost')
  await held.end()

  const forgotten = await holdContents(db, skew, 'backup', holdMs)
  await pinfold.app.db.tx((tx) => tx.run(sql`DELETE FROM backups`))
  await asksAgain(2)
  await assert.rejects(forgotten.check(), /garbage collection was not stopped all the time/)
  await forgotten.end()
})

test('a backup reports blobs that the store has lost as damaged, but not parts of an ended upload', {
  skip: Boolean(process.env.PINFOLD_TEST_DATABASE) && 'the copy of PostgreSQL is made by others',
}, async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, pusher } = registry
  const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
  try {
    for (let i = 0; i < 60; i++) await pusher.pushBlob('acme/app', `blob ${i}`)
    const upload = String((await pusher.ok(202, 'POST', 'acme/app/blobs/uploads/')).headers.location)
    await pusher.ok(202, 'PATCH', upload, { body: 'piece' })
    const last = await app.db.get<{ location: string }>(sql`SELECT location FROM blobs ORDER BY location DESC LIMIT 1`)
    const piece = await app.db.get<{ location: string }>(sql`SELECT location FROM upload_parts`)
    let lost: Promise<unknown> | undefined
    const lose = () => {
      for (const { location } of [last!, piece!]) rmSync(join(app.config.data, 'blobs', location))
      return app.db.tx(async (tx) => {
        await tx.run(sql`
          DELETE FROM repo_blobs WHERE digest IN (SELECT digest FROM blobs WHERE location = ${last!.location})`)
        await tx.run(sql`DELETE FROM blobs WHERE location = ${last!.location}`)
        await tx.run(sql`DELETE FROM upload_parts`)
      })
    }
    const made = await backup(app.config, {
      to,
      progress() {
        lost ??= lose()
      },
    })
    await lost
    assert.deepEqual(made.damaged, [last!.location])
  } finally {
    rmSync(to, { recursive: true, force: true })
  }
})

test('a backup that loses its hold fails, and leaves no valid backup', async () => {
  await using registry = await startRegistry({ jobs: [] })
  const { app, pusher } = registry
  const to = mkdtempSync(join(tmpdir(), 'pinfold-backups-'))
  try {
    await pusher.pushBlob('acme/app', 'a blob')
    // From here on every renewal is ignored, so the result does not depend on timing.
    const run = (...texts: string[]) =>
      app.db.tx(async (tx) => {
        for (const text of texts) await tx.run(raw(text))
      })
    await (onPostgres
      ? run(
          'CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
          'CREATE TRIGGER lose BEFORE UPDATE ON backups FOR EACH ROW EXECUTE FUNCTION lose()',
        )
      : run('CREATE TRIGGER lose BEFORE UPDATE ON backups BEGIN SELECT RAISE(IGNORE); END'))
    await assert.rejects(backup(app.config, { to }), /garbage collection was not stopped all the time/)
    await run(onPostgres ? 'DROP TRIGGER lose ON backups' : 'DROP TRIGGER lose')
    assert.deepEqual(globSync('*/backup.json', { cwd: to }), [])
    await backup(app.config, { to })
    assert.equal(globSync('*/backup.json', { cwd: to }).length, 1)
  } finally {
    rmSync(to, { recursive: true, force: true })
  }
})
