// Cache of tags in views: a result is computed once, and again if anything that it depends on has changed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { ok } from '../support/expect.ts'
import { clientAt, type Node, secondNode } from '../support/nodes.ts'
import { onPostgres, roleUids } from '../support/pinfold.ts'
import { type Descriptor, type RegistryClient, startRegistry } from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
let now = start
let monotonic = 0

let registry: Awaited<ReturnType<typeof startRegistry>>
let runner: string
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now), monotonic: () => monotonic })
  runner = (await registry.seed.member(registry.org.uid, roleUids.pull)).uid
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens expire after less than a day. */
async function on(days: number) {
  now = start + days * day
  return { ...(await registry.registryAs(operatorUid)), api: await registry.as(operatorUid) }
}

let repos = 0
/** A tag that had one image for a long time, and another one since the tenth day. */
async function scene() {
  const name = `acme/app${repos++}`
  const old = await (await on(0)).pushImage(name, 'stable')
  const young = await (await on(10)).pushImage(name, 'stable')
  const { repo } = await registry.app.paths.find(name)
  return { name, old, young, repo: repo!.uid, path: `min-7d/${name}/manifests/stable` }
}

const digestBy = async (client: RegistryClient, path: string): Promise<unknown> =>
  (await client.ok(200, 'GET', path)).headers['docker-content-digest']

/** Number of statements that read the tag history during the work. */
async function looks(work: () => Promise<unknown>): Promise<number> {
  const { db } = registry.app
  const { get, all } = db
  let count = 0
  const counted = (query: Sql): Sql => {
    if (compile(query, '?').includes('tag_history')) count++
    return query
  }
  db.get = (query) => get(counted(query))
  db.all = (query) => all(counted(query))
  try {
    await work()
  } finally {
    Object.assign(db, { get, all })
  }
  return count
}

/** Servers that share a database read the present digest of the tag. */
const again = onPostgres ? 1 : 0

test('repeated pulls read the tag history at most once for a while, with the same result', async () => {
  const { path, old } = await scene()
  const client = await on(11)
  const first = await client.ok(200, 'GET', path)
  assert.equal(first.headers['docker-content-digest'], old.digest)
  assert.match(String(first.headers.warning), new RegExp(`can be pulled from ${iso(17)}`))
  const pull = async () => {
    const { headers } = await client.ok(200, 'GET', path)
    assert.deepEqual([headers.warning, headers.etag], [first.headers.warning, first.headers.etag])
  }
  assert.equal(await looks(pull), again)
  monotonic += onPostgres ? 4999 : 499
  assert.equal(await looks(pull), again)
  monotonic += 1
  assert.ok((await looks(pull)) > 1)
  assert.equal(await looks(pull), again)
})

test('reads the digest of a tag at a time at most once in half a second', async () => {
  const { name, old } = await scene()
  const client = await on(11)
  const path = `at-20260605/${name}/manifests/stable`
  const pull = async () => assert.equal(await digestBy(client, path), old.digest)
  assert.ok((await looks(pull)) > 0)
  assert.equal(await looks(pull), 0)
  monotonic += 500
  assert.ok((await looks(pull)) > 0)
  await client.ok(202, 'DELETE', `${name}/manifests/${old.digest}`)
  assert.equal((await client.call('GET', path)).status, 404)
})

test('caches different ages, holds and times separately', async () => {
  const { name, old, young } = await scene()
  const client = await on(11.5)
  const pulled = async (view: string) => digestBy(client, `${view}/${name}/manifests/stable`)
  for (const _ of [1, 2]) {
    assert.equal(await pulled('min-7d'), old.digest)
    assert.equal(await pulled('min-1d'), young.digest)
    assert.equal(await pulled('min-7d_at-20260611'), old.digest)
    assert.equal(await pulled('min-1d_at-20260611t120000z'), old.digest)
    assert.equal(await pulled('min-1d_at-20260612'), young.digest)
    assert.equal((await client.call('GET', `min-2w/${name}/manifests/stable`)).status, 403)
  }
  const back = await (await on(12)).pushImage(name, 'stable')
  const later = await on(20)
  await later.pushImage(name, 'stable')
  const left = await on(20.1)
  for (const [view, digest] of [
    ['min-7d', back.digest],
    ['min-7d_hold-10d', old.digest],
  ] as const) {
    for (const _ of [1, 2]) assert.equal(await digestBy(left, `${view}/${name}/manifests/stable`), digest, view)
  }
})

test('serves an image from the moment when it reaches the minimum age, and not before', async () => {
  const { path, old, young } = await scene()
  for (const [days, digest] of [
    [17 - 1 / day, old.digest],
    [17, young.digest],
  ] as const) {
    assert.equal(await digestBy(await on(days), path), digest)
  }
  // After the clock is set back, no image below the minimum age is served.
  assert.equal(await digestBy(await on(16), path), old.digest)
})

test('with age by any tag, serves a digest from when another tag makes it old enough', async () => {
  const { name, repo, young } = await scene()
  const rule = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER', countFrom: 'REPO' }
  const { api, ...early } = await on(10.5)
  ok(await api.post(`/registry/v2/pullRules/${repo}`, rule))
  const next = await early.pushImage(name, 'next')
  const content = (await early.ok(200, 'GET', `${name}/manifests/${next.digest}`)).bytes.toString()
  await (await on(12)).pushManifest(name, content, 'stable')
  for (const [days, digest] of [
    [17.5 - 1 / day, young.digest],
    [17.5, next.digest],
  ] as const) {
    await on(days)
    const bound = await registry.registryAs(runner)
    for (const _ of [1, 2]) assert.equal(await digestBy(bound, `${name}/manifests/stable`), digest)
  }
})

test('tag updates, deletions, restored content and quarantine have effect at once', async () => {
  const { name, repo, path, old, young } = await scene()
  const { api, ...client } = await on(11)
  const serves = async (digest: string, why: string) => {
    for (const _ of [1, 2]) assert.equal(await digestBy(client, path), digest, why)
  }
  const content = async ({ digest }: Descriptor) =>
    (await client.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.toString()
  const [oldText, youngText] = [await content(old), await content(young)]
  await serves(old.digest, 'at first')
  const mark = ok(
    await api.post(`/registry/v2/quarantined/${repo}:quarantine`, { digest: old.digest, reason: 'it mines coins' }),
  )
  assert.equal((await client.call('GET', path)).status, 403, 'quarantined')
  ok(await api.post(`/registry/v2/quarantined/${mark.uid}:release`, {}))
  await serves(old.digest, 'released')
  await client.ok(202, 'DELETE', `${name}/manifests/${old.digest}`)
  assert.equal((await client.call('GET', path)).status, 403, 'deleted')
  await client.ok(201, 'PUT', `${name}/manifests/${old.digest}`, {
    body: oldText,
    headers: { 'content-type': old.mediaType },
  })
  await serves(old.digest, 'there again')
  await client.pushManifest(name, oldText, 'stable')
  await serves(old.digest, 'rolled back')
  await client.pushManifest(name, youngText, 'stable')
  await serves(old.digest, 'and on')
  await client.ok(202, 'DELETE', `${name}/manifests/stable`)
  assert.equal((await client.call('GET', path)).status, 404, 'the tag is deleted')
})

test('does not cache a result that was read during a tag update', async () => {
  const { name, path, old } = await scene()
  const client = await on(11)
  const oldText = (await client.ok(200, 'GET', `${name}/manifests/${old.digest}`)).bytes.toString()
  const { db } = registry.app
  const { get } = db
  db.get = async <T>(query: Sql) => {
    const row = await get<T>(query)
    // The last query of a pull.
    if (!/^\s*SELECT time FROM tag_history/.test(compile(query, '?'))) return row
    db.get = get
    await client.pushManifest(name, oldText, 'stable')
    return row
  }
  assert.match(String((await client.ok(200, 'GET', path)).headers.warning), /can be pulled from/)
  assert.equal((await client.ok(200, 'GET', path)).headers.warning, undefined)
})

test('an exemption has effect at once, and so does its end', async () => {
  const { name, repo, old, young } = await scene()
  const { api } = await on(11)
  ok(await api.post(`/registry/v2/pullRules/${repo}`, { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }))
  const serves = async (digest: string) => {
    const bound = await registry.registryAs(runner)
    for (const _ of [1, 2]) assert.equal(await digestBy(bound, `${name}/manifests/stable`), digest)
  }
  await serves(old.digest)
  const given = { digest: young.digest, reason: 'it mends a hole', expireTime: iso(12) }
  const { uid } = ok(await api.post(`/registry/v2/pullRuleExceptions/${repo}`, given))
  await serves(young.digest)
  ok(await api.post(`/registry/v2/pullRuleExceptions/${uid}:revoke`, {}))
  await serves(old.digest)
  ok(await api.post(`/registry/v2/pullRuleExceptions/${repo}`, given))
  await serves(young.digest)
  now = start + 12 * day
  await serves(old.digest)
})

test('tag updates by another server have effect at once; deletions and quarantine after half a second', async () => {
  const name = `acme/app${repos++}`
  const images: Descriptor[] = []
  for (const days of [0, 1, 2, 10]) images.push(await (await on(days)).pushImage(name, 'stable'))
  const [oldest, older, old, young] = images as [Descriptor, Descriptor, Descriptor, Descriptor]
  const { repo } = await registry.app.paths.find(name)
  const client = await on(11)
  await using node = await secondNode(registry)
  const other = clientAt(node, client)
  const path = `min-7d/${name}/manifests/stable`
  const serves = async (digest: string, why: string) => {
    for (const _ of [1, 2]) assert.equal(await digestBy(client, path), digest, why)
  }
  const push = async ({ digest }: Descriptor) => {
    const text = (await client.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.toString()
    await other.pushManifest(name, text, 'stable')
  }
  await serves(old.digest, 'at first')
  await push(older)
  await serves(older.digest, 'moved back')
  await push(young)
  await serves(older.digest, 'moved on')
  await other.ok(202, 'DELETE', `${name}/manifests/${older.digest}`)
  monotonic += 500
  await serves(old.digest, 'deleted')
  const mark = { digest: old.digest, reason: 'it mines coins' }
  await made(node, `/registry/v2/quarantined/${repo!.uid}:quarantine`, mark)
  monotonic += 500
  await serves(oldest.digest, 'quarantined')
  await other.ok(202, 'DELETE', `${name}/manifests/stable`)
  assert.equal((await client.call('GET', path)).status, 404, 'the tag is deleted')
})

/** The operator's change on the other server. */
async function made({ port }: Node, path: string, body: object): Promise<void> {
  const token = await registry.tokenFor(operatorUid)
  const init = { method: 'POST', body: JSON.stringify(body) }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  assert.equal((await fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers })).status, 200)
}

test('servers that share a database do not cache results that depend on other tags', {
  skip: !onPostgres,
}, async () => {
  const { name, repo } = await scene()
  const { api } = await on(11)
  const rule = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER', countFrom: 'REPO' }
  ok(await api.post(`/registry/v2/pullRules/${repo}`, rule))
  const bound = await registry.registryAs(runner)
  for (const _ of [1, 2]) {
    assert.ok((await looks(() => bound.ok(200, 'GET', `${name}/manifests/stable`))) > again)
  }
})
