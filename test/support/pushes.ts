// Comparison of acknowledged pushes with the stored content, after the server was killed.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { openDb } from '#db/open.ts'
import { raw, sql } from '#db/sql.ts'
import { clientOf } from './pinfold.ts'
import { freeAddress, type Process, startProcess, type TestStorage, tokenOf } from './process.ts'
import { digestOf, imageOf, type RegistryClient, registryClient, types } from './registry.ts'

/** `startMs` is the time of the slowest start after a kill. */
export type PushTally = {
  sent: number
  acknowledged: number
  cut: number
  happened: number
  blobs: number
  startMs: number
}

type Image = { repo: string; tag: string; digest: string; text: string; acknowledged: boolean; doubtful: boolean }
type Told = { images: Image[]; blobs: Map<string, string> }

const repos = ['acme/one', 'acme/two', 'acme/three']

/** Kills a server during `pushes` concurrent pushes, `rounds` times on the same data. Checks the data after each kill. */
export async function killPushes(
  storage: TestStorage,
  rounds: number,
  pushes: number,
  report: (round: number, tally: PushTally) => void = () => {},
): Promise<PushTally> {
  const told: Told = { images: [], blobs: new Map() }
  const sum: PushTally = { sent: 0, acknowledged: 0, cut: 0, happened: 0, blobs: 0, startMs: 0 }
  // All servers of a database must have the same URL.
  const listen = await freeAddress()
  for (let round = 1; round <= rounds; round++) {
    await using server = await startProcess(storage, { listen })
    if (round === 1) await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'acme' })
    const tally = await pushAndKill(server, await clientAt(server, storage), told, round, pushes)
    await storage.settled()

    const began = performance.now()
    await using again = await startProcess(storage, { listen })
    tally.startMs = performance.now() - began
    tally.happened = await check(await clientAt(again, storage), told)
    again.kill('SIGTERM')
    await again.exited
    tally.blobs = await checkStore(storage)
    report(round, tally)
    for (const key of ['sent', 'acknowledged', 'cut', 'happened'] as const) sum[key] += tally[key]
    sum.blobs = tally.blobs
    sum.startMs = Math.max(sum.startMs, tally.startMs)
  }
  return sum
}

async function clientAt(server: Process, storage: TestStorage): Promise<RegistryClient> {
  return registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
}

async function pushAndKill(server: Process, client: RegistryClient, told: Told, round: number, pushes: number) {
  const tally: PushTally = { sent: pushes, acknowledged: 0, cut: 0, happened: 0, blobs: 0, startMs: 0 }
  const killAfter = Math.ceil(pushes * (0.1 + Math.random() * 0.7))
  await Promise.all(
    Array.from({ length: pushes }, async (_, i) => {
      const image: Image = {
        repo: repos[i % repos.length]!,
        // Many pushes move some of the tags at the same time.
        tag: i % 4 === 0 ? `shared-${i % 16}` : `r${round}-${i}`,
        digest: '',
        text: '',
        acknowledged: false,
        doubtful: false,
      }
      try {
        await pushOne(client, image, told, i)
        image.acknowledged = true
        if (++tally.acknowledged === killAfter) server.kill('SIGKILL')
      } catch {
        tally.cut++
      }
    }),
  )
  server.kill('SIGKILL')
  const { signal } = await server.exited
  assert.equal(signal, 'SIGKILL')
  return tally
}

async function pushOne(client: RegistryClient, image: Image, told: Told, i: number): Promise<void> {
  const { repo, tag } = image
  const content = randomBytes(1000 + (i % 7) * 20_000)
  const layer = { mediaType: types.layer, digest: digestOf(content), size: content.length }
  if (i % 3 === 0) await client.pushBlob(repo, content)
  else {
    const { headers } = await client.ok(202, 'POST', `${repo}/blobs/uploads/`)
    const location = String(headers.location)
    const half = i % 3 === 1 ? content.length : content.length >> 1
    await client.ok(202, 'PATCH', location, { body: content.subarray(0, half) })
    await client.ok(201, 'PUT', `${location}?digest=${layer.digest}`, { body: content.subarray(half) })
  }
  told.blobs.set(layer.digest, repo)
  const config = await client.pushBlob(repo, '{"architecture":"amd64"}', types.config)
  told.blobs.set(config.digest, repo)
  image.text = JSON.stringify(imageOf(config, [layer]))
  image.digest = digestOf(image.text)
  image.doubtful = true
  told.images.push(image)
  await client.ok(201, 'PUT', `${repo}/manifests/${tag}`, {
    body: image.text,
    headers: { 'content-type': types.image },
  })
}

/** Returns how many of the pushes without an answer had happened. */
async function check(client: RegistryClient, told: Told): Promise<number> {
  let happened = 0
  for (const image of told.images) {
    const got = await client.call('GET', `${image.repo}/manifests/${image.digest}`)
    if (image.acknowledged) assert.equal(got.status, 200, `${image.digest} was acknowledged and is gone`)
    if (got.status !== 200) continue
    assert.equal(got.bytes.toString(), image.text)
    if (!image.acknowledged && image.doubtful) happened++
    image.acknowledged = true
  }
  for (const [repo, images] of Map.groupBy(told.images, ({ repo }) => repo)) {
    for (const [tag, pushed] of Map.groupBy(images, ({ tag }) => tag)) {
      const there = pushed.filter(({ acknowledged }) => acknowledged).map(({ digest }) => digest)
      const history = await client.call('GET', `${repo}/_svc/history/${tag}`)
      const records = history.status === 200 ? (history.body.history as { digest: string }[]) : []
      assert.deepEqual(records.map(({ digest }) => digest).sort(), there.sort(), `the ledger of ${repo}:${tag}`)
      const now = await client.call('HEAD', `${repo}/manifests/${tag}`)
      assert.equal(now.status, there.length > 0 ? 200 : 404)
      if (there.length > 0) assert.equal(now.headers['docker-content-digest'], records.at(-1)!.digest)
    }
  }
  for (const [digest, repo] of told.blobs) {
    const got = await client.call('GET', `${repo}/blobs/${digest}`)
    assert.equal(got.status, 200, `the blob ${digest} was acknowledged and is gone`)
    assert.equal(digestOf(got.bytes), digest)
  }
  return happened
}

/** Checks that every blob has a file with its content, and every manifest all of its blobs. Returns the number of blobs. */
export async function checkStore(
  storage: TestStorage,
  fileOf = (location: string) => join(storage.data, 'blobs', location),
): Promise<number> {
  await using closing = new AsyncDisposableStack()
  const opened = await openDb({ database: storage.database, file: join(storage.data, 'pinfold.db') })
  const db = closing.adopt(opened, (open) => open.close())
  if (db.engine === 'sqlite') assert.deepEqual(await db.all(raw('PRAGMA integrity_check')), [{ integrity_check: 'ok' }])
  const blobs = await db.all<{ digest: string; size: number; location: string }>(sql`
    SELECT digest, size, location FROM blobs`)
  for (const { digest, size, location } of blobs) {
    const file = fileOf(location)
    assert.ok(existsSync(file), `${digest} has no file`)
    const hash = createHash('sha256')
    let bytes = 0
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      bytes += chunk.length
    }
    assert.deepEqual([`sha256:${hash.digest('hex')}`, bytes], [digest, Number(size)])
  }
  const broken = await db.all(sql`
    SELECT l.manifest, l.digest FROM manifest_links l
     WHERE l.kind = 0 AND NOT EXISTS (SELECT 1 FROM repo_blobs r WHERE r.repo_id = l.repo_id AND r.digest = l.digest)`)
  assert.deepEqual(broken, [], 'manifests lack blobs')
  const lost = await db.all(sql`
    SELECT t.name FROM tags t
     WHERE NOT EXISTS (SELECT 1 FROM manifests m WHERE m.repo_id = t.repo_id AND m.digest = t.digest)`)
  assert.deepEqual(lost, [], 'tags point to nothing')
  const parts = await db.all<{ location: string }>(sql`SELECT location FROM upload_parts`)
  for (const { location } of parts) assert.ok(existsSync(fileOf(location)), `${location} is gone`)
  return blobs.length
}
