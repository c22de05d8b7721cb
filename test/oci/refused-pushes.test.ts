// A refused push leaves nothing behind: neither its repository nor the folders above it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import type { Db, Reader, Sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { checkLists } from '../support/check-lists.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import {
  codeOf,
  digestOf,
  imageOf,
  type Reply,
  registryClient,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

const set = async ({ operator, org }: TestRegistry, limits: Record<string, number>): Promise<void> => {
  const named = Object.entries(limits).map(([name, limit]) => ({ name, limit: String(limit) }))
  ok(await operator.post('/control/v1/quotas:set', { organization: org.uid, limits: named }))
}
/** Folders and repos of the organization, by name. */
async function tree({ operator, org }: TestRegistry): Promise<string[]> {
  const named = async (path: string, member: string) => {
    const all = ok(await operator.get(`${path}?uidp.descendants_of=${org.uid}&page_size=500`))[member] as Json[]
    return all.map((one) => String(one.name)).sort()
  }
  const repos = await named('/registry/v2/repos', 'repos')
  return [...(await named('/iam/v2/groups', 'groups')), ...repos]
}
const content = 'x'.repeat(500)
const digest = digestOf(content)
/** Each first request of a push, which can create the repository. */
const pushes = {
  upload: ({ pusher }: TestRegistry, name: string) => pusher.call('POST', `${name}/blobs/uploads/`),
  whole: ({ pusher }: TestRegistry, name: string) =>
    pusher.call('POST', `${name}/blobs/uploads/?digest=${digest}`, { body: content }),
  mount: ({ pusher }: TestRegistry, name: string) =>
    pusher.call('POST', `${name}/blobs/uploads/?mount=${digest}&from=acme/there`),
  manifest: ({ pusher }: TestRegistry, name: string) => pushManifest({ pusher }, name, bare()),
}
/** The manifest lists no blobs, so it can be the first request. */
const bare = () => ({ schemaVersion: 2, mediaType: types.index, manifests: [] })
const pushManifest = ({ pusher }: Pick<TestRegistry, 'pusher'>, name: string, manifest: Json, reference = 'latest') =>
  pusher.call('PUT', `${name}/manifests/${reference}`, {
    body: JSON.stringify(manifest),
    headers: { 'content-type': String(manifest.mediaType) },
  })

/** Refused pushes have added nothing and sent no event. */
async function addsNothing(registry: TestRegistry, push: () => Promise<Reply>): Promise<Reply> {
  const before = await tree(registry)
  let reply: Reply | undefined
  const events = await eventsOf(registry, async () => {
    reply = await push()
  })
  assert.ok(reply!.status >= 400, String(reply!.status))
  assert.deepEqual(await tree(registry), before, reply!.bytes.toString())
  const made = events.map(({ type }) => String(type)).filter((type) => /created/.test(type))
  assert.deepEqual(made, [])
  return reply!
}

test('a repository above the quota leaves no created folders behind', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushBlob('acme/there', content)
  await set(registry, { repositories: 1 })
  for (const [kind, push] of Object.entries(pushes)) {
    const reply = await addsNothing(registry, () => push(registry, 'acme/one/two/three/app'))
    assert.deepEqual(
      [reply.status, codeOf(reply), reply.body.errors[0].detail.quota],
      [403, 'DENIED', 'repositories'],
      kind,
    )
  }
  await set(registry, { repositories: 2, groups: 2 })
  for (const [kind, push] of Object.entries(pushes)) {
    const reply = await addsNothing(registry, () => push(registry, 'acme/one/two/three/app'))
    assert.deepEqual([reply.status, reply.body.errors[0].detail.quota], [403, 'groups'], kind)
  }
  await set(registry, { groups: 3 })
  assert.equal((await pushes.mount(registry, 'acme/one/two/three/app')).status, 201)
  assert.deepEqual(await tree(registry), ['one', 'three', 'two', 'app', 'there'])
  await checkLists(registry)
})

test('uploads and bytes above a quota create no repository', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushBlob('acme/there', content)
  await set(registry, { uploads: 1 })
  await registry.pusher.ok(202, 'POST', 'acme/there/blobs/uploads/')
  assert.equal((await addsNothing(registry, () => pushes.upload(registry, 'acme/new/app'))).status, 403)
  await set(registry, { bytes: 510, uploads: 10 })
  const more = 'y'.repeat(20)
  const whole = () =>
    registry.pusher.call('POST', `acme/new/app/blobs/uploads/?digest=${digestOf(more)}`, { body: more })
  assert.equal((await addsNothing(registry, whole)).body.errors[0].detail.quota, 'bytes')
  assert.equal((await addsNothing(registry, () => pushes.manifest(registry, 'acme/new/app'))).status, 403)
  await set(registry, { bytes: 10_000 })
  assert.equal((await whole()).status, 201)
})

test('a push with an invalid name, parent or content creates no repository', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const deep = `acme/${'d/'.repeat(70)}app`
  const long = `acme/one/two/${'n'.repeat(256)}`
  for (const name of [deep, long]) {
    for (const push of Object.values(pushes)) await addsNothing(registry, () => push(registry, name))
  }
  const name = 'acme/one/two/app'
  const config = { mediaType: types.config, digest, size: 500 }
  const wrongs: [status: number, push: () => Promise<Reply>][] = [
    [400, () => pusher.call('POST', `${name}/blobs/uploads/?digest=${digest}`, { body: 'something else' })],
    [404, () => pushManifest(registry, name, imageOf(config, []))],
    [400, () => pushManifest(registry, name, bare(), digest)],
    [400, () => pushManifest(registry, name, { mediaType: types.index, schemaVersion: 1 })],
    [400, () => pushManifest(registry, name, bare(), '-')],
    [404, () => pusher.call('PATCH', `${name}/blobs/uploads/${'0'.repeat(32)}`, { body: content })],
    [404, () => pusher.call('PUT', `${name}/blobs/uploads/${'0'.repeat(32)}?digest=${digest}`)],
    [404, () => pusher.call('GET', `${name}/blobs/uploads/${'0'.repeat(32)}`)],
    [404, () => pusher.call('DELETE', `${name}/blobs/uploads/${'0'.repeat(32)}`)],
  ]
  for (const [i, [status, push]] of wrongs.entries()) {
    assert.equal((await addsNothing(registry, push)).status, status, `push ${i}`)
  }
  // Client with permission to push, but not to set tags.
  const role = await registry.seed.role(registry.org.uid, [
    'CAP_MANIFEST_CREATE',
    'CAP_REPO_CREATE',
    'CAP_IAM_GROUPS_CREATE',
  ])
  const untagged = await registry.registryAs((await registry.seed.member(registry.org.uid, role.uid)).uid)
  const tagging = () => pushManifest({ pusher: { uid: '', ...untagged } }, name, bare())
  assert.equal((await addsNothing(registry, tagging)).status, 403)
  assert.equal(
    (await pushManifest({ pusher: { uid: '', ...untagged } }, name, bare(), digestOf(JSON.stringify(bare())))).status,
    201,
  )
})

test('concurrent pushes that create the same repository create it once', async () => {
  await using registry = await startRegistry()
  const all = Array.from({ length: 8 }, (_, i) => registry.pusher.pushBlob('acme/one/two/app', `content ${i}`))
  await Promise.all(all)
  assert.deepEqual(await tree(registry), ['one', 'two', 'app'])
  const owner = await registry.as((await registry.seed.member(registry.org.uid, roleUids.owner)).uid)
  const [repo] = ok(await owner.get('/registry/v2/repos?name=app')).repos
  ok(await owner.get(`/registry/v2/repos/${repo.uid}`))
  await checkLists(registry)
})

/** Starts a server that counts how often it reads the limits of an organization. */
async function counting(registry: TestRegistry) {
  let reads = 0
  const noted = (query: Sql): Sql => {
    if (query.parts.join('').includes('resource_limits AS limits')) reads++
    return query
  }
  const reader = (of: Reader): Reader => ({
    all: (query) => of.all(noted(query)),
    get: (query) => of.get(noted(query)),
  })
  const { db } = registry.app
  const counted: Db = {
    ...db,
    ...reader(db),
    tx: (work, options) =>
      db.tx((tx) => work({ ...tx, run: (query) => tx.run(query), ...reader(tx), shard: tx.shard }), options),
  }
  const server = await startServer({ ...registry.app, db: counted })
  const token = await registry.tokenFor(registry.pusher.uid, { audience: new URL(server.url).host, issuer: server.url })
  return {
    client: registryClient(server.url, token),
    /** Number of reads that `work` caused. */
    async readsOf(work: () => Promise<Reply>): Promise<[status: number, reads: number]> {
      reads = 0
      const { status } = await work()
      return [status, reads]
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

test('reads the limits of an organization once for each request of a push', async () => {
  await using registry = await startRegistry()
  await set(registry, { bytes: 1_000_000, repositories: 10, groups: 10 })
  await using server = await counting(registry)
  const { client, readsOf } = server
  await registry.pusher.pushBlob('acme/app', 'first')
  let location = ''
  const start = async () => {
    const reply = await client.call('POST', 'acme/app/blobs/uploads/')
    location = String(reply.headers.location)
    return reply
  }
  const half = content.slice(0, 250)
  assert.deepEqual(await readsOf(start), [202, 1])
  assert.deepEqual(await readsOf(() => client.call('PATCH', location, { body: half })), [202, 1])
  assert.deepEqual(await readsOf(() => client.call('PUT', `${location}?digest=${digest}`, { body: half })), [201, 1])
  const whole = (body: string) => client.call('POST', `acme/app/blobs/uploads/?digest=${digestOf(body)}`, { body })
  assert.deepEqual(await readsOf(() => whole('second')), [201, 1])
  assert.deepEqual(await readsOf(() => pushManifest({ pusher: { uid: '', ...client } }, 'acme/app', bare())), [201, 1])
})

/** A server on which the test runs something just before the next transaction. */
async function interrupted(registry: TestRegistry) {
  let meanwhile: (() => Promise<unknown>) | undefined
  const { db } = registry.app
  const tx: Db['tx'] = async (work, options) => {
    const first = meanwhile
    meanwhile = undefined
    await first?.()
    return db.tx(work, options)
  }
  const server = await startServer({ ...registry.app, db: { ...db, tx } })
  const token = await registry.tokenFor(operatorUid, { audience: new URL(server.url).host, issuer: server.url })
  return {
    pusher: { uid: '', ...registryClient(server.url, token) },
    before(happens: () => Promise<unknown>) {
      meanwhile = happens
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

test('a push that loses the last free quota to another push creates no repository', async () => {
  await using registry = await startRegistry()
  // Client with permission to push to one organization and to pull from the other.
  const { seed, registryOperator: pusher } = registry
  await seed.group('', { name: 'other' })
  await pusher.pushBlob('other/there', content)
  await pusher.pushBlob('acme/there', 'first')
  await using server = await interrupted(registry)
  const through = { ...registry, ...server }
  const mount = `acme/one/app/blobs/uploads/?mount=${digest}&from=other/there`
  const ways: Record<string, () => Promise<Reply>> = {
    mount: () => server.pusher.call('POST', mount),
    manifest: () => pushes.manifest(through, 'acme/one/app'),
  }
  for (const [i, [kind, push]] of Object.entries(ways).entries()) {
    await set(registry, { bytes: 1000 * (i + 1) })
    // With the five stored bytes, the remaining quota is too small for anything.
    server.before(() => pusher.pushBlob('acme/there', `${i}`.repeat(i === 0 ? 990 : 1000)))
    const reply = await addsNothing(registry, push)
    assert.deepEqual([reply.status, reply.body.errors[0].detail.quota], [403, 'bytes'], kind)
  }
  await set(registry, { bytes: 10_000, uploads: 1 })
  server.before(() => pusher.ok(202, 'POST', 'acme/there/blobs/uploads/'))
  const upload = await addsNothing(registry, () => pushes.upload(through, 'acme/one/app'))
  assert.deepEqual([upload.status, upload.body.errors[0].detail.quota], [403, 'uploads'])
  // Another request that creates the same repository causes no error.
  await set(registry, { uploads: 10 })
  server.before(() => pusher.pushBlob('acme/one/app', 'by another'))
  assert.equal((await server.pusher.call('POST', mount)).status, 201)
  assert.deepEqual(await tree(registry), ['one', 'app', 'there'])
})
