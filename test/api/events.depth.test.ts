// Metrics of queues: the maximum count, and how often the server counts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { readDepth } from '#domains/events/delivery/depth.store.ts'
import { route } from '#domains/events/routing/routing.ts'
import { createMetrics } from '../../src/metrics.ts'
import { startPinfold } from '../support/pinfold.ts'

test('counts waiting events up to a limit for each queue and in total, paused queues last', async () => {
  await using pinfold = await startPinfold()
  const { app, seed } = pinfold
  const org = await seed.group()
  for (let i = 0; i < 3; i++) await seed.subscription(org.uid)
  await app.db.tx((tx) => route(app, tx, '', ''))
  const { position } = (await app.db.get<{ position: number }>(sql`SELECT position FROM events_router`))!
  for (let i = 0; i < 3; i++) await seed.repo(org.uid)
  await app.db.tx((tx) => route(app, tx, '', ''))
  await app.db.tx(async (tx) => {
    await tx.run(sql`UPDATE delivery_queues SET behind = ${position}`)
    await tx.run(sql`
      UPDATE delivery_queues SET paused = 1
       WHERE subscription_id = (SELECT min(subscription_id) FROM delivery_queues)`)
  })
  const counts = async (positions: number, inAll: number, wants = () => true) => {
    const { ready, paused } = await readDepth(wants, app.db, Date.now(), { queues: 100, positions, inAll })
    return [ready.count, paused.count]
  }
  assert.deepEqual(await counts(1000, 10_000), [6, 3])
  assert.deepEqual(await counts(2, 10_000), [4, 2])
  assert.deepEqual(await counts(1000, 7), [6, 1])
  assert.deepEqual(await counts(1000, 10_000, () => false), [0, 0])
})

test('reading the metrics counts the waiting events of the queues once', async () => {
  await using pinfold = await startPinfold()
  const { db } = pinfold.app
  let reads = 0
  const all = (query: Sql) => {
    if (query.parts.join('').includes("'given_up'")) reads++
    return db.all(query)
  }
  const { registry } = createMetrics({ ...db, all } as typeof db, [])
  const text = await registry.metrics()
  assert.match(text, /^pinfold_deliveries_waiting\{state="paused"\} 0$/m)
  assert.match(text, /^pinfold_deliveries_oldest_seconds\{state="paused"\} 0$/m)
  assert.equal(reads, 1)
})
