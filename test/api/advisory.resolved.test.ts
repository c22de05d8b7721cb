import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { SecurityAdvisoryService } from '#gen/pinfold/advisory/v2/security_advisory_pb.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { startWorkers, type Workers } from '#workers.ts'
import { readAdvisories } from '../../src/cli/imports/advisory-yaml.ts'
import { assertInvalid, assertNotFound } from '../support/expect.ts'
import { GrpcError, grpcClientOf } from '../support/grpc.ts'
import { allRead, alpine, pushLayers } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { indexOf, startRegistry, type TestRegistry } from '../support/registry.ts'

const path = '/advisory/v2/images/resolvedVulns'
const apk = 'lib/apk/db/installed'
const start = '2026-03-01T00:00:00.000Z'
let now = new Date(start)
let registry: TestRegistry
let reader: Workers
let publicOrg: string
before(async () => {
  registry = await startRegistry({ clock: () => now })
  reader = await startWorkers(registry.app, { jobs: [readImages] })
  publicOrg = (await registry.seed.group('', { name: 'public' })).uid
})
after(async () => {
  await reader.close()
  await registry[Symbol.asyncDispose]()
})

let count = 0
const newName = () => `image-${count++}`
const operator = () => registry.as(operatorUid)
const iso = (time: string) => new Date(time).toISOString()

/** Pushes with the clock at the given time. */
async function pushAt(time: string, name: string, layers: (LayerEntries | Buffer)[], tag = 'latest') {
  now = new Date(time)
  const pusher = await registry.registryAs(registry.pusher.uid)
  const image = await pushLayers(pusher, `acme/${name}`, layers, tag)
  await allRead(registry)
  return image
}

const packages = (...lines: string[]): LayerEntries => ({
  [apk]: lines
    .map((line) => line.split(' '))
    .map(([name, version, origin = name]) => `P:${name}\nV:${version}\nA:x86_64\no:${origin}\n`)
    .join('\n'),
})

async function importInto(parent: string, advisories: object[]): Promise<void> {
  const answer = await (await operator()).post('/control/v1/advisories:import', { parent, advisories })
  assert.equal(answer.status, 200, answer.text)
}

/** Resets the clock to the start of the test, because the test tokens are valid at that time. */
async function atStart<T>(work: () => Promise<T>): Promise<T> {
  const then = now
  now = new Date(start)
  try {
    return await work()
  } finally {
    now = then
  }
}

let ids = 0
/** An apk advisory with approved events of these kinds, in this order. */
function advisory(artifactName: string, cve: string, events: Json[], more: Json = {}): Json {
  return {
    origin: artifactName,
    advisory: {
      advisoryId: `TST-${String(ids++).padStart(4, '0')}`,
      author: 'tests',
      artifactName,
      artifactType: 'apk',
      aliases: [cve],
      events: events.map((event, i) => ({
        createTime: iso(`2025-01-0${i + 1}`),
        author: 'tests',
        reviewState: 'REVIEW_STATE_APPROVED',
        ...event,
      })),
      ...more,
    },
  }
}
const fixed = (fixedVersion: string) => ({ fixed: { fixedVersion } })

/** Days of a report with resolved vulnerabilities, each with the aliases of these vulnerabilities. */
async function resolvedIn(client: Client, images: string[], from: string, to: string): Promise<Json> {
  const refs = images.map((image) => `imageRefs=${image}`).join('&')
  const answer = await client.get(`${path}?${refs}&startTime=${iso(from)}&endTime=${iso(to)}&pageSize=200`)
  assert.equal(answer.status, 200, answer.text)
  const days = (answer.body.resolvedVulnsReports as Json[]).map(({ date, resolvedVulns = [] }) => {
    return [date.slice(5, 10), (resolvedVulns as Json[]).flatMap(({ aliases }) => aliases).sort()] as const
  })
  return Object.fromEntries(days.filter(([, aliases]) => aliases.length > 0))
}

test('the example in the documentation returns the result that was calculated by hand', async () => {
  const examples = ['../../examples/advisories/busybox.advisories.yaml', '../data/advisories/zlib.advisories.yaml']
  for (const file of examples) {
    const text = readFileSync(new URL(file, import.meta.url), 'utf8')
    const { records, problems } = readAdvisories(file, text, 'import')
    assert.deepEqual(problems, [])
    await importInto(
      publicOrg,
      records.map(({ body }) => body),
    )
  }
  const name = newName()
  await pushAt('2026-03-01T10:00:00Z', name, [alpine('alpine-3.10')])
  await pushAt('2026-03-03T10:00:00Z', name, [alpine('alpine-3.11')])
  await pushAt('2026-03-05T10:00:00Z', name, [alpine('alpine-14-packages')])
  await pushAt('2026-03-07T10:00:00Z', name, [alpine('alpine-2-packages')])

  const query = `imageRefs=acme/${name}&startTime=2026-03-01T00:00:00Z&endTime=2026-03-08T00:00:00Z`
  const { body } = await (await operator()).get(`${path}?${query}`)
  assert.deepEqual([body.totalCount, body.skipped, body.nextPageToken ?? ''], ['8', 0, ''])
  assert.deepEqual(
    body.resolvedVulnsReports.map(({ date }: Json) => date),
    [1, 2, 3, 4, 5, 6, 7, 8].map((day) => `2026-03-0${day}T00:00:00.000Z`),
  )
  // Version 1 returns all days in one response, and uses other names for severities.
  const dates = 'from=2026-03-01T00:00:00Z&to=2026-03-08T00:00:00Z'
  const v1 = await (await operator()).get(`/advisory/v1/images/resolved_vulns?imageRefs=acme/${name}&${dates}`)
  assert.deepEqual(v1.body.items, JSON.parse(JSON.stringify(body.resolvedVulnsReports).replaceAll('TYPE_CVSS', 'CVSS')))
  const [, , , , fifth, , seventh, eighth] = body.resolvedVulnsReports as Json[]
  const aliasesOf = (report: Json | undefined) =>
    (report!.resolvedVulns as Json[]).map(({ id, aliases }) => [id, ...aliases])
  assert.deepEqual(aliasesOf(fifth), [
    ['CGA-c95q-245j-h3hq', 'CVE-2022-28391', 'GHSA-h8c3-8522-vxc6'],
    ['CGA-mv94-rqj7-28m3', 'CVE-2022-30065', 'GHSA-gq73-rh3m-3php'],
  ])
  assert.deepEqual(aliasesOf(seventh), [
    ['CGA-jq67-276v-crw8', 'CVE-2023-45853', 'GHSA-mq29-j5xf-cjwr'],
    ['CGA-phgv-wf69-p9vc', 'CVE-2018-25032', 'GHSA-jc36-42cf-vqwj'],
    ['CGA-x22h-f4m4-2grc', 'CVE-2022-37434', 'GHSA-cfmr-vrgj-vqwv'],
  ])
  assert.deepEqual(eighth?.resolvedVulns ?? [], [])
  const all = await resolvedIn(await operator(), [`acme/${name}`], '2026-03-01', '2026-03-08')
  assert.deepEqual(Object.keys(all), ['03-05', '03-07'])
})

test('counts only tag updates within the time range, both ends included, of tags that existed before', async () => {
  await importInto(publicOrg, [
    advisory('range', 'CVE-RANGE-2', [fixed('2-r0')]),
    advisory('range', 'CVE-RANGE-3', [fixed('3-r0')]),
  ])
  const name = newName()
  await pushAt('2026-03-09T12:00:00Z', name, [packages('range 1-r0')])
  await pushAt('2026-03-10T12:00:00Z', name, [packages('range 2-r0')])
  await pushAt('2026-03-10T18:00:00Z', name, [packages('range 3-r0')])
  const client = await operator()
  const of = (from: string, to: string) => resolvedIn(client, [`acme/${name}`], from, to)
  const [two, three] = ['CVE-RANGE-2', 'CVE-RANGE-3']
  assert.deepEqual(await of('2026-03-10T12:00:00Z', '2026-03-10T18:00:00Z'), { '03-10': [two, three] })
  assert.deepEqual(await of('2026-03-10T12:00:00.001Z', '2026-03-10T18:00:00Z'), { '03-10': [three] })
  assert.deepEqual(await of('2026-03-10T12:00:00Z', '2026-03-10T17:59:59.999Z'), { '03-10': [two] })
  assert.deepEqual(await of('2026-03-11', '2026-03-12'), {})
  assert.deepEqual(await of('2026-01-01', '2026-03-09T23:00:00Z'), {})
})

test('a vulnerability counts as resolved on a day only if it is absent at the end of the day', async () => {
  await importInto(publicOrg, [advisory('flap', 'CVE-FLAP', [fixed('2-r0')])])
  const name = newName()
  const [old, repaired] = [packages('flap 1-r0'), packages('flap 2-r0')]
  const moves: [string, LayerEntries][] = [
    ['11T01', old],
    ['11T02', repaired],
    ['11T03', old],
    ['12T01', repaired],
    ['12T02', old],
    ['12T03', repaired],
    ['13T01', old],
    ['14T01', repaired],
  ]
  for (const [time, image] of moves) await pushAt(`2026-03-${time}:00:00Z`, name, [image])
  const found = await resolvedIn(await operator(), [`acme/${name}`], '2026-03-11', '2026-03-15')
  assert.deepEqual(found, { '03-12': ['CVE-FLAP'], '03-14': ['CVE-FLAP'] })
})

test('compares each tag and image separately, and lists a vulnerability once if several tags resolve it', async () => {
  await importInto(publicOrg, [
    advisory('one', 'CVE-ONE', [fixed('2-r0')]),
    advisory('two', 'CVE-TWO', [fixed('2-r0')]),
  ])
  const [first, second] = [newName(), newName()]
  const both = [packages('one 1-r0', 'two 1-r0')]
  await pushAt('2026-03-16T01:00:00Z', first, both)
  await pushAt('2026-03-16T01:00:00Z', first, both, 'edge')
  await pushAt('2026-03-16T01:00:00Z', second, both)
  await pushAt('2026-03-17T01:00:00Z', first, [packages('one 2-r0', 'two 1-r0')])
  await pushAt('2026-03-17T02:00:00Z', second, [packages('one 2-r0', 'two 1-r0')])
  await pushAt('2026-03-18T01:00:00Z', first, [packages('one 1-r0', 'two 2-r0')], 'edge')
  const client = await operator()
  const of = (...images: string[]) => resolvedIn(client, images, '2026-03-16', '2026-03-19')
  const [one, two] = [{ '03-17': ['CVE-ONE'] }, { '03-18': ['CVE-TWO'] }]
  assert.deepEqual(await of(`acme/${first}`), one)
  assert.deepEqual(await of(`acme/${first}:latest`), one)
  assert.deepEqual(await of(`acme/${first}:edge`), two)
  assert.deepEqual(await of(`acme/${first}:edge,latest`, `acme/${second}`, `acme/${first}`), { ...one, ...two })
  assert.deepEqual(await of(`acme/${first}:never-pushed`), {})
  const { body } = await client.get(`/registry/v2/repos?name=${first}`)
  assert.deepEqual(await of(`${body.repos[0].uid}:edge`), two)
})

test('skips an image with unknown contents, and counts no vulnerability as resolved by it', async () => {
  await importInto(publicOrg, [
    advisory('gap', 'CVE-GAP', [fixed('2-r0')]),
    advisory('other', 'CVE-OTHER', [fixed('9')]),
  ])
  const name = newName()
  await pushAt('2026-03-20T01:00:00Z', name, [packages('gap 1-r0', 'other 1')])
  await pushAt('2026-03-21T01:00:00Z', name, [{ 'no/database': 'here' }])
  await pushAt('2026-03-22T01:00:00Z', name, [Buffer.from('no archive at all'.repeat(100))])
  await pushAt('2026-03-23T01:00:00Z', name, [packages('gap 2-r0', 'other 1')])
  const client = await operator()
  const of = (from: string, to: string) => resolvedIn(client, [`acme/${name}`], from, to)
  assert.deepEqual(await of('2026-03-20', '2026-03-24'), { '03-23': ['CVE-GAP'] })
  assert.deepEqual(await of('2026-03-22', '2026-03-24'), { '03-23': ['CVE-GAP'] })
})

test('a vulnerability that remains on one platform is not resolved', async () => {
  await importInto(publicOrg, [advisory('multi', 'CVE-MULTI', [fixed('2-r0')])])
  const name = newName()
  const pushIndex = async (time: string, ...versions: string[]) => {
    const children = []
    for (const [i, version] of versions.entries()) {
      children.push(await pushAt(time, name, [packages(`multi ${version}`), { platform: String(i) }], `platform-${i}`))
    }
    const pusher = await registry.registryAs(registry.pusher.uid)
    await pusher.pushManifest(`acme/${name}`, indexOf(children), 'latest')
    await allRead(registry)
  }
  await pushIndex('2026-03-25T01:00:00Z', '1-r0', '1-r0')
  await pushIndex('2026-03-26T01:00:00Z', '2-r0', '1-r0')
  await pushIndex('2026-03-27T01:00:00Z', '2-r0', '2-r0')
  const found = await resolvedIn(await operator(), [`acme/${name}`], '2026-03-25', '2026-03-28')
  assert.deepEqual(found, { '03-27': ['CVE-MULTI'] })
})

test('the latest approved determination decides if a package is affected', async () => {
  const note = { note: 'why' }
  const falsePositive = { falsePositiveDetermination: { type: 'TYPE_INLINE_MITIGATIONS_EXIST', ...note } }
  const [affected, detected] = [{ truePositiveDetermination: note }, { detection: { manual: {} } }]
  const pending = { reviewState: 'REVIEW_STATE_PENDING' }
  const cases: [string, Json[], Json?][] = [
    ['FIXED', [fixed('2-r0')]],
    ['FIXED-EARLIER', [fixed('1-r0')]],
    ['FIXED-NO-VERSION', [fixed('soon')]],
    ['DETECTED', [detected]],
    ['NOT-ANALYSED', [{ analysisNotPlanned: note }]],
    ['FIXED-THEN-DETECTED', [fixed('2-r0'), detected]],
    ['FIXED-THEN-FALSE', [fixed('2-r0'), falsePositive]],
    ['FALSE-THEN-FIXED', [falsePositive, fixed('2-r0')]],
    ['TRUE', [affected]],
    ['WAITING', [{ pendingUpstreamFix: note }]],
    ['NOT-PLANNED', [{ fixNotPlanned: note }]],
    ['PATCHED-BEFORE', [{ patched: { patchedVersions: ['1-r0'] } }]],
    ['PATCHED', [{ patched: { patchedVersions: ['2-r0'] } }]],
    ['NOT-APPROVED', [{ ...fixed('2-r0'), ...pending }]],
    ['FALSE-NOT-APPROVED', [fixed('2-r0'), { ...falsePositive, ...pending }]],
    ['OTHER-ARCHITECTURE', [fixed('2-r0')], { artifactArchitecture: 'aarch64' }],
    ['ARCHITECTURE', [fixed('2-r0')], { artifactArchitecture: 'x86_64' }],
    ['OTHER-KIND', [fixed('2-r0')], { artifactType: 'deb' }],
  ]
  await importInto(
    publicOrg,
    cases.map(([cve, events, more]) => advisory('states', cve, events, more)),
  )
  await importInto(publicOrg, [advisory('states-lib', 'BY-NAME', [fixed('2-r0')])])
  const name = newName()
  await pushAt('2026-03-29T01:00:00Z', name, [packages('states-lib 1-r0 states')])
  await pushAt('2026-03-30T01:00:00Z', name, [packages('states-lib 2-r0 states')])
  await pushAt('2026-03-31T01:00:00Z', name, [packages('nothing 1')])
  const found = await resolvedIn(await operator(), [`acme/${name}`], '2026-03-29', '2026-03-31T12:00:00Z')
  const updated = [
    'ARCHITECTURE',
    'BY-NAME',
    'FALSE-NOT-APPROVED',
    'FALSE-THEN-FIXED',
    'FIXED',
    'FIXED-THEN-DETECTED',
    'PATCHED',
  ]
  // Resolved when the package was removed: vulnerabilities without a fixed version, and one that only later versions had.
  assert.deepEqual(found, { '03-30': updated, '03-31': ['NOT-PLANNED', 'PATCHED-BEFORE', 'TRUE', 'WAITING'] })
})

test('compares dpkg packages by the version of their source package, in dpkg order', async () => {
  await importInto(publicOrg, [advisory('src', 'CVE-DEB', [fixed('1:1.0-2~deb12u1')], { artifactType: 'deb' })])
  const status = (version: string, source: string) => ({
    'var/lib/dpkg/status': `Package: bin\nStatus: install ok installed\nVersion: ${version}\nSource: ${source}\nArchitecture: amd64\n`,
  })
  const name = newName()
  await pushAt('2026-04-01T01:00:00Z', name, [status('9', 'src (1:1.0-1)')])
  await pushAt('2026-04-02T01:00:00Z', name, [status('9', 'src (1:1.0-2~)')])
  await pushAt('2026-04-03T01:00:00Z', name, [status('1', 'src (1:1.0-2)')])
  assert.deepEqual(await resolvedIn(await operator(), [`acme/${name}`], '2026-04-01', '2026-04-04'), {
    '04-03': ['CVE-DEB'],
  })
})

test('finds the severity of a resolved vulnerability by its aliases', async () => {
  const score = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
  const vulnerabilities = [{ id: 'CVE-BAD', severities: [{ type: 'TYPE_CVSS_V3', score }] }]
  const imported = await (await operator()).post('/control/v1/vulnerabilities:import', { vulnerabilities })
  assert.equal(imported.status, 200, imported.text)
  await importInto(publicOrg, [advisory('bad', 'CVE-BAD', [fixed('2-r0')])])
  const name = newName()
  await pushAt('2026-04-05T01:00:00Z', name, [packages('bad 1-r0')])
  await pushAt('2026-04-05T02:00:00Z', name, [packages('bad 2-r0')])
  const { body } = await (await operator()).get(
    `${path}?imageRefs=acme/${name}&startTime=2026-04-05T00:00:00Z&endTime=2026-04-05T03:00:00Z`,
  )
  const [found] = body.resolvedVulnsReports[0].resolvedVulns as Json[]
  assert.deepEqual([found?.aliases, found?.cvssSeverities], [['CVE-BAD'], [{ type: 'TYPE_CVSS_V3', score }]])
})

test('counts only images where the caller has all four capabilities, and internal advisories only if the caller can list them', async () => {
  await importInto(registry.org.uid, [advisory('secret', 'CVE-SECRET', [fixed('2-r0')])])
  await importInto(publicOrg, [advisory('open', 'CVE-OPEN', [fixed('2-r0')])])
  const name = newName()
  await pushAt('2026-04-06T01:00:00Z', name, [packages('secret 1-r0', 'open 1-r0')])
  await pushAt('2026-04-06T02:00:00Z', name, [packages('secret 2-r0', 'open 2-r0')])
  const seen = async (group: string, role: string) => {
    const { uid } = await atStart(() => registry.seed.member(group, role))
    return resolvedIn(await registry.as(uid), [`acme/${name}`], '2026-04-06', '2026-04-07')
  }
  const four = ['apk.list', 'repo.list', 'manifest.metadata.list', 'tag.list']
  const roleOf = async (capabilities: string[]) =>
    (await atStart(() => registry.seed.role(registry.org.uid, capabilities))).uid
  const { uid: org } = registry.org
  assert.deepEqual(await seen(org, roleUids.viewer), { '04-06': ['CVE-OPEN', 'CVE-SECRET'] })
  assert.deepEqual(await seen(org, await roleOf(four)), { '04-06': ['CVE-OPEN'] })
  for (const missing of four) {
    assert.deepEqual(await seen(org, await roleOf(four.filter((one) => one !== missing))), {}, missing)
  }
  assert.deepEqual(await seen((await atStart(() => registry.seed.group())).uid, roleUids.viewer), {})
  assert.deepEqual(await seen((await atStart(() => registry.seed.group(org))).uid, roleUids.viewer), {})
})

test('advisories of a folder count only for callers who can list advisories there', async () => {
  const { uid: org } = registry.org
  const folder = await atStart(async () => (await registry.seed.group(org)).uid as string)
  const other = await atStart(async () => (await registry.seed.group(org)).uid as string)
  await importInto(org, [advisory('kept', 'CVE-ORG', [fixed('2-r0')])])
  await importInto(folder, [advisory('kept', 'CVE-FOLDER', [fixed('2-r0')])])
  await importInto(other, [advisory('kept', 'CVE-OTHER', [fixed('2-r0')])])
  const name = newName()
  await pushAt('2026-04-07T01:00:00Z', name, [packages('kept 1-r0')])
  await pushAt('2026-04-07T02:00:00Z', name, [packages('kept 2-r0')])
  const { uid } = await atStart(async () => {
    const reading = (await registry.seed.role(org, ['apk.list', 'repo.list', 'manifest.metadata.list', 'tag.list'])).uid
    const member = await registry.seed.member(org, reading)
    await registry.seed.binding(folder, member.uid, roleUids.viewer)
    return member
  })
  const resolved = await resolvedIn(await registry.as(uid), [`acme/${name}`], '2026-04-07', '2026-04-08')
  assert.deepEqual(resolved, { '04-07': ['CVE-FOLDER'] })
})

test('returns 404 for a missing repository only to callers who could see it', async () => {
  const { uid } = await atStart(async () => registry.seed.member((await registry.seed.group()).uid, roleUids.viewer))
  const range = 'startTime=2026-04-06T00:00:00Z&endTime=2026-04-06T00:00:00Z'
  const stranger = await registry.as(uid)
  for (const repo of ['acme/missing', 'nobody/there', `${registry.org.uid}/${'0'.repeat(16)}`]) {
    const answer = await stranger.get(`${path}?imageRefs=${repo}&${range}`)
    assert.deepEqual([answer.status, answer.body.resolvedVulnsReports.length], [200, 1], repo)
    assertNotFound(
      await (await operator()).get(`${path}?imageRefs=${repo}&${range}`),
      'registry.pinfold.dev/Repo',
      repo,
    )
  }
})

test('pages are in order of days, and together contain each item once', async () => {
  const client = await operator()
  const range = 'imageRefs=acme/image-0&startTime=2026-03-01T00:00:00Z&endTime=2026-03-09T00:00:00Z'
  const daysOf = async (query: string) => {
    const { body, status, text } = await client.get(`${path}?${range}&${query}`)
    assert.equal(status, 200, text)
    const reports = body.resolvedVulnsReports as Json[]
    return { days: reports.map(({ date, resolvedVulns = [] }) => `${date.slice(8, 10)}:${resolvedVulns.length}`), body }
  }
  const whole = (await daysOf('')).days
  assert.deepEqual(whole, ['01:0', '02:0', '03:0', '04:0', '05:2', '06:0', '07:3', '08:0', '09:0'])
  for (const [order, expected] of [
    ['date', whole],
    ['date%20desc', whole.toReversed()],
  ] as const) {
    const seen: string[] = []
    for (let token = ''; ; ) {
      const { days, body } = await daysOf(`pageSize=4&orderBy=${order}&pageToken=${encodeURIComponent(token)}`)
      seen.push(...days)
      assert.equal(body.totalCount, '9')
      token = body.nextPageToken ?? ''
      if (token === '') break
    }
    assert.deepEqual(seen, expected)
  }
  assert.deepEqual((await daysOf('skip=4&pageSize=2')).days, ['05:2', '06:0'])
  assert.deepEqual((await daysOf('skip=9')).days, [])
})

test('an error for a missing or excessive value names the field', async () => {
  const client = await operator()
  const times = 'startTime=2026-03-01T00:00:00Z&endTime=2026-03-02T00:00:00Z'
  const get = (query: string) => client.get(`${path}?${query}`)
  assertInvalid(await get(''), 'image_refs', 'start_time', 'end_time')
  assertInvalid(await get(times), 'image_refs')
  assertInvalid(await get('imageRefs=acme/a&startTime=2026-03-01T00:00:00Z'), 'end_time')
  assertInvalid(await get('imageRefs=acme/a&endTime=2026-03-01T00:00:00Z'), 'start_time')
  assertInvalid(await get('imageRefs=acme/a&startTime=2026-03-02T00:00:00Z&endTime=2026-03-01T00:00:00Z'), 'end_time')
  assertInvalid(await get('imageRefs=acme/a&startTime=2025-03-01T00:00:00Z&endTime=2026-03-03T00:00:00Z'), 'end_time')
  for (const repo of ['web', 'Acme/web', 'acme//web', 'acme/web@sha256', '%C3%A9/x']) {
    assertInvalid(await get(`imageRefs=${repo}&${times}`), 'image_refs[0].repo')
  }
  assertInvalid(await get(`imageRefs=acme/a:x&imageRefs=acme/a:-x&${times}`), 'image_refs[1].tags')
  assertInvalid(await get(`imageRefs=acme/a:&${times}`), 'image_refs')
  assertInvalid(await get(`imageRefs=acme/a:${Array.from({ length: 101 }, (_, i) => `t${i}`)}&${times}`), 'image_refs')
  assertInvalid(await get(`imageRefs=acme/a&${times}&orderBy=id`), 'order_by')
  assertInvalid(await get(`imageRefs=acme/a&${times}&pageSize=-1`), 'page_size')
  const year = 'imageRefs=acme/image-0&startTime=2025-03-01T00:00:00Z&endTime=2026-03-02T00:00:00Z&pageSize=200'
  assert.equal((await get(year)).body.totalCount, '367')
})

test('gRPC returns the same result as REST', async () => {
  const { token } = await operator()
  using client = grpcClientOf(registry, SecurityAdvisoryService, token)
  const answer = await client.listResolvedVulnsReports({
    imageRefs: [{ repo: 'acme/image-0' }],
    startTime: timestampFromDate(new Date('2026-03-05T00:00:00Z')),
    endTime: timestampFromDate(new Date('2026-03-05T23:00:00Z')),
  })
  assert.deepEqual(
    answer.resolvedVulnsReports[0]?.resolvedVulns.map(({ aliases }) => aliases[0]),
    ['CVE-2022-28391', 'CVE-2022-30065'],
  )
  const refused = await client.listResolvedVulnsReports({ imageRefs: [{ repo: '' }] }).catch((error: unknown) => error)
  assert.ok(refused instanceof GrpcError)
  assert.deepEqual([refused.code, refused.fields], [3, ['start_time', 'end_time', 'image_refs[0].repo']])
})
