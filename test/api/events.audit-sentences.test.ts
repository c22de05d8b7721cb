import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listActions } from '#domains/events/audit/audit.service.ts'
import { escapeCell } from '#domains/events/audit/audit-export.model.ts'
import { titleOf } from '#domains/events/audit/audit-sentences.model.ts'
import { templates } from '#domains/events/audit/audit-templates.model.ts'
import { isAudited } from '#domains/outbox/audit.model.ts'
import { type EventName, eventTypes } from '#gen/event-names.ts'
import { assertDenied, assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids, startPinfold } from '../support/pinfold.ts'

const path = '/events/v2/audit'

function ticking(): () => Date {
  let now = Date.parse('2026-03-01T12:00:00.000Z')
  return () => new Date(now++)
}

const entries = async (client: Client, query = ''): Promise<Json[]> =>
  ok(await client.get(`${path}?page_size=200&${query}`)).auditEntries
const sentences = async (client: Client, query = ''): Promise<string[]> =>
  (await entries(client, query)).map(({ sentence }) => sentence)

test('each audited event has a sentence and a title, and no other event has', () => {
  const audited = Object.keys(eventTypes).filter(isAudited)
  assert.deepEqual(Object.keys(templates).toSorted(), ['restored', ...audited].toSorted())
  const auditActions = listActions({ reach: ['/'] })
  assert.equal(auditActions.length, audited.length + 1)
  const types = auditActions.map(({ type }) => type)
  assert.deepEqual(types.toSorted(), ['restored', ...audited.map((name) => eventTypes[name as EventName])].toSorted())
  for (const { type } of auditActions) assert.notEqual(titleOf(type), type)
  assert.equal(new Set(auditActions.map(({ title }) => title)).size, auditActions.length)
})

test('describes changes of access by the names of people, roles and folders', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed } = pinfold
  const acme = (await seed.group('', { name: 'acme' })).uid
  const owner = await seed.person({ name: 'Ada Lovelace', email: 'owner@acme.example' })
  await seed.binding(acme, owner.uid, roleUids.owner)
  const client = await pinfold.as(owner.uid)
  const folder = ok(await client.post(`/iam/v2/groups/${acme}`, { name: 'payments' }))
  const bot = ok(await client.post(`/iam/v2/identities/${acme}`, { name: 'ci-deploy', ...claims }))
  const role = ok(await client.post(`/iam/v2/roles/${acme}`, { name: 'registry.push', capabilities: ['repo.list'] }))
  const grant = { identityUid: bot.uid, roleUid: role.uid }
  const binding = ok(await client.post(`/iam/v2/roleBindings/${folder.uid}`, grant))

  const entry: Json = (await entries(client))[0]!
  assert.equal(entry.sentence, 'owner@acme.example granted ci-deploy the role registry.push in acme/payments')
  assert.equal(entry.sentenceParts.map(({ text }: Json) => text).join(''), entry.sentence)
  assert.deepEqual(
    entry.sentenceParts.filter(({ value }: Json) => value).map(({ uid }: Json) => uid),
    [owner.uid, bot.uid, role.uid, folder.uid],
  )
  assert.equal(entry.actorKind, 'PERSON')

  ok(await client.patch(`/iam/v2/roles/${role.uid}`, { name: 'pusher' }))
  ok(await client.delete(`/iam/v2/roleBindings/${binding.uid}`))
  ok(await client.delete(`/iam/v2/roles/${role.uid}`))
  ok(await client.delete(`/iam/v2/identities/${bot.uid}`))
  ok(await client.delete(`/iam/v2/groups/${folder.uid}`))
  assert.deepEqual((await sentences(client)).slice(0, 9), [
    'owner@acme.example deleted acme/payments (removed) in acme',
    'owner@acme.example deleted the identity ci-deploy (removed)',
    'owner@acme.example deleted the role pusher (removed) in acme',
    'owner@acme.example removed the role pusher (removed) of ci-deploy (removed) in acme/payments (removed)',
    'owner@acme.example changed the role pusher (removed)',
    'owner@acme.example granted ci-deploy (removed) the role registry.push (removed) in acme/payments (removed)',
    'owner@acme.example created the role registry.push (removed) in acme',
    'owner@acme.example created the identity ci-deploy (removed) in acme',
    'owner@acme.example created acme/payments (removed)',
  ])
})

test('the entry of a deletion has the resource itself, also if other entries have the same subject', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { operator } = pinfold
  const { uid } = ok(await operator.post('/iam/v2/groups/', { name: 'acme' }))
  ok(await operator.post('/control/v1/quotas:set', { organization: uid, limits: [{ name: 'bytes', limit: '1000' }] }))
  ok(await operator.delete(`/iam/v2/groups/${uid}`))
  const entry: Json = (await entries(operator, `subject=${uid}`))[0]!
  assert.match(entry.type, /group\.deleted/)
  assert.equal(JSON.parse(entry.former).name, 'acme')
})

test('names a person only after the person has joined, and keeps the name after the person was deleted', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed, operator } = pinfold
  const acme = (await seed.group('', { name: 'acme' })).uid
  const owner = await pinfold.as((await seed.member(acme, roleUids.owner)).uid)
  const jane = await seed.person({ name: 'Jane Doe', email: 'jane@example.com' })
  ok(await owner.post(`/iam/v2/roleBindings/${acme}`, { identityUid: jane.uid, roleUid: roleUids.viewer }))
  const invited: Json = (await entries(owner))[0]!
  assert.match(invited.sentence, / granted a person the role viewer in acme$/)
  assert.doesNotMatch(JSON.stringify(invited), /jane/i)

  const client = await pinfold.as(jane.uid)
  const [pending] = ok(await client.get('/control/v1/pendingBindings')).pendingBindings
  ok(await client.post(`/control/v1/pendingBindings/${pending.uid}:accept`))
  assert.equal((await sentences(owner))[0], 'jane@example.com changed the role of jane@example.com to viewer in acme')

  ok(await operator.delete(`/iam/v2/identities/${jane.uid}`))
  const after = await entries(owner)
  assert.ok(
    after.some(
      ({ sentence }) =>
        sentence === 'jane@example.com (removed) changed the role of jane@example.com (removed) to viewer in acme',
    ),
    JSON.stringify(after.map(({ sentence }) => sentence)),
  )
  assert.ok(
    after.some(({ sentence }) => /removed the role viewer of jane@example\.com \(removed\) in acme$/.test(sentence)),
  )
})

test('exports entries as CSV and JSON lines in parts, and escapes formulas', async () => {
  await using pinfold = await startPinfold({ clock: ticking() })
  const { seed } = pinfold
  const acme = (await seed.group('', { name: 'acme' })).uid
  const owner = await pinfold.as((await seed.member(acme, roleUids.owner)).uid)
  const calls = Array.from({ length: 1001 }, (_, i) => i)
  for (const i of calls) await owner.patch(`/iam/v2/groups/${acme}`, { description: `${i}` })
  const viewer = await pinfold.as((await seed.member(acme, roleUids.viewer)).uid)
  const get = (query: string, client = owner) => client.get(`/control/v1/auditExport/${acme}?${query}`)

  const first = ok(await get('format=csv'))
  const second = ok(await get(`format=csv&page_token=${first.nextPageToken}`))
  assert.deepEqual([first.count, second.nextPageToken], [1000, ''])
  const lines = `${first.content}${second.content}`.trimEnd().split('\r\n')
  assert.equal(lines.length, 1 + first.count + second.count)
  assert.match(lines[0]!, /^time,actor,action,sentence,address,/)
  assert.equal(
    lines.filter((line) => line.includes(',Organization or folder changed,identity-1 changed acme,')).length,
    1001,
  )

  const json = ok(await get('format=jsonl&type=dev.pinfold.api.iam.group.created.v1'))
  const [created] = json.content
    .trimEnd()
    .split('\n')
    .map((line: string) => JSON.parse(line))
  assert.deepEqual([json.count, created.sentence, created.body.name], [1, 'The operator created acme', 'acme'])

  assertInvalid(await get('format=xml'), 'format')
  assertInvalid(await get('format=csv&actor=me'), 'actor')
  assertInvalid(await get(`format=jsonl&page_token=${first.nextPageToken}`), 'page_token')
  assertDenied(await get('format=csv', viewer))
  assert.deepEqual(['x;=HYPERLINK(1)', 'x\t@a', 'x; +b', 'a=b;c-d'].map(escapeCell), [
    "x;'=HYPERLINK(1)",
    "x\t'@a",
    "x; '+b",
    'a=b;c-d',
  ])
  assert.deepEqual(['=1+1', '-2', '@a', '+b', '\tc', 'plain', 'a "b", c'].map(escapeCell), [
    "'=1+1",
    "'-2",
    "'@a",
    "'+b",
    "'\tc",
    'plain',
    '"a ""b"", c"',
  ])
})

const claims = { claimMatch: { issuer: 'https://issuer.example.com', subject: 'ci' } }
