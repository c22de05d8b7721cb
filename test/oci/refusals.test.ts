// Log of refused requests: a sample for the owners of a group. Outsiders can neither fill the log nor change it for others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sweepRefusals } from '#domains/events/events.job.ts'
import { createRefusalLog, type RefusedRequest } from '#domains/events/refusals/refusal-log.ts'
import { maxKept } from '#domains/events/refusals/refusals.model.ts'
import { newUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry, types } from '../support/registry.ts'

const name = 'acme/app'
const path = (group: string) => `/events/v2/refusals/${group}`

async function refusalsOf({ app, operator }: TestRegistry, group: string): Promise<Json[]> {
  await app.refusals.flush()
  return ok(await operator.get(`${path(group)}?page_size=200`)).refusals as Json[]
}

async function rowsOf({ app }: TestRegistry): Promise<number> {
  return (await app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM refusals`))!.n
}

const stranger = async (registry: TestRegistry) => {
  const other = await registry.seed.group('')
  const { uid } = await registry.seed.member(other.uid, roleUids.owner)
  return { uid: uid as string, org: other.uid as string, ...(await registry.registryAs(uid)) }
}

test('a refused request of a caller outside the organization sends no event, and is logged with caller and reason', async () => {
  let now = '2026-03-01T12:30:00.000Z'
  await using registry = await startRegistry({ clock: () => new Date(now) })
  const { app, pusher, org, seed } = registry
  await seed.subscription(org.uid)
  const { digest } = await pusher.pushImage(name, 'v1')
  const other = await stranger(registry)
  const before = await registry.events()
  await other.ok(403, 'GET', `${name}/manifests/v1`)
  now = '2026-03-01T12:59:59.999Z'
  await other.ok(403, 'GET', `${name}/manifests/${digest}`)
  await other.ok(403, 'PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
  await other.ok(403, 'DELETE', `${name}/manifests/v1`)
  now = '2026-03-01T13:00:00.000Z'
  await other.ok(403, 'HEAD', `${name}/blobs/${digest}`)
  await other.ok(403, 'GET', 'acme/none/manifests/v1')
  await other.ok(403, 'GET', 'nobody/none/manifests/v1')
  await app.registryEvents.flush()
  assert.deepEqual(await registry.events(), before)
  const shown = (await refusalsOf(registry, org.uid)).map(({ lastTime, ...one }) => [lastTime.slice(11, 13), one])
  const line = (action: string, repository: string, reference: string, count = '1') => {
    const reason =
      'you do not have access to this repository, or it does not exist; check that its path begins with your organization'
    const who = { group: org.uid, caller: other.uid, remoteAddress: '127.0.0.1' }
    return { ...who, repository, reference, action, code: 'DENIED', reason, count }
  }
  const expected = [
    ['13', line('pull', '', 'v1')],
    ['13', line('pull', name, digest)],
    ['12', line('delete', name, 'v1')],
    ['12', line('push', name, 'v1')],
    ['12', line('pull', name, digest, '2')],
  ]
  const key = (one: unknown) =>
    JSON.stringify(
      one,
      Object.keys(line('', '', ''))
        .sort()
        .concat('0', '1'),
    )
  assert.deepEqual(shown.map(key).sort(), expected.map(key).sort())
  assert.match(
    (await registry.operator.get('/metrics')).text,
    /pinfold_registry_refusals_total\{action="pull",code="DENIED"\} 5/,
  )
})

test('a caller outside the organization who pulls a missing public image sends no event', async () => {
  await using registry = await startRegistry({ publicOrg: 'acme' })
  const { app, pusher, org, seed, anonymous, nobody } = registry
  await seed.subscription(org.uid)
  await pusher.pushImage(name, 'v1')
  const token = (await anonymous.get(`/token?scope=repository:${name}:pull`)).body.token as string
  const before = await registry.events()
  await nobody.ok(404, 'GET', `${name}/manifests/latest`, { token })
  await app.registryEvents.flush()
  assert.deepEqual(await registry.events(), before)
  const [line] = await refusalsOf(registry, org.uid)
  assert.deepEqual([line!.caller, line!.code, line!.repository], ['anonymous', 'MANIFEST_UNKNOWN', name])
})

test('logs a member without push permission, but not a member with a mistyped tag', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, org } = registry
  await pusher.pushImage(name, 'v1')
  await puller.ok(404, 'GET', `${name}/manifests/v2`)
  await puller.ok(403, 'PUT', `${name}/manifests/v1`, { body: '{}', headers: { 'content-type': types.image } })
  await puller.ok(403, 'PUT', 'acme/other/manifests/v1', { body: '{}', headers: { 'content-type': types.image } })
  const lines = await refusalsOf(registry, org.uid)
  assert.deepEqual(lines.map(({ action, repository }) => [action, repository]).sort(), [
    ['push', name],
    ['push', 'acme/other'],
  ])
})

test('owners can read the log of their group and below in pages; other callers cannot', async () => {
  await using registry = await startRegistry()
  const { app, org, seed, operator } = registry
  const [team, aside] = [await seed.group(org.uid, { name: 'team' }), await seed.group(org.uid, { name: 'aside' })]
  for (const group of [team, aside]) await seed.repo(group.uid, { name: 'app' })
  const other = await stranger(registry)
  for (const folder of ['team', 'aside']) await other.ok(403, 'GET', `acme/${folder}/app/manifests/v1`)
  await app.refusals.flush()
  const as = async (group: string, role: string) => registry.as((await seed.member(group, role)).uid)
  const owner = await as(org.uid, roleUids.owner)
  const paths = (answer: Json) => answer.refusals.map(({ repository }: Json) => repository)
  assert.deepEqual(paths(ok(await owner.get(path(org.uid)))).sort(), ['acme/aside/app', 'acme/team/app'])
  assert.deepEqual(paths(ok(await (await as(team.uid, roleUids.owner)).get(path(team.uid)))), ['acme/team/app'])
  const first = ok(await owner.get(`${path(org.uid)}?page_size=1&order_by=last_time`))
  const next = ok(await owner.get(`${path(org.uid)}?page_size=1&order_by=last_time&page_token=${first.nextPageToken}`))
  assert.deepEqual([...paths(first), ...paths(next)].sort(), ['acme/aside/app', 'acme/team/app'])
  assert.deepEqual([first.totalCount, next.nextPageToken], ['2', ''])
  assertDenied(await (await as(org.uid, roleUids.viewer)).get(path(org.uid)))
  assertDenied(await registry.as(other.uid).then((client) => client.get(path(org.uid))))
  assertInvalid(await owner.get(`${path(org.uid)}?order_by=caller`), 'order_by')
  const none = newUid('/')
  assertNotFound(await operator.get(path(none)), 'iam.pinfold.dev/Group', none)
})

test('stores no raw input, and no credential sent as a tag', async () => {
  await using registry = await startRegistry()
  const { org, seed, app } = registry
  await seed.repo(org.uid, { name: 'app' })
  const other = await stranger(registry)
  await other.ok(400, 'GET', `${name}/manifests/user%3Apassword%1b%5B2J`)
  await other.ok(403, 'GET', `${name}/manifests/pass%20word%1b%5B2J`)
  app.refusals.note({
    ...request(org.uid, other.uid),
    reason: `\u001b[2J\u202e${'\u{1F40B}'.repeat(500)}`,
    code: 'OTHER',
  })
  const lines = await refusalsOf(registry, org.uid)
  assert.deepEqual(
    lines.map(({ reference, reason }) => [reference ?? '', /[\p{C}]/u.test(reason), reason.length <= 200]),
    lines.map(() => ['', false, true]),
  )
  assert.equal(lines.length, 3)
})

const request = (group: string, caller: string, more: Partial<RefusedRequest> = {}): RefusedRequest => ({
  group,
  caller,
  member: false,
  repository: undefined,
  path: name,
  reference: '',
  action: 'pull',
  remoteAddress: '192.0.2.1',
  now: '2026-03-01T12:00:00.000Z',
  code: 'DENIED',
  reason: 'access to the repository is denied',
  ...more,
})

test('many refused requests use no space of others: between writes, in the table, or by paths', async () => {
  await using registry = await startRegistry()
  const { app } = registry
  const log = createRefusalLog(app.db, (error) => assert.fail(String(error)))
  const [one, two] = [newUid('/'), newUid('/')]
  const member = newUid(one)
  log.note(request(one, member))
  log.note(request(two, newUid('/')))
  for (let round = 0; round < 12; round++) {
    for (let i = 0; i < 150; i++) {
      log.note(request(one, newUid('/'), { now: `2026-03-02T12:00:${String(round).padStart(2, '0')}.000Z` }))
    }
    // Between two writes, the log keeps at most a hundred refused requests of outsiders per organization.
    assert.equal(await log.flush(), round === 0 ? 102 : 100)
  }
  const count = async (organization: string) => {
    const rows = await app.db.all<{ outsider: number; n: number }>(sql`
      SELECT outsider, count(*) AS n FROM refusals WHERE organisation = ${organization}
       GROUP BY outsider ORDER BY outsider`)
    return rows.map(({ outsider, n }) => [outsider, n])
  }
  assert.deepEqual(
    await count(one),
    [
      [0, 1],
      [1, maxKept],
    ],
    'that of its own identity is still there',
  )
  const oldest = await app.db.get<{ time: string }>(sql`
    SELECT min(last_time) AS time FROM refusals WHERE organisation = ${one} AND outsider = 1`)
  assert.equal(oldest!.time, '2026-03-02T12:00:07.000Z', 'the latest are kept')
  assert.deepEqual(await count(two), [[1, 1]])
  for (let i = 0; i < 1000; i++) log.note(request(two, '', { path: `acme/${i}` }))
  assert.equal(await log.flush(), 1)
  await log.close()
})

test("between two writes, strangers take no room of an organization's people, nor many organizations that of another", async () => {
  await using registry = await startRegistry()
  const { app } = registry
  const log = createRefusalLog(app.db, (error) => assert.fail(String(error)))
  const [one, quiet] = [newUid('/'), newUid('/')]
  const from = async (organization: string, outsider: number) => {
    const rows = await app.db.all<{ caller: string }>(sql`
      SELECT caller FROM refusals WHERE organisation = ${organization} AND outsider = ${outsider}`)
    return rows.map(({ caller }) => caller)
  }
  for (let i = 0; i < 150; i++) log.note(request(one, newUid('/')))
  // Person outside of all organizations who has a binding in this one.
  const person = newUid('/')
  log.note(request(one, person, { member: true }))
  assert.equal(await log.flush(), 101)
  assert.deepEqual(await from(one, 0), [person])
  // A person recorded both as outsider and as member within a second has one row.
  log.note(request(one, person, { repository: name }))
  log.note(request(one, person, { repository: name, member: true }))
  assert.equal(await log.flush(), 1)
  for (let i = 0; i < 60; i++) {
    const flooded = newUid('/')
    for (let j = 0; j < 100; j++) log.note(request(flooded, newUid('/')))
  }
  const lone = newUid('/')
  log.note(request(quiet, lone))
  assert.equal(await log.flush(), 5000)
  assert.deepEqual(await from(quiet, 1), [lone])
  // An organization with as many rows as the others replaces none of their rows, because this would only exchange rows.
  const late = newUid('/')
  for (let i = 0; i < 50; i++) {
    const flooded = newUid('/')
    for (let j = 0; j < 100; j++) log.note(request(flooded, newUid('/')))
  }
  for (let i = 0; i < 100; i++) log.note(request(late, newUid('/')))
  assert.equal(await log.flush(), 5000)
  assert.equal((await from(late, 1)).length, 98)
  await log.close()
})

test('a person with a binding in the organization counts as inside, and the mistyped path is stored', async () => {
  await using registry = await startRegistry()
  const { org, seed } = registry
  const { uid } = await seed.person()
  await seed.binding(org.uid, uid, roleUids.pull)
  const person = await registry.registryAs(uid)
  await person.ok(403, 'PUT', 'acme/mistyped/manifests/v1', { body: '{}', headers: { 'content-type': types.image } })
  const [line] = await refusalsOf(registry, org.uid)
  assert.equal(line!.repository, 'acme/mistyped')
})

test('the refused requests of a folder exclude those of sibling folders', async () => {
  await using registry = await startRegistry()
  const { app, org, operator, seed } = registry
  const folders = [await seed.group(org.uid), await seed.group(org.uid)].map(({ uid }) => String(uid)).sort()
  const below = String((await seed.group(folders[0]!)).uid)
  const reached = [below, ...folders].map((group, i) => {
    app.refusals.note(request(group, '', { repository: `acme/repo-${i}` }))
    return `acme/repo-${i}`
  })
  await app.refusals.flush()
  const seen = async (group: string) => {
    const answer = ok(await operator.get(path(group)))
    const named = (answer.refusals as Json[]).map(({ repository }) => String(repository)).sort()
    assert.equal(Number(answer.totalCount), named.length)
    return named
  }
  assert.deepEqual(await seen(folders[0]!), reached.slice(0, 2))
  assert.deepEqual(await seen(folders[1]!), reached.slice(2))
  assert.deepEqual(await seen(org.uid), reached)
})

test('keeps refused requests for thirty days', async () => {
  await using registry = await startRegistry({ clock: () => new Date('2026-03-31T12:00:00.000Z') })
  const { app } = registry
  for (const day of ['01-01', '02-27', '03-05']) {
    app.refusals.note(request(newUid('/'), '', { now: `2026-${day}T12:00:00.000Z` }))
  }
  await app.refusals.flush()
  await runJob(app, sweepRefusals)
  assert.equal(await rowsOf(registry), 1)
})
