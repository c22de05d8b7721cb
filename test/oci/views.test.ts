// Views: `at-20261101/acme/app` and `min-7d/acme/app`, as any client pulls them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeJwt } from 'jose'
import { sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { codeOf, type Descriptor, indexOf, type RegistryClient, startRegistry, types } from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
let now = start

let registry: Awaited<ReturnType<typeof startRegistry>>
before(async () => {
  now = start
  registry = await startRegistry({ clock: () => new Date(now), hostPaths: new Map([['slow.test', 'min-7d/acme']]) })
  await registry.seed.subscription(registry.org.uid)
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens expire after less than a day. */
async function on(days: number): Promise<RegistryClient & { reader: RegistryClient }> {
  now = start + days * day
  const reader = await registry.registryAs(registry.puller.uid)
  return { ...(await registry.registryAs(registry.pusher.uid)), reader }
}

let repos = 0
/** One image per day, from the first day. */
async function nightly(days: number, tag = 'stable'): Promise<{ name: string; images: Descriptor[] }> {
  const name = `acme/app${repos++}`
  const images: Descriptor[] = []
  for (let i = 0; i < days; i++) images.push(await (await on(i)).pushImage(name, tag))
  return { name, images }
}
const digestIn = async (client: RegistryClient, path: string): Promise<unknown> =>
  (await client.ok(200, 'GET', path)).headers['docker-content-digest']

test('a view of a time returns the digest of the tag at that time, and the image can be pulled completely', async () => {
  const { name, images } = await nightly(4)
  const { reader } = await on(10)
  const got = await reader.ok(200, 'GET', `at-20260603/${name}/manifests/stable`)
  assert.equal(got.headers['docker-content-digest'], images[2]!.digest)
  assert.equal(got.headers.etag, `"${images[2]!.digest}"`)
  assert.equal(got.headers['last-modified'], new Date(iso(2)).toUTCString())
  assert.equal(got.headers.warning, undefined)
  const head = await reader.ok(200, 'HEAD', `at-20260602t235959.999z/${name}/manifests/stable`)
  assert.equal(head.headers['docker-content-digest'], images[1]!.digest)
  for (const { digest } of [got.body.config, ...got.body.layers] as Json[]) {
    await reader.ok(200, 'GET', `at-20260603/${name}/blobs/${digest}`)
  }
  await reader.ok(200, 'GET', `at-20260603/${name}/manifests/${images[3]!.digest}`)
  const same = { headers: { 'if-none-match': `"${images[2]!.digest}"` } }
  await reader.ok(304, 'GET', `at-20260603/${name}/manifests/stable`, same)
})

test('an age view returns the newest image with that age, and names newer images', async () => {
  const { name, images } = await nightly(12)
  const { reader } = await on(11.5)
  const got = await reader.ok(200, 'GET', `min-7d/${name}/manifests/stable`)
  assert.equal(got.headers['docker-content-digest'], images[4]!.digest)
  assert.equal(
    got.headers.warning,
    `299 - "minimum age 7d: stable is served as of ${iso(4)}; since ${iso(11)} it points to ${images[11]!.digest}, which can be pulled from ${iso(18)}"`,
  )
  assert.equal(await digestIn(reader, `min-1w/${name}/manifests/stable`), images[4]!.digest)
  assert.equal(await digestIn(reader, `min-12h_hold-1h/${name}/manifests/stable`), images[11]!.digest)
  assert.equal(await digestIn(reader, `min-7d_at-20260610/${name}/manifests/stable`), images[2]!.digest)
  assert.equal(await digestIn(reader, `at-20260610_min-7d/${name}/manifests/stable`), images[2]!.digest)
})

test('an age view never serves a bad push that was fixed within hours, and serves a rollback at once', async () => {
  const { name, images } = await nightly(3)
  const bad = await (await on(3)).pushImage(name, 'stable')
  const good = await (await on(3.1)).pushImage(name, 'stable')
  for (let i = 3.2; i < 13; i += 0.5) {
    const digest = await digestIn((await on(i)).reader, `min-3d/${name}/manifests/stable`)
    assert.notEqual(digest, bad.digest)
  }
  const { reader, ...pusher } = await on(13)
  assert.equal(await digestIn(reader, `min-3d/${name}/manifests/stable`), good.digest)
  const back = (await reader.ok(200, 'GET', `${name}/manifests/${images[2]!.digest}`)).bytes.toString()
  await pusher.pushManifest(name, back, 'stable')
  assert.equal(await digestIn(reader, `min-3d/${name}/manifests/stable`), images[2]!.digest)
})

test('errors contain the reason: time in the future, before the tag, deleted, or nothing old enough', async () => {
  const { name, images } = await nightly(3)
  const { reader, ...pusher } = await on(4)
  const refused = async (path: string, status: number, code: string): Promise<Json> => {
    const reply = await reader.call('GET', path)
    assert.deepEqual([reply.status, codeOf(reply)], [status, code], path)
    return reply.body.errors[0] as Json
  }
  const future = await refused(`at-20990101/${name}/manifests/stable`, 400, 'NAME_INVALID')
  assert.match(future.message, /must not be in the future/)
  const before = await refused(`at-20260101/${name}/manifests/stable`, 404, 'MANIFEST_UNKNOWN')
  assert.match(before.message, /the tag did not exist at 2026-01-01T00:00:00.000Z/)
  const young = await refused(`min-7d/${name}/manifests/stable`, 403, 'DENIED')
  assert.deepEqual(young.detail, { tag: 'stable', digest: images[0]!.digest, time: iso(7) })
  await pusher.ok(202, 'DELETE', `${name}/manifests/${images[1]!.digest}`)
  const gone = await refused(`at-20260602/${name}/manifests/stable`, 404, 'MANIFEST_UNKNOWN')
  assert.deepEqual(gone.detail, { tag: 'stable', digest: images[1]!.digest })
  const { reader: later } = await on(20)
  await (await registry.registryAs(operatorUid)).ok(202, 'DELETE', `${name}/manifests/stable`)
  const deleted = await later.call('GET', `min-7d/${name}/manifests/stable`)
  assert.deepEqual([deleted.status, deleted.body.errors[0].detail.deleteTime], [404, iso(20)])
  assert.equal(await digestIn(later, `at-20260603/${name}/manifests/stable`), images[2]!.digest)
})

test('refuses an invalid view with the right syntax, and refuses writes to a view', async () => {
  const { name } = await nightly(1)
  const { reader, ...pusher } = await on(2)
  for (const view of [
    'at-2026',
    'at-20261301',
    'at-20260601t250000z',
    'at-20260601_at-20260602',
    'min-0d',
    'min-7',
    'min-7m',
    'min-30m',
    'min-9999w',
    'min-7d_hold-0h',
    'min-7d_hold-60w',
    'min-7d_hold-1h_hold-2h',
    'at-20260601_hold-1h',
    'at-20260601_x',
  ]) {
    const reply = await reader.call('GET', `${view}/${name}/manifests/stable`)
    assert.deepEqual([reply.status, codeOf(reply)], [400, 'NAME_INVALID'], view)
  }
  for (const [method, path] of [
    ['PUT', 'manifests/new'],
    ['DELETE', 'manifests/stable'],
    ['POST', 'blobs/uploads/'],
    ['PATCH', 'blobs/uploads/1'],
    ['DELETE', `blobs/sha256:${'0'.repeat(64)}`],
  ] as const) {
    const reply = await pusher.call(method, `min-7d/${name}/${path}`)
    assert.deepEqual([reply.status, codeOf(reply), reply.headers.allow], [405, 'UNSUPPORTED', 'GET, HEAD'], path)
  }
})

test('a tag list has the tags that can be pulled, in pages, and the history ends at the time of the view', async () => {
  const { name } = await nightly(3, 'old')
  await (await on(1.5)).pushImage(name, 'gone')
  const { reader: _, ...pusher } = await on(9)
  await pusher.pushImage(name, 'old')
  await pusher.pushImage(name, 'young')
  for (const tag of ['a', 'b', 'c']) await (await on(2.5)).pushImage(name, tag)
  const { reader } = await on(10)
  const tags = async (path: string) => (await reader.ok(200, 'GET', path)).body.tags as string[]
  assert.deepEqual(await tags(`at-20260602t130000z/${name}/tags/list`), ['gone', 'old'])
  assert.deepEqual(await tags(`min-7d/${name}/tags/list`), ['a', 'b', 'c', 'gone', 'old'])
  assert.deepEqual(await tags(`min-10d/${name}/tags/list`), ['old'])
  const listed: string[] = []
  for (let path: string | undefined = `min-7d/${name}/tags/list?n=2`; path; ) {
    const reply = await reader.ok(200, 'GET', path)
    assert.equal(reply.body.name, `min-7d/${name}`)
    listed.push(...(reply.body.tags as string[]))
    path = /^<([^>]+)>/.exec(String(reply.headers.link ?? ''))?.[1]
  }
  assert.deepEqual(listed, ['a', 'b', 'c', 'gone', 'old'])
  const history = async (view: string) =>
    (await reader.ok(200, 'GET', `${view}${name}/_svc/history/old`)).body.history.map(
      (one: Json) => one.updateTimestamp,
    )
  assert.deepEqual(await history(''), [iso(0), iso(1), iso(2), iso(9)])
  assert.deepEqual(await history('at-20260602/'), [iso(0), iso(1)])
  assert.deepEqual(await history('min-8d/'), [iso(0), iso(1), iso(2)])
  const draft = await reader.ok(200, 'GET', `at-20260602/${name}/_oci/tag-history/old`)
  assert.equal(draft.body.manifests.length, 2)
})

test('each view serves current signatures, found by subject or by tag', async () => {
  const { name, images } = await nightly(1)
  const subject = images[0]!
  const { reader: _, ...pusher } = await on(9)
  const layer = await pusher.pushBlob(name, '{"critical":{}}', 'application/vnd.dev.cosign.simplesigning.v1+json')
  const config = await pusher.pushBlob(name, '{}', types.config)
  const signature = { schemaVersion: 2, mediaType: types.image, config, layers: [layer] }
  const tag = `${subject.digest.replace(':', '-')}.sig`
  const tagged = await pusher.pushManifest(name, signature, tag)
  const referrer = await pusher.pushManifest(name, { ...signature, subject })
  const image = await pusher.pushImage(name, `${subject.digest.replace(':', '-')}.img`)
  const { reader } = await on(10)
  for (const view of ['at-20260602', 'min-7d']) {
    assert.equal(await digestIn(reader, `${view}/${name}/manifests/${tag}`), tagged.digest)
    const { manifests } = (await reader.ok(200, 'GET', `${view}/${name}/referrers/${subject.digest}`)).body
    assert.deepEqual(
      manifests.map(({ digest }: Json) => digest),
      [referrer.digest],
    )
  }
  const posing = await reader.call('GET', `min-7d/${name}/manifests/${subject.digest.replace(':', '-')}.img`)
  assert.equal(posing.status, 403, image.digest)
})

test('tokens contain the repository without the view, and never allow pushes through a view', async () => {
  const { name, images } = await nightly(1)
  const { reader, ...pusher } = await on(9)
  const asked = await registry.nobody.call('GET', `min-7d/${name}/manifests/stable`)
  assert.match(String(asked.headers['www-authenticate']), new RegExp(`scope="repository:${name}:pull"$`))
  const scopes = `scope=repository:${name}:pull&scope=repository:min-7d/${name}:pull,push&scope=repository:min-x/${name}:pull`
  const { body } = await pusher.ok(200, 'GET', `/token?${scopes}`)
  assert.deepEqual(decodeJwt<{ access: unknown }>(body.token as string).access, [
    { type: 'repository', name, actions: ['pull'] },
    { type: 'repository', name, actions: ['pull'] },
  ])
  for (const path of [`min-7d/${name}`, name]) {
    assert.equal(
      await digestIn({ ...reader, ok: withToken(body.token) }, `${path}/manifests/stable`),
      images[0]!.digest,
    )
  }
})

const withToken =
  (token: string): RegistryClient['ok'] =>
  (status, method, path) =>
    registry.nobody.ok(status, method, path, { token })

test('a view can be combined with uids, a subdomain, and paths of mirror clients', async () => {
  const { name, images } = await nightly(9)
  const { reader, ...pusher } = await on(9.5)
  const uid = registry.org.uid as string
  const paths = [`min-7d/${uid}/${name.slice('acme/'.length)}`, `min-7d/v2/${name}`]
  for (const path of paths) assert.equal(await digestIn(reader, `${path}/manifests/stable`), images[2]!.digest)
  const host = `team.${new URL(registry.url).host}`
  const inTeam = (await reader.ok(200, 'GET', `${name}/manifests/stable`)).body as Json
  for (const blob of [inTeam.config, ...inTeam.layers] as Json[]) {
    const content = (await reader.ok(200, 'GET', `${name}/blobs/${blob.digest}`)).bytes
    await pusher.ok(201, 'POST', `${name}/blobs/uploads/?digest=${blob.digest}`, { body: content, headers: { host } })
  }
  const body = JSON.stringify(inTeam)
  const headers = { host, 'content-type': types.image }
  const pushed = await pusher.ok(201, 'PUT', `${name}/manifests/stable`, { body, headers })
  const later = (await on(20)).reader
  const got = await later.ok(200, 'GET', `min-7d/${name}/manifests/stable`, { headers: { host } })
  assert.equal(got.headers['docker-content-digest'], pushed.headers['docker-content-digest'])
})

test('skips a quarantined image, and chooses an older one', async () => {
  const { name, images } = await nightly(9)
  const { reader } = await on(9.5)
  const operator = await registry.as(operatorUid)
  const asked = `min-7d/${name}/manifests/stable`
  assert.equal(await digestIn(reader, asked), images[2]!.digest)
  const body = { digest: images[2]!.digest, reason: 'it mines coins' }
  const made = await operator.post(`/registry/v2/quarantined/${registry.org.uid}:quarantine`, body)
  assert.equal(made.status, 200, made.text)
  assert.equal(await digestIn(reader, asked), images[1]!.digest)
  assert.equal((await reader.call('GET', `at-20260603t120000z/${name}/manifests/stable`)).status, 404)
  assert.equal((await operator.post(`/registry/v2/quarantined/${made.body.uid}:release`, {})).status, 200)
  assert.equal(await digestIn(reader, asked), images[2]!.digest)
})

test('views of a public repo list no more tag names than the repo itself', async () => {
  now = start
  const { uid } = await registry.seed.group('', { name: 'public' })
  await registry.seed.repo(uid, { name: 'base' })
  const operator = await registry.registryAs(operatorUid)
  for (const tag of ['a-secret', 'latest', 'z-secret']) await operator.pushImage('public/base', tag)
  now = start + 9 * day
  const { body } = await registry.nobody.ok(200, 'GET', '/token?scope=repository:public/base:pull')
  const token = body.token as string
  for (const path of ['min-7d/public/base', 'at-20260609/public/base']) {
    for (const query of ['', '?n=1', '?last=b', '?n=1&last=latest']) {
      const { bytes, headers, body } = await registry.nobody.ok(200, 'GET', `${path}/tags/list${query}`, { token })
      assert.doesNotMatch(`${bytes.toString()} ${String(headers.link)}`, /secret/, query)
      assert.deepEqual(body.tags, query.endsWith('latest') ? [] : ['latest'], query)
    }
  }
})

test('an invalid tag name is unknown, and not a server error', async () => {
  const { name } = await nightly(1)
  const { reader } = await on(1)
  for (const path of ['_svc/resolve/%00?min_age=1d', '_svc/history/%00', '_svc/history/a%0ab', 'manifests/%00']) {
    const answer = await reader.call('GET', `${name}/${path}`)
    assert.deepEqual([answer.status, codeOf(answer)], [404, 'MANIFEST_UNKNOWN'], path)
  }
})

test('a view accepts no time as a condition for cached content', async () => {
  const { name, images } = await nightly(9)
  const { reader } = await on(9.5)
  const headers = { 'if-modified-since': new Date(start + 9 * day).toUTCString() }
  const got = await reader.ok(200, 'GET', `min-7d/${name}/manifests/stable`, { headers })
  assert.equal(got.headers['docker-content-digest'], images[2]!.digest)
  await reader.ok(304, 'GET', `${name}/manifests/stable`, { headers })
})

test('a host can select a view and a folder, for clients that accept no path', async () => {
  const { name, images } = await nightly(9)
  const { reader } = await on(9.5)
  const app = name.slice('acme/'.length)
  const headers = { host: 'slow.test' }
  const got = await reader.ok(200, 'GET', `${app}/manifests/stable`, { headers })
  assert.equal(got.headers['docker-content-digest'], images[2]!.digest)
  const list = await reader.ok(200, 'GET', `${app}/tags/list`, { headers })
  assert.deepEqual(list.body, { name: app, tags: ['stable'] })
  const asked = await registry.nobody.call('GET', `${app}/manifests/stable`, { headers })
  assert.equal(
    asked.headers['www-authenticate'],
    `Bearer realm="http://slow.test/token",service="${new URL(registry.url).host}",scope="repository:${app}:pull"`,
  )
  const { body } = await reader.ok(200, 'GET', `/token?scope=repository:${app}:pull`, { headers })
  await registry.nobody.ok(200, 'GET', `${app}/manifests/stable`, { headers, token: body.token as string })
  assert.equal((await reader.call('PUT', `${app}/manifests/x`, { headers })).status, 405)
  const below = await registry.nobody.call('GET', `${app}/manifests/stable`, { headers: { host: 'team.slow.test' } })
  assert.ok(below.status === 401 || below.status === 400, 'what is below such a host is in the view too')
})

test('an organization with the name of a view keeps this name', async () => {
  await using other = await startPinfold()
  const org = await other.seed.group('', { name: 'before' })
  await other.app.db.tx(async (tx) => {
    await tx.run(sql`UPDATE groups SET name = ${'min-7d'} WHERE uid = ${org.uid}`)
  })
  const host = new URL(other.url).host
  const reader = await other.as((await other.seed.member(org.uid, roleUids.pull)).uid, { audience: host })
  await other.seed.repo(org.uid, { name: 'app' })
  assert.equal((await reader.get('/v2/min-7d/app/tags/list')).status, 200)
  assert.equal((await reader.get('/v2/min-8d/app/tags/list')).status, 400)
})

test('resolve shows the selected digest, skipped digests with reasons, and the next one', async () => {
  const { name, images } = await nightly(9)
  const short = await (await on(9)).pushImage(name, 'stable')
  const last = await (await on(9.1)).pushImage(name, 'stable')
  const { reader } = await on(9.5)
  const { body } = await reader.ok(200, 'GET', `${name}/_svc/resolve/stable?min_age=7d`)
  assert.deepEqual(
    { ...body, skipped: body.skipped.slice(0, 3) },
    {
      tag: 'stable',
      at: iso(9.5),
      minAge: '7d',
      hold: '6h',
      latest: { digest: last.digest, assignTime: iso(9.1) },
      chosen: { digest: images[2]!.digest, assignTime: iso(2) },
      skipped: [
        { digest: last.digest, assignTime: iso(9.1), reason: 'young', eligibleTime: iso(16.1) },
        { digest: short.digest, assignTime: iso(9), reason: 'short' },
        { digest: images[8]!.digest, assignTime: iso(8), reason: 'young', eligibleTime: iso(15) },
      ],
      next: { digest: images[3]!.digest, time: iso(10) },
    },
  )
  const same = await reader.ok(200, 'GET', `min-7d/${name}/_svc/resolve/stable`)
  assert.deepEqual(same.body, body)
  const at = await reader.ok(200, 'GET', `${name}/_svc/resolve/stable?at=2026-06-03`)
  assert.deepEqual(at.body.chosen, { digest: images[2]!.digest, assignTime: iso(2) })
  const none = await reader.ok(200, 'GET', `${name}/_svc/resolve/stable?min_age=30d`)
  assert.deepEqual([none.body.reason, none.body.next], ['young', { digest: images[0]!.digest, time: iso(30) }])
  for (const query of ['min_age=x', 'hold=1h', 'at=soon', 'min_age=99999w']) {
    assert.equal((await reader.call('GET', `${name}/_svc/resolve/stable?${query}`)).status, 400, query)
  }
  assert.equal((await reader.call('GET', `min-7d/${name}/_svc/resolve/stable?at=2026-06-03`)).status, 400)
  assert.equal((await reader.call('GET', `${name}/_svc/resolve/never`)).status, 404)
  assert.equal((await registry.nobody.call('GET', `${name}/_svc/resolve/stable`)).status, 401)
})

test('events keep the path of the client, and contain the view', async () => {
  const { name } = await nightly(1)
  const { reader } = await on(9)
  await reader.ok(200, 'GET', `min-7d/${name}/manifests/stable`)
  await registry.app.registryEvents.flush()
  const row = await registry.app.db.get<{ body: string; extensions: string }>(sql`
    SELECT body, extensions FROM events_outbox WHERE type = ${'dev.pinfold.registry.pull.v1'} ORDER BY id DESC LIMIT 1`)
  const { repository, view } = JSON.parse(row!.body)
  assert.deepEqual([repository, view], [`min-7d/${name}`, 'min-7d'])
  assert.equal(JSON.parse(row!.extensions).image, `${new URL(registry.url).host}/min-7d/${name}:stable`)
})

test('pulls an index through a view with the images in it', async () => {
  const name = `acme/app${repos++}`
  const { reader: _, ...pusher } = await on(0)
  const child = await pusher.pushImage(name)
  const index = await pusher.pushManifest(name, indexOf([child]), 'stable')
  const { reader } = await on(8)
  assert.equal(await digestIn(reader, `min-7d/${name}/manifests/stable`), index.digest)
  await reader.ok(200, 'GET', `min-7d/${name}/manifests/${child.digest}`)
})
