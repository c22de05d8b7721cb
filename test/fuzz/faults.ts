// Several servers that share one PostgreSQL and one bucket, under random faults. Servers are killed, frozen, or disconnected from
// the database or the bucket. Database connections stop responding, and clocks are wrong. Meanwhile clients push layers and
// update tags with preconditions, until after the fault. One order of the updates must explain all responses and the final state.
// To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/faults.ts --runs 200 --nodes 3 --moves 60
// `--seed N` repeats the choices of a run. Wrong clocks need libfaketime, and the bucket needs versitygw; without them, these
// parts are left out.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { cleanEnv, createStorage, freeAddress, lastingToken, project, tokenOf } from '../support/process.ts'
import { randomFrom } from '../support/random.ts'
import { digestOf, imageOf, registryClient, types } from '../support/registry.ts'
import { startWire } from '../support/wire.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    nodes: { type: 'string', default: '3' },
    clients: { type: 'string', default: '6' },
    moves: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const [runs, nodes, clients, moves, seed] = [values.runs, values.nodes, values.clients, values.moves, values.seed].map(
  Number,
) as [number, number, number, number, number]
const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
const kinds = [
  'kill',
  'freeze',
  'partition',
  'database away',
  'slow database',
  'database moved',
  'bucket away',
  ...(existsSync(faketime) ? ['clock'] : []),
]

await using storage = await createStorage()
if (storage.database === '') throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
await using stack = new AsyncDisposableStack()
const bucket = noBucket ? undefined : stack.use(await startBucket())
const behind = new URL(storage.database)
const url = `http://${await freeAddress()}`

async function makeNode() {
  const listen = await freeAddress()
  const toDatabase = await startWire({ host: behind.hostname, port: Number(behind.port || 5432) })
  const toBucket = bucket && (await startWire({ host: '127.0.0.1', port: Number(new URL(bucket.origin).port) }))
  const database = new URL(storage.database)
  database.hostname = '127.0.0.1'
  database.port = String(toDatabase.port)
  let child: ReturnType<typeof spawn> | undefined
  let exited: Promise<unknown> = Promise.resolve()
  return {
    listen,
    toDatabase,
    toBucket,
    async start(blobs: string, clock = ''): Promise<void> {
      const args = ['serve', '--data', storage.data, '--database', database.href, '--listen', listen]
      child = spawn(join(project, 'bin/pinfold'), bucket ? [...args, '--blobs', blobs] : args, {
        cwd: project,
        env: cleanEnv({
          ...storage.env,
          ...bucket?.aws,
          PINFOLD_URL: url,
          PINFOLD_LOG_LEVEL: 'error',
          PINFOLD_LEASE_MS: '2000',
          ...(clock && { LD_PRELOAD: faketime, FAKETIME: clock, DONT_FAKE_MONOTONIC: '1' }),
        }),
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      exited = once(child, 'exit')
      const out = child.stdout!.setEncoding('utf8')
      await new Promise<void>((resolve, reject) => {
        let text = ''
        out.on('data', (more: string) => {
          text += more
          if (/^ready /m.test(text)) resolve()
        })
        void exited.then(() => reject(new Error('a server has ended before it was ready')))
      })
    },
    signal: (signal: NodeJS.Signals) => void child?.kill(signal),
    async end(): Promise<void> {
      child?.kill('SIGCONT')
      child?.kill('SIGKILL')
      await exited
    },
    async close(): Promise<void> {
      await this.end()
      toDatabase.close()
      toBucket?.close()
    },
  }
}

const blobs = bucket?.url() ?? ''
const all: Awaited<ReturnType<typeof makeNode>>[] = []
for (let i = 0; i < nodes; i++) {
  const node = stack.adopt(await makeNode(), (one) => one.close())
  // The first server stores the id of the blob store. If each server has its own proxy, all proxies lead to the same store.
  await node.start(node.toBucket ? blobs.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${node.toBucket.port}`) : blobs)
  all.push(node)
}
const blobsOf = (node: (typeof all)[number]) =>
  node.toBucket ? blobs.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${node.toBucket.port}`) : blobs
const operator = await tokenOf(storage, ['--audience', url])
await clientOf(`http://${all[0]!.listen}`, operator).post('/iam/v2/groups/', { name: 'acme' })
const token = lastingToken(storage, ['--audience', 'registry'])
const doors = all.map(({ listen }) => registryClient(`http://${listen}`, undefined))

/**
 * A tag move that a client requested. `from` is the digest that the client had seen, and `to` is a new, unique digest. `end` is
 * missing if no answer came.
 */
type Move = { from: string; to: string; begin: number; end?: number; result: 'moved' | 'refused' | 'unknown' }

/** Digests of the tag that clients were told. Empty if the tag did not exist. */
type Read = { digest: string; begin: number; end: number }

/**
 * Checks that one order of the moves explains all answers. Digests are unique and each move names the digest before it, so the
 * moves that happened form one chain. A refusal is wrong only if the tag was at `from` all the time. A read must return a digest
 * that the tag had by then.
 */
function problemOf(made: readonly Move[], reads: readonly Read[], history: readonly string[]): string | undefined {
  const at = new Map(history.map((digest, i) => [digest, i]))
  const moveTo = new Map(made.map((move) => [move.to, move]))
  if (at.size !== history.length) return 'a content came twice'
  /** True if the tag surely was at `from` from the request of the move until its refusal. */
  const hasStalled = ({ from, begin, end }: Move): boolean => {
    const came = moveTo.get(from)
    const next = moveTo.get(history[from === '' ? 0 : at.get(from)! + 1] ?? '')
    const wasThere = from === '' || (came?.result === 'moved' && came.end! <= begin)
    return wasThere && (next === undefined || next.begin >= end!)
  }
  for (const move of made) {
    const position = at.get(move.to)
    if (move.result === 'moved' && position === undefined) return `lost: a move to ${move.to} was acknowledged`
    if (move.result === 'refused' && position !== undefined) return `a move to ${move.to} was refused and happened`
    if (move.result === 'refused' && hasStalled(move)) return `a move to ${move.to} was refused for nothing`
    if (position === undefined) continue
    const before = history[position - 1] ?? ''
    if (before !== move.from) return `${move.to} came from ${before}, and was to come from ${move.from}`
  }
  const known = made.filter(({ result }) => result === 'moved')
  for (const a of known) {
    for (const b of known) {
      if (a.end! < b.begin && at.get(a.to)! > at.get(b.to)!)
        return `${b.to} was moved after ${a.to}, and stands before it`
    }
  }
  for (const { digest, begin, end } of reads) {
    const position = digest === '' ? -1 : at.get(digest)
    if (position === undefined) return `${digest} was read, and never was there`
    if (known.some((move) => move.end! < begin && at.get(move.to)! > position))
      return `${digest} was read after its time`
    if ((moveTo.get(digest)?.begin ?? 0) > end) return `${digest} was read before its time`
  }
  return undefined
}

type EntryPoint = (typeof doors)[number]
type Asked = Parameters<EntryPoint['call']>

async function one(door: EntryPoint, ...[method, path, send]: Asked) {
  const asked = door.call(method, path, { ...send, token: await token() }).catch(() => undefined)
  return Promise.race([asked, sleep(15_000).then(() => undefined)])
}

async function retried(next: () => EntryPoint, ...asked: Asked) {
  for (let tries = 0; tries < 300; tries++) {
    const reply = await one(next(), ...asked)
    if (reply && reply.status < 500) return reply
    again++
    await sleep(100)
  }
  throw new Error(`${asked[0]} ${asked[1]} is answered by nobody`)
}

let violations = 0
/** Number of requests that were repeated, because no answer came or the server was unavailable. */
let again = 0
let cuts = 0
let cutFromBucket = 0
const sum = { moved: 0, refused: 0, unknown: 0, reads: 0 }
const tried = new Map<string, number>()
for (let round = 0; round < runs; round++) {
  const { below } = randomFrom(seed + round)
  const kind = kinds[below(kinds.length)]!
  tried.set(kind, (tried.get(kind) ?? 0) + 1)
  const victim = all[below(nodes)]!
  const healthy = doors.filter((_, i) => all[i] !== victim)
  const repo = `acme/run${seed}-${round}`
  const config = '{"architecture":"amd64"}'
  const headers = { 'content-type': types.image }
  const push = async (content: string, mediaType: string) => {
    const path = `${repo}/blobs/uploads/?digest=${digestOf(content)}`
    const pushed = await retried(() => doors[below(nodes)]!, 'POST', path, { body: content })
    assert.equal(pushed.status, 201, pushed.bytes.toString())
    return { mediaType, digest: digestOf(content), size: Buffer.byteLength(content) }
  }
  const base = await push(config, types.config)
  const made: Move[] = []
  const reads: Read[] = []
  const layers: string[] = []
  let left = moves
  let isOver = false
  const client = async (me: number): Promise<void> => {
    while (left-- > 0 || !isOver) {
      await sleep(below(50))
      const content = `a layer of ${seed} ${round} ${me} ${left}`
      const layer = await push(content, types.layer)
      layers.push(content)
      const door = doors[below(nodes)]!
      const asked = performance.now()
      const seen = await one(door, 'HEAD', `${repo}/manifests/hot`)
      if (!seen || ![200, 404].includes(seen.status)) continue
      const from = seen.status === 200 ? String(seen.headers['docker-content-digest']) : ''
      reads.push({ digest: from, begin: asked, end: performance.now() })
      const image = { ...imageOf(base, [layer]), annotations: { n: `${seed} ${round} ${me} ${left}` } }
      const body = JSON.stringify(image)
      const move: Move = { from, to: digestOf(body), begin: performance.now(), result: 'unknown' }
      made.push(move)
      const condition = from === '' ? { 'if-none-match': '*' } : { 'if-match': `"${from}"` }
      const reply = await one(door, 'PUT', `${repo}/manifests/hot`, { body, headers: { ...headers, ...condition } })
      move.end = performance.now()
      if (reply?.status === 201) move.result = 'moved'
      else if (reply?.status === 412) move.result = 'refused'
    }
  }
  const clientsDone = Promise.all(Array.from({ length: clients }, (_, me) => client(me)))
  await sleep(below(400))
  const lasts = 200 + below(3000)
  const before = again
  if (kind === 'kill') {
    await victim.end()
    await victim.start(blobsOf(victim))
  } else if (kind === 'freeze') {
    victim.signal('SIGSTOP')
    await sleep(lasts + 2000)
    victim.signal('SIGCONT')
  } else if (kind === 'partition') {
    victim.toDatabase.set('cut')
    await sleep(lasts)
    victim.toDatabase.set('open')
  } else if (kind === 'database away') {
    for (const node of all) node.toDatabase.set('cut')
    await sleep(lasts)
    for (const node of all) node.toDatabase.set('open')
  } else if (kind === 'slow database') {
    victim.toDatabase.set('held')
    await sleep(lasts)
    victim.toDatabase.set('open')
  } else if (kind === 'database moved') {
    // Old connections get no more answers, while new ones work. The servers must drop the old ones within seconds.
    for (const node of all) node.toDatabase.set('moved')
    await sleep(lasts + 4000)
    for (const node of all) node.toDatabase.set('open')
  } else if (kind === 'bucket away') {
    for (const node of all) node.toBucket?.set('cut')
    if (bucket) cuts++
    await sleep(lasts)
    for (const node of all) node.toBucket?.set('open')
  } else {
    await victim.end()
    await victim.start(blobsOf(victim), below(2) === 0 ? '+300s' : '-300s')
  }
  isOver = true
  if (kind === 'bucket away') cutFromBucket += again - before
  await clientsDone
  if (kind === 'clock') {
    await victim.end()
    await victim.start(blobsOf(victim))
  }
  const history = await retried(() => healthy[below(healthy.length)]!, 'GET', `${repo}/_svc/history/hot`)
  const digests =
    history.status === 404 ? [] : (history.body.history as { digest: string }[]).map(({ digest }) => digest)
  let problem = problemOf(made, reads, digests)
  for (const { result } of made) sum[result]++
  sum.reads += reads.length
  // All servers must show the same state after the fault.
  for (const door of doors) {
    const head = await retried(() => door, 'HEAD', `${repo}/manifests/hot`)
    assert.equal(head.headers['docker-content-digest'] ?? '', digests.at(-1) ?? '', `run ${round}, ${kind}`)
  }
  for (const content of layers) {
    const got = await retried(() => doors[below(nodes)]!, 'GET', `${repo}/blobs/${digestOf(content)}`)
    if (got.bytes.toString() !== content) problem ??= `lost: a layer was acknowledged, and answers ${got.status}`
  }
  if (problem) {
    violations++
    console.error(`run ${round} (--seed ${seed + round} --runs 1), ${kind}: ${problem}`)
  } else console.log(`run ${round}, ${kind}: ${digests.length} moves, ${layers.length} layers`)
}
console.log(
  `${runs} runs, seed ${seed}: ${sum.moved} moved, ${sum.refused} refused, ${sum.unknown} without an answer, ${sum.reads} reads, ${violations} violations; ` +
    `${again} requests were asked again, ${cutFromBucket} of them while the bucket was away`,
)
console.log([...tried].map(([kind, times]) => `${kind}: ${times}`).join(', '))
assert.equal(violations, 0)
assert.ok(sum.moved > 0, 'nothing was tried')
assert.ok(cuts === 0 || cutFromBucket > 0, 'nobody missed the bucket')
