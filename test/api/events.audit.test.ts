import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countUpTo } from '#db/listing.ts'
import { sql } from '#db/sql.ts'
import { sweepAuditLog } from '#domains/events/events.job.ts'
import { AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { operatorUid, signAccessToken } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok, snake } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { auditKind, nodesOf, walk } from '../support/tree.ts'

const path = auditKind.path
const iam = 'dev.pinfold.api.iam'
const day = 24 * 60 * 60 * 1000

const list = async (client: Client, query = ''): Promise<Json> => ok(await client.get(`${path}?${query}`))
const typesOf = (body: Json): string[] => body.auditEntries.map(({ type }: Json) => type.replace(`${iam}.`, ''))
const subjectsOf = (body: Json): string[] => body.auditEntries.map(({ subject }: Json) => subject)

/** A clock that never returns the same time twice, so that the audit log has the order of the changes. */
function ticking(): () => Date {
  let now = Date.parse('2026-03-01T12:00:00.000Z')
  return () => new Date(now++)
}

test('records an access change with actor, change, time and origin', async () => {
  await using pinfold = await startPinfold({ trustedProxies: ['127.0.0.1'] })
  const org = (await pinfold.seed.group()).uid
  const owner = await pinfold.seed.member(org, roleUids.owner)
  const client = await pinfold.as(owner.uid)
  const headers = { 'x-forwarded-for': '203.0.113.7', 'x-request-id': 'req-12345678', 'user-agent': 'tool/1.0' }
  const folder = ok(await client.call('POST', `/iam/v2/groups/${org}`, { name: 'team' }, headers))

  const [entry] = (await list(client, 'page_size=1')).auditEntries
  const { uid, body, sentence, sentenceParts, ...others } = entry
  assert.match(uid, new RegExp(`^${folder.uid}/[0-9a-f]{16}$`))
  assert.deepEqual(JSON.parse(body), snake({ ...folder }))
  assert.deepEqual(others, {
    group: folder.uid,
    type: `${iam}.group.created.v1`,
    subject: folder.uid,
    actor: owner.uid,
    act: '',
    remoteAddress: '203.0.113.7',
    userAgent: 'tool/1.0',
    requestId: 'req-12345678',
    bodyType: 'pinfold.platform.iam.v2.Group',
    former: '',
    actorKind: 'SERVICE_ACCOUNT',
    createTime: folder.createTime,
  })
  assert.match(sentence, /^identity-\d+ created group-0\/team$/)
  assert.equal(sentenceParts.length, 3)
  assert.deepEqual(ok(await client.get(`${path}/${uid}`)), entry)

  await client.call('DELETE', `/iam/v2/groups/${folder.uid}`, undefined, { 'user-agent': 'x'.repeat(300) })
  const [deleted] = (await list(client, 'page_size=1')).auditEntries
  assert.deepEqual(
    [deleted.group, deleted.type, deleted.subject, deleted.userAgent, JSON.parse(deleted.body)],
    [org, `${iam}.group.deleted.v1`, folder.uid, 'x'.repeat(256), { uid: folder.uid }],
  )
  assert.match(deleted.requestId, /^[0-9a-f-]{36}$/)
})

test('the audit log names the external token with which a build job signed in', async () => {
  await using pinfold = await startPinfold()
  const org = (await pinfold.seed.group()).uid
  const owner = await pinfold.seed.member(org, roleUids.owner)
  const act = { iss: 'https://issuer.example.com', sub: 'repo:acme/web', aud: pinfold.url }
  const issued = { issuer: pinfold.url, audience: pinfold.url, subject: owner.uid as string, now: new Date() }
  const job = pinfold.withToken(await signAccessToken(pinfold.app.keyring, { ...issued, claims: { act } }))
  ok(await job.post(`/iam/v2/groups/${org}`, { name: 'team' }))
  const [entry] = (await list(job, 'page_size=1')).auditEntries
  assert.deepEqual([entry.actor, JSON.parse(entry.act)], [owner.uid, act])

  // A token from an earlier version, which is valid for an hour.
  const earlier = { ...act, aud: [pinfold.url, 'other'], more: { deep: 1 }, none: [] }
  const old = pinfold.withToken(await signAccessToken(pinfold.app.keyring, { ...issued, claims: { act: earlier } }))
  ok(await old.post(`/iam/v2/groups/${org}`, { name: 'other' }))
  const [last] = (await list(job, 'page_size=1')).auditEntries
  assert.deepEqual(JSON.parse(last.act), act)
})

test('the audit log contains each access change and nothing else', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed, operator } = pinfold
  const org = (await seed.group()).uid
  const role = await seed.role(org, ['repo.list'])
  const identity = await seed.identity(org)
  const binding = await seed.binding(org, identity.uid, role.uid)
  await operator.patch(`/iam/v2/roles/${role.uid}`, { description: 'new' })
  await seed.repo(org)
  await operator.post(`/iam/v2/groups/${org}`, { name: 'NOT A NAME' })
  await operator.delete(`/iam/v2/roles/${role.uid}`)
  await operator.delete(`/iam/v2/roleBindings/${binding.uid}`)

  const body = await list(operator, `order_by=created_at&uidp.children_of=${org}`)
  const expected = ['group.created', 'roles.created', 'identity.created', 'rolebindings.created', 'roles.updated']
  assert.deepEqual(
    typesOf(body),
    [...expected, 'rolebindings.deleted'].map((type) => `${type}.v1`),
  )
  assert.ok(body.auditEntries.every(({ actor }: Json) => actor === operatorUid))
  assert.equal(body.totalCount, '6')
})

test('lists the newest entries first, and pages neither omit nor repeat entries', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed, operator } = pinfold
  const org = (await seed.group()).uid
  const made: string[] = [org, (await seed.group(org)).uid]
  for (let i = 0; i < 24; i++) made.push((await seed.group(made[i % 2])).uid)
  const query = `uidp.descendants_of=${org}`

  const entries = new Map((await nodesOf(pinfold, auditKind)).map((row) => [row.uid, row.subject!]))
  for (const [order, expected] of [
    ['', made.toReversed()],
    ['created_at desc', made.toReversed()],
    ['create_time', made],
  ] as const) {
    const walked = await walk(operator, auditKind, `${query}&order_by=${order}&page_size=7`)
    assert.deepEqual(
      walked.uids.map((uid) => entries.get(uid)),
      expected,
    )
    assert.deepEqual(new Set(walked.totals), new Set(['26']))
  }
  for (const filter of [`actor=${operatorUid}`, `type=${iam}.group.created.v1`, 'since=2026-03-01T12:00:00Z']) {
    for (const order of ['create_time', 'create_time desc']) {
      const walked = await walk(operator, auditKind, `${query}&${filter}&order_by=${order}&page_size=4&skip=1`)
      const expected = order === 'create_time' ? made : made.toReversed()
      const first = walked.uids.slice(0, 4).map((uid) => entries.get(uid))
      assert.deepEqual(first, expected.slice(1, 5), `${filter} ${order}`)
    }
  }
  assertInvalid(await operator.get(`${path}?order_by=name`), 'order_by')
  assertInvalid(await operator.get(`${path}?order_by=uid`), 'order_by')
})

test('filters entries by actor, subject, type, time and scope, alone and combined', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed } = pinfold
  const orgs = [(await seed.group()).uid, (await seed.group()).uid]
  for (const org of orgs) {
    const owner = await pinfold.as((await seed.member(org, roleUids.owner)).uid)
    const folder = ok(await owner.post(`/iam/v2/groups/${org}`, { name: 'team' }))
    await owner.patch(`/iam/v2/groups/${folder.uid}`, { description: 'ours' })
    await owner.post(`/iam/v2/roles/${folder.uid}`, { name: 'reader', capabilities: ['repo.list'] })
  }
  const all: Json[] = (await list(pinfold.operator, 'order_by=create_time&page_size=200')).auditEntries
  assert.equal(all.length, 12)
  const times = all.map(({ createTime }) => createTime as string)
  const choices: Record<string, [query: string, fits: (entry: Json) => boolean][]> = {
    scope: [
      ['', () => true],
      [`uidp.descendants_of=${orgs[0]}`, ({ group }) => group.startsWith(orgs[0])],
      [`uidp.children_of=${orgs[1]}`, ({ group }) => group === orgs[1]],
      [`uidp.ids=${all[0]!.uid}&uidp.ids=${all[5]!.uid}`, ({ uid }) => [all[0]!.uid, all[5]!.uid].includes(uid)],
    ],
    actor: ['', operatorUid, all[3]!.actor, 'f'.repeat(40)].map((one) => {
      return [`actor=${one}`, ({ actor }) => one === '' || actor === one]
    }),
    subject: ['', all[4]!.subject, orgs[1]].map((one) => {
      return [`subject=${one}`, ({ subject }) => one === '' || subject === one]
    }),
    type: ['', `${iam}.group.created.v1`, `${iam}.other.v1`].map((one) => {
      return [`type=${one}`, ({ type }) => one === '' || type === one]
    }),
    since: ['', times[4]].map((one) => [`since=${one}`, ({ createTime }) => !one || createTime >= one]),
    until: ['', times[9]].map((one) => [`until=${one}`, ({ createTime }) => !one || createTime < one]),
  }
  const combined = Object.values(choices).reduce<[string, (entry: Json) => boolean][]>(
    (so, more) =>
      so.flatMap(([query, fits]) => more.map(([q, f]) => [`${query}&${q}`, (e: Json) => fits(e) && f(e)] as never)),
    [['page_size=200', () => true]],
  )
  assert.ok(combined.length > 500)
  for (const [query, fits] of combined) {
    const given = query.replace(/&(?:since|until)=(?=&|$)/g, '')
    const body = await list(pinfold.operator, given)
    const expected = all.filter(fits).map(({ uid }) => uid)
    const found = body.auditEntries.map(({ uid }: Json) => uid)
    assert.deepEqual([found, body.totalCount], [expected.toReversed(), String(expected.length)], query)
  }
})

test('refuses an invalid filter, and a page token that was made for another filter', async () => {
  await using pinfold = await startPinfold()
  for (let i = 0; i < 3; i++) await pinfold.seed.group()
  const get = (query: string) => pinfold.operator.get(`${path}?${query}`)
  assertInvalid(await get('actor=me'), 'actor')
  assertInvalid(await get('subject=x&actor=y'), 'actor', 'subject')
  assertInvalid(await get('type=group created'), 'type')
  assertInvalid(await get(`type=${'x'.repeat(256)}`), 'type')
  assertInvalid(await get('since=yesterday'), 'since')
  assertInvalid(await get('until='), 'until')
  assertInvalid(await get('actors=x'), 'actors')
  const token = (await list(pinfold.operator, 'page_size=1&since=2020-01-01T00:00:00Z')).nextPageToken
  assertInvalid(await get(`page_size=1&since=2020-01-02T00:00:00Z&page_token=${token}`), 'page_token')
  assertInvalid(await get(`page_size=1&page_token=${token}`), 'page_token')
})

test('owners can read the audit log of their groups; other members cannot', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed } = pinfold
  const org = (await seed.group()).uid
  const folder = (await seed.group(org)).uid
  const elsewhere = (await seed.group()).uid
  const owner = await pinfold.as((await seed.member(org, roleUids.owner)).uid)
  const folderOwner = await pinfold.as((await seed.member(folder, roleUids.owner)).uid)
  const [theirs] = (await list(pinfold.operator, `uidp.children_of=${elsewhere}`)).auditEntries
  const [ours] = (await list(pinfold.operator, `uidp.children_of=${org}`)).auditEntries
  const inFolder = await list(pinfold.operator, `uidp.descendants_of=${folder}`)

  assert.deepEqual(
    subjectsOf(await list(owner)),
    subjectsOf(await list(pinfold.operator, `uidp.descendants_of=${org}`)),
  )
  assert.deepEqual(subjectsOf(await list(folderOwner)), subjectsOf(inFolder))
  assert.deepEqual(subjectsOf(await list(folderOwner, `actor=${operatorUid}`)), subjectsOf(inFolder))
  assertDenied(await folderOwner.get(`${path}?uidp.children_of=${org}`))
  assertDenied(await folderOwner.get(`${path}/${ours.uid}`))
  assertDenied(await owner.get(`${path}?uidp.descendants_of=${elsewhere}`))
  assertDenied(await owner.get(`${path}/${theirs.uid}`))
  assertNotFound(
    await owner.get(`${path}/${org}/${'0'.repeat(16)}`),
    'events.pinfold.dev/AuditEntry',
    `${org}/${'0'.repeat(16)}`,
  )

  for (const role of [roleUids.viewer, roleUids.editor]) {
    const other = await pinfold.as((await seed.member(org, role)).uid)
    assert.deepEqual([subjectsOf(await list(other)), (await list(other)).totalCount], [[], '0'])
    assertDenied(await other.get(`${path}?uidp.children_of=${org}`))
    assertDenied(await other.get(`${path}/${ours.uid}`))
  }
})

test('keeps the audit log of a group after the group is deleted', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed, operator } = pinfold
  const org = (await seed.group()).uid
  const owner = await pinfold.as((await seed.member(org, roleUids.owner)).uid)
  const folder = (await seed.group(org)).uid
  await operator.patch(`/iam/v2/groups/${folder}`, { description: 'soon gone' })
  ok(await operator.delete(`/iam/v2/groups/${folder}`))

  const about = await list(owner, `subject=${folder}`)
  assert.deepEqual(typesOf(about), ['group.deleted.v1', 'group.updated.v1', 'group.created.v1'])
  const other = (await seed.group()).uid
  ok(await operator.delete(`/iam/v2/groups/${other}`))
  const [last] = (await list(operator, 'page_size=1')).auditEntries
  assert.deepEqual([last.group, last.subject, last.type], ['/', other, `${iam}.group.deleted.v1`])
})

test('gRPC returns the same entries as REST', async () => {
  await using pinfold = await startPinfold()
  const org = await pinfold.seed.group()
  using grpc = grpcClientOf(pinfold, AuditService, pinfold.operator.token)
  const [entry] = (await grpc.listAuditEntries({ actor: operatorUid, pageSize: 1 })).auditEntries
  assert.deepEqual([entry!.subject, entry!.group], [org.uid, org.uid])
  const found = await grpc.getAuditEntry({ uid: entry!.uid })
  assert.deepEqual([found.userAgent, found.remoteAddress], [entry!.userAgent, '127.0.0.1'])
  await assert.rejects(grpc.getAuditEntry({ uid: org.uid }), { code: 5 })
})

test('keeps entries forever unless a setting limits their age', async () => {
  let now = Date.parse('2026-03-01T12:00:00.000Z')
  await using pinfold = await startPinfold({ clock: () => new Date(now), auditRetentionDays: 10 })
  const { app, seed } = pinfold
  const keysLeft = async () =>
    (await app.db.get<{ n: number }>(sql`SELECT count(*) AS n FROM list_keys WHERE list LIKE 'audit_log.%'`))!.n
  const old = (await seed.group()).uid
  const keysOfOne = await keysLeft()
  for (let i = 0; i < 120; i++) await seed.group(old)
  now += 10 * day
  await runJob(app, sweepAuditLog)
  const count = async () => (await list(await pinfold.as(operatorUid))).totalCount
  assert.equal(await count(), '121')

  now += 1
  const late = await pinfold.as(operatorUid)
  const kept = ok(await late.post('/iam/v2/groups/', { name: 'later' }))
  await runJob({ ...app, config: { ...app.config, auditRetentionDays: 0 } }, sweepAuditLog)
  assert.equal(await count(), '122')
  await runJob(app, sweepAuditLog)
  assert.deepEqual([subjectsOf(await list(late)), await count(), await keysLeft()], [[kept.uid], '1', keysOfOne])
})

test('counts matching entries up to a limit, and omits larger totals', async () => {
  await using pinfold = await startPinfold()
  for (let i = 0; i < 5; i++) await pinfold.seed.group()
  const everywhere = [{ below: '/' }]
  const counted = (most: number) => {
    const listing = { kind: 'audit_log', table: 'audit_log', keys: { name: 'create_time' } }
    return countUpTo(pinfold.app.db, listing, everywhere, [sql`t.actor = ${operatorUid}`], most)
  }
  assert.deepEqual([await counted(4), await counted(5), await counted(6)], [undefined, 5, 5])
})
