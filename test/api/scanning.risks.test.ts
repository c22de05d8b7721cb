// Accepted risks: permissions, scope, expiry, and reports of past days, which stay the same.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { expireRisksJob } from '#domains/scanning/risks/risks.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let [folder, app, worker] = ['', '', '']
let [image, other] = ['', '']
let uids: Record<'owner' | 'viewer' | 'stranger' | 'elsewhere', string>
let [owner, viewer, stranger, elsewhere] = [] as unknown as [Client, Client, Client, Client]
before(async () => {
  registry = await startRegistry({ clock: () => now })
  const { seed, org } = registry
  folder = (await seed.group(org.uid, { name: 'shop' })).uid
  app = (await seed.repo(folder, { name: 'app' })).uid
  worker = (await seed.repo(org.uid, { name: 'worker' })).uid
  const other = await seed.group('', { name: 'other' })
  uids = {
    owner: (await seed.member(org.uid, roleUids.owner)).uid,
    viewer: (await seed.member(org.uid, roleUids.viewer)).uid,
    stranger: (await seed.person()).uid,
    elsewhere: (await seed.member(other.uid, roleUids.owner)).uid,
  }
  await at('2026-03-01T08:00:00Z')
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens are issued for the current test time. */
async function at(time: string): Promise<void> {
  now = new Date(time)
  owner = await registry.as(uids.owner)
  viewer = await registry.as(uids.viewer)
  stranger = await registry.as(uids.stranger)
  elsewhere = await registry.as(uids.elsewhere)
}

const base = '/registry/v2/riskAcceptances'
const risk = (more: Json = {}): Json => ({
  vulnerability: 'CVE-2026-1',
  reason: 'not reachable from outside',
  expireTime: '2026-03-20T00:00:00.000Z',
  ...more,
})
const accept = async (scope: string, more: Json = {}, client = owner) => client.post(`${base}/${scope}`, risk(more))
const findings = async (repo = app, digest = image): Promise<Json[]> =>
  ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)).findings
const reported = async (digest = image): Promise<string[]> => {
  const { items } = ok(await viewer.get(`/registry/v1/vuln_reports?digest=${digest}`))
  return (items[0]?.vulnerabilities ?? []).map(({ id }: Json) => id)
}
const counted = async (repo = 'acme/shop/app', from = ''): Promise<string[][]> => {
  const since = from === '' ? '' : `&from=${from}`
  const { items } = ok(await viewer.get(`/registry/v1/vuln_reports/counts?repo=${repo}&tag=latest${since}`))
  return items.map(({ cveIds }: Json) => cveIds)
}

test('does not count findings with an accepted risk', async () => {
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('ALPINE-CVE-2026-1', 'Alpine:v3.19', 'openssl', '9', { upstream: ['CVE-2026-1'] }),
    recordAbout('CVE-2026-2', 'Alpine:v3.19', 'musl', '9'),
    recordAbout('ADV-12', 'Alpine:v3.19', 'zlib', '9', { upstream: ['CVE-2026-11', 'CVE-2026-12'] }),
  ])
  const lines = ['libssl3 3.1.4-r2 openssl', 'libcrypto3 3.1.4-r2 openssl', 'musl 1-r0', 'zlib 1-r0']
  image = await pushAndScan(registry, 'acme/shop/app', apkLayer('alpine', '3.19.1', lines), 'latest')
  other = await pushAndScan(registry, 'acme/worker', apkLayer('alpine', '3.19.1', lines), 'latest')
  assert.deepEqual(await reported(), ['CVE-2026-1', 'CVE-2026-11', 'CVE-2026-12', 'CVE-2026-2'])
})

let accepted: Json
test('a risk accepted in a folder is not counted in this folder, and is shown with actor and reason', async () => {
  await at('2026-03-02T08:00:00Z')
  const events = await eventsOf(registry, async () => {
    accepted = ok(await accept(folder, { vulnerability: 'ALPINE-CVE-2026-1' }))
  })
  assert.deepEqual(
    [accepted.vulnerability, accepted.state, accepted.actor, accepted.createTime],
    ['CVE-2026-1', 'LIVE', uids.owner, now.toISOString()],
  )
  assert.deepEqual(
    events.map(({ type, subject, group, actor }) => [type, subject, group, actor]),
    [['dev.pinfold.control.scanning.risk.accepted.v1', accepted.uid, folder, uids.owner]],
  )
  assert.deepEqual(await counted(), [['CVE-2026-11', 'CVE-2026-12', 'CVE-2026-2']])
  assert.deepEqual(await counted('acme/worker'), [['CVE-2026-1', 'CVE-2026-11', 'CVE-2026-12', 'CVE-2026-2']])
  const shown = (await findings()).filter(({ vulnerabilities }) => vulnerabilities.includes('CVE-2026-1'))
  assert.equal(shown.length, 2)
  assert.deepEqual(shown[0]!.acceptedBy, [
    {
      vulnerability: 'CVE-2026-1',
      riskAcceptanceUid: accepted.uid,
      vexSignerUid: '',
      reason: 'not reachable from outside',
      actor: uids.owner,
      expireTime: '2026-03-20T00:00:00.000Z',
    },
  ])
  assert.ok((await findings(worker, other)).every(({ acceptedBy }) => acceptedBy.length === 0))
  const { images } = ok(await viewer.get('/registry/v2/vulnerableImages?vulnerability=CVE-2026-1'))
  assert.deepEqual(images.map(({ repoUid, state }: Json) => [repoUid === app, state]).sort(), [
    [false, 'AFFECTED'],
    [true, 'ACCEPTED'],
  ])
})

test('a report by digest uses the accepted risks of one of its repositories only', async () => {
  await pushAndScan(registry, 'acme/worker', apkLayer('alpine', '3.19.1', ['libssl3 1-r0 openssl']), 'same')
  const pusher = await registry.registryAs(registry.pusher.uid)
  assert.ok(pusher)
  assert.equal(image, other)
  assert.ok((await reported()).includes('CVE-2026-1'))
  ok(await accept(worker))
  assert.ok(!(await reported()).includes('CVE-2026-1'))
})

test('accepting a risk does not change reports of past days', async () => {
  const of = async (query: string) => (await viewer.get(`/registry/v1/vuln_reports/${query}`)).text
  const query = 'counts?repo=acme/shop/app&tag=latest&from=2026-03-01T00:00:00Z&to=2026-03-02T23:59:59Z'
  await at('2026-03-03T08:00:00Z')
  const before = await of(query)
  ok(await accept(app, { vulnerability: 'CVE-2026-2' }))
  assert.deepEqual(await counted(), [['CVE-2026-11', 'CVE-2026-12']])
  assert.equal(await of(query), before)
})

test('a record with several vulnerabilities counts for those without an accepted risk', async () => {
  ok(await accept(app, { vulnerability: 'CVE-2026-11' }))
  assert.deepEqual(await counted(), [['CVE-2026-12']])
})

test('a risk can be accepted for a single image or package', async () => {
  const { uid } = ok(await accept(app, { vulnerability: 'CVE-2026-12', digest: `sha256:${'0'.repeat(64)}` }))
  assert.deepEqual(await counted(), [['CVE-2026-12']])
  ok(await owner.post(`${base}/${uid}:revoke`, {}))
  ok(await accept(app, { vulnerability: 'CVE-2026-12', package: 'pkg:apk/alpine/busybox' }))
  assert.deepEqual(await counted(), [['CVE-2026-12']])
  const made = ok(
    await accept(app, { vulnerability: 'CVE-2026-12', package: 'pkg:apk/alpine/zlib?arch=x86_64', digest: image }),
  )
  assert.equal(made.package, 'pkg:apk/alpine/zlib')
  assert.deepEqual(await counted(), [[]])
  ok(await owner.post(`${base}/${made.uid}:revoke`, {}))
})

test('a revoked acceptance is still listed, and the risk counts again', async () => {
  await at('2026-03-04T08:00:00Z')
  let revoked: Json = {}
  const events = await eventsOf(registry, async () => {
    revoked = ok(await owner.post(`${base}/${accepted.uid}:revoke`, { reason: 'reachable after all' }))
  })
  assert.deepEqual(
    events.map(({ type }) => type),
    ['dev.pinfold.control.scanning.risk.revoked.v1'],
  )
  assert.deepEqual(
    [revoked.state, revoked.revokedBy, revoked.revokeReason, revoked.endTime],
    ['REVOKED', uids.owner, 'reachable after all', now.toISOString()],
  )
  assert.ok((await counted())[0]!.includes('CVE-2026-1'))
  assert.deepEqual(await eventsOf(registry, async () => ok(await owner.post(`${base}/${accepted.uid}:revoke`, {}))), [])
  assert.deepEqual(ok(await viewer.get(`${base}/${accepted.uid}`)), revoked)
  const audit = ok(await owner.get(`/events/v2/audit?subject=${accepted.uid}`)).auditEntries
  assert.equal(audit.length, 2)
})

test('after an acceptance expires, the risk counts at once, and a job sends one event', async () => {
  await at('2026-03-19T23:59:00Z')
  assert.ok(!(await counted())[0]!.includes('CVE-2026-2'))
  assert.deepEqual(await eventsOf(registry, () => runJob(registry.app, expireRisksJob)), [])
  await at('2026-03-20T00:00:30Z')
  assert.ok((await counted())[0]!.includes('CVE-2026-2'))
  const events = await eventsOf(registry, () => runJob(registry.app, expireRisksJob))
  assert.equal(events.length, 4)
  for (const { type, body } of events) {
    assert.equal(type, 'dev.pinfold.control.scanning.risk.expired.v1')
    assert.deepEqual(
      [body.risk_acceptance.state, body.risk_acceptance.end_time],
      ['EXPIRED', '2026-03-20T00:00:00.000Z'],
    )
  }
  assert.deepEqual(await eventsOf(registry, () => runJob(registry.app, expireRisksJob)), [])
})

test('accepting and revoking require permission to manage vulnerabilities, and reading requires permission to see reports', async () => {
  const expireTime = '2026-04-01T00:00:00.000Z'
  for (const client of [viewer, stranger, elsewhere]) {
    assertDenied(await accept(app, { expireTime }, client))
    assertDenied(await client.post(`${base}/${accepted.uid}:revoke`, {}))
  }
  for (const client of [stranger, elsewhere]) {
    assertDenied(await client.get(`${base}/${accepted.uid}`))
    assertDenied(await client.get(`${base}?scopeUid=${app}`))
    assert.deepEqual(ok(await client.get(base)).riskAcceptances, [])
  }
  const missing = `${folder}/${'0'.repeat(16)}`
  assertNotFound(await accept(missing, { expireTime }), 'iam.pinfold.dev/Group', missing)
  assertNotFound(await viewer.get(`${base}/${missing}`), 'registry.pinfold.dev/RiskAcceptance', missing)
})

test('refuses an acceptance without a reason, an expiry or a vulnerability, and names each field', async () => {
  const field = (name: string) => `risk_acceptance.${name}`
  const fails = async (more: Json, ...fields: string[]) => assertInvalid(await accept(app, more), ...fields.map(field))
  const expireTime = '2026-04-01T00:00:00.000Z'
  await fails({ expireTime, vulnerability: '' }, 'vulnerability')
  await fails({ expireTime, vulnerability: 'a b' }, 'vulnerability')
  await fails({ expireTime, reason: ' ' }, 'reason')
  await fails({ expireTime, reason: 'x'.repeat(2001) }, 'reason')
  await fails({ expireTime, digest: 'latest' }, 'digest')
  await fails({ expireTime, package: 'zlib' }, 'package')
  await fails({ expireTime: undefined }, 'expire_time')
  await fails({ expireTime: '2026-03-01T00:00:00Z' }, 'expire_time')
  await fails({ expireTime: '2028-03-01T00:00:00Z' }, 'expire_time')
})

test('lists active acceptances in pages, and ended ones on request', async () => {
  const expireTime = '2026-04-01T00:00:00.000Z'
  for (const id of ['CVE-2026-5', 'CVE-2026-6', 'CVE-2026-7'])
    ok(await accept(folder, { expireTime, vulnerability: id }))
  const all = ok(await viewer.get(`${base}?scopeUid=${folder}`))
  assert.equal(all.riskAcceptances.length, 3)
  const page = ok(await viewer.get(`${base}?scopeUid=${folder}&pageSize=2`))
  const rest = ok(await viewer.get(`${base}?scopeUid=${folder}&pageSize=2&pageToken=${page.nextPageToken}`))
  assert.deepEqual([...page.riskAcceptances, ...rest.riskAcceptances], all.riskAcceptances)
  assert.deepEqual(ok(await viewer.get(`${base}?scopeUid=${worker}`)).riskAcceptances, [])
  assert.ok(ok(await viewer.get(`${base}?includeEnded=true`)).riskAcceptances.length > 5)
})
