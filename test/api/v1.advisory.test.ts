// Version 1 of published data: documents in full, metadata in pages, and reports of all days at once.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { SecurityAdvisory } from '#gen/pinfold/advisory/v1/security_advisory_pb.ts'
import { day, importSamples } from '../support/advisories.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, org, member, ...scene } = await startScene()
const anybody = pinfold.anonymous
const viewer = await member(roleUids.viewer)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

const v1 = async (path: string, client = anybody) => ok(await client.get(`/advisory/v1/${path}`))
const v2 = async (path: string) => ok(await anybody.get(`/advisory/v2/${path}`))

test('pages of vulnerability descriptions are the same as in version 2', async () => {
  const severities = [{ type: 'TYPE_CVSS_V3', score: 'CVSS:3.1/AV:N' }]
  const references = [{ type: 'TYPE_FIX', url: 'https://example.com/fix' }]
  const many: Json[] = Array.from({ length: 60 }, (_, i) => ({
    id: `GO-${String(i).padStart(2, '0')}`,
    summary: `about ${i}`,
  }))
  const [first] = many as [Json]
  Object.assign(first, { aliases: ['CVE-1'], details: 'long\ntext', severities, references })
  ok(await operator.post('/control/v1/vulnerabilities:import', { vulnerabilities: many }))

  const shown = {
    id: 'GO-00',
    summary: 'about 0',
    details: 'long\ntext',
    references: [{ type: 'FIX', url: 'https://example.com/fix' }],
    severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N' }],
  }
  assert.deepEqual(await v1('metadata?id=CVE-1'), { items: [shown], nextPageToken: '', totalCount: '1', skipped: 0 })
  assert.deepEqual(
    (await v1('metadata?id=GO-00&ids=GO-02,nothing')).items.map(({ id }: Json) => id),
    ['GO-00', 'GO-02'],
  )
  const found: string[] = []
  for (let token = ''; ; ) {
    const page = await v1(`metadata?page_size=25&order_by=id%20desc&page_token=${token}`)
    assert.equal(page.totalCount, '60')
    found.push(...page.items.map(({ id }: Json) => id))
    token = page.nextPageToken
    if (token === '') break
  }
  assert.deepEqual(found, many.map(({ id }) => id).reverse())
  const skipping = await v1('metadata?skip=58')
  assert.deepEqual([skipping.items.length, skipping.skipped, skipping.totalCount], [2, 58, '60'])
  assertInvalid(await anybody.get('/advisory/v1/metadata?order_by=summary'), 'order_by')
  assertInvalid(await anybody.get('/advisory/v1/metadata?skip=-1'), 'skip')
  const ids = Array.from({ length: 1001 }, (_, i) => `X-${i}`).join(',')
  assertInvalid(await anybody.get(`/advisory/v1/metadata?ids=${ids}`), 'ids')

  using grpc = grpcClientOf(pinfold, SecurityAdvisory, undefined)
  const { items, totalCount, skipped } = await grpc.listVulnerabilityMetadata({ ids: ['GO-00'], skip: 0 })
  assert.deepEqual([items[0]!.severity[0]!.type, totalCount, skipped], [2, 1n, 0])
})

const advisory = (advisoryId: string, origin: string, aliases: string[], ...events: Json[]) => ({
  origin,
  advisory: {
    advisoryId,
    aliases,
    author: 'a',
    artifactName: origin,
    artifactType: 'apk',
    events: events.map((event, i) => ({ createTime: day(i), author: 'a', ...event })),
  },
})

test('documents are the same as in version 2, all in one response', async () => {
  assert.deepEqual(await v1('documents'), { items: [] })
  const open = (await pinfold.seed.group('', { name: 'public' })).uid
  const scan = { scanner: 'grype', subpackage: 'sub', component: 'c' }
  await importSamples(pinfold, open, [
    advisory('D-1', 'curl', ['CVE-A'], { detection: { scanv1: scan } }, { fixed: { fixedVersion: '2', note: 'n' } }),
    advisory('D-2', 'perl', ['CVE-B'], { patched: { patchedVersions: ['1'] } }),
    ...Array.from({ length: 120 }, (_, i) => {
      const events = [
        { pendingUpstreamFix: { note: 'n' } },
        { falsePositiveDetermination: { type: 'TYPE_INLINE_MITIGATIONS_EXIST' } },
      ]
      return advisory(`E-${i}`, `package-${String(i).padStart(3, '0')}`, ['CVE-C'], ...events)
    }),
  ])
  const { items, ...rest } = await v1('documents')
  assert.deepEqual(rest, {})
  const names = items.map(({ id }: Json) => id)
  assert.deepEqual(names, ['curl', ...Array.from({ length: 120 }, (_, i) => `package-${String(i).padStart(3, '0')}`)])
  const [curl, second] = items
  const { detection } = curl.advisories[0].events[0]
  assert.deepEqual([detection.scanv1.subpackageName, detection.scanv1.componentName], ['sub', 'c'])
  assert.equal(curl.advisories[0].events[1].fixed.fixedVersion, '2')
  const [pending, determined] = second.advisories[0].events
  assert.deepEqual(pending, { timestamp: day(0), pendingUpstreamFix: { note: 'n' } })
  assert.equal(determined.falsePositiveDetermination.type, 'FPT_TYPE_INLINE_MITIGATIONS_EXIST')
  // The same documents in version 2, page by page.
  const known: string[] = []
  for (let token = ''; ; ) {
    const page = await v2(`documents?page_token=${token}`)
    known.push(
      ...page.documents.map(({ id, advisories }: Json) => `${id} ${advisories[0].id} ${advisories[0].events.length}`),
    )
    token = page.nextPageToken
    if (token === '') break
  }
  assert.deepEqual(
    items.map(({ id, advisories }: Json) => `${id} ${advisories[0].id} ${advisories[0].events.length}`),
    known,
  )

  const found = async (query: string) => (await v1(`documents?${query}`)).items.map(({ id }: Json) => id)
  assert.deepEqual(await found('id=curl'), ['curl'])
  assert.deepEqual(await found('id=perl'), [])
  assert.deepEqual(await found('cves=CVE-A,CVE-B'), ['curl'])
  assert.deepEqual(await found('id=curl&cves=CVE-C'), [])
  assertInvalid(
    await anybody.get(`/advisory/v1/documents?cves=${Array.from({ length: 1001 }, (_, i) => `A${i}`)}`),
    'cves',
  )
  using grpc = grpcClientOf(pinfold, SecurityAdvisory, undefined)
  assert.deepEqual(
    (await grpc.listDocuments({ cves: ['CVE-A'] })).items.map(({ id }) => id),
    ['curl'],
  )
})

test('a moved component is in no document of either version', async () => {
  const open = (await operator.get('/iam/v2/groups?name=public')).body.groups[0].uid
  const moves = { componentLocationChanged: { previousLocation: '/a', newLocation: '/b' } }
  const given = {
    author: 'ed',
    artifactName: 'wget',
    aliases: ['CVE-W'],
    events: [{ author: 'ed', status: 'APPROVED', ...moves }],
  }
  const made = ok(await operator.post('/vulnerabilities/v1/advisories', { parentId: open, advisory: given }))
  assert.deepEqual((await v1('documents?id=wget')).items, [])
  const fixed = { author: 'ed', status: 'APPROVED', fixed: { fixedVersion: '1' } }
  ok(await operator.post(`/vulnerabilities/v1/advisories/${made.id}/events`, { advisoryEvent: fixed }))
  for (const answer of [(await v1('documents?id=wget')).items, (await v2('documents?id=wget')).documents]) {
    const [{ advisories }] = answer
    assert.deepEqual(
      advisories[0].events.map(({ timestamp, ...event }: Json) => Object.keys(event)),
      [['fixed']],
    )
  }
  await operator.delete(`/vulnerabilities/v1/advisories/${made.id}`)
  assert.deepEqual((await v1('documents?id=wget')).items, [])
})

test('reports contain each day once, and spell invalid fields as version 1 does', async () => {
  const repo = (await pinfold.seed.repo(org.uid)).uid as string
  const path = 'images/resolved_vulns'
  const range = 'from=2026-01-01T12:00:00Z&to=2027-01-02T11:00:00Z'
  const { items, ...rest } = await v1(`${path}?imageRefs=${repo}&${range}`, viewer)
  assert.deepEqual(rest, {})
  assert.equal(items.length, 367)
  assert.deepEqual(
    [items[0], items.at(-1)],
    [
      { date: '2026-01-01T00:00:00.000Z', resolvedVulns: [] },
      { date: '2027-01-02T00:00:00.000Z', resolvedVulns: [] },
    ],
  )
  const ask = (query: string, client = viewer) => client.get(`/advisory/v1/${path}?${query}`)
  assertInvalid(await ask(''), 'image_refs', 'from', 'to')
  assertInvalid(await ask(`imageRefs=${repo}&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z`), 'to')
  assertInvalid(await ask(`imageRefs=${repo}&from=2026-01-01T00:00:00Z&to=2027-01-03T00:00:00Z`), 'to')
  assertInvalid(await ask(`imageRefs=not%20a%20path&${range}`), 'image_refs[0].repo')
  // The API shows nothing about missing resources, or about resources without access.
  const short = 'from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z'
  for (const [named, client] of [
    [`${org.uid}/${'0'.repeat(16)}`, viewer],
    ['nowhere/at/all', viewer],
    [repo, stranger],
  ] as const) {
    assert.deepEqual(ok(await ask(`imageRefs=${named}&${short}`, client)).items, [
      { date: '2026-01-01T00:00:00.000Z', resolvedVulns: [] },
    ])
  }
})
