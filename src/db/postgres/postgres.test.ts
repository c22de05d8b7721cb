import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import pg from 'pg'
import { isBusy } from '#lib/errors.ts'
import { migrate, type SchemaChange } from '../migrate.ts'
import { raw, sql, type Tx, type TxOptions } from '../sql.ts'
import { isUnavailable } from '../unavailable.ts'
import { openPostgres } from './postgres.ts'

const database = process.env.PINFOLD_TEST_DATABASE ?? ''

async function open(options?: { poolSize: number; waitMs?: number }) {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const url = new URL(database)
  url.searchParams.set('schema', schema)
  const db = openPostgres(url.href, options)
  const up: SchemaChange['up'] = (t) => [
    `CREATE TABLE items (name ${t.text} PRIMARY KEY, amount ${t.int} NOT NULL DEFAULT 0)`,
  ]
  await migrate(db, [{ id: '0001', up }])
  const admin = new pg.Client(database)
  await admin.connect()
  async function close() {
    await db.close()
    await admin.query(`DROP SCHEMA ${schema} CASCADE`)
    await admin.end()
  }
  return { db, admin, schema, [Symbol.asyncDispose]: close }
}

const allowed = ['user', 'database', 'application_name', 'client_encoding']

/** Refuses parameters at the start of a connection like PgBouncer, and forwards all other data. */
async function startPooler(target: URL, seen: string[][]) {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const to = connect(Number(target.port || 5432), target.hostname)
    for (const socket of [client, to]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    client.once('data', (start: Buffer) => {
      const words = start.subarray(8, start.readInt32BE(0)).toString().split('\0')
      const names = words.filter((word, i) => i % 2 === 0 && word !== '')
      seen.push(names)
      const other = names.find((name) => !allowed.includes(name))
      if (other) return client.end(refusal(`unsupported startup parameter: ${other}`))
      to.write(start)
      client.pipe(to).pipe(client)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function refusal(message: string): Buffer {
  const body = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const pid = async (tx: Tx) => (await tx.get<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`))!.pid

suite('postgres alone', { skip: database === '' && 'PINFOLD_TEST_DATABASE is not set' }, () => {
  test('retries conflicting transactions', async () => {
    await using opened = await open()
    const { db } = opened
    await db.tx((tx) => tx.run(sql`INSERT INTO items (name) VALUES ('a')`))
    let bothRead = 0
    const meet = Promise.withResolvers<void>()
    const add = () =>
      db.tx(async (tx) => {
        const row = await tx.get<{ amount: number }>(sql`SELECT amount FROM items WHERE name = 'a'`)
        if (++bothRead === 2) meet.resolve()
        await meet.promise
        await tx.run(sql`UPDATE items SET amount = ${row!.amount + 1} WHERE name = 'a'`)
      })
    await Promise.all([add(), add()])
    assert.deepEqual(await db.get(sql`SELECT amount FROM items`), { amount: 2 })
    const { retries, again } = db.stats()
    assert.ok(retries >= 1)
    assert.equal(again.get('update conflict'), retries)
  })

  test('a transaction with deferred disk sync does not wait for the disk', async () => {
    await using opened = await open()
    const waits = (options?: TxOptions) =>
      opened.db.tx(async (tx) => (await tx.get<{ value: string }>(setting))!.value, options)
    const setting = sql`SELECT current_setting('synchronous_commit') AS value`
    assert.deepEqual([await waits(), await waits({ durability: 'later' }), await waits()], ['on', 'off', 'on'])
  })

  test('a transaction starts with its first statement; without statements it sends nothing to the server', async () => {
    await using opened = await open()
    const { db, admin } = opened
    const begun = async () => {
      const of = `SELECT 1 FROM pg_stat_activity WHERE pid = ${backend} AND xact_start IS NOT NULL`
      return (await admin.query(of)).rowCount! > 0
    }
    // The single open connection runs all transactions.
    const backend = await db.tx(pid)
    await db.tx(async (tx) => {
      assert.equal(await begun(), false)
      await tx.run(sql`INSERT INTO items (name) VALUES ('a')`)
      assert.equal(await begun(), true)
    })
    assert.equal(await begun(), false)
    await db.tx(async () => assert.equal(await begun(), false))
    assert.deepEqual(await db.all(sql`SELECT name FROM items`), [{ name: 'a' }])
    // A statement that is not awaited is rolled back with the transaction, and never runs alone.
    const early = db.tx(async (tx) => {
      const left = tx.run(sql`INSERT INTO items (name) VALUES ('early')`)
      left.catch(() => {})
      throw new Error('early')
    })
    await assert.rejects(early, { message: 'early' })
    await db.tx(async (tx) => void tx.run(sql`INSERT INTO items (name) VALUES ('late')`))
    assert.deepEqual(await db.all(sql`SELECT name FROM items ORDER BY name`), [{ name: 'a' }, { name: 'late' }])
    await db.tx((tx) => tx.run(sql`DELETE FROM items WHERE name = 'late'`))
    // Statements that start together start one transaction.
    await db.tx((tx) => Promise.all(['b', 'c'].map((name) => tx.run(sql`INSERT INTO items (name) VALUES (${name})`))))
    assert.equal((await db.all(sql`SELECT name FROM items`)).length, 3)
    const failed = db.tx((tx) =>
      Promise.all(['d', 'a'].map((name) => tx.run(sql`INSERT INTO items (name) VALUES (${name})`))),
    )
    await assert.rejects(failed, { code: '23505' })
    assert.equal((await db.all(sql`SELECT name FROM items`)).length, 3)
  })

  test('a transaction that names its lock group in advance waits before it starts', async () => {
    await using opened = await open({ poolSize: 2, waitMs: 5000 })
    const { db } = opened
    const meeting = { name: 'somewhere', most: 1 }
    const held = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    const first = db.tx(async (tx) => {
      await tx.meet(meeting)
      await tx.run(sql`INSERT INTO items (name) VALUES ('first')`)
      entered.resolve()
      await held.promise
    })
    await entered.promise
    let runs = 0
    const second = db.tx(
      async (tx) => {
        runs++
        // The transaction already has its turn.
        await tx.meet(meeting)
        return tx.all(sql`SELECT name FROM items`)
      },
      { meets: meeting },
    )
    // The transaction uses the other connection, which is free.
    const answers = await Promise.allSettled([db.ping(), db.ping(), db.ping()])
    const before = runs
    held.resolve()
    await first
    assert.deepEqual([before, ...answers.map(({ status }) => status)], [0, 'fulfilled', 'fulfilled', 'fulfilled'])
    assert.deepEqual(await second, [{ name: 'first' }])
    assert.equal(runs, 1)
  })

  test('retries a conflict even if the code wraps it in another error', async () => {
    await using opened = await open()
    const conflict = raw(`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$`)
    let runs = 0
    const result = await opened.db.tx(async (tx) => {
      if (++runs > 3) return 'done'
      try {
        await tx.run(conflict)
      } catch (cause) {
        throw new Error('hidden', { cause })
      }
    })
    assert.equal(result, 'done')
    const always = opened.db.tx((tx) => tx.run(conflict))
    await assert.rejects(always, (error) => isUnavailable(error))
  })

  test('reports a constraint violation after a few retries of the transaction', async () => {
    await using opened = await open()
    let runs = 0
    const twice = opened.db.tx(async (tx) => {
      runs++
      await tx.run(sql`INSERT INTO items (name) VALUES ('a')`)
      await tx.run(sql`INSERT INTO items (name) VALUES ('a')`)
    })
    await assert.rejects(twice, { code: '23505' })
    assert.equal(runs, 4)
  })

  test('reports a connection lost in a transaction as unavailable, and the pool replaces the connection', async () => {
    await using opened = await open({ poolSize: 1 })
    const { db, admin } = opened
    const lost = db.tx(async (tx) => {
      await admin.query('SELECT pg_terminate_backend($1)', [await pid(tx)])
      await new Promise((resolve) => setTimeout(resolve, 50)) // the socket closes while no statement runs
      await tx.run(sql`INSERT INTO items (name) VALUES ('a')`)
    })
    await assert.rejects(lost, isUnavailable)
    const idle = await db.tx(pid)
    await admin.query('SELECT pg_terminate_backend($1)', [idle])
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.notEqual(await db.tx(pid), idle)
    assert.deepEqual(await db.all(sql`SELECT name FROM items`), [])
  })

  test('rejects a transaction that waits too long for a connection, with a retry time, and counts it', async () => {
    await using opened = await open({ poolSize: 1, waitMs: 3000 })
    const { db } = opened
    const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = db.tx(async (tx) => {
      await tx.get(sql`SELECT 1 AS one`)
      begun.resolve()
      await go.promise
    })
    await begun.promise
    await assert.rejects(db.all(sql`SELECT 1 AS one`), isBusy)
    await assert.rejects(db.tx(pid), isBusy)
    go.resolve()
    await holding
    assert.equal(db.stats().refused, 2)
    assert.ok(await db.tx(pid))
  })

  test('reports a silent database as unavailable, also to callers that wait for new connections', async () => {
    // Accepts connections and never responds.
    const silent = createServer((socket) => socket.resume().on('error', () => {})).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const db = openPostgres(`postgres://nobody@127.0.0.1:${port}/none`, { poolSize: 2, waitMs: 100 })
    try {
      const asked = await Promise.allSettled([
        ...[1, 2, 3].map(() => db.all(sql`SELECT 1 AS one`)),
        ...[1, 2].map(() => db.tx(async () => 'on')),
      ])
      for (const one of asked) {
        assert.equal(one.status, 'rejected')
        assert.deepEqual([isBusy(one.reason), isUnavailable(one.reason)], [false, true], String(one.reason))
      }
      assert.equal(db.stats().refused, 0)
    } finally {
      await db.close()
      silent.close()
    }
  })

  test('reports a statement above its time limit as unavailable, and keeps the connection', async () => {
    await using opened = await open()
    const slow = opened.db.tx(async (tx) => {
      await tx.run(sql`SET LOCAL statement_timeout = 20`)
      await tx.all(sql`SELECT pg_sleep(20)`)
    })
    await assert.rejects(slow, (error) => isUnavailable(error))
    assert.ok(await opened.db.tx(pid))
  })

  test('does not commit a partial transaction whose caller does not await it', async () => {
    await using opened = await open()
    const { db } = opened
    const floating = db.tx(async (tx) => {
      await tx.run(sql`INSERT INTO items (name) VALUES ('a')`)
      tx.run(sql`INSERT INTO nowhere VALUES (1)`).catch(() => {})
    })
    await assert.rejects(floating, /statement of this transaction has failed/)
    assert.deepEqual(await db.all(sql`SELECT name FROM items`), [])
  })

  test('each connection has its own shard and the session settings', async () => {
    await using opened = await open()
    const { db, schema } = opened
    const shards = new Map<number, Set<number>>()
    await Promise.all(
      Array.from({ length: 40 }, () =>
        db.tx(async (tx) => {
          const connection = await pid(tx)
          assert.ok(Number.isInteger(tx.shard) && tx.shard >= 0 && tx.shard < 256)
          shards.set(connection, (shards.get(connection) ?? new Set()).add(tx.shard))
        }),
      ),
    )
    for (const chosen of shards.values()) assert.equal(chosen.size, 1)
    const settings = await db.tx((tx) =>
      tx.get(sql`
        SELECT current_setting('search_path') AS path, current_setting('statement_timeout') AS slow,
               current_setting('synchronous_commit') AS sync, current_setting('transaction_isolation') AS level`),
    )
    assert.deepEqual(settings, { path: schema, slow: '30s', sync: 'on', level: 'serializable' })
  })

  test('with a pooler, sends no session parameters, and uses statement names that connections can share', async () => {
    await using opened = await open()
    const target = new URL(database)
    const seen: string[][] = []
    await using pooler = await startPooler(target, seen)
    const url = new URL(database)
    Object.assign(url, { hostname: '127.0.0.1', port: String(pooler.port) })
    const direct = openPostgres(url.href)
    await assert.rejects(direct.ping(), /unsupported startup parameter/)
    await direct.close()
    url.searchParams.set('pooled', 'true')
    const names = async () => {
      const db = openPostgres(url.href, { poolSize: 1 })
      // A unique text, so that a number would show the order of the texts.
      await db.all(sql`SELECT ${raw(String(seen.length))} AS before WHERE 1 = ${1}`)
      await db.all(sql`SELECT ${raw(String(seen.length))} AS before WHERE 1 = ${1}`)
      for (let i = 0; i < 2; i++) await db.all(sql`SELECT 'same' AS same WHERE 1 = ${1}`)
      const [row] = await db.all<{ name: string }>(sql`
        SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT ''same''%'`)
      await db.close()
      return row!.name
    }
    assert.equal(await names(), await names())
    assert.ok(opened.schema)
    url.searchParams.set('schema', 'x')
    assert.throws(() => openPostgres(url.href), /cannot have a schema with pooled=true/)
  })

  test('compares text columns by bytes, whatever the collation of the database', async () => {
    await using opened = await open()
    const column = await opened.db.get(sql`
      SELECT collation_name AS name FROM information_schema.columns
       WHERE table_schema = ${opened.schema} AND table_name = 'items' AND column_name = 'name'`)
    assert.deepEqual(column, { name: 'C' })
  })

  test('prepares repeated statements, up to a limit', async () => {
    await using opened = await open({ poolSize: 1 })
    const { db } = opened
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 600; i++) await db.all(sql`SELECT ${raw(String(i))} AS n WHERE 1 = ${1}`)
    }
    await db.all(sql`SELECT 'once' AS once`)
    const kept = await db.get<{ n: number; once: number }>(sql`
      SELECT count(*) AS n, sum(CASE WHEN statement LIKE '%once%' THEN 1 ELSE 0 END) AS once
        FROM pg_prepared_statements WHERE name LIKE 'pinfold%'`)
    assert.deepEqual(kept, { n: 500, once: 0 })
  })
})
