// Migrations while servers of another build run: additions, backfills and removals, and their locks.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Migration, migrate, schemaState } from '#db/migrate.ts'
import { migrations } from '#db/migrations/all.ts'
import { openDb } from '#db/open.ts'
import { type Db, ident, join as joined, raw, type Sql, sql } from '#db/sql.ts'
import { requireNoServers } from '../../src/open-database.ts'
import { createStorage, run, runProcess, startProcess, type TestStorage } from '../support/process.ts'

const onPostgres = Boolean(process.env.PINFOLD_TEST_DATABASE)
const first: Migration = {
  id: '0001-items',
  up: (t) => [`CREATE TABLE items (id ${t.id}, name ${t.text} NOT NULL)`],
}
const expand: Migration = { id: '0002-expand-length', up: (t) => [`ALTER TABLE items ADD COLUMN length ${t.int}`] }
let batches = 0
const backfill: Migration = {
  id: '0003-backfill-length',
  async batch(tx) {
    batches++
    return tx.run(sql`
      UPDATE items SET length = length(name) WHERE id IN (SELECT id FROM items WHERE length IS NULL ORDER BY id LIMIT 2)`)
  },
}
const contract: Migration = { id: '0004-contract-name', up: () => ['ALTER TABLE items DROP COLUMN name'] }
const [older, newer] = [[first], [first, expand, backfill, contract]]
const idsOf = (some: readonly Migration[]) => some.map(({ id }) => id)

const listed = (parts: Sql[]) => joined(parts, ', ')

async function withDb<T>(work: (db: Db, storage: TestStorage) => Promise<T>): Promise<T> {
  await using storage = await createStorage({ isEmpty: true })
  const db = await openDb({ database: storage.direct, file: join(storage.data, 'pinfold.db') })
  return await work(db, storage).finally(() => db.close())
}

const addItems = (db: Db, names: readonly string[]) =>
  db.tx(async (tx) => {
    for (const name of names) await tx.run(sql`INSERT INTO items (name) VALUES (${name})`)
  })

test('a build works with expansions and backfills of a newer build, but not with its contractions', () =>
  withDb(async (db) => {
    assert.deepEqual(await migrate(db, older), idsOf(older))
    await addItems(db, ['a', 'bb', 'ccc', 'dddd', 'eeeee'])
    assert.equal(await schemaState(db, idsOf(newer)), 'old')
    assert.deepEqual(await migrate(db, newer), [expand.id, backfill.id])
    assert.equal(await schemaState(db, idsOf(newer)), 'current')
    assert.deepEqual(
      await db.all(sql`SELECT length FROM items ORDER BY id`),
      [1, 2, 3, 4, 5].map((length) => ({ length })),
    )
    // The older build continues to run, and can start again.
    assert.deepEqual(await migrate(db, older), [])
    assert.equal(await schemaState(db, idsOf(older)), 'current')
    await addItems(db, ['ffffff'])
    assert.deepEqual(await migrate(db, newer), [])

    assert.deepEqual(await migrate(db, newer, { finish: true }), [contract.id])
    await assert.rejects(migrate(db, older), /schema of a newer version: .* migration 0004-contract-name/)
    assert.deepEqual(await migrate(db, newer), [])
  }))

test('runs all migrations at once on an empty database', () =>
  withDb(async (db) => {
    assert.deepEqual(await migrate(db, newer), idsOf(newer))
  }))

test('a backfill batch has no time limit', { skip: !onPostgres }, () =>
  withDb(async (db) => {
    let limit: unknown
    const asks: Migration = {
      id: backfill.id,
      async batch(tx) {
        limit = await tx.get(sql`SELECT current_setting('statement_timeout') AS ms`)
        return 0
      },
    }
    await migrate(db, [first, expand, asks])
    assert.deepEqual(limit, { ms: '0' })
  }),
)

test('an interrupted backfill continues after its last batch', () =>
  withDb(async (db) => {
    await migrate(db, older)
    await addItems(db, ['a', 'bb', 'ccc', 'dddd', 'eeeee'])
    let left = 2
    const stopping: Migration = {
      id: backfill.id,
      batch: (tx) => (left-- > 0 ? backfill.batch(tx) : Promise.reject(new Error('killed'))),
    }
    await assert.rejects(migrate(db, [first, expand, stopping]), /killed/)
    const filled = () => db.get<{ total: number }>(sql`SELECT count(*) AS total FROM items WHERE length IS NOT NULL`)
    assert.equal((await filled())!.total, 4)
    batches = 0
    assert.deepEqual(await migrate(db, newer), [backfill.id])
    assert.deepEqual([(await filled())!.total, batches], [5, 2])
  }))

test(
  'retries a change that cannot get its lock, and blocks no query meanwhile',
  {
    skip: !onPostgres && 'there are no locks of tables',
  },
  () =>
    withDb(async (db, storage) => {
      await migrate(db, older)
      const reader = await storage.connect()
      await reader.query(`BEGIN; SELECT * FROM ${storage.schema}.items`)
      const migrating = migrate(db, newer)
      const waiting = async (): Promise<boolean> => {
        const { rows } = await storage.query(
          `SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`,
          [storage.name],
        )
        return rows.length > 0
      }
      // The change waits for its lock, gives up, and waits again.
      for (const wanted of [true, false, true]) while ((await waiting()) !== wanted) await new Promise(setImmediate)
      await reader.query('COMMIT')
      await reader.end()
      assert.deepEqual(await migrating, [expand.id, backfill.id])
    }),
)

const indexed: Migration = {
  id: '0005-expand-index',
  up: (t) => [
    `ALTER TABLE items ADD COLUMN colour ${t.text} NOT NULL DEFAULT ''`,
    'CREATE INDEX items_by_colour ON items (colour)',
    `CREATE TABLE others (id ${t.id}, name ${t.text} NOT NULL)`,
    'CREATE INDEX others_by_name ON others (name)',
  ],
}

test(
  'builds an index of an old table during writes, and again after an interruption',
  {
    skip: !onPostgres && 'nobody else writes',
  },
  () =>
    withDb(async (db, storage) => {
      await migrate(db, older)
      await addItems(db, ['a', 'bb'])
      const writer = await storage.connect()
      await writer.query(`SET search_path = ${storage.schema}`)
      await writer.query('BEGIN')
      // An open transaction may delay the creation of an index. The creation does not delay the transaction.
      await writer.query("INSERT INTO items (name) VALUES ('open')")
      const all = [first, indexed]
      const cutShort = { ...db, alone: () => Promise.reject(new Error('killed')) }
      const begun = migrate(cutShort, all)
      const waits = async () => {
        const { rows } = await storage.query(
          `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = to_regclass('${storage.schema}.items')`,
        )
        return rows.length > 0
      }
      while (!(await waits())) await new Promise(setImmediate)
      await writer.query('COMMIT')
      await assert.rejects(begun, /killed/)
      assert.equal(await schemaState(db, idsOf(all)), 'old')
      // The index is in the state in which an interruption leaves it.
      await storage.query(`CREATE UNIQUE INDEX items_by_colour ON ${storage.schema}.items (colour)`).catch(() => {})
      await assert.rejects(
        storage.query(`CREATE UNIQUE INDEX CONCURRENTLY items_by_colour ON ${storage.schema}.items (colour)`),
      )
      await writer.query('BEGIN')
      await writer.query("INSERT INTO items (name) VALUES ('later')")
      const building = migrate(db, all)
      // The index is dropped, or waits to be dropped. Other transactions continue in both cases.
      await storage.query(`INSERT INTO ${storage.schema}.items (name) VALUES ('meanwhile')`)
      await writer.query('COMMIT')
      await writer.end()
      await building
      assert.equal(await schemaState(db, idsOf(all)), 'current')
      const { rows } = await storage.query(
        `SELECT indexrelid::regclass::text AS name, indisvalid AS valid, indisunique AS "unique" FROM pg_index
        WHERE indrelid IN (to_regclass('${storage.schema}.items'), to_regclass('${storage.schema}.others')) AND NOT indisprimary
        ORDER BY 1`,
      )
      const names = rows.map((row) => [row.name.replace(/.*\./, ''), row.valid, row.unique])
      assert.deepEqual(names, [
        ['items_by_colour', true, false],
        ['others_by_name', true, false],
      ])
      await assert.rejects(
        migrate(db, [first, { ...indexed, up: () => ['SELECT 1'] }]),
        /migration 0005-expand-index was changed after it was applied/,
      )
    }),
)

test(
  'two processes that build an index do so one after the other, without a deadlock',
  {
    skip: !onPostgres && 'nobody else migrates',
  },
  () =>
    withDb(async (db, storage) => {
      const byName: Migration = { id: '0005-expand-by-name', up: () => ['CREATE INDEX items_by_name ON items (name)'] }
      const all = [first, byName]
      await migrate(db, older)
      await addItems(db, ['a', 'bb'])
      const asked = async (like: string) => {
        const text = 'SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND query LIKE $2'
        while ((await storage.query(text, [storage.name, like])).rows.length === 0) await new Promise(setImmediate)
      }
      // The open transaction delays the index of the first migration until the second migration has requested its lock.
      const writer = await storage.connect()
      await writer.query(`BEGIN; INSERT INTO ${storage.schema}.items (name) VALUES ('open')`)
      const one = migrate(db, all)
      await asked('CREATE INDEX CONCURRENTLY%')
      const other = migrate(db, all)
      await asked('%advisory_lock(7420002%')
      await writer.query('COMMIT')
      await writer.end()
      assert.deepEqual(await Promise.all([one, other]), [[byName.id], []])
      assert.equal(await schemaState(db, idsOf(all)), 'current')
    }),
)

test(
  'runs each migration that allows running servers in its own transaction, unless the database is empty',
  {
    skip: !onPostgres && 'nobody is beside',
  },
  () =>
    withDb(async (db, storage) => {
      const breaking: Migration = { id: '0006-expand-broken', up: () => ['CREATE TABLE broken ('] }
      await migrate(db, older)
      await assert.rejects(migrate(db, [first, expand, breaking]), /migration 0006-expand-broken failed/)
      assert.equal(await schemaState(db, idsOf([first, expand])), 'current')
      const { rows } = await storage.query(`SELECT id FROM ${storage.schema}.schema_migrations ORDER BY id`)
      assert.deepEqual(
        rows.map(({ id }) => id),
        idsOf([first, expand]),
      )
    }),
)

test('checks the migrations of a current database in one transaction', async () => {
  await using storage = await createStorage()
  const db = await openDb({ database: storage.direct, file: join(storage.data, 'pinfold.db') })
  try {
    await migrate(db, migrations, { finish: true })
    const alone = () => Promise.reject(new Error('no index is missing'))
    const before = db.stats().transactions
    assert.deepEqual(await migrate({ ...db, ...(db.alone && { alone }) }, migrations, { finish: true }), [])
    assert.equal(db.stats().transactions, before + 1)
  } finally {
    await db.close()
  }
})

test('a server leaves migrations of an old database to pinfold migrate, unless told to migrate or running alone', async () => {
  await using storage = await createStorage()
  assert.equal((await run(['migrate', ...storage.args], { env: storage.env })).code, 0)
  const db = await openDb({ database: storage.direct, file: join(storage.data, 'pinfold.db') })
  const goBack = () =>
    db.tx(async (tx) => {
      await tx.run(sql`DROP INDEX tag_history_by_time`)
      await tx.run(sql`DELETE FROM schema_migrations WHERE id = '0086-history-by-time'`)
    })
  await goBack()
  if (onPostgres) {
    await assert.rejects(startProcess(storage), /schema of an earlier version; run pinfold migrate/)
    await using told = await startProcess(storage, { env: { PINFOLD_MIGRATE_AT_START: 'on' } })
    told.kill('SIGTERM')
    await told.exited
    await goBack()
    const migrated = await run(['migrate', '--finish', ...storage.args], { env: storage.env })
    assert.deepEqual([migrated.code, migrated.stderr], [0, ''])
  }
  await db.close()
  await using server = await startProcess(storage)
  assert.ok(server.url)
})

test('migrate --finish refuses while a server of another version runs, and works after it stopped', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using storage = await createStorage()
  // Long enough that a delayed server counts as alive.
  const env = { ...storage.env, PINFOLD_LEASE_MS: '15000' }
  await using server = await startProcess(storage, { env })
  await storage.query(`UPDATE ${storage.schema}.nodes SET version = '0.0.1'`)
  const finish = () => run(['migrate', '--finish', ...storage.args], { env })
  const refused = await finish()
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /a server of version 0\.0\.1 runs as http:.*; stop it first/)
  server.kill('SIGTERM')
  await server.exited
  assert.deepEqual((await finish()).code, 0)
})

test('migrate next to running servers runs only the migrations that allow this', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using storage = await createStorage()
  const env = { ...storage.env, PINFOLD_LEASE_MS: '15000' }
  await using server = await startProcess(storage, { env })
  const forget = (id: string) => storage.query(`DELETE FROM ${storage.schema}.schema_migrations WHERE id = '${id}'`)
  const migrateNow = () => run(['migrate', ...storage.args], { env })
  await storage.query(`ALTER TABLE ${storage.schema}.upstreams DROP COLUMN make_repos`)
  await forget('0128-expand-made-repos')
  const beside = await migrateNow()
  assert.deepEqual([beside.code, beside.stderr], [0, ''])
  await storage.query(`DROP INDEX ${storage.schema}.tag_history_by_time`)
  await forget('0086-history-by-time')
  const refused = await migrateNow()
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /migration 0086-history-by-time .* one runs as http:.*; stop all servers first/)
  const own = { ...env, PINFOLD_MIGRATE_AT_START: 'on' }
  await assert.rejects(
    startProcess(storage, { env: own }),
    /0086-history-by-time .* one runs as .*stop all servers first/,
  )
  server.kill('SIGTERM')
  await server.exited
  const alone = await migrateNow()
  assert.deepEqual([alone.code, alone.stderr], [0, ''])
})

/** A server that has read the schema, and is delayed before other servers can see it. `goOn` lets it continue. */
async function startHeldUp(storage: TestStorage, env: TestStorage['env']) {
  const holder = await storage.connect()
  await holder.query(`BEGIN; LOCK TABLE ${storage.schema}.facts IN EXCLUSIVE MODE`)
  const starting = startProcess(storage, { env })
  starting.catch(() => {})
  while (!(await storage.query(waitsFor(storage, 'facts'))).rows.length) await new Promise(setImmediate)
  const goOn = () => holder.query('COMMIT').finally(() => holder.end())
  return { starting, goOn }
}

/** Copies of a database have tables of the same numbers. */
const waitsFor = ({ schema }: TestStorage, table: string) => `
  SELECT 1 FROM pg_locks WHERE NOT granted AND relation = to_regclass('${schema}.${table}')
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

test('migrate also detects a server that started after its first check', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using storage = await createStorage()
  const env = { ...storage.env, PINFOLD_LEASE_MS: '15000' }
  assert.equal((await run(['migrate', ...storage.args], { env })).code, 0)
  const { starting, goOn } = await startHeldUp(storage, env)
  await storage.query(`DROP INDEX ${storage.schema}.tag_history_by_time`)
  await storage.query(`DELETE FROM ${storage.schema}.schema_migrations WHERE id = '0086-history-by-time'`)
  // The migration has seen no server, and waits for the migration lock.
  const holder = await storage.connect()
  await holder.query(`SET search_path = ${storage.schema}`)
  await holder.query(`SELECT pg_advisory_lock(7420001, hashtext(current_setting('search_path')))`)
  const migrating = runProcess(['migrate', ...storage.args], { env })
  const waits = `
    SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE NOT granted AND locktype = 'advisory' AND application_name = $1`
  while (!(await storage.query(waits, [storage.name])).rows.length) await new Promise(setImmediate)
  await goOn()
  await using server = await starting
  await holder.end()
  const { code, stderr } = await migrating
  assert.deepEqual([code, stderr.includes(`and one has started as ${server.url}; stop all servers first`)], [69, true])
})

/** A database of this build, also opened by this test, in which servers of the build start. */
async function migrated() {
  const closing = new AsyncDisposableStack()
  const storage = closing.use(await createStorage())
  const env = { ...storage.env, PINFOLD_LEASE_MS: '15000' }
  assert.equal((await run(['migrate', ...storage.args], { env })).code, 0)
  const db = closing.adopt(await openDb({ database: storage.direct, file: '' }), (open) => open.close())
  return { storage, env, db, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

const last: Migration = { id: '9999-contract-nothing', up: () => ['SELECT 1'] }

test('a server that starts during a contraction detects this, and does not serve', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using scene = await migrated()
  const { storage, env, db } = scene
  const { starting, goOn } = await startHeldUp(storage, env)
  const mayBreak = await requireNoServers(db, { leaseMs: 15_000 }, true)
  const finished = await migrate(db, [...migrations, last], {
    finish: true,
    async mayBreak(tx, id) {
      await mayBreak(tx, id)
      await goOn()
      while (!(await tx.get(raw(waitsFor(storage, 'nodes'))))) await new Promise(setImmediate)
    },
  })
  assert.deepEqual(finished, [last.id])
  await assert.rejects(starting, /schema of a newer version: .* migration 9999-contract-nothing/)
  assert.deepEqual((await storage.query(`SELECT id FROM ${storage.schema}.nodes`)).rows, [])
})

test('contractions require servers of other versions to stop, and migrations with `-all` all servers', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using scene = await migrated()
  const { storage, env, db } = scene
  const mayBreak = await requireNoServers(db, { leaseMs: 15_000 }, true)
  const breaking = (id: string) => db.tx((tx) => mayBreak(tx, id), { isolation: 'rowLocks' })
  await breaking('9998-all')
  await using server = await startProcess(storage, { env })
  await breaking(last.id)
  await assert.rejects(breaking('9998-all'), /migration 9998-all .* one has started as http/)
  await storage.query(`UPDATE ${storage.schema}.nodes SET version = '0.0.1'`)
  await assert.rejects(breaking(last.id), /a server of version 0\.0\.1 has started as http:.*; stop it first/)
  server.kill('SIGTERM')
  await server.exited
  await breaking(last.id)
})

test('a build increases the versions of rules also without knowing them', {
  skip: !onPostgres && 'there is one server',
}, async () => {
  await using scene = await migrated()
  const { storage, db } = scene
  const org = 'a'.repeat(40)
  const versions = async () =>
    (await db.all<{ version: number }>(sql`SELECT version FROM law_versions`)).map((r) => r.version)
  const write = (query: Parameters<Db['all']>[0]) => db.tx((tx) => tx.run(query))
  const columns = await db.all<{ name: string; type: string }>(sql`
    SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = ${storage.schema} AND table_name = 'groups' AND is_nullable = 'NO' AND column_default IS NULL
       AND is_identity = 'NO'`)
  const groupOf = ({ name, type }: { name: string; type: string }) =>
    name === 'uid' ? sql`${org}` : type === 'text' ? sql`''` : sql`0`
  await write(sql`
    INSERT INTO groups (${listed(columns.map(({ name }) => ident(name)))}) VALUES (${listed(columns.map(groupOf))})`)
  assert.deepEqual(await versions(), [])
  const rule = await db.all<{ name: string; type: string }>(sql`
    SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = ${storage.schema} AND table_name = 'holds' AND is_nullable = 'NO' AND column_default IS NULL
       AND is_identity = 'NO'`)
  const holdOf = ({ name, type }: { name: string; type: string }) =>
    /^(scope_uid|group_uid|organization)$/.test(name) ? sql`${org}` : type === 'text' ? sql`'x'` : sql`0`
  await write(sql`
    INSERT INTO holds (${listed(rule.map(({ name }) => ident(name)))}) VALUES (${listed(rule.map(holdOf))})`)
  assert.deepEqual(await versions(), [1])
  await write(sql`UPDATE holds SET scope_uid = scope_uid`)
  assert.deepEqual(await versions(), [2])
  await write(sql`DELETE FROM holds`)
  assert.deepEqual(await versions(), [3])
  // The rules of an organization and their version are deleted with it.
  await write(sql`DELETE FROM groups`)
  assert.deepEqual(await versions(), [])
})
