// Mirrors of registries with unusual responses, as existing products send them.
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { fetchFollowed } from '#domains/mirrors/follows/fetches.job.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { digestOf, imageOf, startRegistry, types } from '../support/registry.ts'
import { type Fault, localUpstreams, startUpstream, type TestUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({
  ...localUpstreams,
  clock: () => new Date(Date.now() + shift),
  monotonic: () => performance.now() * 1000 + shift,
})
after(() => registry[Symbol.asyncDispose]())
const { puller, app, operator, org, seed } = registry

let count = 0
async function scene(fault: (there: TestUpstream) => Fault, body: Json = {}, account: Json = {}) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  const image = publish(there, '1.0')
  there.breakWith(fault(there))
  const name = `upstream-${count++}`
  const input = { name, url: there.url, ...account }
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${org.uid}`, input))
  const repo = (await seed.repo(org.uid, { name })).uid as string
  const follow = { upstreamUid: upstream.uid, path: 'app', mode: 'MODE_ON_DEMAND', ...body }
  ok(await operator.post(`/registry/v2/repos/${repo}/follow`, follow))
  return { there, repo, name: `acme/${name}`, image }
}

function publish(there: TestUpstream, tag: string, text = tag): string {
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux', text }), types.config)
  const layer = there.add(`layer of ${text}`, types.layer)
  const image = there.add(JSON.stringify({ ...imageOf(config, [layer]), mediaType: types.image }), types.image)
  there.tags.set(tag, image.digest)
  return image.digest
}

const followOf = async (repo: string): Promise<Json> => ok(await operator.get(`/registry/v2/repos/${repo}/follow`))

/** Answers for manifests with headers of its own, and to HEAD with a status of its own. */
function servingManifests(
  headStatus: number,
  headers: (content: Buffer, method: string) => Record<string, string>,
): (there: TestUpstream) => Fault {
  return (there) => (req, res) => {
    const reference = /\/manifests\/([^/?]+)$/.exec(req.url ?? '')?.[1]
    if (reference === undefined) return false
    const content = there.contents.get(there.tags.get(reference) ?? reference)
    if (!content) return false
    const own = headers(content.bytes, req.method ?? '')
    if (req.method === 'HEAD' && headStatus !== 200) return end(res, headStatus)
    if (own.etag !== undefined && req.headers['if-none-match'] === own.etag) return end(res, 304, own)
    return end(res, 200, { 'content-type': types.image, ...own }, req.method === 'HEAD' ? '' : content.bytes)
  }
}

function end(res: ServerResponse, status: number, headers: Record<string, string> = {}, body: string | Buffer = '') {
  res.writeHead(status, headers).end(body)
  return true
}

const withoutDigest = {
  'a HEAD without a digest': servingManifests(200, () => ({})),
  'a HEAD without a digest and with an entity tag': servingManifests(200, (bytes) => ({
    etag: `"x${digestOf(bytes).slice(7, 20)}"`,
  })),
  'a HEAD that is not allowed': servingManifests(405, () => ({})),
  'a HEAD answered with 501': servingManifests(501, (bytes) => ({ 'docker-content-digest': digestOf(bytes) })),
}

for (const [name, fault] of Object.entries(withoutDigest)) {
  test(`pulls by tag and digest through an upstream with ${name}, with one GET for each change`, async () => {
    const { there, name: path, image } = await scene(fault)
    const pulled = await puller.ok(200, 'GET', `${path}/manifests/1.0`)
    assert.deepEqual([pulled.headers['docker-content-digest'], pulled.headers['content-type']], [image, types.image])
    await puller.ok(200, 'GET', `${path}/manifests/${image}`)
    assert.equal(there.count('GET /v2/app/manifests/'), 1)
    const second = publish(there, '1.0', 'moved to here')
    shift += 6 * minute
    const again = await puller.ok(200, 'GET', `${path}/manifests/1.0`)
    assert.equal(again.headers['docker-content-digest'], second)
    assert.equal(there.count('GET /v2/app/manifests/'), 2)
    there.tags.delete('1.0')
    await puller.ok(404, 'GET', `${path}/manifests/2.0`)
  })
}

test('sends the last ETag, and an unchanged tag needs no second GET if HEAD returns the digest', async () => {
  const etag = servingManifests(200, (bytes) => ({ etag: `"${digestOf(bytes).slice(7, 20)}"` }))
  const { there, name } = await scene(etag)
  for (let i = 0; i < 3; i++) {
    await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    shift += 6 * minute
  }
  assert.equal(there.count('GET /v2/app/manifests/'), 1)
  assert.equal(there.count('HEAD /v2/app/manifests/1.0'), 3)
  const conditional = servingManifests(405, () => ({ etag: '"same"' }))
  const refusing = await scene(conditional)
  for (let i = 0; i < 2; i++) {
    const pulled = await puller.ok(200, 'GET', `${refusing.name}/manifests/1.0`)
    assert.equal(pulled.headers['docker-content-digest'], refusing.image)
    shift += 6 * minute
  }
  assert.deepEqual(refusing.there.count('GET /v2/app/manifests/1.0'), 2)
})

test('never stores other content as the manifest of a tag', async () => {
  for (const body of ['', '<html>sign in</html>', '{}', '[]', '{"schemaVersion":1,"fsLayers":[]}']) {
    const { name } = await scene(() => (req, res) => {
      if (!req.url?.includes('/manifests/')) return false
      return end(res, 200, { 'content-type': 'text/html' }, req.method === 'HEAD' ? '' : body)
    })
    await puller.ok(502, 'GET', `${name}/manifests/1.0`)
  }
})

test('a watched tag follows the digest of a GET if HEAD returns none', async () => {
  const { there, repo, image } = await scene(withoutDigest['a HEAD that is not allowed'], { mode: 'MODE_WATCH' })
  await runJob(app, followUpstreams)
  const history = async () => ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=1.0`)).records as Json[]
  assert.deepEqual(
    (await history()).map(({ digest }) => digest),
    [image],
  )
  assert.equal((await followOf(repo)).problem ?? '', '')
  assert.equal(there.count('GET /v2/app/manifests/1.0'), 1)
})

for (const status of [405, 404]) {
  test(`the size of a blob is known if HEAD returns ${status} and GET does not`, async () => {
    const { there, name } = await scene(() => (req, res) => {
      return req.method === 'HEAD' && req.url?.includes('/blobs/') === true && end(res, status)
    })
    await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    const layer = digestOf('layer of 1.0')
    const head = await puller.ok(200, 'HEAD', `${name}/blobs/${layer}`)
    assert.equal(head.headers['content-length'], String('layer of 1.0'.length))
    assert.equal(there.count('GET /v2/app/blobs/'), 1)
    await puller.ok(404, 'HEAD', `${name}/blobs/${digestOf('nothing')}`)
  })
}

test('copies a layer with a Content-Encoding header, whether the bytes are compressed or not', async () => {
  const { name } = await scene((upstream) => (req, res) => {
    const content = upstream.contents.get(req.url?.split('/blobs/')[1] ?? '')
    if (req.method !== 'GET' || !content) return false
    const isLayer = content.bytes.toString() === 'layer of 1.0'
    return end(res, 200, { 'content-encoding': 'x-gzip' }, isLayer ? content.bytes : gzipSync(content.bytes))
  })
  const manifest = (await puller.ok(200, 'GET', `${name}/manifests/1.0`)).body
  const layer = await puller.ok(200, 'GET', `${name}/blobs/${manifest.layers[0].digest}`)
  assert.equal(layer.bytes.toString(), 'layer of 1.0')
  await puller.ok(200, 'GET', `${name}/blobs/${manifest.config.digest}`)
})

const compressions: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gzipSync,
  br: brotliCompressSync,
  deflate: deflateSync,
  zstd: zstdCompressSync,
  'gzip, zstd': (bytes) => zstdCompressSync(gzipSync(bytes)),
}
for (const [encoding, compress] of Object.entries(compressions)) {
  test(`copies an image through a proxy that compresses every response with ${encoding}`, async () => {
    const { there, name, image } = await scene((upstream) => (req, res) => {
      const reference = decodeURIComponent(req.url?.split('/').at(-1) ?? '')
      const digest = upstream.tags.get(reference) ?? reference
      const content = upstream.contents.get(digest)
      if (!content) return false
      const type = { 'content-type': content.mediaType, 'docker-content-digest': digest }
      // Such a proxy does not know the length of the response before it has compressed the response.
      res.writeHead(200, { ...type, 'content-encoding': encoding })
      res.end(req.method === 'HEAD' ? undefined : compress(content.bytes))
      return true
    })
    const manifest = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    assert.equal(manifest.headers['docker-content-digest'], image)
    assert.equal(manifest.headers['content-encoding'], undefined)
    const { config, layers } = manifest.body
    const head = await puller.ok(200, 'HEAD', `${name}/blobs/${layers[0].digest}`)
    assert.equal(head.headers['content-length'], String('layer of 1.0'.length))
    there.forget()
    await puller.ok(200, 'GET', `${name}/blobs/${config.digest}`)
    assert.equal(there.count('GET'), 1, 'the second blob is decompressed at the first attempt')
    there.breakWith(() => true)
    const layer = await puller.ok(200, 'GET', `${name}/blobs/${layers[0].digest}`)
    assert.equal(layer.bytes.toString(), 'layer of 1.0')
  })
}

test('refuses content with damaged or unknown compression, or with too many bytes after decompression', async () => {
  const bodies: [encoding: string, body: (bytes: Buffer) => Buffer][] = [
    ['gzip', (bytes) => bytes],
    ['gzip', (bytes) => gzipSync(bytes).subarray(0, -9)],
    ['snappy', (bytes) => bytes],
    ['gzip, gzip, gzip', (bytes) => gzipSync(gzipSync(gzipSync(bytes)))],
    ['gzip', (bytes) => gzipSync(Buffer.concat([bytes, Buffer.alloc(5 * 2 ** 20, ' ')]))],
  ]
  for (const [encoding, body] of bodies) {
    const { name } = await scene((upstream) => (req, res) => {
      const reference = req.url?.split('/manifests/')[1] ?? ''
      const content = upstream.contents.get(upstream.tags.get(reference) ?? reference)
      if (req.method !== 'GET' || !content) return false
      return end(res, 200, { 'content-type': content.mediaType, 'content-encoding': encoding }, body(content.bytes))
    })
    const refused = await puller.call('GET', `${name}/manifests/1.0`)
    assert.equal(refused.status, 502, `${encoding}: ${JSON.stringify(refused.body)}`)
  }
})

for (const contentType of ['application/json', 'text/plain; charset=utf-8', 'application/octet-stream', '']) {
  test(`serves a manifest with Content-Type "${contentType}" with the type in its body`, async () => {
    const headers = (bytes: Buffer) => ({ 'content-type': contentType, 'docker-content-digest': digestOf(bytes) })
    const { name, image } = await scene(servingManifests(200, headers))
    const pulled = await puller.ok(200, 'GET', `${name}/manifests/1.0`)
    assert.deepEqual([pulled.headers['docker-content-digest'], pulled.headers['content-type']], [image, types.image])
  })
}

test('serves a manifest and an index without mediaType with the type that their fields imply', async () => {
  const { there, name } = await scene((upstream) => (req, res) => {
    const reference = /\/manifests\/([^/]+)$/.exec(req.url ?? '')?.[1] ?? ''
    const digest = upstream.tags.get(reference) ?? reference
    const content = upstream.contents.get(digest)
    if (req.method !== 'GET' || !content || !req.url?.includes('/manifests/')) return false
    return end(res, 200, { 'content-type': 'application/json' }, content.bytes)
  })
  const config = there.add('{"architecture":"amd64","os":"linux"}', types.config)
  const image = there.add(JSON.stringify({ schemaVersion: 2, config, layers: [] }), types.image)
  const index = there.add(JSON.stringify({ schemaVersion: 2, manifests: [image] }), types.index)
  for (const [tag, { digest, mediaType }] of Object.entries({ image, index })) {
    there.tags.set(tag, digest)
    const pulled = await puller.ok(200, 'GET', `${name}/manifests/${tag}`)
    assert.equal(pulled.headers['content-type'], mediaType)
  }
})

/** Sends challenges, and accepts requests with one of the credentials. */
function challenging(
  challenges: (url: string) => string | string[],
  good: readonly string[],
  token: Json = { token: 't' },
) {
  return (there: TestUpstream): Fault =>
    (req: IncomingMessage, res: ServerResponse) => {
      if (req.url?.startsWith('/token')) return end(res, 200, {}, JSON.stringify(token))
      if (good.includes(req.headers.authorization ?? '')) return false
      res.setHeader('www-authenticate', challenges(there.url))
      return end(res, 401)
    }
}

const basic = 'Basic realm="r"'
const bearer = (url: string) => `Bearer realm="${url}/token",service="s"`
const offers: Record<string, (url: string) => string | string[]> = {
  'two headers': (url) => [basic, bearer(url)],
  'two headers, Bearer first': (url) => [bearer(url), basic],
  'one header': (url) => `${basic}, ${bearer(url)}`,
  'one header, Bearer first': (url) => `${bearer(url)}, ${basic}`,
}

for (const [name, challenges] of Object.entries(offers)) {
  test(`uses Bearer without a password if Basic is offered too, in ${name}`, async () => {
    const { name: path } = await scene(challenging(challenges, ['Bearer t']))
    await puller.ok(200, 'GET', `${path}/manifests/1.0`)
  })
  test(`uses Basic with a password if the token service does not know the account, in ${name}`, async () => {
    const good = `Basic ${Buffer.from('me:words').toString('base64')}`
    const account = { username: 'me', password: 'words' }
    const only = (there: TestUpstream): Fault => {
      const fault = challenging(challenges, [good])(there)
      return (req, res) => (req.url?.startsWith('/token') ? end(res, 401) : fault(req, res))
    }
    const { name: path } = await scene(only, {}, account)
    await puller.ok(200, 'GET', `${path}/manifests/1.0`)
  })
}

const tokens: Json[] = [
  { token: '', access_token: 't' },
  { access_token: 't' },
  { token: null, access_token: 't' },
  { token: 't', expires_in: '300', issued_at: '1457510670' },
]
for (const token of tokens) {
  test(`uses the access token of ${JSON.stringify(token)}`, async () => {
    const { name } = await scene(challenging(bearer, ['Bearer t'], token))
    await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  })
}

const next = '</v2/app/tags/list?n=1&last=1.0>'
const links: Record<string, string | string[]> = {
  'another link before': `</v2/app/tags/list?n=1&last=x>; rel="first", ${next}; rel="next"`,
  'another header before': ['</style.css>; rel=preload', `${next}; rel="next"`],
  'another parameter before': `${next}; title="n"; rel="next"`,
}

/** Two pages of tags. The first page links to the second with this header. */
function paged(link: string | string[]) {
  return (): Fault => (req, res) => {
    const url = new URL(req.url ?? '/', 'http://upstream.invalid')
    if (!url.pathname.endsWith('/tags/list')) return false
    const isFirst = url.searchParams.get('last') === null
    if (isFirst) res.setHeader('link', link)
    return end(res, 200, {}, JSON.stringify({ name: 'app', tags: isFirst ? ['1.0'] : ['2.0'] }))
  }
}

for (const [name, link] of Object.entries(links)) {
  test(`reads all pages of tags with ${name}`, async () => {
    const { there, repo } = await scene(paged(link), { mode: 'MODE_WATCH' })
    publish(there, '2.0')
    await runJob(app, followUpstreams)
    const follow = await followOf(repo)
    assert.deepEqual([follow.tagCount, follow.problem ?? ''], [2, ''])
  })
}

test('reports an unreadable page of tags, reads the others and deletes no tag because of it', async () => {
  const { there, repo } = await scene(paged(`${next}; rel="next"`), { mode: 'MODE_WATCH' })
  publish(there, '2.0')
  await runJob(app, followUpstreams)
  assert.equal((await followOf(repo)).tagCount, 2)
  const third = publish(there, '3.0')
  there.breakWith((req, res) => {
    if (!req.url?.includes('/tags/list')) return false
    const headers = { link: '</v2/app/tags/page2>; rel="next"' }
    return end(res, 200, headers, JSON.stringify({ tags: ['1.0', '3.0'] }))
  })
  await runJob({ ...app, clock: () => new Date(app.clock().getTime() + 61 * minute) }, followUpstreams)
  const follow = await followOf(repo)
  assert.deepEqual([follow.tagCount, follow.state], [3, 'STATE_FAILED'])
  assert.match(follow.problem, /the next page of its list cannot be read/)
  const [born] = ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=3.0`)).records
  assert.equal(born.digest, third)
})

test('copies referrers of all pages', async () => {
  const { there, name, image } = await scene(() => () => false)
  const subject = { mediaType: types.image, digest: image, size: there.contents.get(image)!.bytes.length }
  const config = there.add('{}', 'application/vnd.oci.empty.v1+json')
  const about = ['a', 'b'].map((text) => {
    const manifest = { ...imageOf(config, []), subject, mediaType: types.image, annotations: { text } }
    return there.add(JSON.stringify(manifest), types.image)
  })
  there.breakWith((req, res) => {
    const url = new URL(req.url ?? '/', 'http://upstream.invalid')
    if (!url.pathname.endsWith(`/referrers/${image}`)) return false
    const isFirst = !url.searchParams.has('page')
    const headers: Record<string, string> = isFirst ? { link: `<${url.pathname}?page=2>; rel="next"` } : {}
    return end(res, 200, headers, JSON.stringify({ schemaVersion: 2, manifests: [about[isFirst ? 0 : 1]] }))
  })
  await puller.ok(200, 'GET', `${name}/manifests/1.0`)
  await runJob(app, fetchFollowed)
  const listed = (await puller.ok(200, 'GET', `${name}/referrers/${image}`)).body as Json
  assert.deepEqual(
    (listed.manifests as Json[]).map(({ digest }) => digest).sort(),
    about.map(({ digest }) => digest).sort(),
  )
})
