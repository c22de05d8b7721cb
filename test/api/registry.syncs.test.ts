// Copied repositories of the same server: permissions, copied and deleted tags, and their status.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { Db } from '#db/sql.ts'
import { createTermsGate } from '#domains/iam/terms/terms-gate.ts'
import { copyRepos, createCopyJob } from '#domains/mirrors/copies/syncs.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, indexOf, startRegistry, types } from '../support/registry.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({ clock: () => new Date(Date.now() + shift) })
const { seed, operator, org, app } = registry
after(() => registry[Symbol.asyncDispose]())
const repos = '/registry/v2/repos'
const v1 = '/registry/v1/repos'

const folder = async (name: string): Promise<string> => (await seed.group(org.uid, { name })).uid
const client = registry.registryOperator
/** A folder with a source repo, and one for the copy. */
async function pair(name: string) {
  const [from, to] = [await folder(`${name}-from`), await folder(`${name}-to`)]
  const source = await seed.repo(from, { name: 'app', description: 'the source' })
  return { from, to, source: source.uid as string, path: `acme/${name}-from/app`, copy: `acme/${name}-to/app` }
}
const copied = (to: string, source: string, more: Json = {}, by: Client = operator) =>
  by.post(`${repos}/${to}`, { name: 'app', syncConfig: { source }, ...more })
/** Runs the job after all copies are due again. */
async function run() {
  shift += minute + 1000
  return runJob(app, copyRepos)
}
const statusOf = async (uid: string): Promise<string> => ok(await operator.get(`${v1}/${uid}:syncstatus`)).status
const digestOf = async (path: string, tag: string) => {
  const reply = await client.call('HEAD', `${path}/manifests/${tag}`)
  return reply.status === 200 ? reply.headers['docker-content-digest'] : undefined
}
const historyOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records

test('does not copy quarantined images, nor indexes with them, until they are released', async () => {
  const { from, to, source, path, copy } = await pair('quarantined')
  const bad = await client.pushImage(path)
  await client.pushManifest(path, indexOf([bad]), 'multi')
  const good = await client.pushImage(path, 'good')
  const why = { digest: bad.digest, reason: 'it mines coins' }
  const { uid } = ok(await operator.post(`/registry/v2/quarantined/${from}:quarantine`, why))
  const made = ok(await copied(to, source))
  await run()
  assert.deepEqual([await digestOf(copy, 'good'), await digestOf(copy, 'multi')], [good.digest, undefined])
  assert.equal(await digestOf(copy, bad.digest), undefined)
  assert.equal(await statusOf(made.uid), 'FAILED')
  ok(await operator.post(`/registry/v2/quarantined/${uid}:release`, {}))
  await run()
  assert.ok(await digestOf(copy, 'multi'))
  assert.equal(await digestOf(copy, bad.digest), bad.digest)
})

test('copies tags and their updates, and the tag history names the source repository', async () => {
  const { to, source, path, copy } = await pair('moves')
  const first = await client.pushImage(path, '1.0')
  const made = ok(await copied(to, source))
  assert.equal(made.syncConfig.source, source)
  assert.equal(made.description, 'the source')
  assert.equal(await statusOf(made.uid), 'QUEUED')
  const days = (Date.parse(made.syncConfig.expirationTime) - Date.parse(made.createTime)) / (24 * 60 * minute)
  assert.equal(days, 14)

  const { uid } = made
  const events = await eventsOf(registry, run)
  assert.deepEqual(
    events.map(({ type, group, actor }) => [type, group, actor]),
    [['dev.pinfold.api.platform.registry.tag.created.v1', org.uid, operatorUid]],
  )
  assert.equal(await statusOf(uid), 'UNKNOWN')
  assert.equal(await digestOf(copy, '1.0'), first.digest)
  const manifest = await client.ok(200, 'GET', `${copy}/manifests/1.0`)
  for (const { digest } of manifest.body.layers) await client.ok(200, 'GET', `${copy}/blobs/${digest}`)

  const second = await client.pushImage(path, '1.0')
  await client.pushImage(path, 'latest')
  await run()
  assert.equal(await digestOf(copy, '1.0'), second.digest)
  assert.deepEqual(
    (await historyOf(uid, '1.0')).map((one) => [one.event, one.actor, one.source]),
    [
      ['EVENT_MOVED', `sync:${source}`, 'SOURCE_SYNC'],
      ['EVENT_CREATED', `sync:${source}`, 'SOURCE_SYNC'],
    ],
  )
  assert.deepEqual(await eventsOf(registry, run), [], 'nothing has changed')
  await client.ok(202, 'DELETE', `${path}/manifests/latest`)
  await run()
  assert.ok(await digestOf(copy, 'latest'), 'what was copied stays')
})

test('copies an index with its images, and a signature that is added later', async () => {
  const { to, source, path, copy } = await pair('index')
  const images = [await client.pushImage(path), await client.pushImage(path)]
  const inner = await client.pushManifest(path, indexOf(images))
  const outer = await client.pushManifest(path, indexOf([inner]), 'all')
  ok(await copied(to, source))
  await run()
  for (const { digest } of [...images, inner, outer]) await client.ok(200, 'GET', `${copy}/manifests/${digest}`)

  const config = await client.pushBlob(path, '{}', types.empty)
  const subject = { mediaType: outer.mediaType, digest: outer.digest, size: outer.size }
  const layer = await client.pushBlob(path, randomBytes(20))
  const signature = await client.pushManifest(path, imageOf(config, [layer], { subject, artifactType: 'a/signature' }))
  await run()
  const referrers = await client.ok(200, 'GET', `${copy}/referrers/${outer.digest}`)
  assert.deepEqual(
    referrers.body.manifests.map(({ digest }: Json) => digest),
    [signature.digest],
  )
})

test('copies referrers with their image, although they were pushed long before the image got a tag', async () => {
  const { to, source, path, copy } = await pair('early')
  const image = await client.pushImage(path)
  const config = await client.pushBlob(path, '{}', types.empty)
  const about = async ({ mediaType, digest, size }: Json, artifactType: string) => {
    const layer = await client.pushBlob(path, randomBytes(20))
    const subject = { mediaType, digest, size }
    return client.pushManifest(path, imageOf(config, [layer], { subject, artifactType }))
  }
  const signature = await about(image, 'a/signature')
  await client.pushImage(path, 'other')
  ok(await copied(to, source))
  await run()
  // Longer than the time after which the job checks everything again.
  shift += 10 * minute
  await run()
  const { uid } = ok(await operator.get(`${repos}?uidp.children_of=${to}`)).repos[0]
  assert.equal(
    (await client.call('GET', `${copy}/manifests/${signature.digest}`)).status,
    404,
    'its image is not there',
  )
  ok(await operator.post(`/registry/v2/tags/${source}`, { name: 'late', digest: image.digest }))
  await run()
  const referrers = await client.ok(200, 'GET', `${copy}/referrers/${image.digest}`)
  assert.deepEqual(
    referrers.body.manifests.map(({ digest }: Json) => digest),
    [signature.digest],
  )
  assert.equal(await statusOf(uid), 'UNKNOWN')
})

test('copies organizations and repositories fairly, and can switch in the middle of an index', async () => {
  const { to, source, path } = await pair('long')
  const images: Awaited<ReturnType<typeof client.pushImage>>[] = []
  for (let i = 0; i < 6; i++) images.push(await client.pushImage(path))
  await client.pushManifest(path, indexOf(images), 'all')
  const several = await pair('several')
  for (const name of ['a', 'b', 'c', 'd', 'e']) await client.pushImage(several.path, name)
  const short = await pair('short')
  await client.pushImage(short.path, 'first')
  await client.pushImage(short.path, 'second')
  const other = (await seed.group()) as Json
  const away = await seed.repo(other.uid, { name: 'source' })
  await client.pushImage(`${other.name}/source`, 'only')
  ok(await copied(to, source))
  ok(await copied(several.to, several.source))
  ok(await copied(short.to, short.source))
  ok(await operator.post(`${repos}/${other.uid}`, { name: 'copy', syncConfig: { source: away.uid } }))
  shift += minute + 1000
  const events = await eventsOf(registry, () => runJob(app, createCopyJob(0)))
  const names = events.filter(({ type }) => type.includes('tag.created')).map(({ body }) => body.name as string)
  assert.deepEqual(names.toSorted(), ['a', 'all', 'b', 'c', 'd', 'e', 'first', 'only', 'second'])
  for (const early of ['first', 'second', 'only']) {
    for (const late of ['all', 'e']) {
      assert.ok(names.indexOf(early) < names.indexOf(late), `${early} waits for no other: ${names}`)
    }
  }
})

test('stops a copy when a member turns it off', async () => {
  const { to, source, path, copy } = await pair('off')
  const { digest } = await client.pushImage(path, 'tag')
  const { uid } = ok(await copied(to, source))
  shift += minute + 1000
  // Runs between the read of a source manifest and its storage.
  const get: Db['get'] = async (query) => {
    if (query.parts.join('').includes('content') && query.values.includes(digest)) {
      ok(await operator.patch(`${repos}/${uid}?updateMask=sync_config`, {}))
    }
    return app.db.get(query)
  }
  const { failed } = (await runJob({ ...app, db: { ...app.db, get } }, copyRepos)) as Json
  assert.equal(failed, 0)
  assert.equal((await client.call('GET', `${copy}/manifests/${digest}`)).status, 404)
  assert.equal(await digestOf(copy, 'tag'), undefined)
})

test('pauses copying until newly required terms are accepted', async () => {
  const { to, source, path, copy } = await pair('terms')
  const { uid } = ok(await copied(to, source))
  const { digest } = await client.pushImage(path, 'tag')
  const documents = [{ id: 'new-terms', label: 'New terms', url: 'https://example.com/' }]
  const terms = createTermsGate(app.db, documents, app.eventTable.methods('registry.tag.created'))
  shift += minute + 1000
  await runJob({ ...app, terms }, copyRepos)
  assert.equal(await statusOf(uid), 'FAILED')
  assert.equal(await digestOf(copy, 'tag'), undefined)
  await run()
  assert.equal(await statusOf(uid), 'UNKNOWN')
  assert.equal(await digestOf(copy, 'tag'), digest)
})

test('copies inside an organization share blobs, and use space only for manifests', async () => {
  const { to, source, path } = await pair('links')
  const layer = await client.pushBlob(path, randomBytes(100_000))
  const config = await client.pushBlob(path, '{"os":"linux"}', types.config)
  const { size } = await client.pushManifest(path, imageOf(config, [layer]), 'big')
  const used = async () =>
    Number(ok(await operator.get(`/iam/v2/quotas/${org.uid}`)).quotas.find((one: Json) => one.name === 'bytes').used)
  ok(await copied(to, source))
  const before = await used()
  await run()
  assert.equal((await used()) - before, size)
})

test('copies all tags, also if they exceed one batch', async () => {
  const { to, source, path } = await pair('many')
  const { digest, mediaType } = await client.pushImage(path, 'one')
  const manifest = (await client.ok(200, 'GET', `${path}/manifests/${digest}`)).bytes.toString()
  const tags = Array.from({ length: 230 }, (_, i) => `t${i}`)
  for (const tag of tags)
    await client.ok(201, 'PUT', `${path}/manifests/${tag}`, { body: manifest, headers: { 'content-type': mediaType } })
  const { uid } = ok(await copied(to, source))
  const { tags: moved } = await run()
  assert.equal(moved, 231)
  assert.equal(ok(await operator.get(`/registry/v1/repotagssummary/${uid}`)).tagCount, '231')
})

test('configuring a copy requires pull permission on the source and push permission on the target, and reveals nothing else', async () => {
  const { from, to, source } = await pair('rights')
  const { uid } = await seed.identity(org.uid)
  const somebody = await registry.as(uid)
  await seed.binding(to, uid, roleUids.owner)
  const nowhere = `${from}/0123456789abcdef`
  for (const one of [source, nowhere, 'acme/rights-from/app', 'acme/rights-from/none', 'nobody/none']) {
    assertDenied(await copied(to, one, {}, somebody))
  }
  const binding = await seed.binding(from, uid, roleUids.pull)
  assertInvalid(await copied(to, nowhere, {}, somebody), 'sync_config.source')
  assertInvalid(await copied(to, 'acme/rights-from/none', {}, somebody), 'sync_config.source')
  assertInvalid(await copied(to, '', {}, somebody), 'sync_config.source')
  const made = ok(await copied(to, 'acme/rights-from/app', {}, somebody))
  assert.equal(made.syncConfig.source, source, 'a path is stored as a uid')

  const maker = (await seed.role(to, ['CAP_REPO_CREATE', 'CAP_REPO_UPDATE', 'CAP_REPO_LIST'])).uid
  const other = await seed.identity(org.uid)
  await seed.binding(to, other.uid, maker)
  await seed.binding(from, other.uid, roleUids.pull)
  const weak = await registry.as(other.uid)
  assertDenied(await copied(to, source, { name: 'weak' }, weak))
  const described = { description: 'changed', syncConfig: { source, google: 'gcr/x' } }
  const after = ok(await weak.patch(`${repos}/${made.uid}`, described))
  assert.deepEqual(
    [after.syncConfig.google, after.syncConfig.expirationTime],
    ['gcr/x', made.syncConfig.expirationTime],
  )

  await run()
  assert.equal(await statusOf(made.uid), 'UNKNOWN')
  ok(await operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  await client.pushImage('acme/rights-from/app', 'later')
  await run()
  assert.equal(await statusOf(made.uid), 'FAILED')
  assert.equal(await digestOf('acme/rights-to/app', 'later'), undefined)
  await seed.binding(from, uid, roleUids.pull)
  await run()
  assert.equal(await statusOf(made.uid), 'UNKNOWN')
  assert.ok(await digestOf('acme/rights-to/app', 'later'))
})

test('refuses a repository copying itself, circles of copies, and chains that are too long', async () => {
  const group = await folder('chains')
  let last = (await seed.repo(group, { name: 'r0' })).uid
  const first = last
  for (let i = 1; i <= 10; i++) last = ok(await copied(group, last, { name: `r${i}` })).uid
  assertInvalid(await copied(group, last, { name: 'r11' }), 'sync_config.source')
  for (const source of [first, last]) {
    assertInvalid(await operator.patch(`${repos}/${first}`, { syncConfig: { source } }), 'sync_config.source')
  }
})

test('reports a deleted source as a failure, and counts the repositories that copy from it', async () => {
  const { to, source, path, copy } = await pair('gone')
  await client.pushImage(path, 'kept')
  const { uid } = ok(await copied(to, source))
  const other = ok(await copied(to, source, { name: 'other' }))
  const count = async () => ok(await operator.get(`/registry/v1/repocountbysource/${source}`)).count
  assert.equal(await count(), '2')
  ok(await operator.patch(`${repos}/${other.uid}?updateMask=sync_config`, {}))
  assert.equal(await count(), '1')
  await run()
  ok(await operator.delete(`${repos}/${source}`))
  await run()
  assert.equal(await statusOf(uid), 'FAILED')
  assert.ok(await digestOf(copy, 'kept'))
  assert.equal(ok(await operator.get(`${repos}/${uid}`)).syncConfig.source, source)
  const listed = ok(await operator.get(`/registry/v1/syncstatuses?registry_id=${org.uid}`)).items as Json[]
  const found = listed.find(({ repoId }) => repoId === uid)!
  assert.equal(found.repoStatus.status, 'FAILED')
  assert.match(found.repoStatus.createTime, /^\d{4}-/)
  assert.ok(!listed.some(({ repoId }) => repoId === other.uid), 'it is copied no more')
  assertInvalid(await operator.get(`/registry/v1/syncstatuses?registry_id=${to}`), 'registry_id')
  assertNotFound(await operator.get(`${v1}/${source}:syncstatus`), 'registry.pinfold.dev/Repo', source)
  assert.equal(await statusOf(other.uid), 'UNKNOWN')
  assert.equal(ok(await operator.get(`${v1}/${other.uid}:syncstatus`)).createTime, null, 'it is copied from nowhere')
})

test('a copy above the quota fails, and succeeds after the quota is raised', async () => {
  const small = await seed.group('', { name: 'small' })
  const { source, path } = await pair('quota')
  await client.pushImage(path, 'one')
  const { uid } = ok(await copied(small.uid, source))
  ok(
    await operator.post('/control/v1/quotas:set', {
      organization: small.uid,
      limits: [{ name: 'bytes', limit: '100' }],
    }),
  )
  await run()
  assert.equal(await statusOf(uid), 'FAILED')
  assert.equal(await digestOf('small/app', 'one'), undefined)
  ok(
    await operator.post('/control/v1/quotas:set', {
      organization: small.uid,
      limits: [{ name: 'bytes', limit: '100000' }],
    }),
  )
  await run()
  assert.equal(await statusOf(uid), 'UNKNOWN')
  assert.ok(await digestOf('small/app', 'one'))
})

test('a copied repository has the catalog fields and readme of its source, and refuses to change them', async () => {
  const { to, source } = await pair('catalogue')
  ok(await operator.patch(`${repos}/${source}`, { catalogTier: 'CATALOG_TIER_BASE', bundles: ['base'] }))
  ok(await operator.patch(`${repos}/${source}/readme`, { content: '# Read me' }))
  const { uid, catalogTier } = ok(await copied(to, source))
  assert.equal(catalogTier, 'CATALOG_TIER_BASE')
  assertInvalid(await operator.patch(`${repos}/${uid}`, { bundles: ['fips'] }), 'bundles')
  assertInvalid(await copied(to, source, { name: 'x', bundles: ['fips'] }), 'bundles')
  const refused = await operator.patch(`${repos}/${uid}/readme`, { content: '# Mine' })
  assert.deepEqual([refused.status, refused.body.code], [400, 9])
  await run()
  assert.equal(ok(await operator.get(`${repos}/${uid}/readme`)).content, '# Read me')
  ok(await operator.patch(`${repos}/${source}?updateMask=bundles,aliases`, { bundles: ['fips'], aliases: ['a/b:c'] }))
  await run()
  const after = ok(await operator.get(`${repos}/${uid}`))
  assert.deepEqual([after.bundles, after.aliases], [['fips'], ['a/b:c']])
})

test('version 1 shows and sets the same copy settings, and a PUT without them ends the copying', async () => {
  const { to, source, path, copy } = await pair('older')
  const expiration = new Date(Date.now() + shift + 60 * 24 * 60 * minute).toISOString()
  const sync_config = { source, expiration, amazon: 'ecr/app', syncApks: true }
  const made = ok(await operator.post(`${v1}/${to}`, { name: 'app', sync_config }))
  assert.deepEqual(made.sync_config, { ...sync_config, uniqueTags: false, google: '', azure: '', gracePeriod: false })
  const newer = ok(await operator.get(`${repos}/${made.id}`)).syncConfig
  assert.deepEqual(newer, {
    source,
    amazon: 'ecr/app',
    google: '',
    azure: '',
    expirationTime: expiration,
    uniqueTags: false,
    gracePeriod: false,
  })
  const put = (body: Json) => operator.call('PUT', `${v1}/${made.id}`, { name: 'app', ...body })
  const again = ok(await put({ sync_config: { source } })).sync_config
  assert.deepEqual([again.expiration, again.amazon, again.syncApks], [expiration, '', false])
  const spaced = { source, google: 'a b', azure: 'x'.repeat(513) }
  assertInvalid(await put({ sync_config: spaced }), 'sync_config.google', 'sync_config.azure')
  assert.equal(ok(await put({})).sync_config, null)
  await client.pushImage(path, 'late')
  await run()
  assert.equal(await digestOf(copy, 'late'), undefined)
})

test('copying ends at its configured time', async () => {
  const { to, source, path, copy } = await pair('ends')
  const expiration = new Date(Date.now() + shift + minute / 2).toISOString()
  const { id } = ok(await operator.post(`${v1}/${to}`, { name: 'app', sync_config: { source, expiration } }))
  await client.pushImage(path, 'late')
  await run()
  assert.equal(await statusOf(id), 'UNKNOWN')
  assert.equal(await digestOf(copy, 'late'), undefined)
  assert.equal(ok(await operator.get(`/registry/v1/repocountbysource/${source}`)).count, '0')
  ok(await operator.patch(`${repos}/${id}`, { syncConfig: { source } }))
  await run()
  assert.ok(await digestOf(copy, 'late'), 'set again, it goes on')
})

test('with unique tags, each update also creates a tag with the time in its name', async () => {
  const { to, source, path } = await pair('unique')
  const settings = { uniqueTags: true, eolGracePeriod: true }
  ok(await operator.call('PUT', `/registry/v1/settings/${org.uid}`, settings))
  const { digest } = await client.pushImage(path, '2.0')
  const made = ok(await copied(to, source))
  assert.deepEqual([made.syncConfig.uniqueTags, made.syncConfig.gracePeriod], [true, true])
  await run()
  const { items } = ok(await operator.get(`/registry/v1/tags?uidp.childrenOf=${made.uid}`))
  const names = items.map(({ name }: Json) => name).sort()
  assert.equal(names.length, 2)
  assert.match(names[1], /^2\.0-20\d{12}$/)
  for (const one of items) assert.equal(one.digest, digest)
})
