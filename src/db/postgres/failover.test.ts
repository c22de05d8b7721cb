import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import pg from 'pg'
import { isBusy } from '#lib/errors.ts'
import { startWire } from '../../../test/support/wire.ts'
import { raw, sql, type Tx } from '../sql.ts'
import { isUnavailable } from '../unavailable.ts'
import { openPostgres, type PostgresOptions } from './postgres.ts'

const never = { answerMs: 600_000, quickMs: 600_000, silentMs: 600_000, watchMs: 600_000 }
const database = process.env.PINFOLD_TEST_DATABASE ?? ''

/** Database with one table, on a connection that the test can interrupt. No time limit applies unless the test sets one. */
async function open({ times, ...options }: PostgresOptions = {}) {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const admin = new pg.Client(database)
  await admin.connect()
  await admin.query(`CREATE SCHEMA ${schema}`)
  await admin.query(`CREATE TABLE ${schema}.items (name text PRIMARY KEY)`)
  const url = new URL(database)
  const wire = await startWire({ host: url.hostname, port: Number(url.port || 5432) })
  Object.assign(url, { hostname: '127.0.0.1', port: String(wire.port) })
  url.searchParams.set('schema', schema)
  const db = openPostgres(url.href, { ...options, times: { ...never, ...times } })
  async function close() {
    wire.close()
    await db.close()
    await admin.query(`DROP SCHEMA ${schema} CASCADE`)
    await admin.end()
  }
  const names = async () =>
    (await admin.query(`SELECT name FROM ${schema}.items ORDER BY name`)).rows.map((r) => r.name)
  return { db, admin, schema, url, wire, names, [Symbol.asyncDispose]: close }
}

/** Opens the same database through a simulated pooler. */
function openPooled(url: URL, { times, ...options }: PostgresOptions) {
  const pooled = new URL(url)
  pooled.searchParams.delete('schema')
  pooled.searchParams.set('pooled', 'true')
  return openPostgres(pooled.href, { ...options, times: { ...never, ...times } })
}

const pid = async (tx: Tx) => (await tx.get<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`))!.pid
const insert = (name: string) => sql`INSERT INTO items (name) VALUES (${name})`

suite('postgres failover', { skip: database === '' && 'PINFOLD_TEST_DATABASE is not set' }, () => {
  test('closes all silent connections once a new connection gets an answer', async () => {
    await using opened = await open({ poolSize: 4, times: { silentMs: 250, watchMs: 50 } })
    const { db, wire } = opened
    const go = Promise.withResolvers<void>()
    const begun = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    const works = begun.map((one, i) =>
      db.tx(async (tx) => {
        await tx.get(sql`SELECT 1 AS one`)
        one.resolve()
        // The last statement leaves its connection idle. The statement before sends nothing until the others have failed.
        if (i === 3) return
        await go.promise
        if (i === 2) await Promise.allSettled(works.slice(0, 2))
        await tx.run(insert(String(i)))
      }),
    )
    await Promise.all(begun.map(({ promise }) => promise))
    await works[3]
    wire.set('moved')
    go.resolve()
    const ended = await Promise.allSettled(works.slice(0, 3))
    assert.deepEqual(
      ended.map((one) => one.status === 'rejected' && isUnavailable(one.reason)),
      [true, true, true],
    )
    const rows = await Promise.all(Array.from({ length: 4 }, () => db.get(sql`SELECT 1 AS one`)))
    assert.deepEqual(rows, Array(4).fill({ one: 1 }))
    assert.deepEqual(await opened.names(), [])
  })

  test('keeps a connection while the server runs its statement, also without track_activities', async () => {
    const times = { silentMs: 20, watchMs: 10 }
    await using opened = await open({ times })
    const { db, wire, url } = opened
    const untracked = new URL(url)
    untracked.searchParams.set('options', '-c track_activities=off')
    const other = openPostgres(untracked.href, { times: { ...never, ...times } })
    const woke = await other.get(sql`SELECT pg_sleep(0.2) IS NULL AS woke`).finally(() => other.close())
    assert.deepEqual(woke, { woke: 0 })
    const before = wire.accepted()
    const slept = await Promise.all(Array.from({ length: 3 }, () => db.get(sql`SELECT pg_sleep(0.5) IS NULL AS woke`)))
    assert.deepEqual(slept, Array(3).fill({ woke: 0 }))
    // One more request for each check, and no more while the statements run.
    const accepted = wire.accepted() - before
    assert.ok(accepted <= 3 + 3, String(accepted))
  })

  test('with a pooler, keeps the connections of a full pool with slow statements', async () => {
    await using opened = await open()
    const pooled = openPooled(opened.url, { poolSize: 2, times: { silentMs: 20, watchMs: 10 } })
    try {
      const slept = await Promise.all(
        Array.from({ length: 3 }, () => pooled.get(sql`SELECT pg_sleep(0.3) IS NULL AS woke`)),
      )
      assert.deepEqual(slept, Array(3).fill({ woke: 0 }))
    } finally {
      await pooled.close()
    }
  })

  test('with a pooler, two unanswered statements replace all connections', async () => {
    await using opened = await open()
    const pooled = openPooled(opened.url, { poolSize: 3, times: { answerMs: 1000, watchMs: 10 } })
    const ask = () => pooled.get(sql`SELECT 1 AS one`)
    try {
      await Promise.all([ask(), ask(), ask()])
      opened.wire.set('moved')
      const lost = await Promise.allSettled([ask(), ask()])
      assert.ok(lost.every((one) => one.status === 'rejected' && /did not answer within 1 s/.test(String(one.reason))))
      // The third connection is closed after a shorter wait.
      await ask().catch((error: unknown) => assert.match(String(error), /Connection terminated/))
      assert.deepEqual(await ask(), { one: 1 })
    } finally {
      await pooled.close()
    }
  })

  test('keeps the connections of migrations', async () => {
    await using opened = await open({ poolSize: 4, times: { silentMs: 250, watchMs: 50 } })
    const { db, wire } = opened
    const [inTx, outside, go] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [
      PromiseWithResolvers<void>,
      PromiseWithResolvers<void>,
      PromiseWithResolvers<void>,
    ]
    let ended = 0
    const work = async (one: Pick<Tx, 'get'>, begun: PromiseWithResolvers<void>) => {
      await one.get(sql`SELECT 1 AS one`)
      begun.resolve()
      await go.promise
      await one.get(sql`SELECT 1 AS one`)
    }
    const kept = [db.tx((tx) => work(tx, inTx), { timeLimit: 'none' }), db.alone!((one) => work(one, outside))].map(
      (one) => one.catch(() => {}).finally(() => ended++),
    )
    await Promise.all([inTx.promise, outside.promise])
    await Promise.all([db.get(sql`SELECT 1 AS one`), db.get(sql`SELECT 1 AS one`)])
    wire.set('moved')
    go.resolve()
    const asked = await Promise.allSettled([db.get(sql`SELECT 1 AS one`), db.get(sql`SELECT 1 AS one`)])
    assert.deepEqual(
      asked.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.deepEqual(await db.get(sql`SELECT 1 AS one`), { one: 1 })
    assert.equal(ended, 0)
    wire.close()
    await Promise.all(kept)
  })

  test('closes a connection whose statement gets no answer in time, and uses another one', async () => {
    await using opened = await open({ poolSize: 1, times: { answerMs: 100 } })
    const { db, wire } = opened
    await db.tx(pid)
    wire.set('moved')
    let runs = 0
    const work = async (tx: Tx) => {
      runs++
      await tx.run(insert('a'))
    }
    await assert.rejects(
      db.tx(work),
      (error) => isUnavailable(error) && /did not answer within 0.1 s/.test(String(error)),
    )
    await db.tx(work)
    assert.deepEqual([runs, await opened.names()], [2, ['a']])
  })

  test('does not repeat a transaction whose COMMIT got no answer', async () => {
    await using opened = await open({ poolSize: 1, times: { answerMs: 100 } })
    const { db, wire, names } = opened
    let runs = 0
    const lost = db.tx(async (tx) => {
      runs++
      await tx.run(insert(String(runs)))
      wire.set('mute')
    })
    await assert.rejects(lost, isUnavailable)
    wire.set('open')
    assert.deepEqual([runs, await names()], [1, ['1']])
  })

  test('unanswered health checks and heartbeats replace all connections, also with a pooler', async () => {
    await using opened = await open({ poolSize: 3, times: { quickMs: 100 } })
    const { db, wire, url } = opened
    const pooled = openPooled(url, { poolSize: 3, times: { quickMs: 100 } })
    try {
      for (const one of [db, pooled]) {
        wire.set('open')
        await Promise.all([one.ping(), one.ping(), one.ping()])
        wire.set('moved')
        const hangs = one.get(sql`SELECT 1 AS one`)
        const beat = one.quick!.tx((tx) => tx.get(sql`SELECT 1 AS one`))
        const asked = await Promise.allSettled([hangs, one.ping(), beat])
        assert.ok(asked.every(({ status, ...rest }) => status === 'rejected' && isUnavailable(Object.values(rest)[0])))
        await one.ping()
      }
    } finally {
      await pooled.close()
    }
  })

  test('a health check tells a pool without a free connection from a database that does not respond', async () => {
    await using opened = await open({ poolSize: 2 })
    const { db, wire } = opened
    const release = Promise.withResolvers<void>()
    const begun = [0, 1].map(() => Promise.withResolvers<void>())
    const works = begun.map((one) =>
      db.tx(async (tx) => {
        await tx.get(sql`SELECT 1 AS one`)
        one.resolve()
        await release.promise
      }),
    )
    await Promise.all(begun.map(({ promise }) => promise))
    await assert.rejects(db.ping(), isBusy)
    wire.set('held')
    await assert.rejects(db.ping(), (error) => isUnavailable(error) && !isBusy(error))
    wire.set('open')
    release.resolve()
    await Promise.allSettled(works)
    await db.ping()
  })

  test('the server ends a heartbeat that waits for a lock, and the connection stays', async () => {
    await using opened = await open({ poolSize: 1, times: { quickMs: 1000 } })
    const { db, admin, schema } = opened
    const before = await db.tx(pid)
    await admin.query('BEGIN')
    await admin.query(`LOCK TABLE ${schema}.items IN ACCESS EXCLUSIVE MODE`)
    await assert.rejects(
      db.quick!.tx((tx) => tx.run(insert('a'))),
      { code: '57014' },
    )
    await admin.query('ROLLBACK')
    assert.equal(await db.tx(pid), before)
  })

  test('reports a read-only database as unavailable, and does not use the connection again', async () => {
    await using opened = await open({ poolSize: 1 })
    const { db } = opened
    // Like a demoted primary: existing connections become read-only.
    const demote = () => db.tx((tx) => tx.run(sql`SET default_transaction_read_only = on`))
    await demote()
    assert.deepEqual(await db.get(sql`SELECT 1 AS one`), { one: 1 })
    await assert.rejects(
      db.tx((tx) => tx.run(insert('a'))),
      (error) => isUnavailable(error) && (error as { code?: string }).code === '25006',
    )
    await db.tx((tx) => tx.run(insert('b')))
    await demote()
    await assert.rejects(db.ping(), (error) => isUnavailable(error) && /read-only/.test(String(error)))
    await db.ping()
    assert.deepEqual(await opened.names(), ['b'])
  })

  test('a missing feature means unavailable only while the database is in recovery', async () => {
    await using opened = await open()
    const { admin, schema, url } = opened
    url.searchParams.delete('schema')
    // The test's version is found before the system's version.
    url.searchParams.set('options', `-c search_path=${schema},pg_catalog`)
    const db = openPostgres(url.href, { poolSize: 1 })
    const missing = raw(`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '0A000'; END $$`)
    try {
      await assert.rejects(
        db.tx((tx) => tx.run(missing)),
        (error) => !isUnavailable(error),
      )
      const before = await db.tx(pid)
      await admin.query(`CREATE FUNCTION ${schema}.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'`)
      const refused = (error: unknown) => isUnavailable(error) && /in recovery/.test(String(error))
      await assert.rejects(
        db.tx((tx) => tx.run(missing)),
        refused,
      )
      // The connection is closed, and a new connection to a standby is not used either.
      for (const one of [() => db.get(sql`SELECT 1 AS one`), () => db.tx(pid), () => db.ping()]) {
        await assert.rejects(one(), refused)
      }
      await admin.query(`DROP FUNCTION ${schema}.pg_is_in_recovery`)
      assert.notEqual(await db.tx(pid), before)
    } finally {
      await db.close()
    }
  })

  test('replaces a connection that is lost while it is checked for a standby', async () => {
    await using opened = await open()
    const { admin, schema, url } = opened
    url.searchParams.delete('schema')
    url.searchParams.set('options', `-c search_path=${schema},pg_catalog`)
    const make = (name: string, body: string) =>
      admin.query(`CREATE OR REPLACE FUNCTION ${schema}.${name}() RETURNS boolean LANGUAGE sql AS '${body}'`)
    const db = openPostgres(url.href, { poolSize: 1, times: { quickMs: 200 } })
    try {
      await make('pg_is_in_recovery', 'SELECT pg_terminate_backend(pg_backend_pid())')
      await assert.rejects(db.get(sql`SELECT 1 AS one`), isUnavailable)
      await make('pg_is_in_recovery', 'SELECT pg_sleep(30) IS NULL')
      await assert.rejects(db.get(sql`SELECT 1 AS one`), (error) => /did not answer within 0.2 s/.test(String(error)))
      await make('pg_is_in_recovery', 'SELECT false')
      assert.deepEqual(await db.get(sql`SELECT 1 AS one`), { one: 1 })
    } finally {
      await db.close()
    }
  })
})
