// A garbage collection requested on one node, run by another, and taken over by a third.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import type { App } from '#app.ts'
import { collectBlobs } from '#domains/registry/blobs/collect-blobs.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { createSignal } from '#lib/signal.ts'
import { startWorkers, type WorkersOptions } from '#workers.ts'
import { clientOf, type Json } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

const name = 'acme/app'
const path = '/control/v1/blobs:collect'

/** Nothing has been collected yet, and two blobs of a hundred bytes are due for deletion. */
async function scene() {
  const clock = { now: Date.parse('2026-03-01T00:00:00Z') }
  const registry = await startRegistry({ clock: () => new Date(clock.now), jobs: [] })
  for (let i = 0; i < 2; i++) await registry.pusher.pushBlob(name, randomBytes(100))
  clock.now += 2 * 86_400_000
  const operator = await registry.as(operatorUid)
  return { registry, operator, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() }
}

/** Another node on the same database: no signal of this process reaches it. */
function nodeOf({ app, url }: TestRegistry, change: Partial<App> = {}): App {
  const collections = { asked: createSignal(), moved: createSignal() }
  const config = { ...app.config, leaseMs: 1000, url }
  const log = { ...app.log, error() {}, warn() {} }
  return { ...app, db: { ...app.db, shared: true }, collections, config, log, ...change }
}

const work = (app: App, options: WorkersOptions = {}) => startWorkers(app, { jobs: [collectBlobs], ...options })
const counts = ({ links, blobs, bytes }: Json) => [links, blobs, bytes].map(Number)

test('another node runs a garbage collection requested at one node, and each node reports its result', async () => {
  await using fixture = await scene()
  const { registry, operator } = fixture
  const elsewhere = await startServer(nodeOf(registry))
  const workers = await work(nodeOf(registry))
  try {
    const there = clientOf(elsewhere.localUrl, operator.token)
    const asked = await there.post(path, { dryRun: false })
    assert.equal(asked.status, 200, asked.text)
    assert.deepEqual([asked.body.finished, ...counts(asked.body)], [true, 2, 2, 200])
    const found = await operator.post(path, { id: asked.body.id })
    assert.deepEqual(found.body, asked.body)
    assert.equal((await operator.post(path, { id: 'unknown' })).status, 404)
  } finally {
    await workers.close()
    await elsewhere.close()
  }
})

test('the next node completes the garbage collection of a dead node, including its counts', async () => {
  await using fixture = await scene()
  const { registry, operator } = fixture
  const { app } = registry
  let dead = false
  const stuck = Promise.withResolvers<void>()
  const never = new Promise<string[]>(() => {})
  const removeAll = () => {
    dead = true
    stuck.resolve()
    return never
  }
  const first = nodeOf(registry, { blobs: { ...app.blobs, removeAll } })
  const { tx } = first.db
  first.db.tx = (todo, options) => (dead ? Promise.reject(new Error('killed')) : tx(todo, options))
  // Heartbeats use a separate connection on PostgreSQL.
  Object.assign(first.db, { quick: undefined })
  void work(first)
  const waiting = operator.post(path, {})
  await stuck.promise

  let now = 0
  const second = await work(nodeOf(registry), { monotonic: () => now })
  const ticking = setInterval(() => {
    now += 200
  }, 20)
  // On a slow machine, the response may arrive before the end of the collection.
  const { body } = await waiting
  const left = await eventually(
    () => operator.post(path, { id: body.id }),
    ({ body: state }) => state.finished,
  )
  clearInterval(ticking)
  await second.close()
  assert.deepEqual(counts(left.body), [2, 2, 200])
  const stored = []
  for await (const { location } of app.blobs.list()) stored.push(location)
  assert.deepEqual(stored, [])
})

test('reports a failed garbage collection to waiting callers, and the next collection succeeds', async () => {
  await using fixture = await scene()
  const { registry, operator } = fixture
  let away = true
  const list = () => {
    if (away) throw new Error('the folder is away')
    return registry.app.blobs.list()
  }
  const workers = await work(nodeOf(registry, { blobs: { ...registry.app.blobs, list } }), { retryMs: 1 })
  const failed = await operator.post(path, {})
  assert.equal(failed.status, 409)
  assert.match(failed.body.message, /^the garbage collection failed on node [0-9a-f]+: the folder is away$/)
  away = false
  assert.equal((await operator.post(path, {})).body.finished, true)
  await workers.close()
})
