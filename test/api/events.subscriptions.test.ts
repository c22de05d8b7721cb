import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/events/v2/subscriptions'
const type = 'events.pinfold.dev/Subscription'
const sink = 'https://hooks.example.com/pinfold?team=security'

const { pinfold, member, ...scene } = await startScene()
const org: string = scene.org.uid
const owner = await member(roleUids.owner)
after(() => pinfold[Symbol.asyncDispose]())

test('creates, reads, lists and deletes a subscription', async () => {
  const created = await owner.post(`${path}/${org}`, { sink })
  assert.equal(created.status, 200, created.text)
  const { uid, createTime } = created.body
  assert.match(uid, new RegExp(`^${org}/[0-9a-f]{16}$`))
  assert.deepEqual(created.body, { uid, sink, createTime, updateTime: createTime })
  assert.deepEqual((await owner.get(`${path}/${uid}`)).body, created.body)

  const again = await owner.post(`${path}/${org}`, { sink })
  assert.notEqual(again.body.uid, uid)
  const listed = await owner.get(`${path}?uidp.children_of=${org}&order_by=created_at desc`)
  assert.deepEqual(listed.body.totalCount, '2')
  assert.deepEqual(listed.body.subscriptions.map((one: Json) => one.uid).sort(), [uid, again.body.uid].sort())
  const paged = await owner.get(`${path}?page_size=1`)
  const next = await owner.get(`${path}?page_size=1&page_token=${paged.body.nextPageToken}`)
  assert.deepEqual(
    [...paged.body.subscriptions, ...next.body.subscriptions].map((one: Json) => one.uid),
    [uid, again.body.uid].sort(),
  )

  const deleted = await owner.delete(`${path}/${uid}`)
  assert.deepEqual([deleted.status, deleted.text], [200, ''])
  assertNotFound(await owner.get(`${path}/${uid}`), type, uid)
  assertNotFound(await owner.delete(`${path}/${uid}`), type, uid)
  assert.equal((await owner.get(path)).body.totalCount, '1')
  const events = (await pinfold.events()).filter((one) => one.includes('.subscription.'))
  const prefix = 'dev.pinfold.api.events.subscription'
  assert.deepEqual(events, [`${prefix}.created.v1`, `${prefix}.created.v1`, `${prefix}.deleted.v1`])
})

test('requires an absolute https URL with a public host as sink', async () => {
  const bad = [
    '',
    'hooks.example.com',
    '/hook',
    'http://hooks.example.com/',
    'ftp://hooks.example.com/',
    'https://',
    'https://user:pass@hooks.example.com/',
    'https://localhost/',
    'https://a.localhost:8443/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest/meta-data',
    'https://192.168.0.1:8443/',
    `https://hooks.example.com/${'x'.repeat(2048)}`,
  ]
  for (const one of bad) {
    const answer = await owner.post(`${path}/${org}`, { sink: one })
    assertInvalid(answer, 'sink')
    assert.ok(!answer.text.includes('pass@'), answer.text)
  }
  assertInvalid(await owner.post(`${path}/${org}`, {}), 'sink')
})

test('only callers with the capability on the group can see, create and delete its subscriptions', async () => {
  const { uid } = await pinfold.seed.subscription(org)
  const viewer = await pinfold.as((await pinfold.seed.member(org, roleUids.viewer)).uid)
  const stranger = await pinfold.as((await pinfold.seed.member((await pinfold.seed.group()).uid, roleUids.owner)).uid)
  assert.equal((await viewer.get(`${path}/${uid}`)).status, 200)
  assertDenied(await viewer.post(`${path}/${org}`, { sink }))
  assertDenied(await viewer.delete(`${path}/${uid}`))
  for (const one of [uid, `${org}/0123456789abcdef`]) {
    assertDenied(await stranger.get(`${path}/${one}`))
    assertDenied(await stranger.delete(`${path}/${one}`))
  }
  assertDenied(await stranger.post(`${path}/${org}`, { sink }))
  assert.equal((await stranger.get(path)).body.totalCount, '0')
})

test('refuses to delete a group with subscriptions, and to create a subscription in a deleted group', async () => {
  const group = (await pinfold.seed.group(org)).uid
  const { uid } = await pinfold.seed.subscription(group)
  const blocked = await owner.delete(`/iam/v2/groups/${group}`)
  assert.equal(blocked.body.details[1].violations[0].type, 'RESOURCE_NOT_EMPTY')
  await owner.delete(`${path}/${uid}`)
  assert.equal((await owner.delete(`/iam/v2/groups/${group}`)).status, 200)
  assertNotFound(await owner.post(`${path}/${group}`, { sink }), 'iam.pinfold.dev/Group', group)
})

test('one of several concurrent deletions succeeds; the others get 404', async () => {
  const { uid } = await pinfold.seed.subscription(org)
  const before = Number((await owner.get(path)).body.totalCount)
  const answers = await Promise.all(Array.from({ length: 4 }, () => owner.delete(`${path}/${uid}`)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404])
  assert.equal(Number((await owner.get(path)).body.totalCount), before - 1)
})

test('the database does not contain the secret of a subscription in plain text', async () => {
  await pinfold.seed.subscription(org)
  const rows = await pinfold.app.db.all<{ secret: Uint8Array }>(sql`SELECT secret FROM subscriptions`)
  for (const { secret } of rows) {
    assert.equal(secret.length, 32 + 12 + 16)
    assert.equal(pinfold.app.cipher.decrypt('subscription-secret', secret)?.length, 32)
  }
})

test('shows a secret in a sink URL only to callers who can change the subscription, and never in events', async () => {
  const secret = 'https://hooks.example.com/a/b?token=hunter2&flag&empty=&x=1=2#hunter2'
  const plain = 'https://hooks.example.com/a/b?token=***&***&empty=***&x=***'
  let uid = ''
  const [event] = await eventsOf(pinfold, async () => {
    const { body } = await owner.post(`${path}/${org}`, { sink: secret })
    assert.equal(body.sink, secret)
    uid = body.uid
  })
  assert.equal(event!.body.sink, plain)
  const { body } = await owner.get(`/events/v2/audit?subject=${uid}`)
  assert.match(body.auditEntries[0].body, /token=\*\*\*/)
  assert.ok(!JSON.stringify([event, body]).includes('hunter2'))

  const changing = await scene.holding('subscriptions.list', 'subscriptions.update')
  const reading = await scene.holding('subscriptions.list', 'role_bindings.update')
  const auditing = (await reading.get(`/events/v2/audit?subject=${uid}`)).text
  assert.ok(!auditing.includes('hunter2'))
  // A URL from an earlier release, which allowed a user name and a password.
  const older = 'https://user:hunter2@hooks.example.com:8443/?hunter2'
  for (const [stored, shown] of [
    [secret, plain],
    [older, 'https://hooks.example.com:8443/?***'],
    ['https://hooks.example.com/', 'https://hooks.example.com/'],
  ] as const) {
    await pinfold.point(uid, stored)
    for (const [client, sink] of [
      [reading, shown],
      [changing, stored],
      [owner, stored],
    ] as const) {
      assert.equal((await client.get(`${path}/${uid}`)).body.sink, sink)
      const { subscriptions } = (await client.get(`${path}?uidp.ids=${uid}`)).body
      assert.deepEqual(
        subscriptions.map((one: Json) => one.sink),
        [sink],
      )
    }
  }
})
