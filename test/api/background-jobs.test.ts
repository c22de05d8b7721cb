// Background jobs on one and on several nodes. Tests set the clocks. A killed node sends nothing more.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import { createLeases, LeaseLost } from '#db/leases.ts'
import { beatNode, deleteNode, servedUrl } from '#db/nodes.ts'
import { sql } from '#db/sql.ts'
import { servedHost } from '#domains/registry/repos/repos.store.ts'
import type { Job, LongJob } from '#job.ts'
import { startWorkers } from '#workers.ts'
import { captureLog } from '../support/log.ts'
import { type Json, onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const leaseMs = 1000
let count = 0
const newName = () => `test.${count++}`

/** Marks the embedded database as shared, so that the lease tests can use several nodes on SQLite too. */
const sharedDb = () => ({ ...pinfold.app.db, shared: true })

/** A node with its own clock, which checks its leases only when a test requests it. */
function nodeOf(id: string, name: string) {
  const clock = { now: 0 }
  const stop = new AbortController()
  const leases = createLeases(sharedDb(), {
    node: id,
    leaseMs,
    monotonic: () => clock.now,
    skew: pinfold.app.skew,
    names: [name],
    facts: { version: '1', url: `http://${id}`, localUrl: `http://${id}` },
    signal: stop.signal,
  })
  return { clock, leases, stop, lease: () => leases.find(name) }
}

async function rowOf(name: string): Promise<Json> {
  return (await pinfold.app.db.get<Json>(sql`SELECT owner, fence, run_result FROM duties WHERE name = ${name}`))!
}

test('one node holds a lease; another node can take it only after the full lease time without a renewal', async () => {
  const name = newName()
  const [one, two] = [nodeOf('one', name), nodeOf('two', name)]
  assert.equal((await one.leases.look()).length, 1)
  for (let look = 0; look < 5; look++) {
    assert.equal((await two.leases.look()).length, 0)
    two.clock.now += leaseMs - 1
    await one.leases.look()
  }
  // The first node sends nothing from here on.
  assert.equal((await two.leases.look()).length, 0)
  assert.equal(two.leases.everyNode.isGone('one'), false)
  two.clock.now += leaseMs
  assert.equal((await two.leases.look()).length, 1)
  assert.equal(two.leases.everyNode.isGone('one'), true)
  assert.deepEqual(await rowOf(name), { owner: 'two', fence: 2, run_result: '' })
  await one.leases.look()
  assert.equal(one.lease(), undefined)
})

test('a node stops using its lease before another node can take it, counted from the start of the last renewal', async () => {
  const name = newName()
  const one = nodeOf('trusting', name)
  await one.leases.look()
  const lease = one.lease()!
  one.clock.now += leaseMs * 0.75 - 1
  assert.equal(lease.holds(), true)
  one.clock.now += 1
  assert.equal(lease.holds(), false)
  assert.throws(() => lease.check(), LeaseLost)
  await one.leases.look()
  assert.equal(lease.holds(), true)
  one.stop.abort()
  assert.equal(lease.holds(), false)
})

test('refuses writes of a former lease owner that stalled and still uses its lease', async () => {
  const name = newName()
  const [one, two] = [nodeOf('stalled', name), nodeOf('awake', name)]
  await one.leases.look()
  const lease = one.lease()!
  await lease.tx((tx) => tx.run(sql`INSERT INTO facts (name, value) VALUES (${name}, 'by the owner')`))
  await two.leases.look()
  two.clock.now += leaseMs
  await two.leases.look()
  assert.equal(lease.holds(), true)
  const late = lease.tx((tx) => tx.run(sql`UPDATE facts SET value = 'too late' WHERE name = ${name}`))
  await assert.rejects(late, LeaseLost)
  assert.equal(lease.holds(), false)
  await two.lease()!.tx((tx) => tx.run(sql`UPDATE facts SET value = value || ', then the next' WHERE name = ${name}`))
  const fact = await pinfold.app.db.get<Json>(sql`SELECT value FROM facts WHERE name = ${name}`)
  assert.equal(fact?.value, 'by the owner, then the next')
})

test('a job in batches stops before the next batch when it is stopped, or when its lease may have expired', async () => {
  for (const end of ['a stop', 'a lease that may be over']) {
    const name = newName()
    const one = nodeOf(`batches-${name}`, name)
    await one.leases.look()
    let batches = 0
    const running = one.lease()!.inBatches(async () => {
      // The running batch completes.
      if (++batches === 3 && end === 'a stop') one.stop.abort()
      else if (batches === 3) one.clock.now += leaseMs * 0.75
      return batches < 50 ? 1 : 0
    })
    await assert.rejects(running, LeaseLost, end)
    assert.equal(batches, 3, end)
  }
  const name = newName()
  const one = nodeOf(`batches-${name}`, name)
  await one.leases.look()
  const found = [5, 3, 0, 7]
  assert.equal(await one.lease()!.inBatches(async () => found.shift()!), 8, 'until one finds nothing')
})

test('a slow transaction of the lease owner keeps the lease, and no other node takes it meanwhile', {
  skip: !onPostgres && 'an embedded database has one writer, which nobody waits for in the middle',
}, async () => {
  const name = newName()
  const [one, two] = [nodeOf('long', name), nodeOf('patient', name)]
  await one.leases.look()
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const order: string[] = []
  const writing = one.lease()!.tx(async (tx) => {
    begun.resolve()
    // Not silent for as long as it takes, since the database ends what is.
    for (let isFree = false; !isFree; ) {
      await tx.get(sql`SELECT 1 AS found`)
      isFree = await Promise.race([go.promise.then(() => true), sleep(20, false)])
    }
    order.push('written')
  })
  await begun.promise
  for (let look = 0; look < 3; look++) {
    await one.leases.look()
    assert.equal((await two.leases.look()).length, 0)
    two.clock.now += leaseMs
  }
  assert.ok(one.lease()!.holds())
  // The owner sends nothing from here on, and its work has to stop first.
  const taken = two.leases.look().then((taken) => order.push(`taken: ${taken.length}`))
  await eventually(
    () =>
      pinfold.app.db.get<{ n: number }>(sql`
      SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM duties WHERE%'`),
    (row) => row!.n > 0,
  )
  go.resolve()
  await Promise.all([writing, taken])
  assert.deepEqual(order, ['written', 'taken: 1'])
})

test('a node that read a lease before another node took it cannot take it afterwards', {
  skip: !onPostgres && 'an embedded database has one writer, which nobody looks past',
}, async () => {
  const { db } = pinfold.app
  const name = newName()
  const [one, two] = [nodeOf('looking', name), nodeOf('taking', name)]
  await one.leases.look()
  await two.leases.look()
  two.clock.now += leaseMs
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = db.tx(async (tx) => {
    await tx.all(sql`SELECT pg_advisory_xact_lock(170014) IS NULL AS held`)
    begun.resolve()
    for (let isFree = false; !isFree; ) {
      await tx.get(sql`SELECT 1 AS found`)
      isFree = await Promise.race([go.promise.then(() => true), sleep(20, false)])
    }
  })
  await begun.promise
  // Delays a former owner between reading the lease and locking it.
  const looked = db.tx(
    (tx) =>
      tx.get(sql`
        SELECT 1 AS found FROM duties
         WHERE name = ${name} AND owner = 'looking' AND (SELECT pg_advisory_xact_lock_shared(170014)) IS NOT NULL
           FOR KEY SHARE`),
    { isolation: 'rowLocks' },
  )
  await eventually(
    () =>
      db.get<{ n: number }>(
        sql`SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 170014`,
      ),
    (row) => row!.n > 0,
  )
  assert.equal((await two.leases.look()).length, 1)
  go.resolve()
  await holding
  assert.equal(await looked, undefined)
})

test('a released lease is available at once', async () => {
  const name = newName()
  const [one, two] = [nodeOf('leaving', name), nodeOf('staying', name)]
  await one.leases.look()
  await one.leases.release()
  assert.equal((await two.leases.look()).length, 1)
})

const shown = async (name: string, metric: string): Promise<string | undefined> => {
  const { text } = await pinfold.operator.get('/metrics')
  return new RegExp(`^pinfold_duty_${metric}\\{duty="${name}".*\\} (\\S+)$`, 'm').exec(text)?.[1]
}

test('retries a failing job, and shows the failure in the metrics until the job succeeds', async () => {
  const name = newName()
  const mended = Promise.withResolvers<void>()
  let broken = true
  let runs = 0
  const job: Job = {
    name,
    everyMs: 3600_000,
    runsOn: 'one node',
    async run() {
      runs++
      if (broken) throw new Error('as a test')
      mended.resolve()
      return { done: 7 }
    },
  }
  const log = { ...pinfold.app.log, error() {} }
  const workers = await startWorkers({ ...pinfold.app, log }, { jobs: [job], retryMs: 1 })
  await eventually(
    () => shown(name, 'failures'),
    (failures) => Number(failures) >= 3,
  )
  assert.equal(await shown(name, 'lease_held'), '1')
  await eventually(
    () => rowOf(name),
    (row) => row.run_result === 'failed',
  )
  broken = false
  await mended.promise
  await eventually(
    () => rowOf(name),
    (row) => row.run_result === 'ok',
  )
  await eventually(
    () => shown(name, 'failures'),
    (failures) => failures === '0',
  )
  const { text } = await pinfold.operator.get('/metrics')
  assert.match(text, new RegExp(`^pinfold_duty_runs_total\\{duty="${name}",result="failed"\\} ${runs - 1}$`, 'm'))
  assert.match(text, new RegExp(`^pinfold_duty_runs_total\\{duty="${name}",result="ok"\\} 1$`, 'm'))
  await workers.close()
  assert.equal(await shown(name, 'lease_held'), '0')

  // Less than an hour has passed, so a starting server skips this job, and runs jobs that never ran.
  const before = runs
  const other = Promise.withResolvers<void>()
  const run = async () => {
    other.resolve()
    return {}
  }
  const fresh: Job = { ...job, name: newName(), run }
  const again = await startWorkers({ ...pinfold.app, log }, { jobs: [job, fresh] })
  await other.promise
  await again.close()
  assert.equal(runs, before)
})

test('logs a failing job once a minute with a count, and logs once when it succeeds again', async () => {
  const name = newName()
  const { log, lines, until } = captureLog()
  let [passed, runs, broken] = [0, 0, true]
  const job: Job = {
    name,
    everyMs: 1,
    runsOn: 'every node',
    async run() {
      runs++
      if (broken) throw new Error('as a test')
      return {}
    },
  }
  const monotonic = () => performance.now() + passed
  const workers = await startWorkers({ ...pinfold.app, log }, { jobs: [job], retryMs: 1, monotonic })
  const ran = async (more: number) => {
    const wanted = runs + more
    await eventually(
      async () => runs,
      (now) => now >= wanted,
    )
  }
  await ran(20)
  passed += 60_000
  await ran(20)
  broken = false
  const { failures } = await until(({ message }) => message === 'background job succeeds again')
  await workers.close()
  const of = (message: string) => lines.filter((line) => line.message === message && line.duty === name)
  assert.deepEqual([of('background job failed').length, of('background job succeeds again').length], [2, 1])
  const [first, second] = of('background job failed').map(({ count }) => Number(count))
  assert.equal(first, 1)
  assert.ok(second! >= 20 && Number(failures) >= 40, `${second} ${failures}`)
})

test('a job runs once at a time on a node, and runs again if it was requested during the run', async () => {
  const [name, signal] = [newName(), pinfold.app.collections.moved]
  const gates: (() => void)[] = []
  let [most, now] = [0, 0]
  const job: Job = {
    name,
    everyMs: 3600_000,
    runsOn: 'every node',
    wake: () => signal,
    async run() {
      most = Math.max(most, ++now)
      await new Promise<void>((resolve) => gates.push(resolve))
      now--
      return {}
    },
  }
  const workers = await startWorkers(pinfold.app, { jobs: [job] })
  for (let i = 0; i < 3; i++) signal.notify()
  gates.shift()!()
  await eventually(
    async () => gates.length,
    (waiting) => waiting === 1,
  )
  const closed = workers.close()
  gates.shift()!()
  await closed
  assert.deepEqual([most, now, gates.length], [1, 0, 0])
})

test('a job with its own loop gets the time by which it must stop', async () => {
  const told: number[] = []
  const close = async (graceMs: number) => void told.push(graceMs)
  const long: LongJob = { name: newName(), start: async () => ({ close }) }
  await (await startWorkers(pinfold.app, { jobs: [long] })).close()
  await (await startWorkers(pinfold.app, { jobs: [long] })).close(0)
  assert.deepEqual(told, [pinfold.app.config.drainMs, 0])
})

test('one of two nodes runs a background job, and the other one takes over when the first stops', async () => {
  const name = newName()
  const ran: string[] = []
  const start = async (id: string, app: App) => {
    const clock = { now: 0, silent: false }
    const db = { ...sharedDb() }
    const { tx } = db
    // A killed node has no access to the database.
    db.tx = (work, options) => (clock.silent ? Promise.reject(new Error('killed')) : tx(work, options))
    const job: Job = {
      name,
      everyMs: 10,
      runsOn: 'one node',
      async run(_, lease) {
        if (!clock.silent) await lease.tx(async () => {})
        ran.push(id)
        return {}
      },
    }
    const log = { ...app.log, error() {}, warn() {} }
    const config = { ...app.config, leaseMs: 100 }
    const workers = await startWorkers(
      { ...app, db, log, config },
      { jobs: [job], monotonic: () => clock.now, server: { url: id, localUrl: id } },
    )
    return { clock, workers, job }
  }
  const one = await start('one', pinfold.app)
  await eventually(
    async () => ran.length,
    (runs) => runs > 0,
  )
  const two = await start('two', pinfold.app)
  await eventually(
    async () => ran.length,
    (runs) => runs > 5,
  )
  assert.ok(!ran.includes('two'))
  one.clock.silent = true
  await eventually(
    async () => {
      two.clock.now += 30
      return ran
    },
    (runs) => runs.includes('two'),
  )
  await Promise.all([one.workers.close(), two.workers.close()])
})

test('uses the server address of the newest heartbeat', async () => {
  const facts = (url: string) => ({ version: '1', url, localUrl: 'http://127.0.0.1:1' })
  const { db } = pinfold.app
  const beat = (id: string, url: string, second: number) =>
    db.tx((tx) => beatNode(tx, id, facts(url), { now: `2100-01-01T00:00:0${second}.000Z`, offsetMs: 0 }))
  await beat('b-old', 'https://old.example', 1)
  await beat('c-new', 'https://new.example', 3)
  await beat('a-middle', 'https://middle.example', 2)
  await beat('d-silent', '', 4)
  assert.equal(await servedUrl(db), 'https://new.example')
  await beat('b-old', 'https://old.example', 5)
  assert.equal(await servedUrl(db), 'https://old.example')
  assert.equal(await servedHost(db, ''), 'old.example')
  assert.equal(await servedHost(db, 'https://set.example'), 'set.example')
  for (const id of ['a-middle', 'b-old', 'c-new', 'd-silent']) await db.tx((tx) => deleteNode(tx, id))
})

test('each running server has a row with its data, which is deleted when the server stops', async () => {
  const server = { url: 'https://pinfold.example.com', localUrl: 'http://127.0.0.1:1' }
  const find = (id: string) =>
    pinfold.app.db.get<Json>(sql`SELECT url, local_url, beat, clock_offset_ms FROM nodes WHERE id = ${id}`)
  const workers = await startWorkers(pinfold.app, { jobs: [], server })
  const row = await find(workers.node)
  assert.deepEqual([row?.url, row?.local_url, row?.beat], [server.url, server.localUrl, 1])
  // The test's database is on this machine.
  assert.ok(Math.abs(row?.clock_offset_ms) < 1000)
  await workers.close()
  assert.equal(await find(workers.node), undefined)
})
