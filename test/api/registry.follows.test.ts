// Mirrors of other registries: checks, the resulting tag history, and refused changes.
import assert from 'node:assert/strict'
import { after, mock, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { codeOf, startRegistry } from '../support/registry.ts'
import { answering, localUpstreams, startUpstream, withTokens } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
// The test advances the clock so far that the rate limits of hosts always allow its requests.
const registry = await startRegistry({
  ...localUpstreams,
  monotonic: () => performance.now() * 1000 + shift,
})
const { seed, operator, org, app, registryOperator: client } = registry
after(() => registry[Symbol.asyncDispose]())
const upstreams = '/registry/v2/upstreams'

let count = 0
/** An upstream registry, and a repository. */
async function scene(more: Json = {}) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  // Deletes the mirrors of earlier tests.
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `there-${count++}`
  const upstream = ok(await operator.post(`${upstreams}/${org.uid}`, { name, url: there.url, ...more }))
  const repo = (await seed.repo(org.uid, { name })).uid as string
  const follow = (body: Json = {}) =>
    operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path: 'team/app', ...body })
  return { there, upstream, repo, name: `acme/${name}`, follow }
}
/** The clock of the job moves, while tokens stay valid. */
const later = { ...app, clock: () => new Date(Date.now() + shift) }
async function look(afterMs = 0) {
  shift += afterMs
  return runJob(later, followUpstreams)
}
const historyOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records ?? []
const followOf = async (repo: string): Promise<Json> => ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
const eventsSince = async (id: number) =>
  app.db.all<{ id: number; type: string; body: string; actor: string }>(
    sql`SELECT id, type, body, actor FROM events_outbox WHERE id > ${id} ORDER BY id`,
  )
const lastEvent = async () => (await app.db.get<{ id: number }>(sql`SELECT max(id) AS id FROM events_outbox`))!.id

test('records an upstream tag update with the time of the previous check, without requesting content', async () => {
  const { there, repo, follow, name } = await scene()
  const first = there.move('3', 'one')
  there.move('edge', 'other')
  const made = ok(await follow({ interval: '600s' }))
  assert.deepEqual([made.mode, made.state, made.interval], ['MODE_WATCH', 'STATE_QUEUED', '600s'])
  const before = await lastEvent()
  const lookedAt = later.clock().toISOString()
  assert.deepEqual(await look(), { looks: 2, moves: 2, failed: 0 })
  const [born] = await historyOf(repo, '3')
  assert.deepEqual(
    [born!.event, born!.digest, born!.source, born!.actor, born!.checkedBefore],
    ['EVENT_CREATED', first, 'SOURCE_UPSTREAM', 'SERVICE_PRINCIPAL_INGESTER', undefined],
  )
  assert.equal((await followOf(repo)).tagCount, 2)

  assert.deepEqual(await look(minute), { looks: 0, moves: 0, failed: 0 }, 'nothing is due')
  const second = there.move('3', 'two')
  assert.deepEqual(await look(10 * minute), { looks: 2, moves: 1, failed: 0 })
  const [moved] = await historyOf(repo, '3')
  assert.deepEqual([moved!.event, moved!.digest, moved!.previousDigest], ['EVENT_MOVED', second, first])
  assert.ok(moved!.checkedBefore >= lookedAt && moved!.checkedBefore < moved!.time)
  assert.ok(Date.parse(moved!.time) - Date.parse(moved!.checkedBefore) < 12 * minute)

  const events = await eventsSince(before)
  const upstreamMoves = events.filter(({ type }) => type === 'dev.pinfold.control.registry.upstream.moved.v1')
  assert.equal(upstreamMoves.length, 3)
  assert.equal(events.filter(({ type }) => type.endsWith('registry.tag.created.v1')).length, 3)
  const told = JSON.parse(upstreamMoves[2]!.body) as Json
  assert.deepEqual(
    [told.repo_uid ?? told.repoUid, told.path, told.tag, told.digest, told.previous_digest ?? told.previousDigest],
    [repo, 'team/app', '3', second, first],
  )
  assert.deepEqual(JSON.parse(upstreamMoves[2]!.actor), { subject: 'SERVICE_PRINCIPAL_INGESTER' })

  const shown = await client.ok(200, 'GET', `${name}/_svc/history/3`)
  assert.deepEqual(
    shown.body.history.map((one: Json) => [one.digest, one.checkedBefore]),
    [
      [first, undefined],
      [second, moved!.checkedBefore],
    ],
  )
  assert.equal(there.count('GET /v2/team/app/manifests'), 0)
  assert.equal(there.count('GET /v2/team/app/blobs'), 0)
})

test('records a new tag as created between the last two checks', async () => {
  const { there, repo, follow } = await scene()
  there.move('1.0', 'one')
  ok(await follow({ tags: ['1\\.[0-9]+'] }))
  const started = later.clock().toISOString()
  await look()
  there.move('1.1', 'two')
  there.move('2.0', 'not asked for')
  assert.deepEqual(await look(61 * minute), { looks: 2, moves: 1, failed: 0 })
  const [born] = await historyOf(repo, '1.1')
  assert.equal(born!.event, 'EVENT_CREATED')
  assert.ok(born!.checkedBefore >= started && born!.checkedBefore < born!.time)
  assert.deepEqual(await historyOf(repo, '2.0'), [])
})

test('records a tag as deleted after three checks without it, and not before', async () => {
  const { there, repo, follow } = await scene()
  const digest = there.move('3', 'one')
  ok(await follow())
  await look()
  there.tags.delete('3')
  await look(61 * minute)
  await look(21 * minute)
  assert.equal((await historyOf(repo, '3'))[0]!.event, 'EVENT_CREATED')
  there.tags.set('3', digest)
  await look(21 * minute)
  there.tags.delete('3')
  await look(61 * minute)
  await look(21 * minute)
  assert.equal((await historyOf(repo, '3'))[0]!.event, 'EVENT_CREATED', 'what was found again starts anew')
  const before = await lastEvent()
  assert.equal((await look(21 * minute)).moves, 1)
  const [gone] = await historyOf(repo, '3')
  assert.deepEqual([gone!.event, gone!.digest, gone!.source], ['EVENT_DELETED', digest, 'SOURCE_UPSTREAM'])
  assert.ok(gone!.checkedBefore < gone!.time)
  const types = (await eventsSince(before)).map(({ type }) => type.split('.').slice(-3).join('.'))
  assert.deepEqual(types.sort(), ['tag.deleted.v1', 'upstream.moved.v1'].sort())
  // The tag can also return.
  const again = there.move('3', 'again')
  await look(61 * minute)
  assert.deepEqual(
    [(await historyOf(repo, '3'))[0]!.event, (await historyOf(repo, '3'))[0]!.digest],
    ['EVENT_CREATED', again],
  )
})

test('forgets the tags of a changed upstream path, and does not check a path that is no longer allowed', async () => {
  const { there, upstream, repo, follow } = await scene()
  there.move('3', 'one')
  ok(await follow({ interval: '600s' }))
  await look()
  const path = `${upstreams}/${upstream.uid}`
  // Another path of the same registry, with other images.
  const moved = there.move('3', 'two')
  const txs = mock.method(app.db, 'tx')
  ok(await operator.patch(path, { prefix: 'other' }))
  const isOfAnySize = txs.mock.calls.some(({ arguments: [, options] }) => options?.aside === 'disk')
  txs.mock.restore()
  assert.ok(isOfAnySize, 'however many repos follow it')
  ok(await operator.patch(path, { prefix: '' }))
  await look(11 * minute)
  const [record] = await historyOf(repo, '3')
  assert.deepEqual([record!.digest, record!.checkedBefore], [moved, undefined])

  ok(await operator.patch(path, { allow: ['other/.*'] }))
  there.move('3', 'three')
  assert.equal((await look(11 * minute)).looks, 0)
  const { state, problem } = await followOf(repo)
  assert.deepEqual([state, /allow list/.test(problem)], ['STATE_FAILED', true])
})

test('extra checks do not delete a missing tag sooner', async () => {
  const { there, repo, follow } = await scene()
  there.move('3', 'one')
  ok(await follow({ interval: '3600s' }))
  await look()
  there.tags.delete('3')
  for (let i = 0; i < 4; i++) {
    ok(await operator.post(`/registry/v2/repos/${repo}/follow:check`))
    await look(1000)
  }
  assert.equal((await historyOf(repo, '3'))[0]!.event, 'EVENT_CREATED')
})

test('checks tags with exact names without requesting the list of tags', async () => {
  const { there, repo, follow } = await scene({ prefix: 'library' })
  there.move('3.20', 'one')
  ok(await follow({ path: 'alpine', tags: ['3.20', '9.9'] }))
  await look()
  assert.deepEqual(there.forget().sort(), [
    'HEAD /v2/library/alpine/manifests/3.20',
    'HEAD /v2/library/alpine/manifests/9.9',
  ])
  there.move('9.9', 'new')
  await look(61 * minute)
  const [born] = await historyOf(repo, '9.9')
  assert.ok(born!.checkedBefore < born!.time, 'it was seen not to be there')
  assert.equal(there.count('GET'), 0)
})

test('only the mirror can change its tags until mirroring is turned off', async () => {
  const { there, repo, follow, name } = await scene()
  const image = await client.pushImage(name, 'mine')
  there.move('3', 'one')
  ok(await follow({ tags: ['3'] }))
  await look()
  const push = await client.call('PUT', `${name}/manifests/3`, { body: '{}' })
  assert.deepEqual([push.status, codeOf(push)], [405, 'UNSUPPORTED'])
  assert.equal((await client.call('POST', `${name}/blobs/uploads/`)).status, 405)
  assert.equal((await client.call('DELETE', `${name}/manifests/3`)).status, 405)
  assert.equal((await client.call('DELETE', `${name}/manifests/${image.digest}`)).status, 405)
  const api = await operator.post(`/registry/v2/tags/${repo}`, { name: '3', digest: image.digest })
  assert.equal(api.status, 400)
  assert.match(api.text, /REPO_FOLLOWED/)
  const tags = ok(await operator.get(`/registry/v2/tags?uidp.childrenOf=${repo}`)).tags as Json[]
  const tag = tags.find((one) => one.name === '3')!
  assert.match((await operator.delete(`/registry/v2/tags/${tag.uid}`)).text, /REPO_FOLLOWED/)
  const past = [{ name: 'old', records: [{ time: '2026-01-01T00:00:00Z', digest: image.digest }] }]
  assert.match(
    (await operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags: past })).text,
    /REPO_FOLLOWED/,
  )
  const copy = { syncConfig: { source: (await seed.repo(org.uid)).uid } }
  assert.match((await operator.patch(`/registry/v2/repos/${repo}?updateMask=sync_config`, copy)).text, /REPO_FOLLOWED/)
  // Manifests that were pushed here can be pulled. Tags that are only watched cannot.
  await client.ok(200, 'GET', `${name}/manifests/mine`)
  assert.equal(codeOf(await client.call('GET', `${name}/manifests/3`)), 'MANIFEST_UNKNOWN')

  ok(await operator.delete(`/registry/v2/repos/${repo}/follow`))
  assert.equal((await operator.get(`/registry/v2/repos/${repo}/follow`)).status, 404)
  await client.pushImage(name, '3')
  assert.equal((await historyOf(repo, '3')).length, 2, 'the history goes on')
  assert.deepEqual(await look(61 * minute), { looks: 0, moves: 0, failed: 0 })
})

test('both API versions show the state of a mirror', async () => {
  const { there, upstream, repo, follow } = await scene()
  there.move('3', 'one')
  ok(await follow())
  const v1 = async () => ok(await operator.get(`/registry/v1/repos/${repo}:syncstatus`)).status
  assert.equal(await v1(), 'QUEUED')
  await look()
  assert.equal(await v1(), 'UNKNOWN')
  there.breakWith(answering(403))
  assert.equal((await look(61 * minute)).failed, 1)
  assert.equal(await v1(), 'FAILED')
  const failed = await followOf(repo)
  assert.deepEqual([failed.state, failed.problem], ['STATE_FAILED', 'it denied access (403)'])
  there.mend()
  ok(await operator.post(`/registry/v2/repos/${repo}/follow:check`))
  await look()
  assert.deepEqual(
    [(await followOf(repo)).state ?? 'STATE_WAITING', (await followOf(repo)).problem ?? ''],
    ['STATE_WAITING', ''],
  )
  const listed = ok(await operator.get(`/registry/v2/follows/${org.uid}?pageSize=200`)).follows as Json[]
  assert.ok(listed.some((one) => one.repoUid === repo))
  assert.equal(ok(await operator.get(`/registry/v1/repocountbysource/${upstream.uid}`)).count, '1')
})

test('a due check is waiting, then running until the upstream responds, and failed until a later check succeeds', async () => {
  const { there, repo, follow } = await scene()
  there.move('3', 'one')
  const standing = async () => {
    const { status, createTime } = ok(await operator.get(`/registry/v1/repos/${repo}:syncstatus`))
    const { state = 'STATE_WAITING', stateTime } = await followOf(repo)
    assert.equal(stateTime, createTime)
    const { items } = ok(await operator.get(`/registry/v1/syncstatuses?registry_id=${org.uid}`))
    assert.deepEqual(items, [{ repoId: repo, repoStatus: { status, createTime } }])
    return { said: [status, state], since: createTime as string }
  }
  const held = () => {
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    there.breakWith((req, res) => {
      if (req.method !== 'HEAD') return false
      asked.resolve()
      void answer.promise.then(() => answering(200, { 'docker-content-digest': there.tags.get('3')! })(req, res))
      return true
    })
    return { asked: asked.promise, answer: answer.resolve }
  }
  const dueAgain = (time: string) =>
    app.db.tx((tx) => tx.run(sql`UPDATE follow_states SET due_time = ${time} WHERE repo_uid = ${repo}`))
  ok(await follow())
  assert.deepEqual((await standing()).said, ['QUEUED', 'STATE_QUEUED'])
  for (const what of ['the first look', 'a later look']) {
    const { asked, answer } = held()
    const looking = look(61 * minute)
    await asked
    assert.deepEqual((await standing()).said, ['IN_PROGRESS', 'STATE_IN_PROGRESS'], what)
    answer()
    await looking
    assert.deepEqual((await standing()).said, ['UNKNOWN', 'STATE_WAITING'], what)
    await app.db.tx((tx) => tx.run(sql`UPDATE follow_states SET state_time = '2026-01-01T00:00:00.000Z'`))
    await dueAgain('2026-01-02T00:00:00.000Z')
    assert.deepEqual(await standing(), { said: ['QUEUED', 'STATE_QUEUED'], since: '2026-01-02T00:00:00.000Z' })
  }
  there.breakWith(answering(403))
  await look(61 * minute)
  const { since } = await standing()
  const { asked, answer } = held()
  await dueAgain(since)
  const looking = look(61 * minute)
  await asked
  assert.deepEqual(await standing(), { said: ['FAILED', 'STATE_FAILED'], since })
  answer()
  await looking
  assert.deepEqual((await standing()).said, ['UNKNOWN', 'STATE_WAITING'])
})

test('sends a password to the upstream host, and to no other host', async () => {
  const { there, upstream, repo, follow } = await scene({ username: 'me', password: 'hidden words' })
  there.move('3', 'one')
  const basic = `Basic ${Buffer.from('me:hidden words').toString('base64')}`
  there.breakWith(
    withTokens(
      () => there.url,
      (authorization) => authorization === basic,
    ),
  )
  ok(await follow({ tags: ['3'] }))
  assert.equal((await look()).moves, 1)
  assert.equal((await historyOf(repo, '3')).length, 1)
  const shown = await operator.get(`${upstreams}/${upstream.uid}`)
  assert.equal(shown.body.hasPassword, true)
  const said = [shown.text, (await operator.get(upstreams)).text, JSON.stringify(await eventsSince(0))]
  assert.ok(said.every((text) => !text.includes('hidden words')))
  const stored = await app.db.all<{ password: Uint8Array }>(
    sql`SELECT password FROM upstreams WHERE uid = ${upstream.uid}`,
  )
  assert.ok(!Buffer.from(stored[0]!.password).includes('hidden words'))
  // A caller who does not know the password cannot send it to another host.
  const elsewhere = await operator.patch(`${upstreams}/${upstream.uid}?updateMask=url`, { url: 'http://127.0.0.1:9' })
  assertInvalid(elsewhere, 'password')
  ok(await operator.patch(`${upstreams}/${upstream.uid}?updateMask=password`, { password: 'other words' }))
  assert.equal((await look(61 * minute)).failed, 1)
  assert.equal((await followOf(repo)).problem, 'it rejected the credentials')
})

test('denies callers without permission before the server looks anything up', async () => {
  const { upstream, repo, there } = await scene()
  const viewer = await registry.as(registry.puller.uid)
  assertDenied(await viewer.get(`${upstreams}/${upstream.uid}`))
  assertDenied(await viewer.post(`${upstreams}/${org.uid}`, { name: 'x', url: there.url }))
  const body = { upstreamUid: upstream.uid, path: 'a' }
  assertDenied(await viewer.post(`/registry/v2/repos/${repo}/follow`, body))
  // A permission in one organization does not allow the use of an upstream of another one.
  const other = await seed.group('', { name: 'other-org' })
  const theirs = await seed.repo(other.uid)
  const owner = await seed.member(other.uid, '4e13a874c5dfc25fa6c8f963f7172906b675d5eb')
  const them = await registry.as(owner.uid)
  assertDenied(await them.post(`/registry/v2/repos/${theirs.uid}/follow`, body))
  const unknown = { upstreamUid: `${org.uid}/0123456789abcdef`, path: 'a' }
  assertDenied(await them.post(`/registry/v2/repos/${theirs.uid}/follow`, unknown))
  const missing = await operator.post(`/registry/v2/repos/${repo}/follow`, unknown)
  assertNotFound(missing, 'registry.pinfold.dev/Upstream', unknown.upstreamUid)
})

test('an error names the field with the invalid value', async () => {
  const { upstream, repo, follow } = await scene({ allow: ['team/.*'] })
  assertInvalid(await follow({ path: 'other/app' }), 'path')
  assertInvalid(await follow({ path: '../x' }), 'path')
  assertInvalid(await follow({ tags: ['('] }), 'tags[0]')
  assertInvalid(await follow({ tags: Array.from({ length: 101 }, () => 'a') }), 'tags')
  assertInvalid(await follow({ interval: '60s' }), 'interval')
  const make = (body: Json) =>
    operator.post(`${upstreams}/${org.uid}`, { name: 'bad', url: 'https://r.example', ...body })
  assertInvalid(await make({ url: 'https://r.example/v2' }), 'url')
  assertInvalid(await make({ url: 'ftp://r.example' }), 'url')
  assertInvalid(await make({ url: 'https://10.0.0.1' }), 'url')
  assertInvalid(await make({ name: 'Bad' }), 'name')
  assertInvalid(await make({ requestsPerSecond: 21 }), 'requests_per_second')
  assertInvalid(await make({ allow: ['['] }), 'allow[0]')
  ok(await follow())
  const used = await operator.delete(`${upstreams}/${upstream.uid}`)
  assert.match(used.text, /RESOURCE_IN_USE/)
  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  ok(await operator.delete(`${upstreams}/${upstream.uid}`))
})
