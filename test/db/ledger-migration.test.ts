// Migrates a database with data from before tag histories outlived their repositories.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { migrate } from '#db/migrate.ts'
import { migrations } from '#db/migrations/all.ts'
import { openDb } from '#db/open.ts'
import { type Db, join, sql } from '#db/sql.ts'
import { findRepoRow, insertRepo } from '#domains/registry/repos/repos.store.ts'
import { digestAt } from '#domains/registry/tags/tag-history.store.ts'
import { newUid } from '#lib/uid.ts'
import { onPostgres } from '../support/pinfold.ts'

const time = (i: number): string => new Date(Date.parse('2026-01-01T00:00:00.000Z') + i * 1000).toISOString()
const digest = (i: number): string => `sha256:${i.toString(16).padStart(64, '0')}`

/** An empty database, in a folder or a schema of its own. */
async function emptyDb(): Promise<AsyncDisposable & { db: Db }> {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(path(tmpdir(), 'pinfold-migration-'))
  opening.defer(() => rm(folder, { recursive: true }))
  const schema = `t_${randomBytes(6).toString('hex')}`
  const server = process.env.PINFOLD_TEST_DATABASE ?? ''
  if (onPostgres) {
    opening.defer(async () => {
      const client = new pg.Client(server)
      await client.connect()
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await client.end()
    })
  }
  const database = onPostgres ? `${server}${server.includes('?') ? '&' : '?'}schema=${schema}` : ''
  const db = opening.adopt(await openDb({ database, file: path(folder, 'pinfold.db') }), (one) => one.close())
  const opened = opening.move()
  return { db, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** A group with repositories 1 to `count`. Each has content, and a tag that was updated `moves` times. */
async function fill(db: Db, count: number, moves: number): Promise<string> {
  const group = newUid('/')
  await db.tx(async (tx) => {
    await tx.run(sql`
      INSERT INTO groups (uid, parent_uid, tail, name, status, create_time, update_time)
      VALUES (${group}, '/', ${group}, 'acme', 2, ${time(0)}, ${time(0)})`)
    for (let id = 1; id <= count; id++) {
      const uid = newUid(group)
      await tx.run(sql`
        INSERT INTO repos (uid, parent_uid, name, create_time, update_time)
        VALUES (${uid}, ${group}, ${`app${id}`}, ${time(0)}, ${time(0)})`)
      await tx.run(sql`
        INSERT INTO manifests
               (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
        VALUES (${id}, ${digest(moves - 1)}, '', '', '', 1, '{}', ${time(0)}, ${Buffer.from('x')})`)
      await tx.run(sql`
        INSERT INTO tags (uid, repo_id, name, digest, shape, deprecated, bundles, create_time, update_time, assign_time)
        VALUES (${newUid(uid)}, ${id}, 'latest', ${digest(moves - 1)}, 0, 0, '[]', ${time(0)}, ${time(moves - 1)},
                ${time(moves - 1)})`)
      for (let done = 0; done < moves; done += 500) {
        const rows = Array.from({ length: Math.min(500, moves - done) }, (_, k) => {
          const i = done + k
          return sql`(${id}, 'latest', ${time(i)}, ${i === 0 ? 1 : 2}, ${digest(i)}, '', 'type', ${i}, 'me', 1)`
        })
        await tx.run(sql`
          INSERT INTO tag_history (repo_id, tag, time, event, digest, previous_digest, media_type, size, actor, source)
          VALUES ${join(rows, ', ')}`)
      }
    }
  })
  return group
}

test('migrating a filled database keeps each tag history row, and repository numbers continue after the highest', async () => {
  await using opened = await emptyDb()
  const { db } = opened
  const before = migrations.slice(
    0,
    migrations.findIndex(({ id }) => id === '0014-ledger'),
  )
  await migrate(db, before)
  const group = await fill(db, 3, 2000)
  const ledger = () => db.all(sql`SELECT * FROM tag_history ORDER BY repo_id, tag, time`)
  const rows = await ledger()
  assert.equal(rows.length, 6000)

  await migrate(db, migrations)
  assert.deepEqual(await ledger(), rows)
  const repos = await db.all(sql`
    SELECT r.id, r.ledger_id, l.group_uid, l.name FROM repos r JOIN ledgers l ON l.id = r.ledger_id ORDER BY r.id`)
  assert.deepEqual(
    repos,
    [1, 2, 3].map((id) => ({ id, ledger_id: id, group_uid: group, name: `app${id}` })),
  )
  assert.equal(await digestAt(db, 2, 'latest', time(1234)), digest(1234))

  const rest = { description: '', catalogTier: 0, bundles: [], aliases: [], activeTags: [], syncConfig: undefined }
  const times = { createTime: time(0), updateTime: time(0) }
  const made = { uid: newUid(group), name: 'made', ...rest, ...times }
  await db.tx((tx) => insertRepo(tx, made))
  assert.deepEqual(await findRepoRow(db, { uid: made.uid }), {
    id: 4,
    uid: made.uid,
    name: 'made',
    ledger: 4,
    follow: null,
  })

  const record = sql`(9, 'x', ${time(0)}, 1, ${digest(1)}, '', '', 0, '', 1)`
  const stray = db.tx((tx) => tx.run(sql`INSERT INTO tag_history VALUES ${record}`))
  await assert.rejects(stray, /foreign key/i, 'no row without a ledger')
  if (!onPostgres) assert.deepEqual(await db.all(sql`PRAGMA foreign_key_check`), [])
})

test('migrates an empty database to the current version', async () => {
  await using opened = await emptyDb()
  await migrate(opened.db, migrations)
  assert.deepEqual(await opened.db.all(sql`SELECT * FROM ledgers`), [])
})
