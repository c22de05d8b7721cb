import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { day, type Sample } from '../support/advisories.ts'
import { refusalOf } from '../support/answers.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, assertTimes, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const advisoryType = 'vulnerabilities.pinfold.dev/Advisory'
const eventType = 'vulnerabilities.pinfold.dev/AdvisoryEvent'

const { pinfold, operator, member, holding, ...scene } = await startScene()
const org: string = scene.org.uid
const owner = await holding('advisories.update', 'advisories.approve')
const editor = await holding('advisories.create', 'advisories.update', 'advisories.list')
const viewer = await member(roleUids.viewer)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

let count = 0
const nextId = () => `TST-${String(count++).padStart(4, '0')}`

function sample(advisory: Json = {}): Sample {
  return {
    origin: 'busybox',
    advisory: {
      advisoryId: nextId(),
      author: 'somebody',
      artifactName: 'busybox',
      artifactType: 'apk',
      aliases: ['CVE-2024-1'],
      events: [fixed(1)],
      ...advisory,
    },
  }
}
const fixed = (n: number, more: Json = {}) => ({
  createTime: day(n),
  author: 'somebody',
  fixed: { fixedVersion: '1.10' },
  ...more,
})
const send = (parent: string, ...advisories: Json[]) =>
  operator.post('/control/v1/advisories:import', { parent, advisories })
const listed = async (query: string, client = operator) =>
  ok(await client.get(`/vulnerabilities/v2/advisories?${query}`))
const pathOf = ({ uid }: Json) => `/vulnerabilities/v2/advisories/${uid}`

async function imported(advisory: Json = {}): Promise<Json> {
  const given = sample(advisory)
  assert.deepEqual(ok(await send(org, given)), { created: 1, updated: 0, unchanged: 0 })
  return (await listed(`advisory_ids=${given.advisory.advisoryId}`)).advisories[0]
}

test('an imported advisory keeps its id, times and events, and gets a uid of this server', async () => {
  const scan = { scanner: 'grype', component: 'stdlib', componentVersion: 'v1', componentType: 'go-module' }
  const given = sample({
    legacyAdvisoryId: 'OLD-1',
    artifactArchitecture: 'x86_64',
    componentName: 'stdlib',
    events: [
      fixed(9, { reviewer: 'rev', issue: 'ISSUE-1', findings: Buffer.from('{"a":1}').toString('base64') }),
      { createTime: day(3), author: 'bot', detection: { scanv1: scan } },
    ],
  })
  ok(await send(org, given))
  const { body } = await viewer.get(pathOf((await listed(`advisory_ids=${given.advisory.advisoryId}`)).advisories[0]))
  assert.match(body.uid, new RegExp(`^${org}/[0-9a-f]{16}$`))
  const { uid, events, createTime, updateTime, ...rest } = body
  const { events: _, ...own } = given.advisory
  assert.deepEqual(rest, { ...own, componentLocation: '', componentType: '', severities: [] })
  assert.deepEqual([createTime, updateTime], [day(3), day(9)])
  for (const event of events) assert.match(event.uid, new RegExp(`^${uid}/[0-9a-f]{16}$`))
  const [first, second] = events.map(({ uid: _, ...event }: Json) => event)
  const empty = { subpackage: '', componentId: '', componentLocation: '', artifactVersion: '', scannerVersion: '' }
  const shown = { ...empty, grypeDbBuilt: '', grypeDbChecksum: '', ...scan }
  const common = { reviewState: 'REVIEW_STATE_APPROVED', findings: '', reviewer: '' }
  assert.deepEqual(first, { ...common, createTime: day(3), author: 'bot', detection: { scanv1: shown } })
  const { fixed: how, ...said } = second
  assert.equal(how.fixedVersion, '1.10')
  const findings = Buffer.from('{"a":1}').toString('base64')
  assert.deepEqual(said, {
    ...common,
    createTime: day(9),
    author: 'somebody',
    reviewer: 'rev',
    issue: 'ISSUE-1',
    findings,
  })
})

test('an advisory without an id gets one with the prefix of this server', async () => {
  ok(await send(org, sample({ advisoryId: '', aliases: ['CVE-2024-555'] })))
  const [advisory] = (await listed('aliases=CVE-2024-555')).advisories
  assert.match(advisory.advisoryId, /^PFA(?:-[23456789cfghjmpqrvwx]{4}){3}$/)
})

test('importing again changes nothing, or only the changed record', async () => {
  const given = sample({ events: [fixed(1), fixed(2, { fixed: { fixedVersion: '2' } })] })
  ok(await send(org, given))
  const before = (await listed(`advisory_ids=${given.advisory.advisoryId}`)).advisories[0]
  assert.deepEqual(ok(await send(org, given)), { created: 0, updated: 0, unchanged: 1 })
  assert.deepEqual((await operator.get(pathOf(before))).body, before)

  const moved = {
    ...given.advisory,
    artifactName: 'toybox',
    aliases: ['CVE-2024-77'],
    events: [given.advisory.events[0], fixed(5)],
  }
  const changed = { origin: 'toybox', advisory: moved }
  assert.deepEqual(ok(await send(org, changed)), { created: 0, updated: 1, unchanged: 0 })
  const { body } = await operator.get(pathOf(before))
  assert.deepEqual([body.uid, body.artifactName, body.updateTime], [before.uid, 'toybox', day(5)])
  assert.equal(body.events[0].uid, before.events[0].uid)
  assert.notEqual(body.events[1].uid, before.events[1].uid)
  const id = `advisory_ids=${given.advisory.advisoryId}`
  for (const query of [
    'origin=toybox',
    'artifact_names=toybox',
    'aliases=CVE-2024-77',
    'query=toybox',
    'order_by=artifact_name',
  ]) {
    assert.equal((await listed(`${id}&${query}`)).totalCount, '1', query)
  }
  for (const query of ['origin=busybox', 'artifact_names=busybox', 'aliases=CVE-2024-1', 'query=busybox']) {
    const answer = await listed(`${id}&${query}`)
    assert.deepEqual([answer.totalCount, answer.advisories], ['0', []], query)
  }
})

test('an import with one invalid advisory is refused completely, and the error names it', async () => {
  const good = sample()
  const total = (await listed('page_size=1')).totalCount
  const cases: [Json, ...string[]][] = [
    [{ advisoryId: 'no spaces' }, 'advisory_id'],
    [{ artifactName: '' }, 'artifact_name'],
    [{ author: '' }, 'author'],
    [{ aliases: ['CVE 1'] }, 'aliases'],
    [{ aliases: ['A', 'A'] }, 'aliases'],
    [{ events: [] }, 'events'],
    [{ componentName: 'a\u0000' }, 'component_name'],
    [{ componentName: 'a\nb' }, 'component_name'],
    [{ events: [{ author: 'x', fixed: {} }] }, 'events[0].create_time'],
    [{ events: [{ author: 'x', createTime: day(1) }] }, 'events[0].type'],
    [{ events: [{ author: '', createTime: day(1), fixed: {} }] }, 'events[0].author'],
    [{ events: [{ author: 'x', createTime: day(1), detection: {} }] }, 'events[0].detection'],
    [{ events: [fixed(1, { fixed: { note: 'x'.repeat(8193) } })] }, 'events[0].note'],
    [{ events: [fixed(1), fixed(2, { findings: Buffer.alloc(65_537).toString('base64') })] }, 'events[1].findings'],
  ]
  for (const [wrong, ...fields] of cases) {
    assertInvalid(await send(org, good, sample(wrong)), ...fields.map((field) => `advisories[1].advisory.${field}`))
  }
  assertInvalid(await send(org, good, good), 'advisories[1].advisory.advisory_id')
  assertInvalid(await send(org, { advisory: sample().advisory }), 'advisories[0].origin')
  assertInvalid(await send(org, { origin: 'x' }), 'advisories[0].advisory')
  assertInvalid(await send(org), 'advisories')
  assertInvalid(await send('here', good), 'parent')
  assertNotFound(await send(`${org}/${'0'.repeat(16)}`, good), 'iam.pinfold.dev/Group', `${org}/${'0'.repeat(16)}`)
  assert.equal((await listed('page_size=1')).totalCount, total)
})

test('hides advisories from callers without access, and only the operator can import', async () => {
  const advisory = await imported()
  assertDenied(await stranger.get(pathOf(advisory)))
  assertDenied(await stranger.get(pathOf({ uid: `${org}/${'0'.repeat(16)}` })))
  assertNotFound(
    await viewer.get(pathOf({ uid: `${org}/${'0'.repeat(16)}` })),
    advisoryType,
    `${org}/${'0'.repeat(16)}`,
  )
  assert.deepEqual((await listed('', stranger)).advisories, [])
  for (const client of [stranger, viewer, editor]) {
    assertDenied(await client.post('/control/v1/advisories:import', { parent: org, advisories: [sample()] }))
  }
  const { uid } = await pinfold.seed.member(org, roleUids.operator)
  assertDenied(await (await pinfold.as(uid)).post('/control/v1/advisories:import', { parent: org }))
  assert.equal(refusalOf(await pinfold.anonymous.post('/control/v1/advisories:import', {})).code, 16)
})

const addEvent = (client: Client, { uid }: Json, event: Json) =>
  client.post(`/control/v1/advisories/${uid}/events`, event)
const review = (client: Client, { uid }: Json, reviewState: string, more: Json = {}) =>
  client.post(`/control/v1/advisoryEvents/${uid}/review`, { reviewState: `REVIEW_STATE_${reviewState}`, ...more })

test('an event is pending until its review, and counts once it is approved', async () => {
  const advisory = await imported()
  const id = `advisory_ids=${advisory.advisoryId}`
  const note = { note: 'not in our build' }
  const event = ok(await addEvent(editor, advisory, { author: 'ed', falsePositiveDetermination: note }))
  assert.equal(event.reviewState, 'REVIEW_STATE_PENDING')
  assertTimes(event, 'createTime')
  assert.ok(event.uid.startsWith(`${advisory.uid}/`))
  const latest = async (type: string) => (await listed(`${id}&latest_event_type=EVENT_TYPE_FILTER_${type}`)).totalCount
  assert.deepEqual([await latest('FIXED'), await latest('FALSE_POSITIVE_DETERMINATION')], ['1', '0'])
  assert.equal((await listed(`${id}&event_review_states=REVIEW_STATE_PENDING`)).totalCount, '1')

  assertDenied(await review(editor, event, 'APPROVED'))
  assertDenied(await review(viewer, event, 'REJECTED'))
  const approved = ok(await review(owner, event, 'APPROVED', { reviewer: 'boss' }))
  assert.deepEqual(approved, { ...event, reviewState: 'REVIEW_STATE_APPROVED', reviewer: 'boss' })
  assert.deepEqual([await latest('FIXED'), await latest('FALSE_POSITIVE_DETERMINATION')], ['0', '1'])
  assert.equal((await listed(`${id}&event_reviewers=boss`)).totalCount, '1')
  const { body } = await viewer.get(pathOf(advisory))
  assert.deepEqual(body.events.at(-1), approved)
  assert.ok(body.updateTime > advisory.updateTime)
})

test('a review changes only along the allowed steps, and never after approval or rejection', async () => {
  const advisory = await imported()
  const pending = async () =>
    ok(await addEvent(editor, advisory, { author: 'ed', patched: { patchedVersions: ['1'] } }))
  const moves: [from: string[], to: string, allowed: boolean][] = [
    [[], 'PENDING', true],
    [[], 'APPROVED', true],
    [[], 'REJECTED', true],
    [['REQUEST_CHANGES'], 'PENDING', true],
    [['REQUEST_CHANGES'], 'APPROVED', false],
    [['REQUEST_CHANGES'], 'REJECTED', false],
    [['REQUEST_CHANGES', 'PENDING'], 'APPROVED', true],
    [['APPROVED'], 'APPROVED', true],
    ...['PENDING', 'REQUEST_CHANGES', 'REJECTED'].map((to): [string[], string, boolean] => [['APPROVED'], to, false]),
    ...['PENDING', 'REQUEST_CHANGES', 'APPROVED'].map((to): [string[], string, boolean] => [['REJECTED'], to, false]),
  ]
  for (const [path, to, allowed] of moves) {
    const event = await pending()
    for (const step of path) ok(await review(operator, event, step))
    const answer = await review(operator, event, to)
    if (allowed) assert.equal(ok(answer).reviewState, `REVIEW_STATE_${to}`, `${path} ${to}`)
    else assertBlocked(answer, event.uid, 'REVIEW_STATE')
  }
  const event = await pending()
  assertInvalid(await review(operator, event, 'UNSPECIFIED'), 'review_state')
  const missing = { uid: `${advisory.uid}/${'0'.repeat(16)}` }
  assertNotFound(await review(editor, missing, 'REJECTED'), eventType, missing.uid)
  assertDenied(await review(stranger, missing, 'REJECTED'))
  assertNotFound(await addEvent(editor, missing, { author: 'x', fixed: {} }), advisoryType, missing.uid)
  assertDenied(await addEvent(stranger, advisory, { author: 'x', fixed: {} }))
  assertInvalid(await addEvent(editor, advisory, { author: 'x' }), 'type')
  assertInvalid(await addEvent(editor, advisory, { fixed: {} }), 'author')
  assertInvalid(
    await addEvent(editor, advisory, { author: 'x', fixed: {}, reviewState: 'REVIEW_STATE_APPROVED' }),
    'review_state',
  )
})

test('another import keeps events and reviews that were created here', async () => {
  const given = sample({ events: [fixed(1, { reviewState: 'REVIEW_STATE_PENDING' })] })
  ok(await send(org, given))
  const before = (await listed(`advisory_ids=${given.advisory.advisoryId}`)).advisories[0]
  ok(await review(operator, before.events[0], 'REJECTED'))
  const own = ok(await addEvent(editor, before, { author: 'ed', fixNotPlanned: { note: 'old' } }))
  const again = { ...given, advisory: { ...given.advisory, aliases: ['CVE-2024-2'] } }
  assert.equal(ok(await send(org, again)).updated, 1)
  const { body } = await operator.get(pathOf(before))
  assert.deepEqual(body.aliases, ['CVE-2024-2'])
  assert.deepEqual(body.events, [{ ...before.events[0], reviewState: 'REVIEW_STATE_REJECTED' }, own])
})

test('equal events have different uids, which repeated imports keep', async () => {
  const given = sample({ events: [fixed(1), fixed(1)] })
  ok(await send(org, given))
  const [before] = (await listed(`advisory_ids=${given.advisory.advisoryId}`)).advisories
  const uids = before.events.map(({ uid }: Json) => uid)
  assert.equal(new Set(uids).size, 2)
  for (const alias of ['CVE-2024-2', 'CVE-2024-3']) {
    const changed = { ...given, advisory: { ...given.advisory, aliases: [alias] } }
    assert.deepEqual(ok(await send(org, changed)), { created: 0, updated: 1, unchanged: 0 })
    const { body } = await operator.get(pathOf(before))
    assert.deepEqual(body.aliases, [alias])
    assert.deepEqual(
      body.events.map(({ uid }: Json) => uid),
      uids,
    )
  }
})

test('refuses to delete a group with advisories', async () => {
  const folder = (await pinfold.seed.group(org)).uid
  ok(await send(folder, sample()))
  assertBlocked(await operator.delete(`/iam/v2/groups/${folder}`), folder, 'RESOURCE_NOT_EMPTY')
})

test('concurrent imports of the same data count as one', async () => {
  const group = (await pinfold.seed.group()).uid
  const samples = Array.from({ length: 20 }, (_, i) =>
    sample({ aliases: [`CVE-2030-${i}`], componentName: `new-${i}` }),
  )
  const answers = (await Promise.all(Array.from({ length: 6 }, () => send(group, ...samples)))).map(ok)
  assert.equal(
    answers.reduce((sum, { created }) => sum + created, 0),
    20,
  )
  assert.equal((await listed(`uidp.children_of=${group}`)).totalCount, '20')
  assert.equal((await listed('aliases=CVE-2030-3')).totalCount, '1')
})

test('stores all concurrent reviews', async () => {
  const advisory = await imported()
  const events = []
  for (let i = 0; i < 6; i++) events.push(ok(await addEvent(editor, advisory, { author: `a${i}`, fixed: {} })))
  const answers = await Promise.all(events.map((event) => review(operator, event, 'REJECTED')))
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(6).fill(200),
  )
  const { body } = await operator.get(pathOf(advisory))
  assert.equal(body.events.filter((event: Json) => event.reviewState === 'REVIEW_STATE_REJECTED').length, 6)
  const id = `advisory_ids=${advisory.advisoryId}`
  assert.equal((await listed(`${id}&event_review_states=REVIEW_STATE_PENDING`)).totalCount, '0')
})

test('an advisory has at most 200 events, imported or added', async () => {
  const events = Array.from({ length: 199 }, (_, i) => fixed(1, { fixed: { fixedVersion: `1.${i}` } }))
  const { uid } = await imported({ events })
  const add = () =>
    editor.post(`/control/v1/advisories/${uid}/events`, { author: 'us', fixed: { fixedVersion: '2.0' } })
  ok(await add())
  assertInvalid(await add(), 'parent')
  const more = [...events, fixed(2), fixed(3)]
  assertInvalid(await send(org, sample({ events: more })), 'advisories[0].advisory.events')
  assert.deepEqual(ok(await send(org, sample({ events: more.slice(1) }))), { created: 1, updated: 0, unchanged: 0 })
})
