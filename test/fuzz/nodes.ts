// Concurrent pushes through several servers on one PostgreSQL. The program prints the rate and how many transactions had to be
// repeated. It checks that no push was refused or lost. To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/nodes.ts --nodes 2 --clients 8 --repos 16 --pushes 600
// With --hot, all pushes move one tag of one repository. With --check, the program fails above the bounds.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, freeAddress, startProcess, tokenOf } from '../support/process.ts'
import { digestOf, imageOf, registryClient, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '2' },
    clients: { type: 'string', default: '8' },
    repos: { type: 'string', default: '16' },
    pushes: { type: 'string', default: '600' },
    hot: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
})
const [nodes, clients, repos, pushes] = [values.nodes, values.clients, values.repos, values.pushes].map(Number) as [
  number,
  number,
  number,
  number,
]
await using storage = await createStorage()
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
const url = `http://${await freeAddress()}`
await using closing = new AsyncDisposableStack()
const started: { server: Awaited<ReturnType<typeof startProcess>>; base: string; metrics: string }[] = []
for (let i = 0; i < nodes; i++) {
  const [listen, metrics] = [await freeAddress(), await freeAddress()]
  const env = { PINFOLD_URL: url, PINFOLD_METRICS_LISTEN: metrics }
  const server = closing.use(await startProcess(storage, { listen, env }))
  started.push({ server, base: `http://${listen}`, metrics: `http://${metrics}/metrics` })
}
const operator = await tokenOf(storage, ['--audience', url])
await clientOf(started[0]!.base, operator).post('/iam/v2/groups/', { name: 'acme' })
const token = await tokenOf(storage, ['--audience', 'registry'])
const doors = started.map(({ base }) => registryClient(base, token))

const config = JSON.stringify({ architecture: 'amd64', os: 'linux' })
const last = new Map<string, Set<string>>()
const times: number[] = []
const answers = new Map<number, number>()

async function push(i: number): Promise<void> {
  const door = doors[i % doors.length]!
  const repo = values.hot ? 'acme/hot' : `acme/r${i % repos}`
  const tag = values.hot ? 'latest' : `t${i}`
  const blob = async (content: string, mediaType: string) => {
    const digest = digestOf(content)
    await send(door, 201, 'POST', `${repo}/blobs/uploads/?digest=${digest}`, { body: content })
    return { mediaType, digest, size: Buffer.byteLength(content) }
  }
  const layer = await blob(createHash('sha256').update(`layer ${i} ${process.pid}`).digest('hex'), types.layer)
  const manifest = JSON.stringify(imageOf(await blob(config, types.config), [layer]))
  const headers = { 'content-type': types.image }
  await send(door, 201, 'PUT', `${repo}/manifests/${tag}`, { body: manifest, headers })
  const key = `${repo}:${tag}`
  last.set(key, (last.get(key) ?? new Set()).add(digestOf(manifest)))
}

async function send(
  door: (typeof doors)[number],
  expected: number,
  ...[method, path, what]: Parameters<typeof door.call>
) {
  const { status, bytes } = await door.call(method, path, what)
  answers.set(status, (answers.get(status) ?? 0) + 1)
  if (status !== expected) throw new Error(`${method} ${path}: ${status} ${bytes.toString().slice(0, 200)}`)
}

/** Reads all records. An answer has at most a thousand, and the next request starts at the time of the last one. */
async function recordsOf(path: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (let start = '', before = -1; found.size > before; ) {
    before = found.size
    const { body } = await doors[0]!.ok(200, 'GET', `${path}${start}`)
    const records = body.history as { digest: string; updateTimestamp: string }[]
    for (const { digest } of records) found.add(digest)
    start = `?start=${records.at(-1)!.updateTimestamp}`
  }
  return found
}

async function counted(name: string): Promise<number> {
  let sum = 0
  for (const { metrics } of started) {
    const text = await (await fetch(metrics)).text()
    const counts = [...text.matchAll(new RegExp(`^pinfold_db_${name}_total(?:\\{.*\\})? (\\S+)$`, 'gm'))]
    if (counts.length === 0) throw new Error(`nothing counts ${name}`)
    for (const [, count] of counts) sum += Number(count)
  }
  return sum
}

// The repositories are created before the measurement, since a push that creates one has a different transaction.
for (let i = 0; i < (values.hot ? 1 : repos); i++) await push(i)
const before = await counted('retries')
const began = performance.now()
let next = repos
let failed = 0
await Promise.all(
  Array.from({ length: clients }, async () => {
    for (let i = next++; i < repos + pushes; i = next++) {
      const start = performance.now()
      await push(i).catch((error: unknown) => {
        failed++
        if (failed <= 3) console.error(String(error))
      })
      times.push(performance.now() - start)
    }
  }),
)
const seconds = (performance.now() - began) / 1000
const retries = ((await counted('retries')) - before) / pushes
times.sort((a, b) => a - b)
const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]!
const refused = [...answers].filter(([status]) => status >= 500).reduce((sum, [, count]) => sum + count, 0)
console.log(
  `${nodes} nodes, ${clients} clients, ${values.hot ? 'one tag' : `${repos} repos`}, ${pushes} pushes: ` +
    `${retries.toFixed(3)} retries a push, ${(pushes / seconds).toFixed(0)} a second, ` +
    `p50 ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms, ${refused} answers of 5xx, ${failed} pushes failed`,
)
for (const [key, digests] of last) {
  const [repo, tag] = key.split(':')
  const shown = await Promise.all(doors.map((door) => door.call('HEAD', `${repo}/manifests/${tag}`)))
  const digest = shown[0]!.headers['docker-content-digest'] as string
  assert.ok(digests.has(digest), `${key} points to ${digest}, which nobody was told of`)
  for (const { headers } of shown) assert.equal(headers['docker-content-digest'], digest, key)
  const records = await recordsOf(`${repo}/_svc/history/${tag}`)
  for (const one of digests) assert.ok(records.has(one), `the ledger of ${key} has lost ${one}`)
}
if (values.check) {
  assert.ok(retries <= 0.05, `${retries} retries a push`)
  assert.ok(at(0.99) <= 4 * at(0.5), 'p99 is more than four times p50')
  assert.equal(refused + failed, 0)
}
