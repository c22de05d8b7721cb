// Uploads in pieces over several servers of one PostgreSQL and one bucket, each request at a random server, while one of them is
// killed again and again. No acknowledged upload may be lost, and every digest must be right. Content that kills have left in the
// bucket must be collected once it is old, and nothing else. By hand: PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node
// test/fuzz/uploads.ts --uploads 10000 --nodes 3 --kill-seconds 10 --seed N repeats the choices of a run. It needs versitygw;
// without a PostgreSQL there is one server with a folder.
import assert from 'node:assert/strict'
import { utimesSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { parseBucket } from '#blobs/s3/bucket.ts'
import { openBucket } from '#blobs/s3/store.ts'
import { pieceBytes } from '#blobs/s3/upload.ts'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import {
  createStorage,
  freeAddress,
  lastingToken,
  type Process,
  runProcess,
  startProcess,
  tokenOf,
} from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { digestOf, registryClient } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    uploads: { type: 'string', default: '10000' },
    nodes: { type: 'string', default: '3' },
    clients: { type: 'string', default: '16' },
    'kill-seconds': { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [uploads, nodes, clients, killSeconds, seed] = [
  values.uploads,
  values.nodes,
  values.clients,
  values['kill-seconds'],
  values.seed,
].map(Number) as [number, number, number, number, number]
console.log(`seed ${seed}`)
const { below } = randomFrom(seed)

await using storage = await createStorage()
if (storage.database === '' || noBucket) throw new Error('it needs PINFOLD_TEST_DATABASE, and versitygw on the PATH')
await using bucket = await startBucket()
const blobs = bucket.url()
const url = `http://${await freeAddress()}`
const env = {
  ...bucket.aws,
  PINFOLD_URL: url,
  PINFOLD_LEASE_MS: '3000',
  PINFOLD_BLOB_GRACE_SECONDS: '3600',
  PINFOLD_BLOB_TRASH_SECONDS: '0',
}
const addresses = await Promise.all(Array.from({ length: nodes }, freeAddress))
const start = (listen: string) => startProcess(storage, { listen, env, args: ['--blobs', blobs] })
const servers: Process[] = []
for (const listen of addresses) servers.push(await start(listen))
const operator = await tokenOf(storage, ['--audience', url])
await clientOf(`http://${addresses[0]}`, operator).post('/iam/v2/groups/', { name: 'acme' })
const token = lastingToken(storage, ['--audience', 'registry'])
const doors = addresses.map((address) => registryClient(`http://${address}`, undefined))

const acknowledged = new Map<string, { repo: string; size: number }>()
const tally = { requests: 0, again: 0, begun: 0, large: 0, refused: new Map<number, number>() }
let isOver = false
/** The server sends larger content to the bucket in several pieces. */
const oneRequest = pieceBytes(0)

/** Sends the request to some server, and to another one if that is unavailable. A body that was cut may have come in part. */
async function ask(method: string, path: string, what?: { body?: Buffer }) {
  for (let tries = 0; tries < 200; tries++) {
    tally.requests++
    const sent = { ...what, token: await token() }
    const reply = await doors[below(nodes)]!.call(method, path, sent).catch(() => undefined)
    if (reply && reply.status < 500) return reply
    if (reply) tally.refused.set(reply.status, (tally.refused.get(reply.status) ?? 0) + 1)
    tally.again++
    await sleep(50 + below(200))
    // If the result is unknown, the caller must check it.
    if (method !== 'GET' && method !== 'HEAD') return undefined
  }
  throw new Error(`${method} ${path} is answered by nobody`)
}

async function one(i: number): Promise<void> {
  const repo = `acme/r${i % 16}`
  // Some of several pieces, some of which are too large for one request to the bucket.
  const sizes = Array.from({ length: 1 + below(5) }, () => {
    if (below(200) === 0) return oneRequest + below(2 * oneRequest)
    return 1 + below(below(50) === 0 ? 3_000_000 : 40_000)
  })
  const content = Buffer.concat(sizes.map((size, at) => Buffer.alloc(size, `${seed} ${i} ${at} `)))
  const digest = digestOf(content)
  for (let attempt = 0; attempt < 50; attempt++) {
    const begun = await ask('POST', `${repo}/blobs/uploads/`)
    if (begun?.status !== 202) continue
    tally.begun++
    const location = String(begun.headers.location)
    if (await upload(location, content, sizes, digest)) {
      acknowledged.set(digest, { repo, size: content.length })
      return
    }
  }
  throw new Error(`upload ${i} never went through`)
}

/** As clients do: after a piece that was cut, they ask how far it came. `false` where the upload is over. */
async function upload(location: string, content: Buffer, sizes: readonly number[], digest: string): Promise<boolean> {
  for (let at = 0, piece = 0, tries = 0; at < content.length; tries++) {
    if (tries > 100) return false
    const end = Math.min(content.length, at + (sizes[piece] ?? content.length))
    const sent = await ask('PATCH', location, { body: content.subarray(at, end) })
    if (sent?.status === 202) {
      if (end - at > oneRequest) tally.large++
      at = end
      piece++
      continue
    }
    const asked = await ask('GET', location)
    if (asked?.status !== 204) return false
    const range = /^0-(\d+)$/.exec(String(asked.headers.range ?? ''))?.[1]
    at = range === undefined || (range === '0' && at === 0) ? 0 : Number(range) + 1
  }
  const closed = await ask('PUT', `${location}?digest=${digest}`)
  if (closed) assert.ok([201, 400, 404, 416].includes(closed.status), `${closed.status} ${closed.bytes}`)
  // If no answer came, the upload may be closed already. Nothing was acknowledged then, so the content is pushed again.
  return closed?.status === 201
}

let kills = 0
const killing = (async () => {
  while (!isOver) {
    for (let waited = 0; waited < killSeconds * 1000 && !isOver; waited += 100) await sleep(100)
    if (isOver) return
    const at = below(nodes)
    servers[at]!.kill('SIGKILL')
    await servers[at]!.exited
    kills++
    servers[at] = await start(addresses[at]!)
  }
})()
let next = 0
const began = performance.now()
const results = await Promise.allSettled(
  Array.from({ length: clients }, async () => {
    for (let i = next++; i < uploads; i = next++) await one(i)
  }),
)
isOver = true
await killing
for (const result of results) if (result.status === 'rejected') throw result.reason
const took = (performance.now() - began) / 1000
console.log(
  `${uploads} uploads in ${took.toFixed(0)} s, ${kills} kills, ${tally.begun} begun, ${tally.requests} requests, ` +
    `${tally.large} pieces in several requests to the bucket`,
)
for (const [status, n] of tally.refused) console.log(`  ${n} × ${status}, tried again`)

// Leftovers of kills, of which some came between the write to the bucket and the commit.
const opened = await openDb({ database: storage.database, file: '' })
const store = await openBucket(parseBucket(blobs), { env: bucket.aws })
async function stray(): Promise<string> {
  const part = await store.begin(5, '')
  await part.write([Buffer.from('stray')])
  await part.finish()
  return part.name
}
/** Objects in the bucket without a row, and rows without an object. */
async function compare() {
  const rows = await opened.all<{ location: string }>(sql`
    SELECT location FROM blobs UNION SELECT location FROM upload_parts UNION SELECT location FROM blob_trash`)
  const named = new Set(rows.map(({ location }) => location))
  const objects = new Set<string>()
  for await (const { location } of store.list()) objects.add(location)
  return { objects, orphans: objects.difference(named), missing: named.difference(objects) }
}
const planted = [await stray(), await stray(), await stray()]
const dayAgo = Date.now() / 1000 - 25 * 3600
const before = await compare()
for (const location of before.objects) utimesSync(bucket.fileOf(blobs, location), dayAgo, dayAgo)
const young = await stray()
const swept = await runProcess(['gc', ...storage.args], {
  env: { ...storage.env, ...env, PINFOLD_BLOBS: blobs, PINFOLD_API: `http://${addresses[0]}` },
})
assert.equal(swept.code, 0, swept.stderr)
const after = await compare()

let lost = 0
for (const [digest, { repo, size }] of acknowledged) {
  const got = await ask('GET', `${repo}/blobs/${digest}`)
  if (got?.status === 200 && got.bytes.length === size && digestOf(got.bytes) === digest) continue
  lost++
  console.error(`lost: ${repo} ${digest} ${got?.status}`)
}
assert.equal(acknowledged.size, uploads)
assert.ok(tally.large > 0 || uploads < 500, 'nothing was too large for one request')
for (const server of servers) {
  server.kill('SIGTERM')
  await server.exited
}
store.close()
await opened.close()
console.log(
  `${acknowledged.size} acknowledged, ${lost} lost, ${before.objects.size} objects, ` +
    `${before.orphans.size - planted.length} of them orphans of kills, ${after.orphans.size - 1} of them left by a collection, ` +
    `${after.missing.size} rows without an object`,
)
assert.deepEqual([lost, [...after.orphans], [...after.missing]], [0, [young], []])
