// Admission policies: denied and allowed pulls for each kind of rule, and the required permissions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { judgeTags } from '#domains/registry/lifecycles/eol-tags.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { pushLayers } from '../support/images.ts'
import type { LayerEntries } from '../support/layers.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { codeOf, indexOf, type RegistryClient, type Reply, startRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-03-01T08:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
let now = start
/** Milliseconds of the monotonic clock. Cached decisions expire when it moves on. */
let machine = 0
let registry: Awaited<ReturnType<typeof startRegistry>>
let [operator, puller, pusher] = [] as unknown as [Client, RegistryClient, RegistryClient]

before(async () => {
  registry = await startRegistry({ clock: () => new Date(now), monotonic: () => machine })
  await registry.seed.subscription(registry.org.uid)
  await on(0)
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1001', 'Alpine:v3.19', 'openssl', '9'),
    recordAbout('CVE-2026-1002', 'Alpine:v3.19', 'zlib', ''),
  ])
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens are issued for the current test time. */
async function on(days: number): Promise<void> {
  now = start + days * day
  machine += 60_000
  operator = await registry.as(operatorUid)
  puller = await registry.registryAs(registry.puller.uid)
  pusher = await registry.registryAs(registry.pusher.uid)
}

const openssl = 'libssl3 3.1.4-r2 openssl'
const zlib = 'zlib 1-r0'
const layer = (...lines: string[]): LayerEntries => apkLayer('alpine', '3.19.1', lines)

let count = 0
/** A repository with an admission policy, and an image that was read and compared. */
async function scene(gate: Json, lines: readonly string[] = [openssl, zlib], mode = 'ENFORCE') {
  const name = `acme/gated${count++}`
  const digest = await pushAndScan(registry, name, layer(...lines, `only${count} 1-r0`), 'latest')
  const { repo } = await registry.app.paths.find(name)
  const made = ok(await operator.post(`/registry/v2/gates/${repo!.uid}`, { name: 'gate', mode, ...gate }))
  return { name, digest, repo: repo!.uid, gate: made }
}
const get = (name: string, reference: string, client = puller): Promise<Reply> =>
  client.call('GET', `${name}/manifests/${reference}`)
const check = async (repo: string, body: Json): Promise<Json[]> =>
  ok(await operator.post(`/registry/v1/repos/${repo}:checkPolicies`, body)).results
const change = async ({ uid }: Json, patch: Json) => {
  machine += 60_000
  return ok(await operator.call('PATCH', `/registry/v2/gates/${uid}`, patch))
}

test('an enforced policy denies vulnerable images by tag and digest, with the reason', async () => {
  const { name, digest, repo, gate } = await scene({ name: 'no-high', vulnerabilities: { leastSeverity: 'HIGH' } })
  for (const reference of ['latest', digest]) {
    const refused = await get(name, reference)
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'DENIED'])
    const [{ message, detail }] = refused.body.errors
    assert.deepEqual(detail, {
      digest,
      gate: gate.uid,
      name: 'no-high',
      reason: 'it has 2 vulnerabilities of severity high or worse',
      count: 2,
    })
    const exempt = `pinfold policies admission exemptions create ${digest} --in ${name} --reason TEXT --until DATE`
    const help = `Pull another image, or ask an owner for an exemption: ${exempt}`
    assert.equal(message, `the admission policy no-high denies ${digest}: ${detail.reason}. ${help}`)
    assert.equal((await puller.call('HEAD', `${name}/manifests/${reference}`)).status, 403)
  }
  const expected = {
    policyId: gate.uid,
    policyName: 'no-high',
    mode: 'POLICY_MODE_ENFORCED',
    result: 'RESULT_DENIED',
    bindingId: repo,
    parameters: {
      ...{ digest, kind: 'vulnerabilities', count: 2 },
      reason: 'it has 2 vulnerabilities of severity high or worse',
    },
    coverage: { state: 'COMPARED', unknownSeverity: 0, summary: 'everything was scanned' },
    gaps: [],
  }
  assert.deepEqual(await check(repo, { digest }), [expected])
  assert.deepEqual(await check(repo, { tag: 'latest' }), [expected])
})

test('a caller with push permission can check the digest of a denied tag with HEAD, to push a fixed image', async () => {
  const { name, digest } = await scene({ vulnerabilities: {} })
  assert.equal((await pusher.call('HEAD', `${name}/manifests/latest`)).status, 200)
  assert.equal((await get(name, digest, pusher)).status, 403)
  await pushLayers(pusher, name, [layer('musl 1-r0')], 'latest')
  assert.equal((await get(name, 'latest')).status, 200, 'nothing is known of it yet')
})

test('a changed policy applies at once, without a cached decision', async () => {
  const { name, gate } = await scene({ vulnerabilities: { leastSeverity: 'CRITICAL' } })
  const path = `/registry/v2/gates/${gate.uid}`
  assert.equal((await get(name, 'latest')).status, 200)
  ok(await operator.call('PATCH', path, { vulnerabilities: { leastSeverity: 'HIGH' } }))
  assert.equal((await get(name, 'latest')).status, 403)
  ok(await operator.call('PATCH', path, { cooldown: { minAgeDays: 1 } }))
  const refused = await get(name, 'latest')
  assert.equal(refused.body.errors[0].detail.reason, 'it has not had a tag for 1 day yet')
})

test('a dry-run policy allows pulls, and the pull event contains its verdict', async () => {
  const { name, digest, gate } = await scene({ vulnerabilities: {} }, undefined, 'DRY_RUN')
  const said = { policy_id: gate.uid, policy_name: 'gate', mode: 'POLICY_MODE_DRY_RUN', result: 'RESULT_DENIED' }
  for (const reference of ['latest', digest]) {
    assert.equal((await get(name, reference)).status, 200)
    assert.deepEqual(await resultsOfLast(), [said])
  }
  await change(gate, { mode: 'ENFORCE' })
  assert.equal((await get(name, 'latest')).status, 403)
  assert.deepEqual(await resultsOfLast(), [{ ...said, mode: 'POLICY_MODE_ENFORCED' }])
  await change(gate, { mode: 'OFF' })
  assert.equal((await get(name, 'latest')).status, 200)
  assert.deepEqual(await resultsOfLast(), [])
})

async function resultsOfLast(): Promise<unknown> {
  await registry.app.registryEvents.flush()
  const row = await registry.app.db.get<{ body: string }>(sql`
    SELECT body FROM events_outbox WHERE type = ${'dev.pinfold.registry.pull.v1'} ORDER BY id DESC LIMIT 1`)
  return JSON.parse(row!.body).policy_results
}

test('a policy counts only vulnerabilities that match its conditions: severity, fix, exploitation or age', async () => {
  const { name, repo, gate, digest } = await scene({ vulnerabilities: { leastSeverity: 'CRITICAL' } })
  const result = async (rule: Json) => {
    await change(gate, { vulnerabilities: rule })
    const [said] = await check(repo, { digest })
    assert.equal((await get(name, 'latest')).status, said!.result === 'RESULT_DENIED' ? 403 : 200)
    return [said!.result, said!.parameters.count]
  }
  assert.deepEqual(await result({ leastSeverity: 'CRITICAL' }), ['RESULT_ALLOWED', 0])
  assert.deepEqual(await result({ onlyFixable: true }), ['RESULT_DENIED', 1])
  assert.deepEqual(await result({ onlyExploited: true }), ['RESULT_ALLOWED', 0])
  const source = { name: 'kev', url: 'https://ranks.example.com/', licence: 'CC0-1.0', ecosystems: [] }
  const { run } = ok(await operator.post('/control/v1/vulnerabilitySources:begin', { source }))
  const ranks = [{ cve: 'CVE-2026-1002', exploited: { addDate: '2026-02-01' } }]
  ok(await operator.post('/control/v1/vulnerabilitySources:putRanks', { run, ranks }))
  assert.deepEqual(await result({ onlyExploited: true }), ['RESULT_DENIED', 1])
  assert.deepEqual(await result({ onlyExploited: true, onlyFixable: true }), ['RESULT_ALLOWED', 0])
  assert.deepEqual(await result({ afterDays: 10 }), ['RESULT_ALLOWED', 0])
  await on(9.9)
  assert.deepEqual(await result({ afterDays: 10 }), ['RESULT_ALLOWED', 0])
  const ids = await openFindings()
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1001', 'Alpine:v3.19', 'openssl', '8')])
  assert.notDeepEqual(await openFindings(), ids, 'what the source says anew is found anew')
  await on(10)
  assert.deepEqual(await result({ afterDays: 10 }), ['RESULT_DENIED', 2])
})

const openFindings = () => registry.app.db.all(sql`SELECT id FROM findings WHERE gone_time = '' ORDER BY id`)

test('does not count vulnerabilities with an accepted risk', async () => {
  const { name, repo } = await scene({ vulnerabilities: {} }, [openssl])
  assert.equal((await get(name, 'latest')).status, 403)
  const risk = { vulnerability: 'CVE-2026-1001', reason: 'not reachable', expireTime: iso(30) }
  ok(await operator.post(`/registry/v2/riskAcceptances/${repo}`, risk))
  machine += 6000
  assert.equal((await get(name, 'latest')).status, 200)
})

test('allows images that wait for a scan, and handles unreadable images as the policy requires', async () => {
  const rule = { vulnerabilities: { unknown: 'DENY' } }
  const { name, repo, gate } = await scene(rule, ['musl 1-r0'])
  assert.equal((await get(name, 'latest')).status, 200)
  const { digest } = await pushLayers(pusher, name, [layer(openssl, 'waits 1-r0')], 'waits')
  const waiting = async (what: string) => {
    machine += 6000
    assert.equal((await get(name, 'waits')).status, 200)
    const [said] = await check(repo, { digest })
    assert.deepEqual([said!.result, said!.parameters.pending], ['RESULT_ALLOWED', true])
    assert.match(said!.parameters.reason, new RegExp(what))
  }
  await waiting('has not been read yet')
  await runJob(registry.app, readImages)
  await waiting('have not been compared')
  await pushAndScan(registry, name, layer('other 1-r0'))
  machine += 6000
  assert.equal((await get(name, 'waits')).status, 403)
  await pushLayers(pusher, name, [Buffer.from('no layer')], 'unreadable')
  await runJob(registry.app, readImages)
  assert.equal((await get(name, 'unreadable')).status, 403)
  await pushAndScan(registry, name, apkLayer('wolfi', '20230201', ['musl 1-r0']), 'silent')
  const silent = await get(name, 'silent')
  assert.deepEqual([silent.status, silent.body.errors[0].detail.reason], [403, 'not scanned: Wolfi has no data source'])
  await change(gate, { vulnerabilities: { unknown: 'PASS' } })
  for (const reference of ['unreadable', 'silent']) assert.equal((await get(name, reference)).status, 200)
})

test('denies a digest until it has been a tag for the minimum age', async () => {
  await on(20)
  const { name } = await scene({ cooldown: { minAgeDays: 7 } })
  const refused = await get(name, 'latest')
  assert.equal(refused.status, 403)
  assert.equal(refused.body.errors[0].detail.reason, 'it has not had a tag for 7 days yet')
  await on(27)
  assert.equal((await get(name, 'latest')).status, 200)
})

test('denies end-of-life products, with or without the grace period of the organization', async () => {
  await on(30)
  const releases = [{ cycle: '22', releaseDate: '2024-01-01', eolDate: '2026-06-15', latest: '22.1' }]
  const product = { name: 'nodejs', label: 'Node.js', aliases: ['node'], purls: [], releases }
  ok(await operator.post('/control/v1/lifecycles:import', { products: [product] }))
  const wolfi = {
    'etc/os-release': 'ID=wolfi\nVERSION_ID=20230201\n',
    'lib/apk/db/installed': 'P:nodejs-22\nV:22.1.0-r0\nA:x86_64\no:nodejs-22\n',
  }
  await pushLayers(pusher, 'acme/node', [wolfi], 'latest')
  await runJob(registry.app, readImages)
  const { repo } = await registry.app.paths.find('acme/node')
  const rule = { name: 'alive', mode: 'ENFORCE', endOfLife: {} }
  const eol = ok(await operator.post(`/registry/v2/gates/${repo!.uid}`, rule))
  const window = ok(
    await operator.post(`/registry/v2/gates/${repo!.uid}`, { name: 'window', supportWindow: { minMonthsLeft: 3 } }),
  )
  assert.equal((await get('acme/node', 'latest')).status, 200)
  const results = async () => {
    const said = await check(repo!.uid, { tag: 'latest' })
    const of = ({ uid }: Json) => said.find(({ policyId }) => policyId === uid)!
    return [eol, window].map((gate) => of(gate).result + (of(gate).parameters.pending ? ' pending' : ''))
  }
  assert.deepEqual(await results(), ['RESULT_ALLOWED pending', 'RESULT_ALLOWED pending'])
  await on(31)
  await runJob(registry.app, judgeTags)
  assert.deepEqual(await results(), ['RESULT_ALLOWED', 'RESULT_DENIED'], 'it is April, and its life ends in June')
  await change(window, { supportWindow: { minMonthsLeft: 2 } })
  assert.deepEqual(await results(), ['RESULT_ALLOWED', 'RESULT_ALLOWED'])
  await registry.app.usage.flush()
  await on(120)
  assert.deepEqual(await results(), ['RESULT_DENIED', 'RESULT_DENIED'])
  assert.equal((await get('acme/node', 'latest')).status, 403)
  for (const gate of [eol, window]) await change(gate, { exemptPulledDays: 90 })
  assert.deepEqual(await results(), ['RESULT_ALLOWED', 'RESULT_ALLOWED'], 'it was pulled 90 days ago, when it passed')
  for (const gate of [eol, window]) await change(gate, { exemptPulledDays: 89 })
  assert.deepEqual(await results(), ['RESULT_DENIED', 'RESULT_DENIED'])
  ok(await operator.call('PUT', `/registry/v1/settings/${registry.org.uid}`, { eolGracePeriod: true }))
  await on(121)
  assert.deepEqual(await results(), ['RESULT_ALLOWED', 'RESULT_DENIED'], 'there is a grace period')
  await on(300)
  assert.deepEqual(await results(), ['RESULT_DENIED', 'RESULT_DENIED'])
  await on(40)
})

test('an exemption allows a digest and its children until it expires', async () => {
  const { name, digest, repo, gate } = await scene({ vulnerabilities: {} })
  const size = Number((await pusher.ok(200, 'HEAD', `${name}/manifests/latest`)).headers['content-length'])
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const index = await pusher.pushManifest(name, indexOf([{ mediaType, digest, size }]), 'multi')
  await runJob(registry.app, readImages)
  await pushAndScan(registry, name, layer('else 1-r0'))
  machine += 6000
  const states = async () => [
    (await get(name, 'latest')).status,
    (await get(name, digest)).status,
    (await get(name, index.digest)).status,
  ]
  assert.deepEqual(await states(), [403, 403, 403])
  const path = `/registry/v2/gateExceptions/${repo}`
  const given = { digest: index.digest, reason: 'has no network', expireTime: iso(50) }
  const made = ok(await operator.post(path, given))
  assert.deepEqual(await states(), [200, 200, 200])
  const [said] = await check(repo, { digest })
  assert.deepEqual([said!.result, said!.parameters.exception], ['RESULT_ALLOWED', made.uid])
  await on(49.99)
  assert.deepEqual(await states(), [200, 200, 200])
  // No cache is refreshed between the two requests.
  now = start + 50 * day - 1
  assert.deepEqual(await states(), [200, 200, 200], 'a moment before its end')
  now += 1
  assert.deepEqual(await states(), [403, 403, 403], 'at its end')
  await on(50)
  assert.deepEqual(await states(), [403, 403, 403], 'it has ended by itself')
  const again = ok(await operator.post(path, { ...given, digest, expireTime: iso(140) }))
  assert.deepEqual(await states(), [200, 200, 403])
  assert.equal(ok(await operator.post(`/registry/v2/gateExceptions/${again.uid}:revoke`, {})).revokeTime, iso(50))
  assert.deepEqual(await states(), [403, 403, 403])
  ok(await operator.delete(`/registry/v2/gates/${gate.uid}`))
  assert.deepEqual(await states(), [200, 200, 200])
  const audit = await registry.app.db.all<{ type: string }>(
    sql`SELECT type FROM audit_log WHERE type LIKE ${'%scanning.gate.exception%'} ORDER BY id`,
  )
  assert.equal(audit.length, 3)
  await on(51)
})

test('a policy and an exemption of one repository or folder do not apply to its siblings', async () => {
  const folder = async (name: string) => ok(await operator.post(`/iam/v2/groups/${registry.org.uid}`, { name }))
  const folders = [await folder('beside-one'), await folder('beside-two')]
  const names = folders.flatMap(({ name }) => [`acme/${name}/one`, `acme/${name}/two`])
  const same = layer(openssl, 'same 1-r0')
  let digest = ''
  for (const name of names) digest = await pushAndScan(registry, name, same, 'latest')
  const repos = await Promise.all(names.map(async (name) => (await registry.app.paths.find(name)).repo!.uid))
  const pulls = async () => {
    machine += 60_000
    return Promise.all(names.map(async (name) => (await get(name, digest)).status))
  }
  const rule = { name: 'beside', mode: 'ENFORCE', vulnerabilities: {} }
  for (const [scope, expected] of [
    [repos[1], [200, 403, 200, 200]],
    [folders[0]!.uid, [403, 403, 200, 200]],
  ] as const) {
    const { uid } = ok(await operator.post(`/registry/v2/gates/${scope}`, rule))
    assert.deepEqual(await pulls(), expected)
    ok(await operator.delete(`/registry/v2/gates/${uid}`))
  }
  const { uid } = ok(await operator.post(`/registry/v2/gates/${registry.org.uid}`, rule))
  assert.deepEqual(await pulls(), [403, 403, 403, 403])
  const given = { digest, reason: 'has no network', expireTime: new Date(now + day).toISOString() }
  for (const [scope, expected] of [
    [repos[1], [403, 200, 403, 403]],
    [folders[1]!.uid, [403, 403, 200, 200]],
  ] as const) {
    const exemption = ok(await operator.post(`/registry/v2/gateExceptions/${scope}`, given))
    assert.deepEqual(await pulls(), expected)
    ok(await operator.post(`/registry/v2/gateExceptions/${exemption.uid}:revoke`, {}))
  }
  ok(await operator.delete(`/registry/v2/gates/${uid}`))
})

test('after an allowed pull, an image stays allowed for the configured number of days', async () => {
  const { name, gate } = await scene({ vulnerabilities: {} }, ['late 1-r0'])
  assert.equal((await get(name, 'latest')).status, 200)
  await registry.app.usage.flush()
  await on(56)
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-1003', 'Alpine:v3.19', 'late', '9')])
  assert.equal((await get(name, 'latest')).status, 403)
  const after = async (exemptPulledDays: number) => {
    await change(gate, { exemptPulledDays })
    return (await get(name, 'latest')).status
  }
  assert.equal(await after(4), 403)
  assert.equal(await after(5), 200)
  await registry.app.usage.flush()
  await on(57)
  assert.equal(await after(5), 403, 'the pull of yesterday does not count')
  assert.equal(await after(6), 200)
})

test('a pull while the contents of the image were unknown does not exempt it later', async () => {
  await on(60)
  const { name, gate } = await scene({ vulnerabilities: {} }, ['musl 1-r0'])
  await pushLayers(pusher, name, [layer(openssl, 'new 1-r0')], 'new')
  assert.equal((await get(name, 'new')).status, 200)
  await registry.app.usage.flush()
  await on(61)
  await runJob(registry.app, readImages)
  await pushAndScan(registry, name, layer('any 1-r0'))
  await change(gate, { exemptPulledDays: 90 })
  assert.equal((await get(name, 'new')).status, 403)
})

test('a policy that cannot be evaluated denies nothing, and is reported as an error', async () => {
  const { name, digest, repo, gate } = await scene({ vulnerabilities: {} })
  const { db } = registry.app
  const all = db.all.bind(db)
  const failing = db as unknown as Record<string, unknown>
  failing.all = (query: Sql) => {
    if (query.parts.join('?').includes('FROM list_components')) throw new Error('it is broken')
    return all(query as never)
  }
  try {
    const [said] = await check(repo, { digest })
    assert.deepEqual([said!.policyId, said!.result], [gate.uid, 'RESULT_ERROR'])
    assert.equal((await get(name, 'latest')).status, 200)
    assert.equal((await registry.app.metrics.gateErrors.get()).values[0]!.value, 2)
    assert.deepEqual((await resultsOfLast()) as Json[], [
      { policy_id: gate.uid, policy_name: 'gate', mode: 'POLICY_MODE_ENFORCED', result: 'RESULT_ERROR' },
    ])
  } finally {
    failing.all = all
  }
  assert.equal((await get(name, 'latest')).status, 403, 'an error is not remembered')
})

test('policies of a group apply to the group and below, each with its own message', async () => {
  const folder = ok(await operator.post(`/iam/v2/groups/${registry.org.uid}`, { name: 'folder' }))
  const inside = 'acme/folder/app'
  const { name: outside } = await scene({ cooldown: { minAgeDays: 1 } }, undefined, 'OFF')
  await pushAndScan(registry, inside, layer(openssl), 'latest')
  const path = `/registry/v2/gates/${folder.uid}`
  for (const gate of [{ vulnerabilities: {} }, { cooldown: { minAgeDays: 3 } }]) {
    ok(await operator.post(path, { name: 'one', ...gate }))
  }
  const { repo } = await registry.app.paths.find(inside)
  const said = await check(repo!.uid, { tag: 'latest' })
  assert.deepEqual(
    said.map(({ mode, bindingId }) => [mode, bindingId]),
    [
      ['POLICY_MODE_DRY_RUN', folder.uid],
      ['POLICY_MODE_DRY_RUN', folder.uid],
    ],
  )
  assert.deepEqual(said.map(({ parameters }) => parameters.kind).sort(), ['cooldown', 'vulnerabilities'])
  const other = await registry.app.paths.find(outside)
  assert.deepEqual(await check(other.repo!.uid, { tag: 'latest' }), [])
})

test('many pulls query the findings of an image once', async () => {
  const { name } = await scene({ vulnerabilities: {} }, undefined, 'DRY_RUN')
  await get(name, 'latest')
  const asked = await askedWhile(registry.app, async () => {
    for (let i = 0; i < 10; i++) assert.equal((await get(name, 'latest')).status, 200)
  })
  assert.deepEqual(
    asked.filter((text) => /findings|list_components|FROM gates|gate_exceptions/.test(text)),
    [],
  )
})

test('a pull without policies runs no further queries', async () => {
  let clock = 0
  await using plain = await startRegistry({ monotonic: () => clock })
  for (const tag of ['stable', 'other']) await plain.pusher.pushImage('acme/app', tag)
  await plain.puller.ok(200, 'GET', 'acme/app/manifests/stable')
  clock += 100
  const asked = await askedWhile(plain.app, async () => {
    for (let i = 0; i < 18; i++) await plain.puller.ok(200, 'GET', 'acme/app/manifests/stable')
    // The first pull of this image queries the digest of its tag and its manifest.
    await plain.puller.ok(200, 'GET', 'acme/app/manifests/other')
  })
  assert.ok(asked.length <= 20, asked.join('\n'))
  assert.ok(
    asked.some((text) => text.includes('FROM tags')),
    'what is asked is seen',
  )
  assert.deepEqual(
    asked.filter((text) => /gate/.test(text)),
    [],
  )
})

/** Queries during the work. */
async function askedWhile({ db }: typeof registry.app, work: () => Promise<void>): Promise<string[]> {
  const asked: string[] = []
  const seen = db as unknown as Record<string, unknown>
  const before = { get: db.get, all: db.all }
  for (const name of ['get', 'all'] as const) {
    const read = db[name].bind(db) as (query: Sql) => Promise<unknown>
    seen[name] = (query: Sql) => {
      asked.push(query.parts.join('?'))
      return read(query)
    }
  }
  await work()
  Object.assign(seen, before)
  return asked
}
