// On-demand mirrors: content that a pull copies only once, and content that is never stored.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { captureLog } from '../support/log.ts'
import type { Json } from '../support/pinfold.ts'
import { codeOf, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { times } from '../support/times.ts'
import { answering, localUpstreams, startUpstream, type TestUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({
  ...localUpstreams,
  clock: () => new Date(Date.now() + shift),
  monotonic: () => performance.now() * 1000 + shift,
})
after(() => registry[Symbol.asyncDispose]())

let count = 0
async function scene(body: Json = {}, at: TestRegistry = registry) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  const name = `mirror-${count++}`
  const upstream = ok(await at.operator.post(`/registry/v2/upstreams/${at.org.uid}`, { name, url: there.url }))
  const repo = (await at.seed.repo(at.org.uid, { name })).uid as string
  const follow = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_ON_DEMAND', ...body }
  ok(await at.operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  return { there, repo, name: `acme/${name}` }
}

/** An image at the upstream, under a tag. */
function publish(there: TestUpstream, tag: string, layerBytes = 300) {
  const layer = there.add(randomBytes(layerBytes), types.layer)
  const config = there.add(
    JSON.stringify({ architecture: 'amd64', os: 'linux', tag, at: randomBytes(8) }),
    types.config,
  )
  const image = there.add(JSON.stringify(imageOf(config, [layer])), types.image)
  there.tags.set(tag, image.digest)
  return { image, layer, config }
}
const { puller, app, operator } = registry
const historyOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records ?? []
const blobsOf = async (repo: string): Promise<number> =>
  (await app.db.get<{ total: number }>(sql`
    SELECT count(*) AS total FROM repo_blobs b JOIN repos r ON r.id = b.repo_id WHERE r.uid = ${repo}`))!.total

test('the first pull copies an image and adds tag history, and the next pull sends no request to the upstream', async () => {
  const { there, repo, name } = await scene()
  const { image, layer, config } = publish(there, '1.0')
  const pulled = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  assert.deepEqual(
    [pulled.headers['docker-content-digest'], pulled.headers['content-type']],
    [image.digest, types.image],
  )
  assert.deepEqual(pulled.bytes, there.contents.get(image.digest)!.bytes)
  for (const { digest } of [layer, config]) {
    const blob = await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
    assert.deepEqual(blob.bytes, there.contents.get(digest)!.bytes)
  }
  const [born] = await historyOf(repo, '1.0')
  assert.deepEqual([born!.digest, born!.source], [image.digest, 'SOURCE_UPSTREAM'])
  const read = await app.db.all<{ digest: string }>(sql`SELECT digest FROM image_reads`)
  assert.deepEqual(read, [{ digest: image.digest }], 'what it contains is read once all of it is here')
  assert.deepEqual(there.forget(), [
    'HEAD /v2/app/manifests/1.0',
    `GET /v2/app/manifests/${image.digest}`,
    `GET /v2/app/blobs/${layer.digest}`,
    `GET /v2/app/blobs/${config.digest}`,
  ])
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  await puller.ok(200, 'HEAD', `${name}/manifests/${image.digest}`)
  const part = await puller.ok(206, 'GET', `${name}/blobs/${layer.digest}`, { headers: { range: 'bytes=0-9' } })
  assert.equal(part.bytes.length, 10)
  assert.deepEqual(there.forget(), [])
})

test('copies an index and its children by digest', async () => {
  const { there, name } = await scene()
  const { image } = publish(there, 'amd64')
  const index = there.add(JSON.stringify(indexOf([image])), types.index)
  there.tags.set('1.0', index.digest)
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  await puller.ok(200, 'GET', `${name}/manifests/${image.digest}`)
  assert.equal(there.count('GET'), 2)
  const unknown = await puller.call('GET', `${name}/manifests/sha256:${'0'.repeat(64)}`)
  assert.deepEqual([unknown.status, codeOf(unknown)], [404, 'MANIFEST_UNKNOWN'])
  assert.equal((await puller.call('GET', `${name}/manifests/9.9`)).status, 404)
  assert.equal((await puller.call('GET', `${name}/blobs/sha256:${'0'.repeat(64)}`)).status, 404)
})

test('a pull finds an upstream tag update after five minutes, and records the time of the previous check', async () => {
  const { there, repo, name } = await scene()
  const first = publish(there, '1.0').image.digest
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const second = publish(there, '1.0').image.digest
  assert.equal((await puller.ok(200, 'GET', `${name}/manifests/1.0`)).headers['docker-content-digest'], first)
  shift += 6 * minute
  assert.equal((await puller.ok(200, 'GET', `${name}/manifests/1.0`)).headers['docker-content-digest'], second)
  const [moved, born] = await historyOf(repo, '1.0')
  assert.deepEqual([moved!.event, moved!.previousDigest], ['EVENT_MOVED', first])
  assert.ok(moved!.checkedBefore <= born!.time && moved!.checkedBefore < moved!.time)
  // The former image can still be pulled, though the upstream may have deleted it.
  there.contents.delete(first)
  await puller.ok(200, 'GET', `${name}/manifests/${first}`)
})

test('a pull fetches the image of a tag update that the background job just recorded', async () => {
  const { there, repo, name } = await scene({ interval: '300s' })
  const first = publish(there, '1.0').image.digest
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const second = publish(there, '1.0').image
  shift += 6 * minute
  await runJob(app, followUpstreams)
  const [moved] = await historyOf(repo, '1.0')
  assert.deepEqual([moved!.previousDigest, moved!.digest], [first, second.digest])
  there.forget()
  shift += minute
  const pulled = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  assert.equal(pulled.headers['docker-content-digest'], second.digest)
  assert.deepEqual(pulled.bytes, there.contents.get(second.digest)!.bytes)
  assert.ok(there.forget().includes(`GET /v2/app/manifests/${second.digest}`))
})

test('serves copied content with a warning while the upstream is unavailable, for a limited time', async () => {
  const { there, repo, name } = await scene({ staleFor: '900s' })
  const { image } = publish(there, '1.0')
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  for (const status of [401, 403, 429, 503]) {
    there.breakWith(answering(status))
    shift += 6 * minute - (status === 401 ? 0 : 6 * minute - 1000)
    const stale = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    assert.equal(stale.headers['docker-content-digest'], image.digest)
    assert.match(String(stale.headers.warning), /^299 - "the tag was last checked at the upstream at 20/)
    // After some of these faults the server pauses requests to the host. Advancing the clock ends the pause.
    shift += 1000
  }
  there.breakWith((_req, res) => {
    res.destroy()
    return true
  })
  shift += 10 * minute
  const { log } = app
  const captured = captureLog('warn')
  Object.assign(app, { log: captured.log })
  const late = await puller.call('GET', `${name}/manifests/1.0`)
  Object.assign(app, { log })
  const { level, message, requestId, path, reason, cause } = await captured.until(() => true)
  assert.deepEqual([level, message], ['warn', 'request to the upstream of a mirror failed'])
  assert.equal(captured.lines.length, 1)
  assert.deepEqual([requestId, path], [late.headers['x-request-id'], `/v2/${name}/manifests/1.0`])
  assert.equal(reason, 'it is unavailable or returned an error')
  // The cause of the connection error, for the log of the server.
  assert.match(JSON.stringify(cause), /socket hang up/)
  assert.deepEqual([late.status, codeOf(late)], [503, 'UNAVAILABLE'])
  assert.ok(Number(late.headers['retry-after']) > 0)
  await puller.ok(200, 'GET', `${name}/manifests/${image.digest}`)
  assert.equal((await historyOf(repo, '1.0')).length, 1)
  there.mend()
  shift += 6 * minute
  const fresh = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  assert.equal(fresh.headers.warning, undefined)
})

test('serves a tag that was deleted upstream until three scheduled checks did not find it', async () => {
  const { there, repo, name } = await scene()
  publish(there, '1.0')
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  there.tags.delete('1.0')
  shift += 6 * minute
  for (let i = 0; i < 5; i++) {
    const gone = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    assert.match(String(gone.headers.warning), /does not have this tag any more/)
  }
  assert.equal((await historyOf(repo, '1.0')).length, 1)
  let ahead = 0
  const later = { ...app, clock: () => new Date(app.clock().getTime() + ahead) }
  for (let i = 0; i < 3; i++) {
    ahead += 61 * minute
    await runJob(later, followUpstreams)
  }
  assert.equal((await historyOf(repo, '1.0'))[0]!.event, 'EVENT_DELETED')
})

test('does not copy a manifest with members in a different spelling', async () => {
  const { there, name } = await scene()
  const { image } = publish(there, '1.0')
  const document = JSON.parse(there.contents.get(image.digest)!.bytes.toString())
  there.tags.set('1.0', there.add(JSON.stringify({ ...document, Layers: [] }), types.image).digest)
  const odd = await puller.call('GET', `${name}/manifests/1.0`)
  assert.deepEqual([odd.status, codeOf(odd)], [502, 'UNAVAILABLE'])
})

test('refuses content with a wrong digest, and stores none of it', async () => {
  const { there, repo, name } = await scene()
  const { image, layer } = publish(there, '1.0')
  const right = there.contents.get(layer.digest)!
  there.contents.set(layer.digest, { ...right, bytes: randomBytes(300) })
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const wrong = await puller.call('GET', `${name}/blobs/${layer.digest}`)
  assert.deepEqual([wrong.status, codeOf(wrong)], [502, 'UNAVAILABLE'])
  assert.equal(await blobsOf(repo), 0)
  there.contents.set(layer.digest, right)
  await puller.ok(200, 'GET', `${name}/blobs/${layer.digest}`)

  const other = publish(there, '2.0')
  there.contents.set(other.image.digest, { ...there.contents.get(image.digest)! })
  assert.equal((await puller.call('GET', `${name}/manifests/2.0`)).status, 502)
  assert.deepEqual(await historyOf(repo, '2.0'), [])
  const text = there.add('not a manifest', 'text/plain')
  there.tags.set('3.0', text.digest)
  assert.equal((await puller.call('GET', `${name}/manifests/3.0`)).status, 502)
  assert.deepEqual(await historyOf(repo, '3.0'), [])
})

test('a large blob that is wrong or incomplete never arrives complete', async () => {
  const { there, repo, name } = await scene()
  const { layer } = publish(there, '1.0', 3_000_000)
  const right = there.contents.get(layer.digest)!
  const bytes = Buffer.from(right.bytes)
  bytes[2_999_999]! ^= 1
  there.contents.set(layer.digest, { ...right, bytes })
  const cut = (promise: Promise<unknown>) =>
    promise.then(
      () => 'whole',
      () => 'cut',
    )
  assert.equal(await cut(puller.call('GET', `${name}/blobs/${layer.digest}`)), 'cut')
  there.contents.set(layer.digest, right)
  there.breakWith((req, res) => {
    if (!req.url?.includes('/blobs/')) return false
    res.writeHead(200, { 'content-length': right.bytes.length })
    res.write(right.bytes.subarray(0, 1_000_000), () => res.destroy())
    return true
  })
  assert.equal(await cut(puller.call('GET', `${name}/blobs/${layer.digest}`)), 'cut')
  assert.equal(await blobsOf(repo), 0)
  there.mend()
  shift += minute
  const whole = await puller.ok(200, 'GET', `${name}/blobs/${layer.digest}`)
  assert.ok(whole.bytes.equals(right.bytes))
  assert.equal(await blobsOf(repo), 1)
})

test('many concurrent requests for the same content cause one fetch', async () => {
  const { there, name } = await scene()
  const { image, layer } = publish(there, '1.0', 1_000_000)
  const all = await Promise.all(Array.from({ length: 40 * times }, () => puller.call('GET', `${name}/manifests/1.0`)))
  assert.ok(all.every(({ status }) => status === 200))
  const blobs = await Promise.all(
    Array.from({ length: 40 * times }, () => puller.call('GET', `${name}/blobs/${layer.digest}`)),
  )
  assert.ok(blobs.every(({ status, bytes }) => status === 200 && bytes.length === 1_000_000))
  assert.equal(there.count(`GET /v2/app/manifests/${image.digest}`), 1)
  assert.equal(there.count(`GET /v2/app/blobs/${layer.digest}`), 1)
})

test('returns a size without a fetch, and a range once all content is copied', async () => {
  const { there, repo, name } = await scene()
  const { layer } = publish(there, '1.0', 5000)
  const head = await puller.ok(200, 'HEAD', `${name}/blobs/${layer.digest}`)
  assert.equal(head.headers['content-length'], '5000')
  assert.equal(await blobsOf(repo), 0)
  const part = await puller.ok(206, 'GET', `${name}/blobs/${layer.digest}`, { headers: { range: 'bytes=10-19' } })
  assert.ok(part.bytes.equals(there.contents.get(layer.digest)!.bytes.subarray(10, 20)))
  assert.equal(await blobsOf(repo), 1)
})

test('fetches only selected tags, and only for callers with pull permission', async () => {
  const { there, name } = await scene({ tags: ['1\\..*'] })
  publish(there, '1.0')
  publish(there, '2.0')
  assert.equal((await registry.nobody.call('GET', `${name}/manifests/1.0`)).status, 401)
  assert.deepEqual(there.asked, [])
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  assert.equal((await puller.call('GET', `${name}/manifests/2.0`)).status, 404)
  const push = await registry.pusher.call('POST', `${name}/blobs/uploads/`)
  assert.equal(push.status, 405)
})

test('refuses content above the quota, and does not store it', async () => {
  await using small = await startRegistry({ ...localUpstreams, quotaBytes: 2000 })
  const { there, repo, name } = await scene({}, small)
  const { layer } = publish(there, '1.0', 5000)
  await small.puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const refused = await small.puller.call('GET', `${name}/blobs/${layer.digest}`)
  assert.equal(refused.status, 403)
  const said = {
    code: 'DENIED',
    message: 'the image cannot be mirrored, because a quota of the organization is exceeded; ask one of its owners',
  }
  assert.deepEqual(refused.body.errors, [said], 'how much the organization has is not told')
  const stored = await small.app.db.get<{ total: number }>(sql`SELECT count(*) AS total FROM repo_blobs`)
  assert.equal(stored!.total, 0)
  assert.ok(repo)
})

test('asks once in five minutes for a tag that the upstream lacks', async () => {
  const { there, repo, name } = await scene()
  for (let i = 0; i < 3; i++) assert.equal((await puller.call('GET', `${name}/manifests/1.0`)).status, 404)
  assert.equal(there.count('HEAD'), 1)
  publish(there, '1.0')
  assert.equal((await puller.call('GET', `${name}/manifests/1.0`)).status, 404)
  shift += 6 * minute
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  assert.equal(there.count('HEAD'), 2)
  assert.equal((await puller.call('GET', `${name}/manifests/2.0`)).status, 404)
  publish(there, '2.0')
  const { upstreamUid } = ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid, path: 'other', mode: 'MODE_ON_DEMAND' }))
  await puller.ok(200, 'GET', `${name}/manifests/2.0`)
})

test('a blob that is being copied does not block the manifest of the same digest', async () => {
  const { there, name } = await scene()
  const { image } = publish(there, '1.0')
  const waiting = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  there.breakWith((req, res) => {
    if (!req.url?.includes('/blobs/')) return false
    asked.resolve()
    void waiting.promise.then(() => res.writeHead(404).end())
    return true
  })
  const blob = puller.call('GET', `${name}/blobs/${image.digest}`)
  await asked.promise
  const ended = blob.then(() => 'the blob ended first')
  const manifest = puller.call('GET', `${name}/manifests/${image.digest}`)
  // After this time the copy of the blob continues in any case.
  const late = setTimeout(waiting.resolve, 20_000)
  assert.equal(await Promise.race([manifest.then(({ status }) => status), ended]), 200)
  clearTimeout(late)
  waiting.resolve()
  assert.equal((await blob).status, 404)
})

test('a client that does not read blocks no other client, and can still read all content', async () => {
  const { there, name } = await scene()
  const content = Buffer.alloc(48 * 2 ** 20, randomBytes(4096))
  const { digest } = there.add(content, types.layer)
  const slow = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${puller.token}` }
    request(`http://127.0.0.1:${registry.port}/v2/${name}/blobs/${digest}`, { headers }, resolve)
      .on('error', reject)
      .end()
  })
  slow.pause()
  const other = await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  assert.ok(other.bytes.equals(content))
  assert.equal(slow.complete, false, 'the slow one has not been read meanwhile')
  const chunks: Buffer[] = []
  for await (const chunk of slow) chunks.push(chunk as Buffer)
  assert.ok(Buffer.concat(chunks).equals(content))
  assert.equal(there.count(`GET /v2/app/blobs/${digest}`), 1)
})

/** Delays the upstream response for this manifest until `release`. `held` resolves once a request waits for it. */
function holdManifest(there: TestUpstream, digest: string) {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  there.breakWith((req, res) => {
    if (req.method !== 'GET' || !req.url!.endsWith(digest)) return false
    held.resolve()
    void released.promise.then(() => {
      res.writeHead(200, { 'content-type': types.image })
      res.end(there.contents.get(digest)!.bytes)
    })
    return true
  })
  return { held: held.promise, release: released.resolve }
}

test('a pull that waits long for content does not record a tag update that a later check contradicts', async () => {
  const { there, repo, name } = await scene()
  const first = publish(there, '1.0').image.digest
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const second = publish(there, '1.0').image.digest
  shift += 6 * minute
  const { held, release } = holdManifest(there, second)
  const slow = puller.call('GET', `${name}/manifests/1.0`)
  await held
  const third = publish(there, '1.0').image.digest
  await app.db.tx((tx) => tx.run(sql`UPDATE follow_tags SET due_time = '' WHERE repo_uid = ${repo}`))
  await runJob(app, followUpstreams)
  const checked = async () =>
    (await app.db.get<{ time: string }>(sql`
      SELECT checked_time AS time FROM follow_tags WHERE repo_uid = ${repo} AND tag = '1.0'`))!.time
  const before = await checked()
  release()
  const pulled = await slow
  assert.deepEqual([pulled.status, pulled.headers['docker-content-digest']], [200, third])
  assert.equal(await checked(), before)
  assert.deepEqual(
    (await historyOf(repo, '1.0')).map(({ digest }) => digest),
    [third, first],
  )
})

test('a pull that waits long for content does not restore a tag that was recorded as deleted meanwhile', async () => {
  // The server is a separate one, because the test moves its clock further than the lifetime of tokens.
  let ahead = 0
  await using own = await startRegistry({ ...localUpstreams, clock: () => new Date(Date.now() + ahead) })
  const { there, repo, name } = await scene({ interval: '600s' }, own)
  const first = publish(there, '1.0').image.digest
  await own.puller.ok(200, 'GET', `${name}/manifests/1.0`)
  const second = publish(there, '1.0').image.digest
  ahead += 6 * minute
  const { held, release } = holdManifest(there, second)
  const slow = own.puller.call('GET', `${name}/manifests/1.0`)
  await held
  there.tags.delete('1.0')
  for (let looks = 0; looks < 3; looks++) {
    ahead += 11 * minute
    await runJob(own.app, followUpstreams)
  }
  const moves = async () => {
    const { records } = ok(await own.operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=1.0`))
    return (records as Json[]).map(({ event, digest }) => [event, digest])
  }
  const all = [
    ['EVENT_DELETED', first],
    ['EVENT_CREATED', first],
  ]
  assert.deepEqual(await moves(), all)
  release()
  assert.equal((await slow).status, 404)
  assert.deepEqual(await moves(), all)
})

test('a requested check also applies to pulls of tags that were missing before', async () => {
  const { there, repo, name } = await scene()
  assert.equal((await puller.call('GET', `${name}/manifests/1.0`)).status, 404)
  publish(there, '1.0')
  ok(await operator.post(`/registry/v2/repos/${repo}/follow:check`))
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
})
