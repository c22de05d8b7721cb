// What is pushed and pulled becomes events, refused attempts too.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const now = '2026-01-02T03:04:05.678Z'

type Event = { type: string; source: string; subject: string; group: string; actor: Json; body: Json }

async function eventsOf({ app }: TestRegistry): Promise<Event[]> {
  await app.registryEvents.flush()
  const rows = await app.db.all<Record<keyof Event, string>>(sql`
    SELECT type, source, subject, event_group AS "group", actor, body FROM events_outbox
     WHERE type LIKE ${'dev.pinfold.registry.%'} ORDER BY id`)
  return rows.map((row) => ({ ...row, actor: JSON.parse(row.actor) as Json, body: JSON.parse(row.body) as Json }))
}

test('a push is an event for each blob and each tag, and says what the tag was before', async () => {
  await using registry = await startRegistry({ clock: () => new Date(now) })
  const { pusher, org } = registry
  const first = await pusher.pushImage(name, 'v1')
  const second = await pusher.pushImage(name, 'v1')
  const events = await eventsOf(registry)
  assert.deepEqual(
    events.map(({ type, body }) => `${type} ${body.type}`),
    ['blob', 'blob', 'manifest', 'blob', 'blob', 'manifest'].map((type) => `dev.pinfold.registry.push.v1 ${type}`),
  )
  const repo = (await registry.operator.get(`/registry/v2/repos?uidp.children_of=${org.uid}`)).body.repos[0].uid
  const { body, ...last } = events.at(-1)!
  assert.deepEqual(last, {
    type: 'dev.pinfold.registry.push.v1',
    source: new URL(registry.url).host,
    subject: repo,
    group: org.uid,
    actor: { subject: pusher.uid },
  })
  assert.deepEqual(body, {
    repository: name,
    repo_id: repo,
    tag: 'v1',
    digest: second.digest,
    type: 'manifest',
    when: '2026-01-02T03:04:05.678000',
    location: '',
    remote_address: '127.0.0.1',
    user_agent: '',
    tag_previous_digest: first.digest,
  })
  await pusher.pushManifest(
    `${org.uid}/app`,
    (await pusher.ok(200, 'GET', `${name}/manifests/v1`)).bytes.toString(),
    'v2',
  )
  const byUid = (await eventsOf(registry)).findLast(({ type }) => type.includes('.push.'))!
  assert.equal(byUid.body.repository, `${org.uid}/app`)
  assert.equal(byUid.body.display_name, name)
  assert.equal(byUid.body.tag_previous_digest, undefined)
})

test('a pull is an event with the tag, the digest and who pulled', async () => {
  await using registry = await startRegistry()
  const { pusher, puller } = registry
  const image = await pusher.pushImage(name, 'v1')
  const blob = await pusher.pushBlob(name, 'content')
  const headers = { 'user-agent': 'tester/1' }
  await puller.ok(200, 'GET', `${name}/manifests/v1`, { headers })
  await puller.ok(200, 'HEAD', `${name}/manifests/${image.digest}`, { headers })
  await puller.ok(200, 'GET', `${name}/blobs/${blob.digest}`, { headers })
  const pulls = (await eventsOf(registry)).filter(({ type }) => type === 'dev.pinfold.registry.pull.v1')
  const shown = pulls.map(({ actor, body }) => [
    actor.subject,
    body.method,
    body.type,
    body.tag,
    body.digest,
    body.user_agent,
  ])
  assert.deepEqual(shown, [
    [puller.uid, 'GET', 'manifest', 'v1', image.digest, 'tester/1'],
    [puller.uid, 'HEAD', 'manifest', undefined, image.digest, 'tester/1'],
    [puller.uid, 'GET', 'blob', undefined, blob.digest, 'tester/1'],
  ])
})

test('a refused attempt is an event with the error', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, nobody } = registry
  await pusher.pushBlob(name, 'makes the repo')
  await nobody.call('GET', `${name}/manifests/v1`)
  await puller.call('GET', 'acme/none/manifests/v1')
  await puller.call('GET', `${name}/manifests/v1`)
  await puller.call('PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
  await pusher.call('PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
  const events = (await eventsOf(registry)).filter(({ body }) => body.error)
  const shown = events.map(({ type, actor, body: { tag, error } }) => [
    type,
    actor.subject,
    tag,
    error.status,
    error.code,
  ])
  assert.deepEqual(shown, [
    ['dev.pinfold.registry.pull.v1', puller.uid, 'v1', 404, 'MANIFEST_UNKNOWN'],
    ['dev.pinfold.registry.push.v1', puller.uid, 'v1', 403, 'DENIED'],
    ['dev.pinfold.registry.push.v1', pusher.uid, 'v1', 400, 'MANIFEST_INVALID'],
  ])
})

test('what a stranger sends makes no event grow', async () => {
  await using registry = await startRegistry()
  const { pusher, seed } = registry
  await pusher.pushImage(name, 'v1')
  const other = await seed.group('', { name: 'other' })
  const { uid } = await seed.member(other.uid, roleUids.push)
  const stranger = await registry.registryAs(uid)
  const headers = { 'user-agent': 'a'.repeat(4000), 'content-type': types.image }
  const tag = `%00${'%F0%9F%90%8B'.repeat(500)}`
  await stranger.ok(403, 'GET', `${name}/manifests/${tag}`, { headers })
  await stranger.ok(400, 'PUT', `${name}/manifests/${tag}`, { headers, body: '{}' })
  await registry.app.registryEvents.flush()
  const rows = await registry.app.db.all<{ body: string; extensions: string }>(sql`
    SELECT body, extensions FROM events_outbox WHERE actor LIKE ${`%${uid}%`} AND subject <> ${uid} ORDER BY id`)
  assert.equal(rows.length, 2)
  for (const { body, extensions } of rows) {
    assert.ok(body.length < 2000 && extensions.length < 1000)
    assert.equal((JSON.parse(body) as Json).tag, '\0'.concat('\u{1F40B}'.repeat(63), '\uFFFD'))
  }
})
