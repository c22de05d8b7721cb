// Memory of a busy server: reads over REST and gRPC, pulls, pushes and tag updates, as fast as the server answers. It prints
// resident memory and heap: `bin/pinfold-node bench/memory.ts`. With --check it fails above the bounds, in MB.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetRepoRequestSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { createStorage, startProcess } from '../test/support/process.ts'
import { imageOf, registryClient, types } from '../test/support/registry.ts'
import { grpcConnections, httpConnections, type Wanted } from './connections.ts'
import { pinLoad, startMeasured } from './cpu-server.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** Time between two lines of output. */
    every: { type: 'string', default: '5' },
    check: { type: 'boolean', default: false },
  },
})
const [minutes, every] = [Number(values.minutes), Number(values.every)]
const bounds = { idle: 110, loaded: 250 }
const lanes = 16

function residentMb(pid: number, what: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  return (Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024) / 1e6
}

async function idleMb(): Promise<number> {
  await using storage = await createStorage()
  await using server = await startProcess(storage)
  await sleep(5000)
  return residentMb(server.pid)
}

pinLoad()
const idle = await idleMb()
console.log(`idle: ${idle.toFixed(0)} MB`)
await using server = await startMeasured(new URL('..', import.meta.url).pathname)
const { url, pid, org, repo, digest, pushed } = server
/** Tokens expire after an hour. */
let tokens = { token: server.token, registryToken: server.registryToken }
const authorization = () => `Bearer ${tokens.registryToken}`
const manifest = (reference: string): Wanted => ({
  path: `/v2/bench/app/manifests/${reference}`,
  headers: { authorization: authorization(), accept: types.image },
})
const rest = (path: string): Wanted => ({ path, headers: { authorization: `Bearer ${tokens.token}` } })
const move = (index: number): Wanted => ({
  path: `/v2/bench/app/manifests/moving${index % 128}`,
  method: 'PUT',
  headers: { authorization: authorization(), 'content-type': types.image },
  body: pushed[Math.floor(index / 128) % 2]!,
})
// Mix of eight requests: three pulls, two lists, a Get, a list of tags and a tag update.
const mix: ((index: number) => Wanted)[] = [
  (index) => manifest(`t${index % 100}`),
  () => manifest(digest),
  () => rest(`/registry/v2/repos?uidp.descendants_of=${org}&order_by=name&page_size=50`),
  () => rest(`/registry/v2/repos/${repo}`),
  (index) => manifest(`t${(index * 7) % 100}`),
  () => ({ path: '/v2/bench/app/tags/list?n=100', headers: { authorization: authorization() } }),
  () => rest(`/registry/v2/repos?uidp.descendants_of=${org}&order_by=uid&page_size=200`),
  move,
]
const counts = { requests: 0, calls: 0, pushes: 0 }
const until = performance.now() + minutes * 60_000
const isOver = () => performance.now() >= until

async function reading(): Promise<void> {
  const connections = httpConnections(url, lanes, (index) => mix[index % mix.length]!(index))
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      while (!isOver()) await connections.send(lane, counts.requests++)
    }),
  )
  connections.close()
}

async function calling(): Promise<void> {
  const message = toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: repo }))
  const path = '/pinfold.platform.registry.v2.ReposService/GetRepo'
  const connections = grpcConnections(url, 8, { path, token: () => tokens.token, message })
  await Promise.all(
    Array.from({ length: 8 }, async (_, lane) => {
      for (; !isOver(); counts.calls++) await connections.send(lane, 0)
    }),
  )
  connections.close()
}

async function pushing(): Promise<void> {
  for (; !isOver(); counts.pushes++) {
    const client = registryClient(url, tokens.registryToken)
    const name = `bench/new-${counts.pushes % 64}`
    const config = await client.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
    // Some of them are large.
    const layer = await client.pushBlob(name, randomBytes(counts.pushes % 50 === 0 ? 8 << 20 : 40_000))
    await client.pushManifest(name, imageOf(config, [layer]), `n${counts.pushes}`)
    await sleep(100)
  }
}

async function heapMb(): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${tokens.token}` } })).text()
  return Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(text)?.[1]) / 1e6
}

async function watching(): Promise<void> {
  for (let at = every; !isOver(); at += every) {
    await sleep(Math.max(0, Math.min(every * 60_000, until - performance.now())))
    tokens = await server.renew()
    const heap = await heapMb().catch(() => Number.NaN)
    const { requests, calls, pushes } = counts
    console.log(
      `${Math.min(at, minutes)} min: ${residentMb(pid).toFixed(0)} MB resident, ${heap.toFixed(0)} MB of heap in use; ` +
        `${requests} requests, ${calls} calls over gRPC, ${pushes} images`,
    )
  }
}

await Promise.all([reading(), calling(), pushing(), watching()])
const loaded = residentMb(pid)
await sleep(30_000)
console.log(
  `idle ${idle.toFixed(0)} MB (at most ${bounds.idle}); after ${minutes} minutes ${loaded.toFixed(0)} MB (at most ${bounds.loaded}), ` +
    `at most ${residentMb(pid, 'VmHWM').toFixed(0)} MB meanwhile, ${residentMb(pid).toFixed(0)} MB half a minute later`,
)
if (values.check && (idle > bounds.idle || loaded > bounds.loaded)) process.exitCode = 1
