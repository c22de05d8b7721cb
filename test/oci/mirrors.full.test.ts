// Mirrors that copy content ahead of pulls, with the referrers of images.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { fetchFollowed, fetchFollowedWithin } from '#domains/mirrors/follows/fetches.job.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { requestHistories } from '#domains/mirrors/follows/histories.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { answering, localUpstreams, startUpstream, type TestUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
// The test advances the clock so far that the rate limits of hosts always allow its requests.
const monotonic = () => performance.now() * 1000 + shift
const registry = await startRegistry({ ...localUpstreams, monotonic })
after(() => registry[Symbol.asyncDispose]())
const { puller, operator } = registry

let count = 0
async function scene(body: Json = {}, at: TestRegistry = registry) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  await at.app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `full-${count++}`
  const upstream = ok(await at.operator.post(`/registry/v2/upstreams/${at.org.uid}`, { name, url: there.url }))
  const repo = (await at.seed.repo(at.org.uid, { name })).uid as string
  const follow = (more: Json = {}) => {
    const asked = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_FULL', ...body, ...more }
    return at.operator.post(`/registry/v2/repos/${repo}/follow`, asked)
  }
  ok(await follow())
  return { there, repo, name: `acme/${name}`, follow }
}
/** The clock of the jobs moves, while tokens stay valid. */
async function bring(afterMs = 0, { app }: TestRegistry = registry): Promise<Json> {
  shift += afterMs
  const later = { ...app, clock: () => new Date(Date.now() + shift) }
  await runJob(later, followUpstreams)
  return runJob(later, fetchFollowed)
}
const followOf = async (repo: string): Promise<Json> => ok(await operator.get(`/registry/v2/repos/${repo}/follow`))

function imageAt(there: TestUpstream, extra: Json = {}) {
  const layer = there.add(randomBytes(300), types.layer)
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux', at: randomBytes(8) }), types.config)
  const image = there.add(JSON.stringify(imageOf(config, [layer], extra)), types.image)
  return { image, layer, config }
}
type Image = ReturnType<typeof imageAt>
/** An index of two images, under a tag, with a signature that refers to it and another one named after it. */
function publish(there: TestUpstream, tag: string) {
  const images = [imageAt(there), imageAt(there)]
  const index = there.add(JSON.stringify(indexOf(images.map(({ image }) => image))), types.index)
  there.tags.set(tag, index.digest)
  const referrer = imageAt(there, { subject: index, artifactType: 'a/signature' })
  const named = imageAt(there)
  const name = `${index.digest.replace(':', '-')}.sig`
  there.tags.set(name, named.image.digest)
  return { index, images, referrer, named, name }
}
const blobsOf = ({ layer, config }: { layer: Descriptor; config: Descriptor }) => [layer.digest, config.digest]

test('copies all content of tags and their referrers before the first pull, and keeps it', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0'] })
  const { index, images, referrer, named, name: signature } = publish(there, '1.0')
  await bring()
  const followed = await followOf(repo)
  assert.deepEqual([followed.mode, followed.waitingCount, followed.fetchProblem], ['MODE_FULL', 0, ''])
  there.forget()
  there.contents.clear()
  assert.equal((await puller.ok(200, 'GET', `${name}/manifests/1.0`)).headers['docker-content-digest'], index.digest)
  for (const one of [...images, referrer, named]) {
    await puller.ok(200, 'GET', `${name}/manifests/${one.image.digest}`)
    for (const digest of blobsOf(one)) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
  const { manifests } = (await puller.ok(200, 'GET', `${name}/referrers/${index.digest}`)).body
  assert.deepEqual(
    manifests.map((one: Json) => one.digest),
    [referrer.image.digest],
  )
  assert.equal(there.count('GET'), 0)
  const { records } = ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${signature}`))
  assert.deepEqual([records[0].digest, records[0].source], [named.image.digest, 'SOURCE_UPSTREAM'])
  const old = index.digest
  there.tags.set('1.0', imageAt(there).image.digest)
  await bring(61 * minute)
  await puller.ok(200, 'GET', `${name}/manifests/${old}`)
})

test('checks a copied signature tag again after each pull, until it is known to be deleted upstream', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0'] })
  const { name: signature } = publish(there, '1.0')
  await bring()
  there.tags.delete(signature)
  shift += 6 * minute
  const gone = await puller.ok(200, 'GET', `${name}/manifests/${signature}`)
  assert.match(String(gone.headers.warning), /does not have this tag any more/)
  for (let i = 0; i < 3; i++) await bring(61 * minute)
  const { records } = ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${signature}`))
  assert.deepEqual([records[0].event, records[0].source], ['EVENT_DELETED', 'SOURCE_UPSTREAM'])
})

test('upstream changes do not change the ETag of a mirror; changes by members do', async () => {
  const { there, repo } = await scene({ tags: ['1.0', '2.0'] })
  const path = `/registry/v2/repos/${repo}/follow`
  const seen: Json[] = []
  const etags = new Set<string | null>()
  const look = async () => {
    const { body, headers } = await operator.get(path)
    seen.push(body)
    etags.add(headers.get('etag'))
  }
  await look()
  const { images } = publish(there, '1.0')
  await runJob(registry.app, followUpstreams)
  await look()
  there.contents.delete(images[0]!.layer.digest)
  await bring()
  await look()
  const fails = answering(503)
  there.breakWith((req, res) => req.url?.includes('/_') === true && fails(req, res))
  await runJob(registry.app, requestHistories)
  await look()
  there.breakWith(answering(503))
  await bring(61 * minute)
  await look()
  // Each of these values was different at some time.
  const fields = [
    'state',
    'problem',
    'tagCount',
    'waitingCount',
    'fetchProblem',
    'historyWaitingCount',
    'historyProblem',
  ]
  const changed = fields.filter((field) => new Set(seen.map((one) => one[field])).size > 1)
  assert.deepEqual(changed, fields)
  assert.equal(etags.size, 1)
  const [etag] = etags
  const { upstreamUid } = seen[0]!
  const body = { upstreamUid, path: 'app', mode: 'MODE_FULL', tags: ['1.0'] }
  const first = await operator.call('POST', path, body, { 'if-match': etag! })
  assert.equal(first.status, 200, first.text)
  assert.equal((await operator.call('POST', path, body, { 'if-match': etag! })).status, 412)
})

test('a mirror in watch mode copies the images of its tags after a change to full mode', async () => {
  const { there, repo, name, follow } = await scene({ mode: 'MODE_WATCH', tags: ['1.0'] })
  const { images } = publish(there, '1.0')
  await bring()
  assert.equal(there.count('GET'), 0)
  ok(await follow({ mode: 'MODE_FULL' }))
  assert.equal((await followOf(repo)).waitingCount, 1)
  await bring()
  there.contents.clear()
  for (const one of images) {
    for (const digest of blobsOf(one)) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
})

test('copies content from an upstream that fails for every request for tag history', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0'] })
  const { images } = publish(there, '1.0')
  const fails = answering(503, { 'retry-after': '3600' })
  there.breakWith((req, res) => req.url?.includes('/_') === true && fails(req, res))
  await runJob(registry.app, followUpstreams)
  assert.deepEqual(await runJob(registry.app, requestHistories), { told: 0, failed: 1 })
  await bring()
  assert.equal((await followOf(repo)).waitingCount, 0)
  there.contents.clear()
  await puller.ok(200, 'GET', `${name}/blobs/${images[0]!.layer.digest}`)
})

test('reports an image that cannot be copied, retries it, and copies other images meanwhile', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0', '2.0'] })
  const { images } = publish(there, '1.0')
  const missing = images[1]!.layer.digest
  const content = there.contents.get(missing)!
  there.contents.delete(missing)
  const { index } = publish(there, '2.0')
  await bring()
  const failed = await followOf(repo)
  assert.deepEqual([failed.waitingCount, failed.fetchProblem], [1, 'the upstream does not have all parts of the image'])
  await puller.ok(200, 'GET', `${name}/manifests/${index.digest}`)
  there.contents.set(missing, content)
  await bring(2 * minute)
  const mended = await followOf(repo)
  assert.deepEqual([mended.waitingCount, mended.fetchProblem], [0, ''])
  there.contents.clear()
  await puller.ok(200, 'GET', `${name}/blobs/${missing}`)
})

test('on demand, copies referrers of an image after its pull, also from upstreams without the referrers API', async () => {
  const { there, name } = await scene({ mode: 'MODE_ON_DEMAND', tags: ['1.0'] })
  const { index, images, named, name: signature } = publish(there, '1.0')
  there.forgetReferrers()
  const early = imageAt(there, { subject: index })
  const list = (...all: Descriptor[]) => {
    const fallback = there.add(JSON.stringify(indexOf(all)), types.index)
    there.tags.set(index.digest.replace(':', '-'), fallback.digest)
  }
  list(early.image)
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  await bring()
  const referrers = async () =>
    (await puller.ok(200, 'GET', `${name}/referrers/${index.digest}`)).body.manifests.map((one: Json) => one.digest)
  assert.deepEqual(await referrers(), [early.image.digest])
  assert.equal(there.count(`GET /v2/app/manifests/${images[0]!.image.digest}`), 0, 'images come with their pull')
  const pulled = await puller.ok(200, 'GET', `${name}/manifests/${signature}`)
  assert.equal(pulled.headers['docker-content-digest'], named.image.digest)
  const late = imageAt(there, { subject: index })
  list(early.image, late.image)
  await bring(61 * minute)
  assert.deepEqual((await referrers()).sort(), [early.image.digest, late.image.digest].sort())
})

test('copies nothing above the quota, and the mirror status shows this', async () => {
  await using small = await startRegistry({ ...localUpstreams, monotonic, quotaBytes: 1000 })
  const { there, repo } = await scene({ tags: ['1.0'] }, small)
  publish(there, '1.0')
  await bring(0, small)
  const follow = ok(await small.operator.get(`/registry/v2/repos/${repo}/follow`))
  assert.deepEqual(
    [follow.waitingCount, follow.fetchProblem],
    [1, 'the quota of the organization is not enough for the whole image'],
  )
})

/** Blobs do not arrive until `go` is called. */
function stall(there: TestUpstream) {
  const [asked, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  there.breakWith((req, res) => {
    if (!req.url?.includes('/blobs/')) return false
    asked.resolve()
    void gone.promise.then(() => res.destroy())
    return true
  })
  return { asked: asked.promise, go: gone.resolve }
}

test('a stalled upstream does not delay the copies of another organization', async () => {
  const { there, repo, follow } = await scene({ mode: 'MODE_WATCH', tags: ['1.0'] })
  publish(there, '1.0')
  await bring()
  const slow = stall(there)
  const other = await startUpstream()
  after(() => other[Symbol.asyncDispose]())
  const { index } = publish(other, '1.0')
  const org = (await registry.seed.group('', { name: 'elsewhere' })).uid as string
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org}`, { name: 'hub', url: other.url }))
  const theirs = (await registry.seed.repo(org, { name: 'app' })).uid as string
  const body = { upstreamUid: upstream.uid, path: 'app', tags: ['1.0'] }
  ok(await operator.post(`/registry/v2/repos/${theirs}/follow`, body))
  await bring()
  ok(await follow({ mode: 'MODE_FULL' }))
  const running = bring()
  await slow.asked
  ok(await operator.post(`/registry/v2/repos/${theirs}/follow`, { ...body, mode: 'MODE_FULL' }))
  const deadline = Date.now() + 20_000
  const isWaiting = async () => (await followOf(theirs)).waitingCount > 0
  while ((await isWaiting()) && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  assert.deepEqual([await isWaiting(), (await followOf(repo)).waitingCount], [false, 1])
  assert.equal(other.count(`GET /v2/app/manifests/${index.digest}`), 1)
  slow.go()
  await running
})

test('stops and reports a copy that takes too long, and gives up on content that the upstream never has', async () => {
  const { there, repo } = await scene({ tags: ['1.0'] })
  const { images } = publish(there, '1.0')
  const slow = stall(there)
  const { app } = registry
  await runJob({ ...app, clock: () => new Date(Date.now() + shift) }, followUpstreams)
  const later = { ...app, clock: () => new Date(Date.now() + shift) }
  assert.deepEqual(await runJob(later, fetchFollowedWithin(300)), { fetched: 0, failed: 1 })
  const stalled = await followOf(repo)
  assert.deepEqual([stalled.waitingCount, stalled.fetchProblem], [1, 'fetching the image takes too long'])
  slow.go()
  there.mend()
  there.contents.delete(images[0]!.layer.digest)
  for (let i = 0; i < 8; i++) await bring(61 * minute)
  const missing = await followOf(repo)
  assert.deepEqual(
    [missing.waitingCount, missing.fetchProblem],
    [1, 'the upstream does not have all parts of the image'],
  )
})

test('copies only the configured platforms of an index ahead, and other platforms at their pull', async () => {
  const { there, repo, name, follow } = await scene({ tags: ['1.0'], platforms: ['linux/arm64', 'linux/arm/v7'] })
  const images = Array.from({ length: 6 }, () => imageAt(there))
  const [amd, arm, v7, v6, sbom, windows] = images as [Image, Image, Image, Image, Image, Image]
  const attestations = [imageAt(there), imageAt(there)] as const
  const about = (image: Descriptor) => ({
    platform: { os: 'unknown', architecture: 'unknown' },
    annotations: {
      'vnd.docker.reference.type': 'attestation-manifest',
      'vnd.docker.reference.digest': image.digest,
    },
  })
  const entries = [
    { ...amd.image, platform: { os: 'linux', architecture: 'amd64' } },
    { ...arm.image, platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
    { ...v7.image, platform: { os: 'linux', architecture: 'arm', variant: 'v7' } },
    { ...v6.image, platform: { os: 'linux', architecture: 'arm', variant: 'v6' } },
    sbom.image,
    { ...windows.image, platform: { os: 'windows', architecture: 'arm64', 'os.version': '10.0.1' } },
    { ...attestations[0].image, ...about(amd.image) },
    { ...attestations[1].image, ...about(arm.image) },
  ]
  const index = there.add(JSON.stringify(indexOf(entries)), types.index)
  there.tags.set('1.0', index.digest)
  await bring()
  const followed = await followOf(repo)
  assert.deepEqual([followed.platforms, followed.waitingCount], [['linux/arm64', 'linux/arm/v7'], 0])
  const rows = await registry.app.db.all<{ digest: string }>(sql`
    SELECT m.digest FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.uid = ${repo}`)
  const here = new Set(rows.map(({ digest }) => digest))
  const wanted = [arm, v7, sbom, attestations[1]].map(({ image }) => image.digest)
  assert.deepEqual([...here].sort(), [index.digest, ...wanted].sort())
  // A client on another platform gets its image too, while the upstream has it.
  await puller.ok(200, 'GET', `${name}/manifests/${amd.image.digest}`)
  for (const digest of blobsOf(amd)) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  // All content is copied after the mode requests it.
  ok(await follow({ platforms: [] }))
  await bring()
  there.contents.clear()
  for (const one of images) await puller.ok(200, 'GET', `${name}/manifests/${one.image.digest}`)
})

for (const round of [0, 3]) {
  test(`copies platforms at once if they are pulled while the index is being copied, also in round ${round}`, async () => {
    const { there, repo, name, follow } = await scene({ tags: ['1.0'], platforms: ['linux/arm64'] })
    const [arm, amd] = [imageAt(there), imageAt(there)]
    const entries = [
      { ...arm.image, platform: { os: 'linux', architecture: 'arm64' } },
      { ...amd.image, platform: { os: 'linux', architecture: 'amd64' } },
    ]
    const index = there.add(JSON.stringify(indexOf(entries)), types.index)
    there.tags.set('1.0', index.digest)
    let changed: Promise<void> | undefined
    // All requested platforms are copied by then.
    there.breakWith((req, res) => {
      if (changed || !req.url!.includes('/referrers/')) return false
      changed = follow({ platforms: [] }).then((answer) => {
        ok(answer)
        res.writeHead(404).end()
      })
      return true
    })
    const { app } = registry
    const later = { ...app, clock: () => new Date(Date.now() + shift) }
    await runJob(later, followUpstreams)
    await app.db.tx((tx) => tx.run(sql`UPDATE follow_fetches SET round = ${round} WHERE repo_uid = ${repo}`))
    await bring()
    assert.ok(changed, 'otherwise nothing was asked for')
    await changed
    await bring()
    there.contents.clear()
    for (const image of [arm, amd]) {
      await puller.ok(200, 'GET', `${name}/manifests/${image.image.digest}`)
      for (const digest of blobsOf(image)) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
    }
  })
}

test('a default platform variant equals no variant, and an index without the configured platforms is reported', async () => {
  const { there, repo, follow } = await scene({ tags: ['1.0', '2.0'], platforms: ['linux/arm64/v8', 'linux/amd64/v1'] })
  const [amd, arm, newer, windows] = Array.from({ length: 4 }, () => imageAt(there)) as [Image, Image, Image, Image]
  const entry = ({ image }: Image, os: string, architecture: string, more: Json = {}) => {
    return { ...image, platform: { os, architecture, ...more } }
  }
  const entries = [
    entry(amd, 'linux', 'amd64'),
    entry(arm, 'linux', 'arm64'),
    entry(newer, 'linux', 'arm64', { variant: 'v9' }),
  ]
  const index = there.add(JSON.stringify(indexOf(entries)), types.index)
  const other = there.add(JSON.stringify(indexOf([entry(windows, 'windows', 'amd64')])), types.index)
  const signature = imageAt(there, { subject: other, artifactType: 'a/signature' })
  there.tags.set('1.0', index.digest)
  there.tags.set('2.0', other.digest)
  await bring()
  const here = async () => {
    const rows = await registry.app.db.all<{ digest: string }>(sql`
      SELECT m.digest FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.uid = ${repo}`)
    return rows.map(({ digest }) => digest).sort()
  }
  const brought = [index, other, amd.image, arm.image, signature.image].map(({ digest }) => digest)
  assert.deepEqual(await here(), brought.sort())
  const { waitingCount, fetchProblem } = await followOf(repo)
  const problem = 'an index has no image for the configured platforms'
  assert.deepEqual([waitingCount, fetchProblem], [1, problem])
  // A platform requested later is copied at once.
  ok(await follow({ platforms: ['linux/amd64', 'windows/amd64'] }))
  await bring()
  assert.deepEqual([(await followOf(repo)).waitingCount, (await here()).includes(windows.image.digest)], [0, true])
})

test('after a change to full mode, copies the rest of an image that was pulled on demand', async () => {
  const { there, name, follow } = await scene({ mode: 'MODE_ON_DEMAND' })
  const { index, images } = publish(there, '1.0')
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  await bring()
  ok(await follow({ mode: 'MODE_FULL' }))
  await bring()
  there.contents.clear()
  await puller.ok(200, 'GET', `${name}/manifests/${index.digest}`)
  for (const image of images) {
    for (const digest of blobsOf(image)) await puller.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
})

test('platforms can be set only in modes that copy ahead, and are written as in images', async () => {
  const { follow } = await scene({ tags: ['1.0'] })
  assertInvalid(await follow({ mode: 'MODE_ON_DEMAND', platforms: ['linux/amd64'] }), 'platforms')
  for (const one of ['linux', 'Linux/amd64', 'linux/amd64/v1/x', 'linux/', '']) {
    assertInvalid(await follow({ platforms: [one] }), 'platforms')
  }
  const many = Array.from({ length: 21 }, (_, i) => `linux/a${i}`)
  assertInvalid(await follow({ platforms: many }), 'platforms')
  ok(await follow({ platforms: many.slice(1) }))
})

/** An image with more annotations than a manifest may have. */
function imageAboveLimits(there: TestUpstream, extra: Json = {}) {
  const annotations = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`key-${i}`, '']))
  return imageAt(there, { ...extra, annotations })
}
const aboveLimits =
  'its response exceeds a limit: the manifest has annotations with more than 1000 entries in one object'

test('reports a manifest above the limits as a problem of the mirror, and copies the others', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0'] })
  const [large, small] = [imageAboveLimits(there), imageAt(there)]
  const index = there.add(JSON.stringify(indexOf([large.image, small.image])), types.index)
  there.tags.set('1.0', index.digest)
  await bring()
  const { waitingCount, fetchProblem } = await followOf(repo)
  assert.deepEqual([waitingCount, fetchProblem], [1, aboveLimits])
  const refused = await puller.call('GET', `${name}/manifests/${large.image.digest}`)
  assert.equal(refused.status, 502)
  there.contents.clear()
  await puller.ok(200, 'GET', `${name}/manifests/${small.image.digest}`)
  for (const blob of blobsOf(small)) await puller.ok(200, 'GET', `${name}/blobs/${blob}`)
})

test('reports a referrer above the limits as a problem of the mirror, and copies the others', async () => {
  const { there, repo, name } = await scene({ tags: ['1.0'] })
  const { image } = imageAt(there)
  there.tags.set('1.0', image.digest)
  const all = [1, 2, 3].map(() => imageAt(there, { subject: image, artifactType: 'a/signature' }))
  const large = imageAboveLimits(there, { subject: image, artifactType: 'a/signature' })
  await bring()
  assert.equal((await followOf(repo)).fetchProblem, aboveLimits)
  const { body } = await puller.ok(200, 'GET', `${name}/referrers/${image.digest}`)
  const digests = body.manifests.map((one: Json) => one.digest)
  assert.deepEqual(digests.sort(), all.map((one) => one.image.digest).sort())
  assert.ok(!digests.includes(large.image.digest))
})

test('on demand, refuses a pull of a manifest above the limits, and reports it as a problem of the mirror', async () => {
  const { there, repo, name } = await scene({ mode: 'MODE_ON_DEMAND', tags: ['1.0'] })
  const { image } = imageAboveLimits(there)
  there.tags.set('1.0', image.digest)
  const refused = await puller.call('GET', `${name}/manifests/1.0`)
  assert.equal(refused.status, 502)
  assert.match(refused.body.errors[0].message, /more than 1000 entries/)
  assert.equal((await followOf(repo)).fetchProblem, aboveLimits)
})
