// Garbage collection by three servers that share one PostgreSQL and one folder, while clients push content that nothing needs. In
// each round, the collecting server is killed. Measures how long another server takes to take over, whether a server reports the
// run, and the number of runs in a period. Nothing may be collected too early, although the clock of one server is a day ahead.
// To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/collections.ts --rounds 20
// Without libfaketime, all clocks are right. With --check it fails if a takeover took longer than two leases.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, type Process, startProcess, tokenOf } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { registryClient } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    nodes: { type: 'string', default: '3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    check: { type: 'boolean', default: false },
  },
})
const [rounds, nodes, seed] = [values.rounds, values.nodes, values.seed].map(Number) as [number, number, number]
console.log(`seed ${seed}`)
const { below } = randomFrom(seed)
const [leaseMs, graceMs, trashMs] = [2000, 4000, 3000]
/** Time from the stored removal time of a row to its commit. Only then is the row gone. */
const commitMs = 250
/** Period of garbage collection, as in the server: a quarter of the grace period. */
const periodMs = graceMs / 4
const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
const ahead = existsSync(faketime) ? { LD_PRELOAD: faketime, FAKETIME: '+1d', DONT_FAKE_MONOTONIC: '1' } : {}

await using storage = await createStorage()
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
const url = `http://${await freeAddress()}`
const env = {
  PINFOLD_URL: url,
  PINFOLD_LOG_LEVEL: 'error',
  PINFOLD_LEASE_MS: String(leaseMs),
  PINFOLD_BLOB_GRACE_SECONDS: String(graceMs / 1000),
  PINFOLD_BLOB_TRASH_SECONDS: String(trashMs / 1000),
}
const addresses = await Promise.all(Array.from({ length: nodes }, freeAddress))
const servers = new Map<string, Process>()
const start = async (listen: string): Promise<void> => {
  const clock: Record<string, string> = listen === addresses.at(-1) ? ahead : {}
  servers.set(listen, await startProcess(storage, { listen, env: { ...env, ...clock } }))
}
for (const listen of addresses) await start(listen)
const database = await storage.connect()
await database.query(`SET search_path = ${storage.schema}`)
const rowsOf = async <T>(text: string): Promise<T[]> => (await database.query(text)).rows as T[]

const operator = await tokenOf(storage, ['--audience', url])
const at = (listen: string) => clientOf(`http://${listen}`, operator)
await at(addresses[0]!).post('/iam/v2/groups/', { name: 'acme' })
const token = await tokenOf(storage, ['--audience', 'registry'])
const doors = addresses.map((listen) => registryClient(`http://${listen}`, token))

/** For each blob, when its push began, and when it was last seen in the database and in the folder. */
type Loose = { digest: string; begun: number; file: string; seen: number; isGone: boolean }
const loose: Loose[] = []
const removed = { blobs: 0, early: 0 }
let isOver = false
const repo = 'acme/loose'

async function push(): Promise<void> {
  const begun = performance.now()
  const pushed = await doors[below(nodes)]!.pushBlob(repo, randomBytes(200)).catch(() => undefined)
  if (!pushed) return
  const [row] = await rowsOf<{ location: string }>(`SELECT location FROM blobs WHERE digest = '${pushed.digest}'`)
  if (row) {
    const file = join(storage.data, 'blobs', row.location)
    loose.push({ digest: pushed.digest, begun, file, seen: begun, isGone: false })
  }
}

function tooEarly(what: string, byMs: number): void {
  if (byMs <= commitMs) return
  removed.early++
  console.log(`${what} went ${byMs.toFixed(0)} ms before its time`)
}

/**
 * Looks for removed blobs. The removal was at or before this moment, so a blob that is found missing too early was removed too
 * early.
 */
async function look(): Promise<void> {
  const asked = performance.now()
  const rows = await rowsOf<{ digest: string }>('SELECT digest FROM blobs')
  const there = new Set(rows.map(({ digest }) => digest))
  for (const one of [...loose]) {
    if (there.has(one.digest)) one.seen = asked
    else if (!one.isGone) {
      one.isGone = true
      tooEarly('a row', graceMs - (performance.now() - one.begun))
    }
    const hasFile = existsSync(one.file)
    if (hasFile) continue
    tooEarly('a content', trashMs - (performance.now() - one.seen))
    removed.blobs++
    loose.splice(loose.indexOf(one), 1)
  }
}

const scheduled = new Set<string>()
const others = (async () => {
  while (!isOver) {
    await push()
    await look()
    for (const { id } of await rowsOf<{ id: string }>('SELECT id FROM collections WHERE scheduled = 1'))
      scheduled.add(id)
    await sleep(50)
  }
})()

type Owner = { owner: string; url: string }
const ownerNow = async (): Promise<Owner | undefined> => {
  const [row] = await rowsOf<Owner>(
    "SELECT d.owner, n.local_url AS url FROM duties d JOIN nodes n ON n.id = d.owner WHERE d.name = 'blobs.collect'",
  )
  return row
}

const took: number[] = []
const began = performance.now()
for (let round = 0; round < rounds; round++) {
  let owner = await ownerNow()
  for (; !owner; owner = await ownerNow()) await sleep(20)
  const { url: ownUrl } = owner
  const listen = addresses.find((one) => ownUrl.endsWith(one))!
  const alive = addresses.filter((one) => one !== listen)
  await sleep(below(periodMs))
  servers.get(listen)!.kill('SIGKILL')
  await servers.get(listen)!.exited
  const killed = performance.now()
  const asking = at(alive[below(alive.length)]!).post('/control/v1/blobs:collect', {})
  for (let next = owner; next.owner === owner.owner; next = (await ownerNow()) ?? owner) {
    assert.ok(performance.now() - killed < 30 * leaseMs, 'nobody takes over')
    await sleep(10)
  }
  took.push(performance.now() - killed)
  const { body, text } = await asking
  assert.equal(body.finished, true, text)
  for (const one of alive) {
    const told = await at(one).post('/control/v1/blobs:collect', { id: body.id })
    assert.deepEqual([told.status, told.body.finished], [200, true], `${one} does not know the run`)
  }
  await start(listen)
}
// The rest is collected too, and the folder is empty in the end.
isOver = true
await others
for (const until = performance.now() + 60_000; loose.length > 0; await sleep(100)) {
  assert.ok(performance.now() < until, `${loose.length} blobs that nothing needs stay`)
  await look()
}
const seconds = (performance.now() - began) / 1000
took.sort((a, b) => a - b)
const share = (of: number) => took[Math.min(took.length - 1, Math.floor(took.length * of))]!.toFixed(0)
console.log(
  `${rounds} owners killed, taken over after ${share(0.5)} ms, at most ${share(1)} ms (a lease is ${leaseMs} ms); ` +
    `${scheduled.size} scheduled collections in ${((seconds * 1000) / periodMs).toFixed(0)} periods; ` +
    `${removed.blobs} blobs removed, ${removed.early} before their time`,
)
await database.end()
for (const server of servers.values()) {
  server.kill('SIGTERM')
  await server.exited
}
assert.equal(removed.early, 0, 'something was removed before its time')
assert.ok(removed.blobs > 0, 'nothing was tried')
assert.ok(scheduled.size <= (seconds * 1000) / periodMs + rounds + 1, 'more than one collection in a period')
if (values.check) assert.ok(took.at(-1)! <= 2 * leaseMs, 'nobody had taken over after two leases')
