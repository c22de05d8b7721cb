// Version 1 of advisories: it shows the same as version 2, and is the only version that writes them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Advisories, EventTypeFilter, OrderBy } from '#gen/pinfold/vulnerabilities/v1/advisories_pb.ts'
import { ReviewStatus } from '#gen/pinfold/vulnerabilities/v1/advisory_events_pb.ts'
import {
  filterName,
  filters,
  importSamples,
  type Sample,
  sampleAdvisory,
  states,
  types,
} from '../support/advisories.ts'
import { checkAdvisories } from '../support/check-advisories.ts'
import {
  assertBlocked,
  assertDenied,
  assertInvalid,
  assertNotFound,
  assertTaken,
  assertTimes,
  eventsOf,
  ok,
} from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { startScene } from '../support/scene.ts'

const advisoryType = 'vulnerabilities.pinfold.dev/Advisory'
const eventType = 'vulnerabilities.pinfold.dev/AdvisoryEvent'
const path = '/vulnerabilities/v1/advisories'

let now = Date.parse('2026-05-01T10:00:00.000Z')
const { pinfold, operator, member, holding, org, ...scene } = await startScene({ clock: () => new Date(now) })
const editor = await holding('advisories.create', 'advisories.update', 'advisories.delete', 'advisories.list')
const approver = await holding('advisories.create', 'advisories.update', 'advisories.approve')
const viewer = await member(roleUids.viewer)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

let count = 0
const content = (more: Json = {}): Json => ({
  author: 'somebody',
  artifactName: `package-${count++}`,
  artifactType: 'apk',
  aliases: ['CVE-2026-1'],
  ...more,
})
const create = (advisory: Json, client = editor, parentId: string = org.uid) =>
  client.post(path, { parentId, advisory })
const put = (id: string, body: Json, client = editor) => client.call('PUT', `${path}/${id}`, body)
const list = async (query: string, client = viewer) => ok(await client.get(`${path}?${query}`))
const only = async (id: string, client = viewer) => (await list(`id=${id}`, client)).items[0]
const addEvent = (id: string, advisoryEvent: Json, client = editor) =>
  client.post(`${path}/${id}/events`, { advisoryEvent })
const putEvent = (id: string, event: Json, client = editor) =>
  client.call('PUT', `/vulnerabilities/v1/advisory_events/${id}`, event)
const inV2 = async (id: string) => ok(await viewer.get(`/vulnerabilities/v2/advisories/${id}`))
const time = () => new Date(now).toISOString()

test('an advisory created in version 1 is the same in version 2, and is deleted from both', async () => {
  const given = content({
    artifactArchitecture: 'x86_64',
    componentName: 'stdlib',
    componentType: 'go-module',
    legacyAdvisoryID: 'OLD-1',
    id: 'mine',
    advisoryId: 'MINE-1',
  })
  const made = ok(await create(given))
  assert.match(made.id, new RegExp(`^${org.uid}/[0-9a-f]{16}$`))
  assert.match(made.advisoryId, /^PFA(?:-[23456789cfghjmpqrvwx]{4}){3}$/)
  const { id, advisoryId } = made
  const times = { createdAt: time(), updatedAt: time() }
  assert.deepEqual(made, { ...given, id, advisoryId, events: [], ...times })
  assert.deepEqual(await only(id), made)
  const shown = await inV2(id)
  assert.deepEqual(
    [shown.advisoryId, shown.componentName, shown.componentLocation, shown.legacyAdvisoryId, shown.createTime],
    [advisoryId, 'stdlib', '', 'OLD-1', time()],
  )
  assert.equal((await list(`origin=${given.artifactName}`)).totalCount, '1')

  const { body, text, status } = await editor.delete(`${path}/${id}`)
  assert.deepEqual([status, text, body], [200, '', body])
  assert.deepEqual((await list(`id=${id}`)).items, [])
  assertNotFound(await viewer.get(`/vulnerabilities/v2/advisories/${id}`), advisoryType, id)
  assertNotFound(await editor.delete(`${path}/${id}`), advisoryType, id)
  for (const query of [`origin=${given.artifactName}`, 'legacy_advisory_ids=OLD-1', `advisory_ids=${advisoryId}`]) {
    assert.deepEqual(await list(query), { id: '', items: [], nextPageToken: '', totalCount: '0' }, query)
  }
  await checkAdvisories(pinfold)
})

test('PUT replaces everything except events and IDs, and filters use the new values', async () => {
  const made = ok(
    await create(content({ componentName: 'stdlib', artifactArchitecture: 'x86_64', legacyAdvisoryID: 'X' })),
  )
  const event = ok(await addEvent(made.id, { author: 'ed', fixed: { fixedVersion: '2' } }))
  now += 1000
  const next = {
    author: 'other',
    artifactName: `moved-${made.artifactName}`,
    aliases: ['CVE-2026-7'],
    events: [],
    advisoryId: 'no',
  }
  const changed = ok(await put(made.id, next))
  const { id, advisoryId, createdAt } = made
  const members = { artifactType: '', artifactArchitecture: '', createdAt, updatedAt: time(), events: [event] }
  assert.deepEqual(changed, { ...next, ...members, id, advisoryId })
  assert.deepEqual(await only(id), changed)
  const found = async (query: string) => (await list(`${query}&advisory_ids=${advisoryId}`)).totalCount
  for (const query of [`artifact_name=${next.artifactName}`, 'aliases=CVE-2026-7', `origin=${next.artifactName}`]) {
    assert.equal(await found(query), '1', query)
  }
  for (const query of [`artifact_name=${made.artifactName}`, 'component_name=stdlib', 'legacy_advisory_ids=X']) {
    assert.equal(await found(query), '0', query)
  }
  const missing = `${org.uid}/${'0'.repeat(16)}`
  assertNotFound(await put(missing, content()), advisoryType, missing)
  assertDenied(await put(id, content(), viewer))
  assertDenied(await put(missing, content(), stranger))
  assertInvalid(await put(id, { author: 'x' }), 'artifact_name')
  assert.deepEqual(await only(id), changed)
  await checkAdvisories(pinfold)
})

test('a group has only one advisory for a vulnerability in a component of an artifact', async () => {
  const given = content({ aliases: ['CVE-2026-2', 'GHSA-2'], componentName: 'zlib' })
  const made = ok(await create(given))
  assertTaken(await create(given), advisoryType, given.artifactName)
  assertTaken(await create({ ...given, aliases: ['GHSA-2', 'CVE-2026-3'] }), advisoryType, given.artifactName)
  const others = [
    { aliases: ['CVE-2026-3'] },
    { componentName: 'xz' },
    { componentType: 'python' },
    { componentLocation: '/usr' },
    { artifactType: 'image' },
    { artifactArchitecture: 'aarch64' },
  ]
  const uids = [made.id]
  for (const other of others) uids.push(ok(await create({ ...given, ...other })).id)
  const folder = (await pinfold.seed.group(org.uid)).uid
  ok(await create(given, editor, folder))
  assertTaken(await put(uids[1]!, given), advisoryType, given.artifactName)
  // Repeating the same advisory creates no second one.
  ok(await put(made.id, { ...given, author: 'again' }))
  const unnamed = content({ aliases: [] })
  ok(await create(unnamed))
  assertTaken(await create(unnamed), advisoryType, unnamed.artifactName)
  ok(await create({ ...unnamed, aliases: ['CVE-2026-4'] }))

  const racing = content({ aliases: ['CVE-2026-5'] })
  const answers = await Promise.all(Array.from({ length: 5 }, () => create(racing)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
})

test('an error names invalid fields, and no advisory is created', async () => {
  const before = (await list('')).totalCount
  const event = { author: 'ed', fixed: { fixedVersion: '2' } }
  const cases: [Json, ...string[]][] = [
    [{ artifactName: '' }, 'artifact_name'],
    [{ author: '' }, 'author'],
    [{ aliases: ['a b'] }, 'aliases'],
    [{ aliases: ['A', 'A'] }, 'aliases'],
    [{ componentName: 'a\nb', artifactType: 'x'.repeat(65) }, 'artifact_type', 'component_name'],
    [{ legacyAdvisoryID: 'x'.repeat(129) }, 'legacyAdvisoryID'],
    [{ events: [event, { author: 'ed' }] }, 'events[1].type'],
    [{ events: [{ ...event, author: '' }] }, 'events[0].author'],
    [{ events: [{ author: 'ed', detection: {} }] }, 'events[0].detection'],
    [
      { events: [{ author: 'ed', detection: { scanv1: { subpackageName: 'x'.repeat(8193) } } }] },
      'events[0].subpackage_name',
    ],
    [{ events: Array(201).fill(event) }, 'events'],
  ]
  for (const [wrong, ...fields] of cases) assertInvalid(await create(content(wrong)), ...fields)
  assertInvalid(await editor.post(path, { parentId: org.uid }), 'advisory')
  assertInvalid(await create(content(), operator, 'here'), 'parent_id')
  const nowhere = `${org.uid}/${'0'.repeat(16)}`
  assertNotFound(await create(content(), editor, nowhere), 'iam.pinfold.dev/Group', nowhere)
  for (const client of [viewer, stranger]) assertDenied(await create(content(), client))
  assertInvalid(await editor.post(path, { advisory: content() }), 'parent_id')
  assert.equal((await list('')).totalCount, before)
})

test('an event is pending until its review, and only callers with permission can approve it', async () => {
  const { id } = ok(await create(content()))
  const scan = { scanner: 'grype', subpackageName: 'sub', componentName: 'stdlib', componentVersion: '1' }
  const found = ok(
    await addEvent(id, { author: 'bot', detection: { scanv1: scan }, findings: 'eyJhIjoxfQ==', issue: 'I-1' }),
  )
  assertTimes(found, 'timestamp')
  assert.match(found.id, new RegExp(`^${id}/[0-9a-f]{16}$`))
  assert.deepEqual([found.status, found.findings, found.issue], ['PENDING', 'eyJhIjoxfQ==', 'I-1'])
  assert.equal(found.detection.scanv1.subpackageName, 'sub')
  const { detection } = (await inV2(id)).events[0]
  assert.deepEqual([detection.scanv1.subpackage, detection.scanv1.component], ['sub', 'stdlib'])

  const fixed = { author: 'ed', fixed: { fixedVersion: '2' } }
  assertDenied(await addEvent(id, { ...fixed, status: 'APPROVED' }))
  now += 1000
  const approved = ok(
    await addEvent(id, { ...fixed, status: 'APPROVED', id: 'no', timestamp: '2020-01-01T00:00:00Z' }, approver),
  )
  assert.deepEqual([approved.status, approved.timestamp], ['APPROVED', time()])
  const latest = async (type: string) => (await list(`latest_event_type=EVENT_TYPE_FILTER_${type}&id=${id}`)).totalCount
  assert.deepEqual([await latest('FIXED'), await latest('DETECTION')], ['1', '0'])

  const note = { author: 'ed', falsePositiveDetermination: { type: 'INLINE_MITIGATIONS_EXIST', note: 'n' } }
  const changed: Json = ok(await putEvent(found.id, { ...note, status: 'REQUEST_CHANGES', reviewer: 'rev' }))
  assert.deepEqual(changed, {
    ...changed,
    id: found.id,
    timestamp: found.timestamp,
    findings: '',
    status: 'REQUEST_CHANGES',
    reviewer: 'rev',
  })
  assert.ok(!('issue' in changed) && !('detection' in changed))
  assert.deepEqual((await inV2(id)).events[0].falsePositiveDetermination, {
    type: 'TYPE_INLINE_MITIGATIONS_EXIST',
    note: 'n',
  })
  assertBlocked(await putEvent(found.id, { ...note, status: 'APPROVED' }, approver), found.id, 'REVIEW_STATE')
  // Without a state in the request, the review state does not change.
  assert.equal(ok(await putEvent(found.id, note)).status, 'REQUEST_CHANGES')
  ok(await putEvent(found.id, { ...note, status: 'PENDING' }))
  assertDenied(await putEvent(found.id, { ...note, status: 'APPROVED' }))
  now += 1000
  const done = ok(await putEvent(found.id, { ...note, status: 'APPROVED' }, approver))
  assert.equal((await only(id)).updatedAt, time())
  assert.deepEqual((await only(id)).events, [done, approved])
  assert.deepEqual(ok(await viewer.get(`${path}/${id}/events`)), { parentId: id, items: [done, approved] })
  assert.deepEqual(ok(await putEvent(found.id, { ...note, status: 'APPROVED' }, approver)), done)
  assertBlocked(await putEvent(found.id, { ...note, author: 'else' }), found.id, 'REVIEW_STATE')
  assertBlocked(await putEvent(found.id, { ...note, status: 'REJECTED' }), found.id, 'REVIEW_STATE')

  assertInvalid(await addEvent(id, { ...fixed, status: 'REJECTED' }), 'status')
  assertInvalid(await addEvent(id, { author: 'x' }), 'type')
  assertInvalid(await addEvent(id, { fixed: {} }), 'author')
  assertInvalid(await editor.post(`${path}/${id}/events`, {}), 'advisory_event')
  assertInvalid(await putEvent(approved.id, { author: 'x' }), 'type')
  const missing = `${id}/${'0'.repeat(16)}`
  assertNotFound(await putEvent(missing, note), eventType, missing)
  assertNotFound(await addEvent(`${org.uid}/${'0'.repeat(16)}`, note), advisoryType, `${org.uid}/${'0'.repeat(16)}`)
  for (const client of [viewer, stranger]) {
    assertDenied(await addEvent(id, note, client))
    assertDenied(await putEvent(missing, note, client))
  }
})

test('creates an advisory with events, approved at once if the caller has permission', async () => {
  const event = { author: 'ed', fixed: { fixedVersion: '2' } }
  assertDenied(await create(content({ events: [{ ...event, status: 'APPROVED' }] })))
  const made = ok(await create(content({ events: [event, { ...event, status: 'APPROVED' }] }), approver))
  assert.deepEqual(
    made.events.map(({ status }: Json) => status),
    ['PENDING', 'APPROVED'],
  )
  assert.deepEqual((await only(made.id)).events, made.events)
})

test('refuses more events for an advisory with the maximum number of events', async () => {
  const event = { author: 'ed', fixed: { fixedVersion: '2' } }
  const { id } = ok(await create(content({ events: Array(199).fill(event) })))
  ok(await addEvent(id, event))
  assertInvalid(await addEvent(id, event), 'parent_id')
  assert.equal((await only(id)).events.length, 200)
})

test('shows a moved component only in version 1, without changing the state of the advisory', async () => {
  const { id, advisoryId } = ok(await create(content(), approver))
  const approved = { author: 'ed', status: 'APPROVED' }
  const v1 = async (type: string) => (await list(`latest_event_type=EVENT_TYPE_FILTER_${type}&id=${id}`)).totalCount
  const v2 = async (type: string) => {
    const query = `latest_event_type=EVENT_TYPE_FILTER_${type}&advisory_ids=${advisoryId}`
    return ok(await viewer.get(`/vulnerabilities/v2/advisories?${query}`)).totalCount
  }
  const move = { previousLocation: '/a', newLocation: '/b', note: 'n' }
  const waiting = ok(await addEvent(id, { author: 'ed', componentLocationChanged: move }))
  assert.equal(await v1('COMPONENT_LOCATION_CHANGED'), '0')
  const first = ok(await putEvent(waiting.id, { ...approved, componentLocationChanged: move }, approver))
  assert.deepEqual(first.componentLocationChanged, move)
  assert.equal(await v1('COMPONENT_LOCATION_CHANGED'), '1')
  now += 1000
  const fixed = ok(await addEvent(id, { ...approved, fixed: {} }, approver))
  assert.deepEqual([await v1('COMPONENT_LOCATION_CHANGED'), await v1('FIXED'), await v2('FIXED')], ['0', '1', '1'])
  now += 1000
  const last = ok(await addEvent(id, { ...approved, componentLocationChanged: move }, approver))
  assert.deepEqual([await v1('COMPONENT_LOCATION_CHANGED'), await v1('FIXED'), await v2('FIXED')], ['1', '0', '1'])
  assert.equal((await list(`event_types=EVENT_TYPE_FILTER_COMPONENT_LOCATION_CHANGED&id=${id}`)).totalCount, '1')
  assert.deepEqual(
    (await only(id)).events.map((event: Json) => event.id),
    [first.id, fixed.id, last.id],
  )
  assert.deepEqual(
    (await inV2(id)).events.map((event: Json) => event.uid),
    [fixed.id],
  )
  await checkAdvisories(pinfold)
})

test('lists visible advisories in pages, and reveals nothing about missing groups', async () => {
  const group = (await pinfold.seed.group(org.uid)).uid
  const made: string[] = []
  for (let i = 0; i < 5; i++) made.push(ok(await create(content(), editor, group)).id)
  const filter = `uidp.childrenOf=${group}`
  const pages: string[][] = []
  for (let token = ''; ; ) {
    const page = await list(`${filter}&page_size=2&page_token=${token}`)
    assert.equal(page.totalCount, '5')
    pages.push(page.items.map(({ id }: Json) => id))
    token = page.nextPageToken
    if (token === '') break
  }
  assert.deepEqual(pages.flat(), made.toSorted())
  assert.equal(pages.length, 3)
  assert.equal((await list(`${filter}&page_size=9223372036854775807`)).items.length, 5)
  assertInvalid(await viewer.get(`${path}?page_size=-1`), 'page_size')
  const { nextPageToken } = await list(`${filter}&page_size=2`)
  assertInvalid(await viewer.get(`${path}?page_size=2&page_token=${nextPageToken}`), 'page_token')
  assertInvalid(await viewer.get(`${path}?${filter}&order_by=ID_DESC&page_token=${nextPageToken}`), 'page_token')
  assertInvalid(await viewer.get(`${path}?order_by=NAME_ASC`), 'order_by')

  const nothing = { items: [], nextPageToken: '', totalCount: '0' }
  const [one] = made as [string]
  const nowhere = `${org.uid}/${'0'.repeat(16)}`
  for (const id of [nowhere, 'here', 'f'.repeat(40)]) assert.deepEqual(await list(`id=${id}`), { id, ...nothing })
  assert.deepEqual(await list(`id=${one}&uidp.ids=${made[1]}`), { id: one, ...nothing })
  assert.deepEqual(await list(`id=${one}`, stranger), { id: one, ...nothing })
  assert.deepEqual(await list('', stranger), { id: '', ...nothing })
  for (const query of [`uidp.childrenOf=${nowhere}`, `uidp.descendantsOf=${'f'.repeat(40)}`]) {
    assert.deepEqual(await list(query), { id: '', ...nothing }, query)
    assert.deepEqual(await list(query, stranger), { id: '', ...nothing }, query)
  }
  assertInvalid(await viewer.get(`${path}?uidp.childrenOf=here`), 'uidp.children_of')
  assert.deepEqual(ok(await viewer.get(`${path}/${nowhere}/events`)), { parentId: nowhere, items: [] })
  assertDenied(await stranger.get(`${path}/${one}/events`))
  assertDenied(await stranger.get(`${path}/${nowhere}/events`))
  const many = Array.from({ length: 1001 }, (_, i) => `A${i}`).join(',')
  assertInvalid(await viewer.get(`${path}?aliases=${many}`), 'aliases')
})

test('supports each order, ascending and descending', async () => {
  const group = (await pinfold.seed.group(org.uid)).uid
  const aliases = [
    ['CVE-3'],
    ['CVE-1', 'CVE-9'],
    [],
    ['CVE-1'],
    ['CVE-10'],
    ['CVE-1', 'CVE-2'],
    ['b"c'],
    ['x'.repeat(128), 'y'.repeat(128), 'z'.repeat(128)],
  ]
  for (const some of aliases) {
    now += 1000
    ok(await create(content({ aliases: some }), editor, group))
  }
  now += 1000
  const all = async (order: string, size = 3): Promise<Json[]> => {
    const items: Json[] = []
    for (let token = ''; ; ) {
      const page = await list(`uidp.childrenOf=${group}&page_size=${size}&order_by=${order}&page_token=${token}`)
      items.push(...page.items)
      token = page.nextPageToken
      if (token === '') return items
    }
  }
  const touched = (await all('CREATED_AT_ASC'))[2]!
  ok(await put(touched.id, { ...touched, author: 'later' }))
  const keys: Record<string, (one: Json) => string> = {
    ID: ({ id }) => id,
    CREATED_AT: ({ createdAt }) => createdAt,
    UPDATED_AT: ({ updatedAt }) => updatedAt,
    ALIASES: ({ aliases }) => aliases.join(' ').slice(0, 255),
    DELETED_AT: () => '',
  }
  for (const [order, key] of Object.entries(keys)) {
    const text = (one: Json) => `${key(one)}\u0000${one.id}`
    const rising = (await all(`${order}_ASC`)).map(text)
    assert.deepEqual(rising, rising.toSorted(), order)
    assert.equal(rising.length, aliases.length)
    assert.deepEqual((await all(`${order}_DESC`)).map(text), rising.toReversed(), order)
    // The order is also kept if the query filters rows while reading.
    const filtered = await list(`uidp.childrenOf=${group}&artifact_type=apk&order_by=${order}_ASC`)
    assert.deepEqual(filtered.items.map(text), rising, order)
  }
  const plain = await list(`uidp.childrenOf=${group}`)
  assert.deepEqual(plain.items, await all('ID_ASC'))
  assert.deepEqual((await list(`uidp.childrenOf=${group}&order_by=ORDER_BY_UNSPECIFIED`)).items, plain.items)
})

const random = randomFrom(20)
let samples: Sample[]
let group: string
before(async () => {
  group = (await pinfold.seed.group(org.uid)).uid
  samples = Array.from({ length: 90 }, (_, n) => sampleAdvisory(random, n))
  await importSamples(pinfold, group, samples)
})

/** The filters of version 2, with their names in this version. */
const namesOf: Record<string, string> = {
  artifact_names: 'artifact_name',
  artifact_types: 'artifact_type',
  artifact_architectures: 'artifact_architecture',
  component_names: 'component_name',
  component_types: 'component_type',
  component_locations: 'component_location',
  event_review_states: 'event_statuses',
  event_authors: 'event_author',
  event_reviewers: 'event_reviewer',
  exclude_event_authors: 'exclude_event_author',
}

const valuesOf: Record<string, string[]> = {
  advisory_ids: ['TST-0003', 'TST-0005', 'nobody'],
  legacy_advisory_ids: ['OLD-1', 'OLD-2'],
  artifact_names: ['Package-1', 'Package-2'],
  artifact_types: ['apk', 'image'],
  artifact_architectures: ['x86_64'],
  component_names: ['github.com/a%_b-3', 'github.com/a%_b-4'],
  component_types: ['python'],
  component_locations: ['/usr/lib-1', '/usr/lib-2'],
  aliases: ['CVE-2024-1001', 'CVE-2024-1002', 'CVE-2024-1003'],
  origin: ['origin-3'],
  event_review_states: states,
  event_authors: ['author-1', 'author-2'],
  event_reviewers: ['reviewer-1'],
  exclude_event_authors: ['author-1', 'author-3'],
  event_types: types.map(filterName),
  latest_event_type: types.map(filterName),
}

test('each filter returns what a full scan returns, and several values are combined with OR', async () => {
  for (const [name, test] of Object.entries(filters)) {
    const values = valuesOf[name]
    if (!values) continue
    const one = ['origin', 'latest_event_type'].includes(name)
    for (const some of [...values.map((value) => [value]), ...(one ? [] : [values.slice(0, 2)])]) {
      const query = some.map((value) => `${namesOf[name] ?? name}=${encodeURIComponent(value)}`).join('&')
      const found = await list(`uidp.childrenOf=${group}&page_size=200&${query}`)
      const told = name === 'event_review_states' ? some.map((state) => `REVIEW_STATE_${state}`) : some
      const expected = samples.filter(test(told)).map(({ advisory }) => advisory.advisoryId)
      assert.deepEqual(found.items.map(({ advisoryId }: Json) => advisoryId).sort(), expected.sort(), query)
      assert.equal(found.totalCount, String(expected.length), query)
    }
  }
  const any = `uidp.childrenOf=${group}&event_statuses=UNKNOWN&event_types=EVENT_TYPE_FILTER_UNSPECIFIED&latest_event_type=0`
  assert.equal((await list(any)).totalCount, String(samples.length))
  assertInvalid(await viewer.get(`${path}?event_statuses=DONE`), 'event_statuses')
})

test('gRPC gives the same answers', async () => {
  const grpcOf = (client: Client) => grpcClientOf(pinfold, Advisories, client.token)
  using ed = grpcOf(editor)
  using boss = grpcOf(approver)
  const { artifactName } = content()
  const made = await ed.create({ parentId: org.uid, advisory: { author: 'ed', artifactName, aliases: ['CVE-9'] } })
  assert.deepEqual([made.componentName, made.legacyAdvisoryID, made.deletedAt], [undefined, undefined, undefined])
  const changed = await ed.update({ id: made.id, author: 'new', artifactName })
  assert.deepEqual([changed.author, changed.aliases], ['new', []])
  const type = { case: 'fixed', value: { fixedVersion: '3' } } as const
  const event = await ed.createAdvisoryEvent({ parentId: made.id, advisoryEvent: { author: 'ed', type } })
  assert.equal(event.status, ReviewStatus.PENDING)
  await assert.rejects(ed.updateAdvisoryEvent({ id: event.id, author: 'ed', type, status: 2 }), { code: 7 })
  const approved = await boss.updateAdvisoryEvent({ id: event.id, author: 'ed', type, status: 2 })
  assert.equal(approved.status, ReviewStatus.APPROVED)
  assert.deepEqual((await ed.listAdvisoryEvents({ parentId: made.id })).items, [approved])
  const filter = { id: made.id, latestEventType: EventTypeFilter.FIXED, pageSize: 1n, orderBy: OrderBy.ALIASES_DESC }
  const listed = await ed.list(filter)
  assert.deepEqual([listed.items.map(({ id }) => id), listed.totalCount], [[made.id], 1n])
  await assert.rejects(ed.list({ orderBy: 99 as never }), { code: 3, fields: ['order_by'] })
  await assert.rejects(ed.list({ eventTypes: [77 as never] }), { code: 3, fields: ['event_types[0]'] })
  await assert.rejects(
    ed.createAdvisoryEvent({ parentId: made.id, advisoryEvent: { author: 'ed', type, status: 9 as never } }),
    { code: 3, fields: ['advisory_event.status'] },
  )
  await ed.delete({ id: made.id })
  assert.deepEqual((await ed.list({ id: made.id })).items, [])
})

test('none of these calls sends an event', async () => {
  const events = await eventsOf(pinfold, async () => {
    const { id } = ok(await create(content()))
    const event = ok(await addEvent(id, { author: 'ed', fixed: {} }))
    ok(await putEvent(event.id, { author: 'ed', fixed: {}, status: 'REJECTED' }))
    ok(await put(id, content()))
    await editor.delete(`${path}/${id}`)
  })
  assert.deepEqual(events, [])
})

test('an imported advisory can be changed, and a repeated import keeps the change', async () => {
  const sample = sampleAdvisory(random, 5000)
  await importSamples(pinfold, org.uid, [sample])
  const [found] = (await list('advisory_ids=TST-5000')).items
  assert.deepEqual(found.events.length, sample.advisory.events.length)
  const changed = ok(await put(found.id, { ...found, author: 'corrected' }))
  assert.equal((await importSamples(pinfold, org.uid, [sample])).unchanged, 1)
  assert.deepEqual(await only(found.id), changed)
  await editor.delete(`${path}/${found.id}`)
  assert.equal((await importSamples(pinfold, org.uid, [sample])).created, 1)
})

test('a group can be deleted after its advisories are deleted', async () => {
  const folder = (await pinfold.seed.group(org.uid)).uid
  const { id } = ok(await create(content(), editor, folder))
  assertBlocked(await operator.delete(`/iam/v2/groups/${folder}`), folder, 'RESOURCE_NOT_EMPTY')
  await editor.delete(`${path}/${id}`)
  ok(await operator.delete(`/iam/v2/groups/${folder}`))
})
