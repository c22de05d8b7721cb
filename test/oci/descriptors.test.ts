// Descriptors in manifests: their sizes are checked, and the nesting of indexes is limited.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Sql } from '#db/sql.ts'
import { readManifest } from '#domains/registry/manifests/manifest-document.ts'
import { insertLinks, insertManifest } from '#domains/registry/manifests/manifests.store.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import {
  codeOf,
  type Descriptor,
  digestOf,
  imageOf,
  indexOf,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

let registry: TestRegistry
let sparse: TestRegistry
before(async () => {
  registry = await startRegistry()
  sparse = await startRegistry({ sparseManifests: 'all' })
})
after(async () => {
  await registry[Symbol.asyncDispose]()
  await sparse[Symbol.asyncDispose]()
})

const name = 'acme/app'
/** The descriptor of the manifest, as if it was already pushed. */
const described = (manifest: Json): Descriptor => {
  const body = JSON.stringify(manifest)
  return { mediaType: manifest.mediaType, digest: digestOf(body), size: Buffer.byteLength(body) }
}
const put = ({ pusher }: TestRegistry, manifest: Json) =>
  pusher.call('PUT', `${name}/manifests/${described(manifest).digest}`, {
    body: JSON.stringify(manifest),
    headers: { 'content-type': manifest.mediaType },
  })

test('an error for a size that differs from the stored size names the digest and both sizes', async () => {
  for (const where of [registry, sparse]) {
    const { pusher } = where
    const config = await pusher.pushBlob(name, '{}', types.config)
    const layer = await pusher.pushBlob(name, 'a layer')
    const image = await pusher.pushManifest(name, imageOf(config, [layer]))
    const lies: [Json, Descriptor][] = [
      [imageOf({ ...config, size: 100 }, [layer]), { ...config, size: 100 }],
      [imageOf(config, [{ ...layer, size: 6 }]), { ...layer, size: 6 }],
      [indexOf([{ ...image, size: 2 ** 40 }]), { ...image, size: 2 ** 40 }],
    ]
    for (const [manifest, { digest, size }] of lies) {
      const refused = await put(where, manifest)
      assert.equal(refused.status, 400)
      assert.equal(codeOf(refused), 'MANIFEST_INVALID')
      const stored = [config, layer, image].find((one) => one.digest === digest)!.size
      assert.deepEqual(refused.body.errors[0].detail, { digest, size, stored })
      for (const part of [digest, `${size}`, `${stored}`]) assert.ok(refused.body.errors[0].message.includes(part))
    }
    const twice = await put(where, imageOf(config, [layer, { ...layer, size: 8 }]))
    assert.equal(codeOf(twice), 'MANIFEST_INVALID')
  }
})

test('does not trust a stored size that was not checked', async () => {
  const { pusher, operator } = sparse
  const config = await pusher.pushBlob(name, '{"architecture":"amd64"}', types.config)
  const content = 'comes later'
  const said = { mediaType: types.layer, digest: digestOf(content), size: 2 ** 50 }
  const elsewhere = {
    mediaType: 'application/vnd.oci.image.layer.nondistributable.v1.tar',
    digest: digestOf('x'),
    size: 7,
  }
  const image = await pusher.pushManifest(name, imageOf(config, [said, elsewhere]))
  const { repos } = ok(await operator.get('/registry/v2/repos'))
  const size = async () =>
    Number(ok(await operator.get(`/registry/v2/repos/${repos[0].uid}/digests/${image.digest}/size`)).size)
  assert.equal(await size(), config.size + 2 ** 50 + 7)
  await pusher.pushBlob(name, content)
  assert.equal(await size(), config.size + content.length + 7)
})

const nested = (reply: Awaited<ReturnType<typeof put>>) => {
  assert.equal(reply.status, 400)
  assert.equal(codeOf(reply), 'MANIFEST_INVALID')
  assert.match(reply.body.errors[0].message, /at most 2 levels/)
}
const taken = (reply: Awaited<ReturnType<typeof put>>) => assert.equal(reply.status, 201, reply.bytes.toString())

test('an index can list indexes of images, but no deeper indexes', async () => {
  const { pusher } = registry
  const image = await pusher.pushImage(name)
  const low = await pusher.pushManifest(name, indexOf([image]))
  const middle = await pusher.pushManifest(name, indexOf([image, low]))
  nested(await put(registry, indexOf([image, middle])))
  nested(await put(registry, indexOf([middle], { annotations: { another: 'one' } })))
})

test('indexes pushed before their children are not nested deeper either, in any order', async () => {
  const image = await sparse.pusher.pushImage(name)
  let count = 0
  const chain = (): Json[] => {
    const low = indexOf([image], { annotations: { chain: `${count++}` } })
    const middle = indexOf([described(low)])
    return [indexOf([described(middle)]), middle, low]
  }
  for (const order of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]) {
    const manifests = chain()
    const [first, second, last] = order.map((i) => manifests[i]!)
    taken(await put(sparse, first!))
    taken(await put(sparse, second!))
    nested(await put(sparse, last!))
  }
})

test('later pushes use the children of an index that is pushed after its parent', async () => {
  const image = await sparse.pusher.pushImage(name)
  const low = indexOf([image], { annotations: { late: 'yes' } })
  const middle = indexOf([described(low)])
  taken(await put(sparse, middle))
  taken(await put(sparse, low))
  nested(await put(sparse, indexOf([described(middle)])))
})

/** Rows that `work` changes, by verb and table. */
async function rowsChanged({ app }: TestRegistry, work: () => Promise<void>): Promise<Record<string, number>> {
  const changed: Record<string, number> = {}
  const { tx: begin } = app.db
  app.db.tx = (inside, options) =>
    begin((tx) => {
      const run = async (query: Sql): Promise<number> => {
        const rows = await tx.run(query)
        const what = /^\s*(?:INSERT INTO|DELETE FROM|UPDATE) \w+/.exec(compile(query, '?'))![0].trim()
        changed[what] = (changed[what] ?? 0) + rows
        return rows
      }
      return inside({ ...tx, run })
    }, options)
  await work().finally(() => {
    app.db.tx = begin
  })
  return changed
}

test('pushing an index updates its parents only with new facts, not with its contents', async () => {
  const image = await sparse.pusher.pushImage(name)
  const low = indexOf([image], { annotations: { again: 'yes' } })
  for (let i = 0; i < 3; i++) {
    taken(await put(sparse, indexOf([described(low)], { annotations: { above: `${i}`.repeat(1000) } })))
  }
  for (const levels of [3, 0]) {
    const changed = await rowsChanged(sparse, async () => taken(await put(sparse, low)))
    assert.equal(changed['INSERT INTO nested_indexes'], levels)
    assert.equal(changed['INSERT INTO manifests'], 1)
    assert.equal(changed['UPDATE manifests'], undefined)
    await sparse.registryOperator.ok(202, 'DELETE', `${name}/manifests/${described(low).digest}`)
  }
})

/** An earlier version accepted the index at any depth. */
async function storeDeep(where: TestRegistry, uid: string, manifest: Json): Promise<Descriptor> {
  const content = Buffer.from(JSON.stringify(manifest))
  const { digest, mediaType } = described(manifest)
  const document = readManifest(content, mediaType)
  const repo = (await where.app.paths.find(uid)).repo!
  const { id } = repo
  await where.app.db.tx(async (tx) => {
    await insertManifest(tx, repo, { digest, mediaType, content }, document, 3, '2026-01-01T00:00:00.000Z')
    await insertLinks(tx, id, digest, 1, document.manifests)
  })
  return described(manifest)
}

test('deeper indexes from earlier versions can be pulled, tagged and read with few queries', async () => {
  const { app, org, pusher, puller, operator, seed } = registry
  const { uid } = await seed.repo(org.uid, { name: 'deep' })
  const image = await pusher.pushImage('acme/deep')
  let below: Descriptor[] = [image]
  // The image can be reached by 30 to the power of 3 paths.
  for (const level of ['c', 'b', 'a']) {
    const same = below
    below = []
    for (let i = 0; i < 30; i++) {
      below.push(await storeDeep(registry, uid, indexOf(same, { annotations: { at: `${level}${i}` } })))
    }
  }
  const top = await storeDeep(registry, uid, indexOf(below))
  const body = (await puller.ok(200, 'GET', `acme/deep/manifests/${top.digest}`)).bytes
  await pusher.ok(201, 'PUT', 'acme/deep/manifests/latest', { body, headers: { 'content-type': top.mediaType } })

  let queries = 0
  const { all, get } = app.db
  app.db.all = (query) => {
    queries++
    return all(query)
  }
  app.db.get = (query) => {
    queries++
    return get(query)
  }
  const { architectures } = ok(await operator.get(`/registry/v2/repos/${uid}/digests/${top.digest}/architectures`))
  app.db.all = all
  app.db.get = get
  assert.deepEqual(architectures, ['amd64'])
  assert.ok(queries < 500, `${queries} queries`)
  assert.equal(
    (
      await pusher.call('PUT', 'acme/deep/manifests/deeper', {
        body: JSON.stringify(indexOf([top])),
        headers: { 'content-type': types.index },
      })
    ).status,
    400,
  )
})

test('accepts an index with the maximum number of images, and answers requests about it', async () => {
  const { org, pusher, puller, operator, seed } = registry
  const { uid } = await seed.repo(org.uid, { name: 'wide' })
  const configs = await Promise.all(
    ['amd64', 'arm64'].map((architecture) => {
      return pusher.pushBlob('acme/wide', JSON.stringify({ architecture, os: 'linux' }), types.config)
    }),
  )
  const layer = await pusher.pushBlob('acme/wide', 'a layer')
  const images: Descriptor[] = []
  // All images except the last are for one architecture, which the index does not contain.
  const push = async (i: number) => {
    const annotations = { number: String(i) }
    const config = configs[i === 1999 ? 1 : 0]!
    images[i] = await pusher.pushManifest('acme/wide', imageOf(config, [layer], { annotations }))
  }
  for (let i = 0; i < 2000; i += 20) await Promise.all(Array.from({ length: 20 }, (_, n) => push(i + n)))
  const index = await pusher.pushManifest('acme/wide', indexOf(images), 'latest')
  assert.equal((await puller.ok(200, 'GET', 'acme/wide/manifests/latest')).body.manifests.length, 2000)
  const about = async (what: string) =>
    ok(await operator.get(`/registry/v2/repos/${uid}/digests/${index.digest}/${what}`))
  assert.deepEqual((await about('architectures')).architectures.toSorted(), ['amd64', 'arm64'])
  assert.ok(Number((await about('size')).size) > 0)
})

test('refuses a request about an image with more children than the read limit, with the reason', async () => {
  const { org, pusher, operator, seed } = registry
  const { uid } = await seed.repo(org.uid, { name: 'large' })
  const config = await pusher.pushBlob('acme/large', '{}', types.config)
  const large: Descriptor[] = []
  for (let i = 0; i < 9; i++) {
    const annotations = { text: `${i}`.repeat(4_000_000) }
    large.push(await pusher.pushManifest('acme/large', imageOf(config, [], { annotations })))
  }
  const index = await pusher.pushManifest('acme/large', indexOf(large))
  for (const what of ['architectures', 'size']) {
    const { status, body } = await operator.get(`/registry/v2/repos/${uid}/digests/${index.digest}/${what}`)
    assert.equal(status, 400)
    const failure = body.details.find((one: Json) => one['@type'].endsWith('PreconditionFailure'))
    assert.equal(failure.violations[0].type, 'IMAGE_TOO_LARGE')
  }
})

test('a request that takes too long ends at its deadline, and reads nothing more', async () => {
  await using late = await startRegistry({ requestTimeoutMs: 2000 })
  const { app, org, pusher, operator, seed } = late
  const { uid } = await seed.repo(org.uid, { name: 'app' })
  const images: Descriptor[] = []
  for (let i = 0; i < 20; i++) images.push(await pusher.pushImage(name))
  const index = await pusher.pushManifest(name, indexOf(images))
  const answered = Promise.withResolvers<void>()
  const { read } = app.blobs
  let reads = 0
  app.blobs.read = async (location) => {
    reads++
    await answered.promise
    return read(location)
  }
  const ended = Promise.withResolvers<void>()
  const { dec } = app.metrics.inFlight
  app.metrics.inFlight.dec = () => {
    dec.call(app.metrics.inFlight)
    ended.resolve()
  }
  const { status } = await operator.get(`/registry/v2/repos/${uid}/digests/${index.digest}/architectures`)
  assert.equal(status, 504)
  answered.resolve()
  await ended.promise
  // At most 16 configurations are read at the same time.
  assert.equal(reads, 16)
})
