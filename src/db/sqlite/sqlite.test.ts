import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createThreadTime } from '#lib/budgets/thread-time.ts'
import { createShare, noteServed, type Shares } from '#lib/scheduling/shares.ts'
import { createGuard } from '../guard.ts'
import { migrate } from '../migrate.ts'
import { openDb } from '../open.ts'
import { type Db, raw, sql } from '../sql.ts'
import { isDiskFull, isUnavailable, whyUnavailable } from '../unavailable.ts'

async function open(checkpoints?: 'server' | 'external') {
  await using opening = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'pinfold-sqlite-'))
  opening.defer(() => rm(folder, { recursive: true }))
  const file = join(folder, 'data', 'pinfold.db')
  const db = opening.adopt(
    await openDb({ database: '', file, ...(checkpoints && { sqliteCheckpoints: checkpoints }) }),
    (opened) => opened.close(),
  )
  await db.tx((tx) => tx.run(raw('CREATE TABLE items (name TEXT PRIMARY KEY, body BLOB) STRICT')))
  const opened = opening.move()
  return { db, file, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

const asideNow = sql`SELECT temp_store AS store FROM pragma_temp_store`
const insert = (db: Db, name: string) => db.tx((tx) => tx.run(sql`INSERT INTO items (name) VALUES (${name})`))
const count = async (db: Db) => (await db.get<{ n: number }>(sql`SELECT count(*) AS n FROM items`))!.n

test('concurrent transactions share commits, up to a batch limit', async () => {
  await using opened = await open()
  const { db } = opened
  const before = db.stats()
  await Promise.all(Array.from({ length: 600 }, (_, i) => insert(db, `n${i}`)))
  const after = db.stats()
  assert.equal(after.transactions - before.transactions, 600)
  assert.ok(after.commits - before.commits >= 3, 'more than 256 works in one batch')
  assert.ok(after.commits - before.commits < 60, `${after.commits - before.commits} commits for 600 works`)
  assert.equal(await count(db), 600)
})

test('does not checkpoint the log if another program manages it', async (t) => {
  const seen = async (checkpoints: 'server' | 'external') => {
    const later = t.mock.method(globalThis, 'setTimeout')
    await using opened = await open(checkpoints)
    const [row] = await opened.db.tx((tx) => tx.all<{ wal_autocheckpoint: number }>(raw('PRAGMA wal_autocheckpoint')))
    later.mock.restore()
    // Other parts of the process set timers too.
    const timers = later.mock.calls.filter(({ arguments: [work] }) => work.name === 'checkpoint')
    return { pages: row!.wal_autocheckpoint, timers: timers.length }
  }
  const [server, external] = [await seen('server'), await seen('external')]
  assert.deepEqual([server.pages, external.pages], [16_384, 0])
  assert.deepEqual([server.timers, external.timers], [1, 0], 'only the server has one for its checkpoints')
})

/** Reads until the event loop has made three turns, or up to a large number of reads. Returns the number of turns. */
async function turnsOfReads(db: Db): Promise<number> {
  let turns = 0
  const again = (): void => {
    if (++turns < 3) setImmediate(again)
  }
  setImmediate(again)
  for (let reads = 0; turns < 3 && reads < 500_000; reads++) await db.get(sql`SELECT 1 AS one`)
  return turns
}

test('a long series of reads lets other work run', async () => {
  await using opened = await open()
  assert.equal(await turnsOfReads(opened.db), 3)
})

test('after a long turn, a reader that used more time than others waits', async () => {
  await using opened = await open()
  const { db } = opened
  const time = createThreadTime()
  const busy = [{ ...createShare(), usedMs: Number.POSITIVE_INFINITY }]
  const hasWaited = await time.run({ charge() {}, shares: busy }, async () => {
    await new Promise((resolve) => setImmediate(resolve))
    await count(db)
    let isLater = false
    setImmediate(() => {
      isLater = true
    })
    const until = performance.now() + 11
    while (performance.now() < until);
    await count(db)
    return isLater
  })
  time.close()
  assert.equal(hasWaited, true)
})

test('lets other reads run between those of a caller that used less time than others', async () => {
  await using opened = await open()
  const { db } = opened
  const time = createThreadTime()
  const chain = () => {
    noteServed([{ ...createShare(), usedMs: 2e6 }])
    return turnsOfReads(db)
  }
  // These readers are not charged while they read.
  const quiet = await time.run({ charge() {}, shares: [createShare()] }, chain)
  const jobs = await chain()
  time.close()
  assert.deepEqual([quiet, jobs], [3, 3])
})

test('a transaction with deferred disk sync waits for the disk only in a batch with one that needs it', async () => {
  await using opened = await open()
  const { db } = opened
  const waits = (durability?: 'later') =>
    db.tx(async (tx) => (await tx.get<{ synchronous: number }>(raw('PRAGMA synchronous')))!.synchronous === 2, {
      ...(durability && { durability }),
    })
  assert.equal(await waits(), true)
  assert.deepEqual(await Promise.all([waits('later'), waits('later')]), [false, false])
  assert.deepEqual(await Promise.all([waits('later'), waits()]), [true, true])
  const joined = Promise.withResolvers<boolean>()
  await db.tx(async (tx) => tx.after(() => joined.resolve(waits())), { durability: 'later' })
  assert.equal(await joined.promise, true, 'it came when the others had begun, and gets a commit of its own')
})

test('keeps temporary data in memory, and in files for operations of any size, as in migrations', async () => {
  await using opened = await open()
  const { db } = opened
  const whereOf = (options?: { aside: 'disk' }) =>
    db.tx(async (tx) => ['', 'disk', 'memory'][(await tx.get<{ store: number }>(asideNow))!.store], options)
  assert.deepEqual(await Promise.all([whereOf(), whereOf({ aside: 'disk' }), whereOf()]), ['memory', 'disk', 'memory'])
  await migrate(db, [
    { id: '0001-aside', up: () => ['CREATE TABLE aside AS SELECT temp_store FROM pragma_temp_store'] },
  ])
  assert.deepEqual(await db.get(sql`SELECT temp_store FROM aside`), { temp_store: 1 })
})

test('restarts the write-ahead log while others read', async () => {
  await using opened = await open()
  const { db, file } = opened
  await insert(db, 'a')
  for (let i = 0; i < 120; i++) {
    const [changed, looked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const change = db.tx(async (tx) => {
      await tx.run(sql`UPDATE items SET body = ${Buffer.alloc(1_000_000, i)}`)
      changed.resolve()
      await looked.promise
    })
    await changed.promise
    await count(db)
    looked.resolve()
    await change
  }
  assert.ok((await stat(`${file}-wal`)).size < 80_000_000)
})

test('reports success only after the commit', async () => {
  await using opened = await open()
  const { db, file } = opened
  const other = new DatabaseSync(file, { readOnly: true })
  const seen = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => {
      await insert(db, name)
      return other.prepare('SELECT count(*) AS n FROM items WHERE name = ?').get(name)!.n
    }),
  )
  other.close()
  assert.deepEqual(seen, [1, 1, 1])
})

test('rejects every transaction of a batch whose commit fails, and continues to serve', async () => {
  await using opened = await open()
  const { db } = opened
  await db.tx((tx) =>
    tx.run(raw('CREATE TABLE late (item TEXT REFERENCES items DEFERRABLE INITIALLY DEFERRED) STRICT')),
  )
  // On a busy machine, the second transaction can be in a batch of its own. Then both are tried again.
  for (let stored = 0; ; stored++) {
    const bad = db.tx((tx) => tx.run(sql`INSERT INTO late (item) VALUES ('nowhere')`))
    const good = insert(db, 'a')
    const [, { status }] = await Promise.allSettled([bad, good])
    await assert.rejects(bad, /FOREIGN KEY/)
    if (status === 'fulfilled' && stored < 100) continue
    await assert.rejects(good, /FOREIGN KEY/)
    await insert(db, 'b')
    assert.equal(await count(db), stored + 1)
    break
  }
})

test('reports a full disk as unavailable, and works again afterwards', async () => {
  await using opened = await open()
  const { db } = opened
  const limit = (pages: number) => db.tx((tx) => tx.all(raw(`PRAGMA max_page_count = ${pages}`)))
  await limit(1)
  const big = db.tx((tx) => tx.run(sql`INSERT INTO items (name, body) VALUES ('big', ${new Uint8Array(100_000)})`))
  const results = await Promise.allSettled([insert(db, 'a'), big, insert(db, 'c')])
  for (const r of results) assert.ok(r.status === 'fulfilled' || isUnavailable(r.reason), String(r.status))
  await assert.rejects(big, (error) => isDiskFull(error) && /disk of the database is full/.test(whyUnavailable(error)))
  await limit(1_000_000)
  await insert(db, 'z')
  const told = results.filter((r) => r.status === 'fulfilled').length
  assert.equal(await count(db), told + 1)
})

test('rolls back a transaction that waits for anything else, and runs the transactions behind it', async (t) => {
  await using opened = await open()
  const { db } = opened
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const started = Promise.withResolvers<void>()
  const stuck = db.tx(async (tx) => {
    await tx.run(sql`INSERT INTO items (name) VALUES ('stuck')`)
    started.resolve()
    await new Promise(() => {})
  })
  const behind = insert(db, 'behind')
  await started.promise
  t.mock.timers.tick(5000)
  await assert.rejects(stuck, /did not finish within 5000 ms/)
  assert.equal(await behind, 1)
  assert.deepEqual(await db.all(sql`SELECT name FROM items`), [{ name: 'behind' }])
})

/** Uses more thread time than a batch may use in one turn of the event loop. */
function useTurn(): void {
  for (const until = performance.now() + 11; performance.now() < until; );
}
const namesInOrder = async (db: Db) => {
  const rows = await db.all<{ name: string }>(sql`SELECT name FROM items ORDER BY rowid`)
  return rows.map(({ name }) => name)
}

test('answers reads between the statements of a long transaction', async () => {
  await using opened = await open()
  const { db } = opened
  const events: string[] = []
  let isOver = false
  const long = db.tx(async (tx) => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await tx.run(sql`INSERT INTO items (name) VALUES (${name})`)
      events.push('statement')
      useTurn()
    }
  })
  const reading = (async () => {
    while (!isOver) {
      await turn()
      if (!isOver) events.push(`read ${await count(db)}`)
    }
  })()
  await long
  isOver = true
  await reading
  const [first, last] = [events.indexOf('statement'), events.lastIndexOf('statement')]
  for (let i = first; i < last; i++) {
    assert.ok(events[i] !== 'statement' || events[i + 1] === 'read 0', events.join())
  }
  // The commit runs in a separate turn, too.
  assert.ok(events.slice(last).includes('read 0'), events.join())
  assert.equal(await count(db), 4)
})

test('keeps the order of simultaneous statements in a long transaction', async () => {
  await using opened = await open()
  const { db } = opened
  await db.tx(async (tx) => {
    useTurn()
    await Promise.all([...'abcdef'].map((name) => tx.run(sql`INSERT INTO items (name) VALUES (${name})`)))
  })
  assert.deepEqual(await namesInOrder(db), [...'abcdef'])
})

test('does not run a delayed statement after its transaction was rolled back', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const pause = Promise.withResolvers<void>()
  let runs = 0
  const steps = { all: async () => [], run: async () => ++runs, pause: () => pause.promise }
  const outcome = createGuard('sqlite').run(steps, 0, (tx) => tx.run(sql`SELECT 1`), 10)
  t.mock.timers.tick(10)
  assert.equal((await outcome).ok, false)
  pause.resolve()
  await turn()
  assert.equal(runs, 0)
})

test('each transaction of a batch runs in the context of its own caller', async () => {
  await using opened = await open()
  const { db } = opened
  const request = new AsyncLocalStorage<number>()
  const seen = await Promise.all([1, 2, 3].map((n) => request.run(n, () => db.tx(async () => request.getStore()))))
  assert.deepEqual(seen, [1, 2, 3])
})

test('charges the time of each transaction in a batch to its own request', async () => {
  await using opened = await open()
  const { db } = opened
  let now = 0
  const time = createThreadTime(() => now)
  const charged = [0, 0, 0]
  const spend = (i: number) =>
    db.tx(async () => {
      // The first statement of the transaction, before the first await.
      now += 10 ** i
    })
  const charge = (i: number) => (ms: number) => {
    charged[i]! += ms
  }
  await Promise.all(charged.map((_, i) => time.run({ charge: charge(i) }, () => spend(i))))
  time.close()
  assert.deepEqual(charged, [1, 10, 100])
})

test('a caller that used less time can write before callers that have waited longer', async () => {
  await using opened = await open()
  const { db } = opened
  const time = createThreadTime()
  const written: string[] = []
  const write = (name: string, shares: Shares) =>
    time.run({ charge() {}, shares }, () =>
      db.tx(async () => {
        shares[0]!.usedMs += 20
        written.push(name)
      }),
    )
  const [noisy, quiet] = [[createShare()], [createShare()]]
  await Promise.all([...[...'abcdef'].map((name) => write(name, noisy)), write('quiet', quiet)])
  time.close()
  assert.ok(written.indexOf('quiet') <= 1, written.join(' '))
})

test('a second writing process makes transactions wait, then fail as unavailable', async () => {
  await using opened = await open()
  const { db, file } = opened
  const other = new DatabaseSync(file)
  await db.tx((tx) => tx.all(raw('PRAGMA busy_timeout = 50'))) // 5 s by default
  other.exec('BEGIN IMMEDIATE')
  const results = await Promise.allSettled([insert(db, 'a'), insert(db, 'b')])
  other.exec('ROLLBACK')
  other.close()
  assert.ok(results.every((r) => r.status === 'rejected' && isUnavailable(r.reason)))
  await insert(db, 'c')
  assert.equal(await count(db), 1)
})

test('reads outside a transaction cannot write', async () => {
  await using opened = await open()
  const { db } = opened
  await assert.rejects(db.all(sql`INSERT INTO items (name) VALUES ('a') RETURNING name`), /readonly/)
  assert.equal(await count(db), 0)
})

test('refuses text after the first statement', async () => {
  await using opened = await open()
  const { db } = opened
  const two = raw("INSERT INTO items (name) VALUES ('a'); INSERT INTO items (name) VALUES ('b')")
  await assert.rejects(
    db.tx((tx) => tx.run(two)),
    /only one statement/,
  )
  assert.equal(await count(db), 0)
})

test('returns correct rows for more statements than the limit of prepared ones', async () => {
  await using opened = await open()
  const { db } = opened
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 700; i++) assert.deepEqual(await db.get(raw(`SELECT ${i} AS c${i}`)), { [`c${i}`]: i })
  }
})

test('a prepared query returns columns that were added later', async () => {
  await using opened = await open()
  const { db } = opened
  await insert(db, 'a')
  assert.deepEqual(await db.all(sql`SELECT * FROM items`), [{ name: 'a', body: null }])
  await db.tx((tx) => tx.run(raw("ALTER TABLE items ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")))
  assert.deepEqual(await db.all(sql`SELECT * FROM items`), [{ name: 'a', body: null, colour: 'red' }])
})

test('binds numbers as integers, also in text and JSON', async () => {
  await using opened = await open()
  const { db } = opened
  const row = await db.get(sql`SELECT 'n' || ${5} AS text, json_array(${5}, ${0.5}) AS json`)
  assert.deepEqual(row, { text: 'n5', json: '[5,0.5]' })
})

test('only the owner can access the folder of the database', async () => {
  await using opened = await open()
  assert.equal((await stat(dirname(opened.file))).mode & 0o777, 0o700)
})
