// Concurrent pushes, mounts, tag updates, pulls and deletions, while blobs are garbage-collected continuously with a grace period
// of seconds. No request of a client may fail. To run it by hand:
//   bin/pinfold-node test/fuzz/registry-soak.ts --minutes 10 --clients 8
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one. With --bucket the blobs are in a bucket of versitygw.
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, startProcess, tokenOf } from '../support/process.ts'
import { checkStore } from '../support/pushes.ts'
import { digestOf, imageOf, type RegistryClient, registryClient, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    clients: { type: 'string', default: '8' },
    grace: { type: 'string', default: '5' },
    bucket: { type: 'boolean', default: false },
  },
})
const until = Date.now() + Number(values.minutes) * 60_000
const repos = ['acme/one', 'acme/two', 'acme/three', 'acme/four']
/** Layers that all clients share. Each is pushed, garbage collected and pushed again. */
const pool = Array.from({ length: 12 }, () => randomBytes(50_000))
const counts = { pushes: 0, mounts: 0, moves: 0, pulls: 0, deletes: 0, collections: 0, collected: 0 }
const failures: string[] = []

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

type Kept = { repo: string; tag: string; digest: string; layers: string[] }

async function work(client: () => RegistryClient, name: string): Promise<void> {
  const kept: Kept[] = []
  for (let i = 0; Date.now() < until; i++) {
    try {
      await step(client(), kept, name, i)
    } catch (error) {
      failures.push((error as Error).message)
    }
  }
}

async function step(client: RegistryClient, kept: Kept[], name: string, i: number): Promise<void> {
  const action = Math.random()
  if (action < 0.5 || kept.length < 3) kept.push(await push(client, `${name}-${i % 20}`))
  else if (action < 0.8) await pull(client, pick(kept))
  else await remove(client, kept)
  if (kept.length > 30) await remove(client, kept)
}

async function push(client: RegistryClient, tag: string): Promise<Kept> {
  const repo = pick(repos)
  const layers = [await shared(client, repo, pick(pool)), await client.pushBlob(repo, randomBytes(20_000))]
  const config = await shared(client, repo, Buffer.from('{"architecture":"amd64"}'))
  const { digest } = await client.pushManifest(repo, imageOf({ ...config, mediaType: types.config }, layers), tag)
  counts.pushes++
  counts.moves++
  return { repo, tag, digest, layers: [config, ...layers].map((layer) => layer.digest) }
}

/** Uploads a blob as clients do: check whether it exists, try to mount it, and then upload it. */
async function shared(client: RegistryClient, repo: string, content: Buffer) {
  const digest = digestOf(content)
  const descriptor = { mediaType: types.layer, digest, size: content.length }
  const head = await client.call('HEAD', `${repo}/blobs/${digest}`)
  if (head.status === 200) return descriptor
  if (head.status !== 404) throw new Error(`HEAD of a blob answered ${head.status}`)
  const from = pick(repos)
  const mounted = await client.call('POST', `${repo}/blobs/uploads/?mount=${digest}&from=${from}`)
  counts.mounts++
  if (mounted.status === 201) return descriptor
  if (mounted.status !== 202) throw new Error(`a mount answered ${mounted.status}`)
  await client.ok(201, 'PUT', `${mounted.headers.location}?digest=${digest}`, { body: content })
  return descriptor
}

async function pull(client: RegistryClient, { repo, digest, layers }: Kept): Promise<void> {
  const manifest = await client.ok(200, 'GET', `${repo}/manifests/${digest}`)
  if (digestOf(manifest.bytes) !== digest) throw new Error('a manifest has another content')
  for (const layer of layers) {
    const blob = await client.ok(200, 'GET', `${repo}/blobs/${layer}`)
    if (digestOf(blob.bytes) !== layer) throw new Error('a blob has another content')
  }
  counts.pulls++
}

async function remove(client: RegistryClient, kept: Kept[]): Promise<void> {
  const [gone] = kept.splice(Math.floor(Math.random() * kept.length), 1)
  await client.ok(202, 'DELETE', `${gone!.repo}/manifests/${gone!.digest}`)
  await client.ok(404, 'GET', `${gone!.repo}/manifests/${gone!.digest}`)
  counts.deletes++
}

await using storage = await createStorage()
await using bucket = values.bucket ? await startBucket() : undefined
const url = bucket?.url()
const env = {
  PINFOLD_LOG_LEVEL: 'error',
  PINFOLD_BLOB_GRACE_SECONDS: values.grace,
  PINFOLD_BLOB_TRASH_SECONDS: '0',
  ...(url && { ...bucket!.aws, PINFOLD_BLOBS: url }),
}
await using server = await startProcess(storage, { env })
const operator = async () => clientOf(server.url, await tokenOf(storage))
await (await operator()).post('/iam/v2/groups/', { name: 'acme' })
let token = await tokenOf(storage, ['--audience', 'registry'])
let owner = await operator()
const renewing = setInterval(async () => {
  token = await tokenOf(storage, ['--audience', 'registry'])
  owner = await operator()
}, 20 * 60_000)
renewing.unref()

const collecting = (async () => {
  while (Date.now() < until) {
    const { status, text, body } = await owner.post('/control/v1/blobs:collect', {})
    if (status !== 200) failures.push(`a collection answered ${text}`)
    counts.collections++
    counts.collected += Number(body.blobs ?? 0)
  }
})()
const workers = Array.from({ length: Number(values.clients) }, (_, i) => {
  return work(() => registryClient(server.url, token), `client-${i}`)
})
await Promise.all([...workers, collecting])
server.kill('SIGTERM')
await server.exited
const blobs = await checkStore(storage, url === undefined ? undefined : (location) => bucket!.fileOf(url, location))
const where = `${storage.database ? 'PostgreSQL' : 'SQLite'} and a ${bucket ? 'bucket' : 'folder'}:`
console.log(where, JSON.stringify(counts), `${blobs} blobs at the end`)
for (const [message, same] of Map.groupBy(failures, (one) => one.replaceAll(/[0-9a-f]{16,}/g, '…'))) {
  console.log(`FAILURE ${same.length} times: ${message}`)
}
console.log(`${failures.length} failures seen by clients`)
process.exitCode = failures.length > 0 ? 1 : 0
