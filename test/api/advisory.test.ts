// Public data: descriptions of vulnerabilities, and the advisories of the public organization, readable by anybody.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { day, importSamples } from '../support/advisories.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let operator: Client
let anybody: Client

before(async () => {
  pinfold = await startPinfold()
  operator = pinfold.operator
  anybody = pinfold.anonymous
})
after(() => pinfold[Symbol.asyncDispose]())

const v3 = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
const vulnerability = (id: string, more: Json = {}): Json => ({ id, summary: `about ${id}`, ...more })
const send = (...vulnerabilities: Json[]) => operator.post('/control/v1/vulnerabilities:import', { vulnerabilities })
const metadata = async (query: string) => ok(await anybody.get(`/advisory/v2/metadata?${query}`))
const idsOf = (answer: Json) => answer.vulnerabilityMetadata.map(({ id }: Json) => id)

test('finds vulnerabilities by ID and by alias, in pages', async () => {
  const references = [{ type: 'TYPE_FIX', url: 'https://example.com/fix' }]
  const severities = [{ type: 'TYPE_CVSS_V3', score: v3 }]
  const first = vulnerability('GO-1', { aliases: ['CVE-1', 'GHSA-1'], details: 'long\ntext', references, severities })
  const many = Array.from({ length: 60 }, (_, i) =>
    vulnerability(`PY-${String(i).padStart(2, '0')}`, { aliases: [`CVE-${i}`] }),
  )
  assert.deepEqual(ok(await send(first, ...many)), { created: 61, updated: 0, unchanged: 0 })

  const { aliases: _, ...shown } = first
  assert.deepEqual((await metadata('id=GO-1')).vulnerabilityMetadata, [shown])
  assert.deepEqual(idsOf(await metadata('id=GHSA-1')), ['GO-1'])
  assert.deepEqual(idsOf(await metadata('ids=CVE-1,nothing&id=PY-02')), ['GO-1', 'PY-01', 'PY-02'])
  assert.equal((await metadata('id=nothing')).totalCount, '0')

  const all: string[] = []
  for (let token = ''; ; ) {
    const page = await metadata(`page_size=25&order_by=id%20desc&page_token=${token}`)
    assert.equal(page.totalCount, '61')
    all.push(...idsOf(page))
    token = page.nextPageToken
    if (!token) break
  }
  assert.deepEqual(all, ['GO-1', ...many.map(({ id }) => id)].sort().reverse())
  assert.equal(idsOf(await metadata('')).length, 50)
  assert.deepEqual(idsOf(await metadata('skip=60')), ['PY-59'])

  const ids = Array.from({ length: 1000 }, (_, i) => `X-${i}`)
  assert.equal((await metadata(`ids=${ids.join(',')}&ids=X-1`)).totalCount, '0')
  assertInvalid(await anybody.get(`/advisory/v2/metadata?ids=${ids.join(',')}&id=one-more`), 'ids')
  assertInvalid(await anybody.get('/advisory/v2/metadata?order_by=summary'), 'order_by')
})

test('importing the same vulnerabilities again changes nothing; importing a changed one replaces it', async () => {
  const one = vulnerability('CH-1', { aliases: ['OLD-1'], modifyTime: day(1) })
  ok(await send(one))
  assert.deepEqual(ok(await send(one)), { created: 0, updated: 0, unchanged: 1 })
  assert.deepEqual(ok(await send({ ...one, aliases: ['NEW-1'], summary: 'new' })), {
    created: 0,
    updated: 1,
    unchanged: 0,
  })
  assert.equal((await metadata('id=OLD-1')).totalCount, '0')
  assert.equal((await metadata('id=NEW-1')).vulnerabilityMetadata[0].summary, 'new')
})

test('an import with one invalid vulnerability is refused completely, and the error names it', async () => {
  const good = vulnerability('GOOD-1')
  for (const [wrong, field] of [
    [{ id: '' }, 'id'],
    [{ id: 'GOOD-1' }, 'id'],
    [{ id: 'a b' }, 'id'],
    [{ summary: 'two\nlines' }, 'summary'],
    [{ references: [{ type: 'TYPE_WEB', url: '' }] }, 'references[0].url'],
    [{ severities: [{ type: 'TYPE_CVSS_V3', score: 'a b' }] }, 'severities[0].score'],
    [{ aliases: ['x', 'a b'] }, 'aliases'],
  ] as const) {
    assertInvalid(await send(good, vulnerability('BAD-1', wrong)), `vulnerabilities[1].${field}`)
  }
  assertInvalid(await send(), 'vulnerabilities')
  assert.equal((await metadata('id=GOOD-1')).totalCount, '0')
})

test('advisories get their severity from the vulnerabilities in their aliases', async () => {
  const v2 = { type: 'TYPE_CVSS_V2', score: 'AV:L/AC:L/Au:N/C:N/I:N/A:P' }
  const severe = { type: 'TYPE_CVSS_V3', score: v3 }
  ok(await send(vulnerability('S-1', { aliases: ['CVE-S'], severities: [severe] })))
  ok(await send(vulnerability('S-2', { aliases: ['GHSA-S'], severities: [severe, v2] })))
  const org = (await pinfold.seed.group()).uid
  const advisory = (advisoryId: string, aliases: string[]) => ({
    origin: 'o',
    advisory: {
      advisoryId,
      aliases,
      author: 'a',
      artifactName: 'n',
      events: [{ createTime: day(1), author: 'a', fixed: {} }],
    },
  })
  await importSamples(pinfold, org, [advisory('SEV-1', ['CVE-S', 'GHSA-S']), advisory('SEV-2', ['CVE-UNKNOWN'])])
  const { advisories } = ok(
    await operator.get('/vulnerabilities/v2/advisories?advisory_ids=SEV-1,SEV-2&order_by=advisory_id'),
  )
  assert.deepEqual(
    advisories.map(({ severities }: Json) => severities),
    [[v2, severe], []],
  )
  const { body } = await operator.get(`/vulnerabilities/v2/advisories/${advisories[0].uid}`)
  assert.deepEqual(body.severities, [v2, severe])
})

const documents = async (query: string) => ok(await anybody.get(`/advisory/v2/documents?${query}`))

test('published documents contain the approved events of the public organization, and nothing of other organizations', async () => {
  assert.deepEqual(await documents(''), { documents: [], nextPageToken: '', totalCount: '0', skipped: 0 })
  const open = (await pinfold.seed.group('', { name: 'public' })).uid
  const folder = (await pinfold.seed.group(open)).uid
  const closed = (await pinfold.seed.group()).uid
  const detection = { scanv1: { scanner: 'grype', subpackage: 'sub', component: 'c' } }
  const pending = { reviewState: 'REVIEW_STATE_PENDING' }
  const one = (advisoryId: string, origin: string, aliases: string[], ...events: Json[]) => ({
    origin,
    advisory: {
      advisoryId,
      aliases,
      author: 'a',
      artifactName: origin,
      events: events.map((event, i) => ({ createTime: day(i), author: 'a', ...event })),
    },
  })
  await importSamples(pinfold, open, [
    one('D-2', 'curl', ['CVE-A'], { detection }, { ...pending, fixed: { fixedVersion: '2' } }),
    one('D-1', 'curl', ['CVE-B'], { falsePositiveDetermination: { type: 'TYPE_INLINE_MITIGATIONS_EXIST' } }),
    one('D-3', 'curl', ['CVE-C'], { ...pending, fixed: {} }),
    one('D-4', 'zlib', ['CVE-A'], { ...pending, detection: { manual: {} } }),
    one('D-5', 'perl', ['CVE-D'], { patched: { patchedVersions: ['1'] } }),
  ])
  await importSamples(pinfold, folder, [
    one('D-6', 'bash', ['CVE-A'], { pendingUpstreamFix: { note: 'n' } }, { patched: {} }),
  ])
  await importSamples(pinfold, closed, [one('D-7', 'secret', ['CVE-A'], { fixed: {} })])

  const all = await documents('')
  assert.equal(all.totalCount, '2')
  assert.deepEqual(
    all.documents.map(({ id }: Json) => id),
    ['bash', 'curl'],
  )
  const [bash, curl] = all.documents
  assert.deepEqual(
    curl.advisories.map(({ id }: Json) => id),
    ['D-1', 'D-2'],
  )
  const [told] = curl.advisories[1].events
  assert.equal(curl.advisories[1].events.length, 1)
  assert.deepEqual(
    [told.timestamp, told.detection.scanv1.subpackageName, told.detection.scanv1.componentName],
    [day(0), 'sub', 'c'],
  )
  assert.deepEqual(bash.advisories[0].events, [{ timestamp: day(0), pendingUpstreamFix: { note: 'n' } }])
  assert.deepEqual(bash.advisories[0].aliases, ['CVE-A'])

  const found = async (query: string) => (await documents(query)).documents.map(({ id }: Json) => id)
  assert.deepEqual(await found('id=curl'), ['curl'])
  assert.deepEqual(await found('id=secret'), [])
  assert.deepEqual(await found('cves=CVE-A'), ['bash', 'curl'])
  assert.deepEqual(await found('cves=CVE-B,CVE-X'), ['curl'])
  assert.deepEqual(await found('cves=CVE-C'), [])
  assert.deepEqual(await found('id=bash&cves=CVE-B'), [])
  assert.deepEqual(await found('order_by=id%20desc'), ['curl', 'bash'])
  const first = await documents('page_size=1')
  assert.deepEqual([first.documents.length, first.totalCount], [1, '2'])
  assert.deepEqual(await found(`page_size=1&page_token=${first.nextPageToken}`), ['curl'])
})
