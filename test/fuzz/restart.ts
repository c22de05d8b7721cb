// All servers of one database killed and started again at once while clients keep pulling, so that every cache is cold. Shows how
// long pulls fail, and how many connections the servers open to PostgreSQL meanwhile.
// By hand: PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/restart.ts --nodes 3 --rate 200 --images 500
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { bucketSettings } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, type Process, startProcess, tokenOf } from '../support/process.ts'
import { registryClient, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '3' },
    rate: { type: 'string', default: '200' },
    images: { type: 'string', default: '500' },
    restarts: { type: 'string', default: '3' },
  },
})
const [nodes, rate, images, restarts] = [values.nodes, values.rate, values.images, values.restarts].map(Number) as [
  number,
  number,
  number,
  number,
]
/** Connections of one server: its pool, and the one that its watch may open. */
const mostOfNode = 11
const afterMs = 15_000

await using storage = await createStorage()
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
const { blobs, aws } = await bucketSettings()
const addresses = await Promise.all(Array.from({ length: nodes }, freeAddress))
const url = `http://${addresses[0]}`
const startOne = (listen: string) =>
  startProcess(storage, { listen, args: ['--blobs', blobs], env: { PINFOLD_URL: url, ...aws } })
const startAll = () => Promise.all(addresses.map(startOne))

let running: Process[] = [await startOne(addresses[0]!)]
running.push(...(await Promise.all(addresses.slice(1).map(startOne))))
await using cleanUp = new AsyncDisposableStack()
cleanUp.defer(async () => void (await Promise.all(running.map((server) => server[Symbol.asyncDispose]()))))
await clientOf(url, await tokenOf(storage, ['--audience', url])).post('/iam/v2/groups/', { name: 'acme' })
const token = await tokenOf(storage, ['--audience', 'registry'])
const client = registryClient(url, token)
for (let i = 0; i < images; i++) await client.pushImage('acme/app', `t${i}`)

type Pull = { began: number; ended: number; status: number }
const pulls: Pull[] = []
async function pull(i: number): Promise<void> {
  const began = performance.now()
  const headers = { authorization: `Bearer ${token}`, accept: types.image }
  const path = `/v2/acme/app/manifests/t${Math.floor(Math.random() * images)}`
  const answer = await fetch(`http://${addresses[i % nodes]}${path}`, { headers }).catch(() => undefined)
  await answer?.arrayBuffer().catch(() => {})
  pulls.push({ began, ended: performance.now(), status: answer?.status ?? 0 })
}

const admin = await storage.connect()
/** Connections at each look, and the backends of all that there have been. */
const connections: number[] = []
const backends = new Set<string>()
let isOver = false
const sampling = (async () => {
  for (; !isOver; await sleep(50)) {
    const text = 'SELECT pid, backend_start::text AS began FROM pg_stat_activity WHERE application_name = $1'
    const { rows } = await admin.query(text, [storage.name])
    connections.push(rows.length)
    for (const { pid, began } of rows) backends.add(`${pid} ${began}`)
  }
})()
const pulling = (async () => {
  const began = performance.now()
  const inFlight = new Set<Promise<void>>()
  for (let i = 0; !isOver; i++) {
    await sleep(Math.max(0, began + (i * 1000) / rate - performance.now()))
    const one = pull(i).finally(() => inFlight.delete(one))
    inFlight.add(one)
  }
  await Promise.all(inFlight)
})()

const p = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? Number.NaN
const took = (from: number, to: number) =>
  pulls.filter(({ began, status }) => began >= from && began < to && status === 200).map((one) => one.ended - one.began)

await sleep(afterMs)
const quiet = took(0, performance.now())
console.log(
  `quiet: p50 ${p(quiet, 0.5).toFixed(1)} ms, p99 ${p(quiet, 0.99).toFixed(1)} ms, ${Math.max(...connections)} connections`,
)
for (let i = 0; i < restarts; i++) {
  connections.length = 0
  const killed = performance.now()
  for (const server of running) server.kill('SIGKILL')
  await Promise.all(running.map(({ exited }) => exited))
  backends.clear()
  running = await startAll()
  const ready = performance.now()
  await sleep(afterMs)
  const since = pulls.filter(({ began }) => began >= killed)
  const failed = since.filter(({ status }) => status !== 200)
  const lastFailure = Math.max(killed, ...failed.map(({ ended }) => ended))
  const first = took(ready, ready + 2000)
  console.log(
    `restart ${i + 1}: ready after ${(ready - killed).toFixed(0)} ms, last failed pull after ${(lastFailure - killed).toFixed(0)} ms, ` +
      `${failed.length} of ${since.length} pulls failed, p99 of the first 2 s ${p(first, 0.99).toFixed(1)} ms, ` +
      `at most ${Math.max(...connections)} connections at once, ${backends.size} opened`,
  )
  assert.ok(backends.size <= 2 * nodes * mostOfNode, 'the servers opened connections again and again')
  assert.deepEqual(
    [...new Set(failed.map(({ status }) => status))].filter((status) => status !== 0 && status !== 503),
    [],
  )
  assert.ok(lastFailure <= ready + 1000, 'pulls failed after all servers were ready')
}
isOver = true
await Promise.all([sampling, pulling])
await admin.end()
