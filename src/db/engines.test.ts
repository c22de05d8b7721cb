// Behavior that both engines guarantee. The tests run on PostgreSQL if PINFOLD_TEST_DATABASE names a database, each time in a new
// schema.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { suite, test } from 'node:test'
import pg from 'pg'
import { type Migration, migrate } from './migrate.ts'
import { openDb } from './open.ts'
import { openPostgres } from './postgres/postgres.ts'
import { type Db, list, raw, sql, type Tx } from './sql.ts'
import { isUnavailable } from './unavailable.ts'

type Opened = AsyncDisposable & { db: Db; another(): Promise<Db> }

const first: Migration = {
  id: '0001-items',
  up: (t) => [
    `CREATE TABLE items (name ${t.text} PRIMARY KEY, amount ${t.int} NOT NULL DEFAULT 0, body ${t.bytes})${t.withoutRowid}`,
    `CREATE TABLE parts (id ${t.id}, item ${t.text} NOT NULL REFERENCES items (name), used ${t.bool})${t.strict}`,
    'CREATE INDEX items_by_amount ON items (amount, name)',
  ],
}
const second: Migration = { id: '0002-colour', up: (t) => [`ALTER TABLE items ADD COLUMN colour ${t.text}`] }

async function sqliteOptions() {
  const folder = await mkdtemp(path(tmpdir(), 'pinfold-db-'))
  return {
    options: { database: '', file: path(folder, 'new', 'pinfold.db') },
    clean: () => rm(folder, { recursive: true }),
  }
}

async function postgresOptions(database: string) {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const url = new URL(database)
  url.searchParams.set('schema', schema)
  async function clean() {
    const client = new pg.Client(database)
    await client.connect()
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    await client.end()
  }
  return { options: { database: url.href, file: '' }, clean }
}

const database = process.env.PINFOLD_TEST_DATABASE
const engines = { sqlite: sqliteOptions, ...(database && { postgres: () => postgresOptions(database) }) }

for (const [engine, prepare] of Object.entries(engines)) {
  async function open(migrations: readonly Migration[] = [first]): Promise<Opened> {
    await using opening = new AsyncDisposableStack()
    const { options, clean } = await prepare()
    opening.defer(clean)
    const nodes = opening.use(new AsyncDisposableStack())
    const another = async () => nodes.adopt(await openDb(options), (db) => db.close())
    const db = await another()
    if (migrations.length > 0) await migrate(db, migrations)
    const opened = opening.move()
    return { db, another, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  }

  const insert = (tx: Tx, name: string, amount = 0) =>
    tx.run(sql`INSERT INTO items (name, amount) VALUES (${name}, ${amount})`)
  const names = async (db: Db) =>
    (await db.all<{ name: string }>(sql`SELECT name FROM items ORDER BY name`)).map((r) => r.name)

  function listen(db: Db): string[] {
    const told: string[] = []
    db.onCommit((changes) => void told.push(...changes))
    return told
  }

  suite(engine, () => {
    test('rolls back only the transaction that throws, and commits the others', async () => {
      await using opened = await open()
      const { db } = opened
      const results = await Promise.allSettled(
        ['a', 'b', 'c', 'd', 'e'].map((name) =>
          db.tx(async (tx) => {
            await insert(tx, name)
            if (name === 'c') throw new Error('no c')
            return name
          }),
        ),
      )
      const answers = results.map((r) => (r.status === 'fulfilled' ? r.value : r.reason.message))
      assert.deepEqual(answers, ['a', 'b', 'no c', 'd', 'e'])
      assert.deepEqual(await names(db), ['a', 'b', 'd', 'e'])
    })

    test('concurrent read-modify-write transactions on one row lose no change', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'counter'))
      const add = (n: number) =>
        db.tx(async (tx) => {
          const row = await tx.get<{ amount: number }>(sql`SELECT amount FROM items WHERE name = 'counter'`)
          await tx.run(sql`UPDATE items SET amount = ${row!.amount + n} WHERE name = 'counter'`)
        })
      await Promise.all(Array.from({ length: 60 }, (_, i) => add(i)))
      assert.deepEqual(await db.get(sql`SELECT amount FROM items WHERE name = 'counter'`), { amount: (59 * 60) / 2 })
    })

    test('two concurrent transactions that check and then write cannot both pass the check', async () => {
      await using opened = await open()
      const { db } = opened
      const claim = () =>
        db.tx(async (tx) => {
          if (await tx.get(sql`SELECT name FROM items WHERE name = 'one'`)) throw new Error('taken')
          await insert(tx, 'one')
          return 'mine'
        })
      const results = await Promise.allSettled(Array.from({ length: 8 }, claim))
      const answers = results.map((r) => (r.status === 'fulfilled' ? r.value : r.reason.message)).sort()
      assert.deepEqual(answers, ['mine', ...Array(7).fill('taken')])
    })

    test('refuses a nested transaction, or a read of db inside a transaction, and continues to work', async () => {
      await using opened = await open()
      const { db } = opened
      const count = sql`SELECT count(*) AS n FROM items`
      for (const nested of [() => db.tx(async () => 1), () => db.all(count), () => db.get(count)]) {
        const outer = db.tx(async (tx) => {
          await insert(tx, 'lost')
          await nested()
        })
        await assert.rejects(outer, /inside a transaction; use its tx/)
      }
      await db.tx((tx) => insert(tx, 'kept'))
      assert.deepEqual(await names(db), ['kept'])
    })

    test('code started in a transaction can use the database after the transaction has ended', async () => {
      await using opened = await open()
      const { db } = opened
      const later = Promise.withResolvers<unknown>()
      await db.tx(async (tx) => {
        await insert(tx, 'a')
        setTimeout(() => later.resolve(db.tx((inner) => insert(inner, 'b'))), 20)
      })
      assert.equal(await later.promise, 1)
    })

    test('refuses a tx that is used after its transaction', async () => {
      await using opened = await open()
      const { db } = opened
      const kept = await db.tx(async (tx) => [tx])
      await assert.rejects(insert(kept[0]!, 'late'), /the transaction has ended/)
      const failing: Tx[] = []
      await assert.rejects(
        db.tx(async (tx) => {
          failing.push(tx)
          throw new Error('stop')
        }),
        /stop/,
      )
      await assert.rejects(failing[0]!.all(sql`SELECT 1`), /the transaction has ended/)
      assert.deepEqual(await names(db), [])
    })

    test('a transaction reads its own writes, and others only after the commit', async () => {
      await using opened = await open()
      const { db } = opened
      const written = Promise.withResolvers<void>()
      const looked = Promise.withResolvers<void>()
      const work = db.tx(async (tx) => {
        await insert(tx, 'a')
        const own = await tx.get(sql`SELECT name FROM items`)
        written.resolve()
        await looked.promise
        return own
      })
      await written.promise
      const outside = await names(db)
      looked.resolve()
      assert.deepEqual(await work, { name: 'a' })
      assert.deepEqual(outside, [])
      assert.deepEqual(await names(db), ['a'])
    })

    test('a failed statement rolls back the transaction even if the code catches the error', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'a'))
      const swallow = db.tx(async (tx) => {
        await insert(tx, 'b')
        await insert(tx, 'a').catch(() => {})
        return 'fine'
      })
      await assert.rejects(swallow, /unique/i)
      const goOn = db.tx(async (tx) => {
        await insert(tx, 'a').catch(() => {})
        await insert(tx, 'c')
      })
      await assert.rejects(goOn, /a statement of this transaction has failed/)
      assert.deepEqual(await names(db), ['a'])
    })

    test('reports a violated foreign key as an error, also with RETURNING', async () => {
      await using opened = await open()
      const { db } = opened
      const part = sql`INSERT INTO parts (item, used) VALUES (${'nowhere'}, ${1}) RETURNING id`
      await assert.rejects(
        db.tx((tx) => tx.get(part)),
        /foreign key/i,
      )
      await assert.rejects(
        db.tx((tx) => tx.run(part)),
        /foreign key/i,
      )
      assert.deepEqual(await db.all(sql`SELECT id FROM parts`), [])
    })

    test('statements started together in a transaction all run', async () => {
      await using opened = await open()
      const { db } = opened
      const changed = await db.tx((tx) => Promise.all(['a', 'b', 'c'].map((name) => insert(tx, name))))
      assert.deepEqual(changed, [1, 1, 1])
      assert.equal(await db.tx((tx) => tx.run(sql`UPDATE items SET amount = amount + ${1}`)), 3)
      assert.equal(await db.tx((tx) => tx.run(sql`INSERT INTO items (name) VALUES ('a') ON CONFLICT DO NOTHING`)), 0)
    })

    test('returns values as they were stored, in plain objects', async () => {
      await using opened = await open()
      const { db } = opened
      const body = new Uint8Array([0, 1, 255])
      for (const [name, amount] of Object.entries({ max: 2 ** 53 - 1, min: -(2 ** 53 - 1), zero: 0 })) {
        await db.tx((tx) => tx.run(sql`INSERT INTO items (name, amount, body) VALUES (${name}, ${amount}, ${body})`))
        const row = await db.get(sql`SELECT name, amount, body FROM items WHERE amount = ${amount}`)
        assert.deepEqual(row, { name, amount, body })
      }
      const tagged = await db.get(sql`
        SELECT count(*) AS rows, sum(amount) AS total, count(*) > 1 AS many, min(amount) IS NULL AS none,
               'n' || CAST(${5} AS ${raw(db.engine === 'sqlite' ? 'INTEGER' : 'BIGINT')}) AS text
          FROM items`)
      assert.deepEqual(tagged, { rows: 3, total: 0, many: 1, none: 0, text: 'n5' })
    })

    test('throws for an integer outside the exact range of a number', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => tx.run(sql`INSERT INTO items (name, amount) VALUES ('big', 9007199254740993)`))
      await assert.rejects(db.all(sql`SELECT amount FROM items`), RangeError)
      assert.equal((await names(db)).length, 1)
    })

    test('sorts text by bytes', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => Promise.all(['a-b', 'a_c', 'ab', 'B', 'é', 'z'].map((name) => insert(tx, name))))
      assert.deepEqual(await names(db), ['B', 'a-b', 'a_c', 'ab', 'z', 'é'])
    })

    test('an empty list matches nothing', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'a'))
      assert.deepEqual(await db.all(sql`SELECT name FROM items WHERE name IN (${list([])})`), [])
      assert.equal((await db.all(sql`SELECT name FROM items WHERE name IN (${list(['a', 'b'])})`)).length, 1)
    })

    test('a query plan names its index, or a scan if there is none', async () => {
      await using opened = await open()
      const { db } = opened
      assert.match(await db.plan(sql`SELECT name FROM items WHERE amount = ${1}`), /items_by_amount/)
      assert.match(await db.plan(sql`SELECT id FROM parts WHERE used = ${1}`), /^(SCAN parts|Seq Scan on parts)/)
    })

    test('a statement with a syntax error leaves the database usable', async () => {
      await using opened = await open()
      const { db } = opened
      await assert.rejects(db.all(sql`SELECT nothing FROM nowhere`))
      await assert.rejects(db.tx((tx) => tx.run(sql`SELEKT ${1}`)))
      await db.tx((tx) => insert(tx, 'a'))
      assert.deepEqual(await names(db), ['a'])
    })

    test('applies each migration once, and later migrations separately', async () => {
      await using opened = await open([])
      const { db } = opened
      assert.deepEqual(await migrate(db, [first]), ['0001-items'])
      await db.tx((tx) => insert(tx, 'a'))
      assert.deepEqual(await db.all(sql`SELECT * FROM items`), [{ name: 'a', amount: 0, body: null }])
      assert.deepEqual(await migrate(db, [first]), [])
      assert.deepEqual(await migrate(db, [first, second]), ['0002-colour'])
      assert.deepEqual(await names(db), ['a'])
      const row = await db.get<{ applied_time: string }>(sql`SELECT applied_time FROM schema_migrations`)
      assert.match(row!.applied_time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    })

    test('refuses an edited or unknown migration', async () => {
      await using opened = await open([first, second])
      const { db } = opened
      const edited = { ...first, up: () => ['CREATE TABLE other (id INTEGER)'] }
      await assert.rejects(migrate(db, [edited, second]), /migration 0001-items was changed after it was applied/)
      await assert.rejects(migrate(db, [first]), /schema of a newer version: .* migration 0002-colour/)
      await assert.rejects(migrate(db, [second, first]), /migration 0001-items must sort after 0002-colour/)
      await assert.rejects(migrate(db, [first, first]), /must sort after/)
    })

    test('applies all migrations or none', async () => {
      await using opened = await open([])
      const { db } = opened
      const broken = { id: '0002-broken', up: () => ['CREATE TABLE fine (id INTEGER)', 'CREATE TABLE broken ('] }
      await assert.rejects(migrate(db, [first, broken]), /migration 0002-broken failed/)
      await assert.rejects(names(db))
      assert.deepEqual(await migrate(db, [first, second]), ['0001-items', '0002-colour'])
    })

    test('nodes that start together apply each migration once', async () => {
      await using opened = await open([])
      const nodes = [opened.db, engine === 'sqlite' ? opened.db : await opened.another(), opened.db]
      const together = async (migrations: Migration[]) =>
        (await Promise.all(nodes.map((db) => migrate(db, migrations)))).flat()
      assert.deepEqual(await together([first]), ['0001-items'])
      assert.deepEqual(await together([first, second]), ['0002-colour'])
      assert.deepEqual(await names(opened.db), [])
    })

    test('calls the callback once after a successful transaction, and a transaction in the callback sees it', async () => {
      await using opened = await open()
      const { db } = opened
      const seen: Promise<string[]>[] = []
      const look = () =>
        void seen.push(
          db.tx(async (tx) => (await tx.all<{ name: string }>(sql`SELECT name FROM items`)).map(({ name }) => name)),
        )
      await db.tx(async (tx) => {
        tx.after(look)
        await insert(tx, 'a')
        assert.equal(seen.length, 0)
      })
      assert.deepEqual(await Promise.all(seen), [['a']])
      await assert.rejects(
        db.tx(async (tx) => {
          tx.after(look)
          throw new Error('no')
        }),
      )
      // A retried transaction requests the callback again, and only the last request counts.
      await Promise.all(
        Array.from({ length: 8 }, () =>
          db.tx(async (tx) => {
            tx.after(look)
            const row = await tx.get<{ amount: number }>(sql`SELECT amount FROM items WHERE name = 'a'`)
            await tx.run(sql`UPDATE items SET amount = ${row!.amount + 1} WHERE name = 'a'`)
          }),
        ),
      )
      assert.equal(seen.length, 9)
    })

    test('reports changes after the commit, before the caller of the transaction continues', async () => {
      await using opened = await open()
      const { db } = opened
      const told = listen(db)
      await db.tx((tx) => insert(tx, 'a'))
      assert.deepEqual(told.splice(0), ['insert items'])
      await db.tx((tx) => tx.get(sql`DELETE FROM items WHERE name = ${'a'} RETURNING name`))
      assert.deepEqual(told.splice(0), ['delete items'])
      await db.tx((tx) => tx.all(sql`SELECT name FROM items`))
      await db.all(sql`SELECT name FROM items`)
      assert.deepEqual(told, [])
    })

    test('listeners of a commit can read its changes, and no earlier read can', async () => {
      await using opened = await open()
      const { db } = opened
      const read: Promise<string[]>[] = []
      db.onCommit(() => void read.push(names(db)))
      await db.tx(async (tx) => {
        await insert(tx, 'a')
        assert.equal(read.length, 0)
      })
      assert.deepEqual(await Promise.all(read), [['a']])
    })

    test('a rolled-back transaction reports no change, also between others of its commit', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'a'))
      const told = listen(db)
      const works = [
        (tx: Tx) => insert(tx, 'b'),
        async (tx: Tx) => {
          await tx.run(sql`DELETE FROM items WHERE name = 'a'`)
          throw new Error('no')
        },
        (tx: Tx) => tx.run(sql`INSERT INTO parts (item, used) VALUES ('a', 1)`),
      ]
      const [, refused] = await Promise.allSettled(works.map((work) => db.tx<unknown>(work)))
      assert.equal(refused!.status, 'rejected')
      assert.deepEqual([...new Set(told)].sort(), ['insert items', 'insert parts'])
      assert.deepEqual(await names(db), ['a', 'b'])
    })

    test('reports only the final changes of a retried transaction', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'counter'))
      const told = listen(db)
      const met = Promise.withResolvers<void>()
      const runs = [0, 0]
      await Promise.all(
        runs.map((_, i) =>
          db.tx(async (tx) => {
            const first = runs[i]!++ === 0
            const row = await tx.get<{ amount: number }>(sql`SELECT amount FROM items WHERE name = 'counter'`)
            // On PostgreSQL both transactions read before either writes, so one of them is retried.
            if (engine === 'postgres' && runs.every((count) => count > 0)) met.resolve()
            if (engine === 'postgres') await met.promise
            if (first && row!.amount === 0) await tx.run(sql`DELETE FROM parts`)
            else await tx.run(sql`INSERT INTO parts (item, used) VALUES ('counter', ${row!.amount})`)
            await tx.run(sql`UPDATE items SET amount = ${row!.amount + 1} WHERE name = 'counter'`)
          }),
        ),
      )
      assert.deepEqual([...new Set(told)].sort(), ['delete parts', 'insert parts', 'update items'])
      assert.equal(told.filter((change) => change === 'delete parts').length, 1)
      assert.deepEqual(runs.sort(), engine === 'postgres' ? [1, 2] : [1, 1])
    })

    test('transactions that lock rows wait for each other and never conflict', async () => {
      await using opened = await open()
      const { db } = opened
      await db.tx((tx) => insert(tx, 'counter'))
      const retries = db.stats().retries
      const numbers = await Promise.all(
        Array.from({ length: 30 }, () =>
          db.tx(
            async (tx) => {
              const row = await tx.get<{ amount: number }>(sql`
                UPDATE items SET amount = amount + 1 WHERE name = 'counter' RETURNING amount`)
              await insert(tx, `row ${row!.amount}`)
              return row!.amount
            },
            { isolation: 'rowLocks' },
          ),
        ),
      )
      assert.deepEqual(
        numbers.sort((a, b) => a - b),
        Array.from({ length: 30 }, (_, i) => i + 1),
      )
      assert.equal(db.stats().retries, retries)
    })

    test('a closed database refuses transactions', async () => {
      await using opened = await open()
      const last = opened.db.tx((tx) => insert(tx, 'a'))
      await last
      await opened.db.close()
      await opened.db.close()
      await assert.rejects(opened.db.tx(async () => 1))
    })
  })
}

test('reports a missing PostgreSQL server as unavailable, without the password in the error', async () => {
  const db = openPostgres('postgres://me:secret@127.0.0.1:1/none')
  for (const attempt of [db.all(sql`SELECT 1`), db.tx(async () => 1)]) {
    await assert.rejects(attempt, (error: Error) => isUnavailable(error) && !error.message.includes('secret'))
  }
  await db.close()
  assert.throws(
    () => openPostgres('postgres://me:secret@host:port/x'),
    /^Error: the database must be a postgres:\/\/ URL$/,
  )
  assert.throws(() => openPostgres('postgres://h/x?schema=a;b'), /lowercase name/)
})
