// Events of pushes and pulls, also of refused attempts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { openStream } from '../support/event-stream.ts'
import { eventsOf as eventsDuring } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { digestOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { ledgerOf } from '../support/tags.ts'

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

test('a push sends an event for each blob and each tag, with the previous digest of the tag', async () => {
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
  await pusher.pushManifest(name, (await pusher.ok(200, 'GET', `${name}/manifests/v1`)).bytes.toString(), 'v1')
  const again = (await eventsOf(registry)).findLast(({ type }) => type.includes('.push.'))!
  assert.deepEqual([again.body.tag, again.body.tag_previous_digest], ['v1', undefined], 'it has not moved')
})

test('a mount sends an event of the target repository; a mount that becomes an upload sends none', async () => {
  await using registry = await startRegistry()
  const { pusher } = registry
  const { digest } = await pusher.pushBlob('acme/source', 'shared layer')
  const before = (await eventsOf(registry)).length
  await pusher.ok(201, 'POST', `${name}/blobs/uploads/?mount=${digest}&from=acme/source`)
  const [event, ...more] = (await eventsOf(registry)).slice(before)
  assert.deepEqual(more, [])
  assert.equal(event!.type, 'dev.pinfold.registry.push.v1')
  assert.deepEqual(event!.actor, { subject: pusher.uid })
  const { repository, type, digest: mounted, tag } = event!.body
  assert.deepEqual(
    { repository, type, mounted, tag },
    { repository: name, type: 'blob', mounted: digest, tag: undefined },
  )
  await pusher.ok(202, 'POST', `${name}/blobs/uploads/?mount=${digestOf('absent')}&from=acme/source`)
  assert.equal((await eventsOf(registry)).length, before + 1)
})

test('a pull sends an event with the tag, the digest and the caller', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, org, seed } = registry
  await seed.subscription(org.uid)
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

test('a refused request sends an event with the error', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, nobody, org, seed } = registry
  await seed.subscription(org.uid)
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

test('a refused push sends an event only if a subscription or stream selects it', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, operator, org, seed, url } = registry
  await pusher.pushImage(name, 'v1')
  const refused = async () => {
    const before = (await eventsOf(registry)).length
    await puller.ok(403, 'PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
    return (await eventsOf(registry)).length - before
  }
  assert.equal(await refused(), 0, 'nobody')
  const { uid } = await seed.subscription(org.uid)
  assert.equal(await refused(), 1, 'a subscription')
  await operator.patch(`/events/v2/subscriptions/${uid}/settings`, { types: ['dev.pinfold.registry.pull.*'] })
  assert.equal(await refused(), 0, 'one of pulls')
  const stream = await openStream(url, operator.token!, { query: 'types=dev.pinfold.registry.push.*' })
  assert.equal(await refused(), 1, 'a stream')
  stream.close()
})

test('limits events of pulls and refused pushes per organization and minute, and counts the rest', async () => {
  let now = '2026-03-01T12:00:59.000Z'
  await using registry = await startRegistry({ clock: () => new Date(now), registryEventsPerOrganization: 3 })
  const { app, pusher, puller, org, seed } = registry
  const other = await seed.group('', { name: 'other' })
  const theirs = await registry.registryAs((await seed.member(other.uid, roleUids.push)).uid)
  await pusher.pushImage(name, 'v1')
  await theirs.pushImage('other/app', 'v1')
  const seen = async (group: string) =>
    (await eventsOf(registry)).filter((event) => {
      return event.group === group && (event.type.endsWith('.pull.v1') || event.body.error)
    }).length
  const pull = (count: number) => repeat(count, () => puller.ok(200, 'GET', `${name}/manifests/v1`))
  // No subscription selects these events yet, so they do not count for the limit.
  await pull(5)
  await app.registryEvents.flush()
  for (const group of [org, other]) await seed.subscription(group.uid)
  await pull(5)
  assert.equal(await seen(org.uid), 3)
  await repeat(5, () => {
    return puller.ok(403, 'PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
  })
  assert.equal(await seen(org.uid), 6, 'each kind has its own share')
  await theirs.ok(200, 'GET', 'other/app/manifests/v1')
  assert.equal(await seen(other.uid), 1, 'and each organization')
  now = '2026-03-01T12:01:00.000Z'
  await pull(1)
  assert.equal(await seen(org.uid), 7)
  await app.usage.flush()
  const [counted] = await app.db.all<{ n: number }>(sql`
    SELECT sum(gets) AS n FROM digest_usage WHERE caller = ${puller.uid}`)
  assert.equal(Number(counted!.n), 11)
})

async function repeat(count: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await work()
}

test('limits the size of caller-supplied values in events', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, seed, org } = registry
  await seed.subscription(org.uid)
  await pusher.pushImage(name, 'v1')
  const headers = { 'user-agent': 'a'.repeat(4000), 'content-type': types.image }
  const tag = `%00${'%F0%9F%90%8B'.repeat(500)}`
  await puller.ok(404, 'GET', `${name}/manifests/${tag}`, { headers })
  await puller.ok(400, 'PUT', `${name}/manifests/${tag}`, { headers, body: '{}' })
  await registry.app.registryEvents.flush()
  const rows = await registry.app.db.all<{ body: string; extensions: string }>(sql`
    SELECT body, extensions FROM events_outbox
     WHERE actor LIKE ${`%${puller.uid}%`} AND subject <> ${puller.uid} ORDER BY id`)
  assert.equal(rows.length, 2)
  for (const { body, extensions } of rows) {
    assert.ok(body.length < 2000 && extensions.length < 1000)
    assert.equal((JSON.parse(body) as Json).tag, '\0'.concat('\u{1F40B}'.repeat(63), '\uFFFD'))
  }
})

test('each tag change adds a tag history row and an event, at each entry point', async () => {
  await using registry = await startRegistry()
  const { operator, org, registryOperator: door } = registry
  const first = await door.pushImage(name, 'v1')
  const second = await door.pushImage(name)
  const repo = (await operator.get(`/registry/v2/repos?uidp.children_of=${org.uid}`)).body.repos[0].uid as string
  const tags = `/registry/v2/tags/${repo}`
  const uidOf = async (tag: string): Promise<string> =>
    (await operator.get(`/registry/v2/tags?uidp.children_of=${repo}&name=${tag}`)).body.tags[0].uid
  const histories = '/control/v1/tagHistory:import'
  const record = { time: '2020-01-01T00:00:00Z', digest: first.digest }
  const imported = {
    repoUid: repo,
    tags: [
      { name: 'old', records: [record] },
      { name: 'older', records: [record] },
    ],
  }
  const push = (tag: string, digest: string) => async () => {
    const { bytes } = await door.ok(200, 'GET', `${name}/manifests/${digest}`)
    await door.pushManifest(name, bytes.toString(), tag)
  }
  const ok = async (answer: Promise<{ status: number; text: string }>) => {
    const { status, text } = await answer
    assert.equal(status, 200, text)
  }
  // Name of the change, the request, the number of new rows, and the subjects of the events.
  const doors: [string, () => Promise<unknown>, number, string[]][] = [
    ['a push makes a tag', push('v2', first.digest), 1, ['push']],
    ['a push moves a tag', push('v2', second.digest), 1, ['push']],
    ['a call makes a tag', () => ok(operator.post(tags, { name: 'v3', digest: first.digest })), 1, ['tag.created']],
    ['a call moves a tag', () => ok(operator.post(tags, { name: 'v3', digest: second.digest })), 1, ['tag.created']],
    [
      'a call deletes a tag',
      async () => ok(operator.delete(`/registry/v2/tags/${await uidOf('v3')}`)),
      1,
      ['tag.deleted'],
    ],
    ['an import', () => ok(operator.post(histories, imported)), 2, ['tag.created', 'tag.created']],
    ['the same again', () => ok(operator.post(histories, imported)), 0, []],
    ['the registry deletes a tag', () => door.ok(202, 'DELETE', `${name}/manifests/v2`), 1, ['tag.deleted']],
    [
      'the registry deletes a digest with three tags',
      () => door.ok(202, 'DELETE', `${name}/manifests/${first.digest}`),
      3,
      ['tag.deleted', 'tag.deleted', 'tag.deleted', 'content.deleted'],
    ],
    [
      'the registry deletes a digest without a tag',
      () => door.ok(202, 'DELETE', `${name}/manifests/${second.digest}`),
      0,
      ['content.deleted'],
    ],
    ['what is not there', () => door.ok(404, 'DELETE', `${name}/manifests/v2`), 0, []],
    ['a call deletes the repo', () => ok(operator.delete(`/registry/v2/repos/${repo}`)), 0, ['repo.deleted']],
  ]
  for (const [what, work, rows, wanted] of doors) {
    const before = (await ledgerOf(registry, repo)).length
    const events = await eventsDuring(registry, work)
    assert.equal((await ledgerOf(registry, repo)).length - before, rows, what)
    const told = events.map(({ type }) => type.replace(/^.*registry\.(.*)\.v1$/, '$1'))
    assert.deepEqual(
      told.filter((type) => type !== 'pull'),
      wanted,
      what,
    )
    assert.ok(
      events.every(({ group }) => group === org.uid),
      what,
    )
  }
})

test('the deletion event of a manifest or blob has digest, repository and actor', async () => {
  await using registry = await startRegistry()
  const { org, pusher } = registry
  const image = await pusher.pushImage(name, 'v1')
  const blob = await pusher.pushBlob(name, 'content')
  const location = String((await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)).headers.location)
  const events = await eventsDuring(registry, async () => {
    await pusher.ok(202, 'DELETE', `${name}/manifests/${image.digest}`)
    await pusher.ok(202, 'DELETE', `${name}/blobs/${blob.digest}`)
    // The upload sent no event, and changed nothing.
    await pusher.ok(204, 'DELETE', location)
  })
  const [tag, ...contents] = events
  assert.match(tag!.type, /registry\.tag\.deleted/)
  assert.deepEqual(tag!.body, { uid: tag!.subject })
  const repo = tag!.subject.slice(0, -17)
  for (const [i, [type, { digest }]] of (
    [
      ['manifest', image],
      ['blob', blob],
    ] as const
  ).entries()) {
    const { body, actor, group, subject } = contents[i]!
    assert.deepEqual(body, { repository: name, repo_id: repo, digest, type })
    assert.deepEqual([actor, group, subject], [pusher.uid, org.uid, repo])
  }
  assert.equal(contents.length, 2)
})
