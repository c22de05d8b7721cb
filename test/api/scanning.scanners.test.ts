// External scanners: their requests, their pull access, their reports, and their faults.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { usageOf } from '#domains/registry/blobs/usage.store.ts'
import { askScanners } from '#domains/scanning/scanners/ask-scanners.job.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkUsage } from '../support/check-usage.ts'
import { assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { eventually } from '../support/receiver.ts'
import {
  codeOf,
  indexOf,
  type RegistryClient,
  registryClient,
  startRegistry,
  type TestRegistry,
} from '../support/registry.ts'
import {
  type AdapterFault,
  impatient,
  localScanners,
  metadataOf,
  reportOf,
  silence,
  startAdapter,
  type TestAdapter,
} from '../support/scanner-adapter.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let adapter: TestAdapter
let repo: string
let operator: Client
let push: RegistryClient
/** Another organization, with one repo and an identity that pushes to it. */
let late: { uid: string; repo: string; pusher: string }
let ownerUid: string
let short: string
before(async () => {
  registry = await startRegistry({ clock: () => now, ...localScanners })
  adapter = await startAdapter()
  await pass(0)
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  short = (await registry.seed.repo(registry.org.uid, { name: 'short' })).uid
  ownerUid = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  const { uid } = await registry.seed.group('', { name: 'late' })
  const { uid: only } = await registry.seed.repo(uid, { name: 'only' })
  late = { uid, repo: only, pusher: (await registry.seed.member(uid, roleUids.push)).uid }
})
after(async () => {
  await adapter[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
})
beforeEach(async () => {
  adapter.mend()
  adapter.says(metadataOf())
  adapter.scans.clear()
  adapter.asked.length = 0
  for (const { name } of await scanners()) ok(await operator.post('/control/v1/scanners:remove', { name }))
})

async function pass(seconds: number): Promise<void> {
  now = new Date(now.getTime() + seconds * 1000)
  operator = registry.withToken(await registry.tokenFor(operatorUid))
  push = await registry.registryAs(registry.pusher.uid)
}

const path = (digest: string, uid = repo) => `/registry/v2/repos/${uid}/digests/${digest}`
const scanners = async (): Promise<Json[]> => ok(await operator.get('/control/v1/scanners')).scanners ?? []
const put = (more: Json = {}) =>
  operator.post('/control/v1/scanners:put', { scanner: { name: 'finder', url: adapter.url, onPush: true, ...more } })
const ask = () => runJob(registry.app, askScanners)
const reportsOf = async (digest: string, uid = repo): Promise<Json[]> =>
  ok(await operator.get(`${path(digest, uid)}/scanReports`)).reports ?? []
const wanted = async (digest: string): Promise<Json[]> =>
  ok(await operator.post(`${path(digest)}/scans`, {})).scans ?? []

/**
 * Runs the scanner job and reads the reports until nothing waits, or until the given number of seconds of the server's clock has
 * passed.
 */
async function askAll(seconds = 400_000): Promise<void> {
  const until = now.getTime() + seconds * 1000
  for (let step = 5; now.getTime() <= until; step = Math.min(step * 2, 1800)) {
    await ask()
    await runJob(registry.app, readReports)
    const waiting = (await scanners()).reduce((sum, one) => sum + Number(one.waiting), 0)
    if (waiting === 0) break
    await pass(step)
  }
}

test('a pushed image is scanned, and its report is listed with the imported reports', async () => {
  ok(await put({ credential: 'Bearer opener' }))
  const { digest } = await push.pushImage('acme/app', 'one')
  adapter.breakWith((what, res, scan) => {
    if (what !== 'report' || scan!.looks > 3) return false
    res.writeHead(302, { 'refresh-after': '7' }).end()
    return true
  })
  await ask()
  assert.deepEqual(adapter.asked, ['metadata', 'scan'])
  for (const seconds of [2, 7, 7, 7]) {
    await pass(seconds - 1)
    const before = adapter.asked.length
    await ask()
    assert.equal(adapter.asked.length, before, `before its time nothing is asked for: ${adapter.asked}`)
    await pass(1)
    await ask()
    assert.equal(adapter.asked.length, before + 1, 'in time it is')
  }
  assert.equal([...adapter.scans.values()][0]?.looks, 4)
  assert.ok(adapter.headers.every(({ authorization }) => authorization === 'Bearer opener'))
  const [order] = adapter.orders()
  assert.equal(order?.registry.url, registry.url)
  assert.deepEqual(order?.artifact, {
    repository: 'acme/app',
    digest,
    mime_type: 'application/vnd.oci.image.manifest.v1+json',
  })
  assert.deepEqual(order?.enabled_capabilities, [
    { type: 'vulnerability', produces_mime_types: ['application/vnd.security.vulnerability.report; version=1.1'] },
  ])
  await runJob(registry.app, readReports)
  const [report, ...more] = await reportsOf(digest)
  assert.deepEqual(more, [])
  assert.deepEqual(
    [report?.state, report?.origin, report?.referrer, report?.format, report?.tool, report?.vulnerabilities],
    ['read', 'scanner', 'finder', 'harbor', 'finder', 1],
  )
  assert.equal(report?.buildTime, '2026-02-28T06:00:00Z'.replace('Z', '.000Z'))
  const { items } = ok(await operator.get(`/registry/v1/vuln_reports?digest=${digest}`))
  assert.deepEqual(
    items.map(({ scanner, vulnerabilities }: Json) => [scanner.version, vulnerabilities.map(({ id }: Json) => id)]),
    [['finder 2.0.1', ['CVE-2026-7']]],
  )
  assert.equal((await scanners())[0]?.title, 'Finder 2.0.1 by Somebody')
})

test('the token of a scan can only pull from one repository, for ten minutes', async () => {
  ok(await put())
  const { digest } = await push.pushImage('acme/app', 'two')
  const { digest: other } = await push.pushImage('acme/other', 'two')
  await ask()
  const order = adapter.orders().find(({ artifact }) => artifact.digest === digest)
  const token = order!.registry.authorization.replace('Bearer ', '')
  const scanner = registryClient(registry.url, token)
  const pulled = await scanner.ok(200, 'GET', `acme/app/manifests/${digest}`)
  await scanner.ok(200, 'GET', `acme/app/blobs/${pulled.body.layers[0].digest}`)
  const refused = async (method: string, of: string, body?: string) => {
    const reply = await scanner.call(method, of, body === undefined ? {} : { body })
    assert.ok([401, 403].includes(reply.status), `${method} ${of} answered ${reply.status}`)
    if (method !== 'HEAD') assert.match(codeOf(reply), /^(?:DENIED|UNAUTHORIZED)$/)
  }
  await refused('GET', `acme/other/manifests/${other}`)
  await refused('POST', 'acme/app/blobs/uploads/')
  await refused('DELETE', `acme/app/manifests/${digest}`)
  await refused('GET', '_catalog')
  await refused('GET', '/token?scope=repository:acme/other:pull')
  assert.equal((await registry.withToken(token).get(`/registry/v2/repos/${repo}`)).status, 401)
  await registry.app.usage.flush()
  const { pulls = [] } = ok(await operator.get(`${path(digest)}/pulls`))
  assert.deepEqual(pulls, [], 'what a scanner looks at is not in use by that')
  await pass(601)
  await refused('GET', `acme/app/manifests/${digest}`)
})

test('an admission policy that denies an image does not prevent scanners from pulling it', async () => {
  ok(await put({ onPush: false }))
  const { uid } = await registry.seed.repo(registry.org.uid, { name: 'gated' })
  const { digest } = await push.pushImage('acme/gated', 'one')
  ok(await operator.post(`${path(digest, uid)}/scans`, {}))
  await ask()
  const token = adapter.orders()[0]!.registry.authorization.replace('Bearer ', '')
  const cooldown = { name: 'young', mode: 'ENFORCE', cooldown: { minAgeDays: 1000 } }
  ok(await operator.post(`/registry/v2/gates/${uid}`, cooldown))
  await push.ok(403, 'GET', `acme/gated/manifests/${digest}`)
  await registryClient(registry.url, token).ok(200, 'GET', `acme/gated/manifests/${digest}`)
})

/** Fails the first requests of the given kind, up to the given number. */
const failing = (kind: string, times: number, fail: AdapterFault): AdapterFault => {
  let failed = 0
  return (what, res, scan) => what === kind && failed++ < times && fail(what, res, scan)
}
const status = (code: number, headers: Record<string, string> = {}, body = ''): AdapterFault => {
  return (_what, res) => {
    res.writeHead(code, headers).end(body)
    return true
  }
}
const cut: AdapterFault = (_what, res) => {
  res.destroy()
  return true
}

const passing: Record<string, AdapterFault> = {
  'a report that failed': failing('report', 3, status(500)),
  'a report that nobody knows any more': failing('report', 3, status(404)),
  'an order that failed': failing('scan', 3, status(500)),
  'an order without an id': failing('scan', 2, status(202, {}, '{"id":')),
  'an order that names a list': failing('scan', 2, status(202, {}, '[1]')),
  'too many orders': failing('scan', 3, status(429, { 'retry-after': '100' })),
  'a connection that is cut': failing('report', 3, cut),
  'no answer to an order': failing('scan', 5, cut),
  'silence for an order': failing('scan', 2, silence),
  'silence for a report': failing('report', 3, silence),
  'silence for its metadata': failing('metadata', 2, silence),
  'metadata that say nothing': failing('metadata', 3, status(200, {}, '{}')),
  'metadata that fail': failing('metadata', 3, status(500)),
}
for (const [name, fault] of Object.entries(passing)) {
  test(`does not lose a scan after ${name}`, async () => {
    using _ = impatient(registry.app, 200)
    ok(await put())
    adapter.breakWith(fault)
    const { digest } = await push.pushImage('acme/app')
    await askAll()
    const [report, ...more] = await reportsOf(digest)
    assert.deepEqual([report?.state, report?.vulnerabilities, more], ['read', 1, []])
  })
}

const lasting: Record<string, { fault: AdapterFault; reason: string; message: RegExp }> = {
  'reports that always fail': {
    fault: (what, res) => what === 'report' && status(500)(what, res),
    ...{
      reason: 'SCANNER_FAILED',
      message: /^finder: the scanner responded with HTTP 500 to the request for the report$/,
    },
  },
  'reports that are never ready': {
    fault: (what, res) => what === 'report' && status(302, { 'refresh-after': '99999999' })(what, res),
    ...{ reason: 'SCANNER_FAILED', message: /^finder: the scan did not finish within 30 minutes$/ },
  },
  'an order that is refused': {
    fault: (what, res) => what === 'scan' && status(422)(what, res),
    ...{ reason: 'SCANNER_FAILED', message: /^finder: the scanner responded with HTTP 422 to the scan request$/ },
  },
  'reports that are larger than they may be': {
    fault: (what, res) => {
      if (what !== 'report') return false
      res.writeHead(200, { 'content-length': String(32 * 2 ** 20 + 1) })
      res.flushHeaders()
      return true
    },
    ...{ reason: 'SCANNER_FAILED', message: /^finder: the response is too large$/ },
  },
  'reports that are compressed': {
    fault: (what, res) => what === 'report' && status(200, { 'content-encoding': 'gzip' }, 'x')(what, res),
    ...{ reason: 'SCANNER_FAILED', message: /compressed/ },
  },
  'reports that are empty': {
    fault: (what, res) => what === 'report' && status(200)(what, res),
    ...{ reason: 'SCANNER_FAILED', message: /^finder: the report of the scanner is empty$/ },
  },
  'reports that are garbage': {
    fault: (what, res) => what === 'report' && status(200, {}, '\u0000<html>')(what, res),
    ...{ reason: 'DAMAGED', message: /not valid JSON/ },
  },
  'reports in a form that nobody knows': {
    fault: (what, res) => what === 'report' && status(200, {}, '{"found":[]}')(what, res),
    ...{ reason: 'UNSUPPORTED', message: /format of the report is not supported/ },
  },
}
for (const [name, { fault, reason, message }] of Object.entries(lasting)) {
  test(`the API shows why there is no report: ${name}`, async () => {
    ok(await put())
    adapter.breakWith(fault)
    const { digest } = await push.pushImage('acme/app')
    await askAll()
    const [report, ...more] = await reportsOf(digest)
    assert.deepEqual([report?.state, report?.reason, more], ['ignored', reason, []])
    assert.match(report?.message, message)
    assert.deepEqual(await wanted(digest).then((all) => all.map(({ attempts = 0 }) => attempts)), [0], 'asked anew')
  })
}

test('follows no redirect of a scanner', async () => {
  await using elsewhere = await startAdapter()
  ok(await put())
  adapter.breakWith((what, res, scan) => {
    if (what === 'report' && scan!.looks > 2) return false
    if (what !== 'report') return false
    return status(302, { location: `${elsewhere.url}/api/v1/scan/scan-1/report` })(what, res)
  })
  const { digest } = await push.pushImage('acme/app')
  await askAll()
  assert.equal((await reportsOf(digest))[0]?.state, 'read')
  adapter.breakWith(
    (what, res) => what === 'scan' && status(307, { location: `${elsewhere.url}/api/v1/scan` })(what, res),
  )
  await push.pushImage('acme/app')
  await ask()
  assert.deepEqual(elsewhere.asked, [])
})

test('a scanner that does not answer does not delay others', async () => {
  await using silent = await startAdapter()
  const held: (() => void)[] = []
  silent.breakWith((what, res) => {
    if (what !== 'scan') return false
    held.push(() => res.destroy())
    return true
  })
  ok(await put({ name: 'a-silent', url: silent.url }))
  ok(await put({ name: 'b-quick' }))
  await push.pushImage('acme/app')
  const running = ask()
  await eventually(
    async () => held.length,
    (count) => count === 1,
  )
  await eventually(
    async () => adapter.asked.length,
    (count) => count === 2,
  )
  // An image that is pushed during the wait is scanned, too.
  const { digest } = await push.pushImage('acme/app')
  await eventually(
    async () => adapter.orders().some(({ artifact }) => artifact.digest === digest),
    (isOrdered) => isOrdered,
  )
  for (const end of held) end()
  await running
  const problems = (await scanners()).map(({ name, problem = '' }) => [name, problem !== ''])
  assert.deepEqual(problems, [
    ['a-silent', true],
    ['b-quick', false],
  ])
})

test('retries a scanner that was briefly unavailable, while another scanner is busy', async () => {
  await using busy = await startAdapter()
  const held: (() => void)[] = []
  busy.breakWith((what, res) => {
    if (what !== 'scan') return false
    held.push(() => res.destroy())
    return true
  })
  ok(await put({ name: 'a-busy', url: busy.url }))
  ok(await put({ name: 'b-passing' }))
  adapter.breakWith((what, res) => what === 'scan' && status(503)(what, res))
  await push.pushImage('acme/app')
  const running = ask()
  try {
    await eventually(
      async () => [held.length, (await scanners()).filter(({ problem = '' }) => problem !== '').length],
      ([busyWith, away]) => busyWith === 1 && away === 1,
    )
    adapter.mend()
    const before = adapter.orders().length
    await pass(61)
    await push.pushImage('acme/app')
    await eventually(
      async () => adapter.orders().length,
      (count) => count > before,
    )
    assert.equal(held.length, 1, 'the other one is still at it')
  } finally {
    for (const end of held) end()
  }
  await running
})

test('a report that cannot be stored does not delay others, and is requested again later', async (t) => {
  ok(await put())
  const digests = [await push.pushImage('acme/app'), await push.pushImage('acme/app')].map(({ digest }) => digest)
  await ask()
  await pass(10)
  const { blobs } = registry.app
  const begin = blobs.begin.bind(blobs)
  let failing = 1
  t.mock.method(blobs, 'begin', (...args: Parameters<typeof begin>) => {
    if (failing-- > 0) throw new Error('there is no room')
    return begin(...args)
  })
  await ask()
  assert.equal((await scanners())[0]?.waiting, '1')
  const asked = adapter.asked.length
  await pass(50)
  await ask()
  assert.equal(adapter.asked.length, asked, 'not at once')
  await pass(11)
  await askAll()
  const states = await Promise.all(digests.map(async (digest) => (await reportsOf(digest))[0]?.state))
  assert.deepEqual(states, ['read', 'read'])
})

test('does not send a queued image to a scanner that no longer serves its group', async () => {
  ok(await put())
  await push.pushImage('acme/app')
  await push.pushImage('acme/app')
  ok(await put({ groups: [late.uid] }))
  const { digest } = await (await registry.registryAs(late.pusher)).pushImage('late/only')
  await askAll()
  assert.deepEqual(
    adapter.orders().map(({ artifact }) => artifact.digest),
    [digest],
  )
})

test('names a scanner with too many waiting scans, and still asks the others', async () => {
  ok(await put({ name: 'a-full', onPush: false }))
  ok(await put({ name: 'b-free', onPush: false }))
  const { digest } = await push.pushImage('acme/app')
  await registry.app.db.tx((tx) =>
    tx.run(sql`
      INSERT INTO scan_jobs (scanner_id, repo_id, organization, digest, media_type, actor, request_time, due_time)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
      SELECT s.id, r.id, ${registry.org.uid}, CAST(n AS TEXT), '', '', '2100-01-01T00:00:00.000Z', '2100-01-01T00:00:00.000Z'
        FROM numbers, scanners s, repos r WHERE s.name = 'a-full' AND r.uid = ${repo}`),
  )
  const answer = await operator.post(`${path(digest)}/scans`, {})
  assert.equal(answer.status, 429)
  assert.match(answer.body.message, /queued images for a-full; try again in a minute$/)
  await ask()
  assert.deepEqual(
    adapter.orders().map(({ artifact }) => artifact.digest),
    [digest],
  )
})

test('scans each image of an index, and requests no scan twice', async () => {
  ok(await put({ onPush: false }))
  const images = [await push.pushImage('acme/app'), await push.pushImage('acme/app')]
  const { digest } = await push.pushManifest('acme/app', indexOf(images), 'list')
  await ask()
  assert.deepEqual(adapter.asked, [], 'nobody has asked for it')
  const first = await wanted(digest)
  assert.deepEqual(first.map((one) => one.digest).sort(), images.map((one) => one.digest).sort())
  assert.equal((await wanted(digest)).length, 2)
  await askAll()
  assert.equal(adapter.orders().length, 2)
  assertNotFound(
    await operator.post(`${path(`sha256:${'0'.repeat(64)}`)}/scans`, {}),
    'registry.pinfold.dev/Image',
    `sha256:${'0'.repeat(64)}`,
  )
  assertInvalid(await operator.post(`${path('sha256:x')}/scans`, {}), 'digest')
})

test('a scanner gets only images of its groups, and of the types that it supports', async () => {
  ok(await put({ groups: [late.uid] }))
  const { digest } = await push.pushImage('acme/app')
  assert.deepEqual(await wanted(digest), [])
  ok(await put())
  adapter.says(metadataOf({ capabilities: [{ consumes_mime_types: ['text/x'], produces_mime_types: [...raw] }] }))
  const { digest: unfit } = await push.pushImage('acme/app')
  await askAll()
  const [report] = await reportsOf(unfit)
  assert.deepEqual([report?.state, report?.reason], ['ignored', 'UNSUPPORTED'])
})
const raw = ['application/vnd.scanner.adapter.vuln.report.raw']

test('a scanner with its own reports is only asked for these reports', async () => {
  adapter.says(metadataOf({ capabilities: [{ produces_mime_types: raw }] }))
  ok(await put())
  const { digest } = await push.pushImage('acme/app')
  adapter.breakWith((what, res, scan) => {
    return what === 'report' && status(200, {}, JSON.stringify(reportOf(scan!.order, ['CVE-2026-8'])))(what, res)
  })
  await askAll()
  assert.deepEqual(adapter.orders()[0]?.enabled_capabilities[0]?.produces_mime_types, raw)
  assert.equal((await reportsOf(digest))[0]?.state, 'read')
})

test('does not scan deleted images, and keeps the reports of a removed scanner', async () => {
  ok(await put())
  const { digest: gone } = await push.pushImage('acme/app')
  const deleter = await registry.registryAs(ownerUid)
  await deleter.ok(202, 'DELETE', `acme/app/manifests/${gone}`)
  await push.pushImage('acme/short', 'one')
  ok(await operator.delete(`/registry/v2/repos/${short}`))
  const { digest } = await push.pushImage('acme/app')
  await askAll()
  assert.deepEqual(
    adapter.orders().map(({ artifact }) => artifact.digest),
    [digest],
  )
  await push.pushImage('acme/app')
  ok(await operator.post('/control/v1/scanners:remove', { name: 'finder' }))
  await ask()
  assert.equal(adapter.orders().length, 1)
  assert.equal((await reportsOf(digest))[0]?.referrer, 'finder')
})

test('stores and charges nothing for an image that is deleted while its report arrives', async () => {
  ok(await put())
  const { digest } = await push.pushImage('acme/app')
  const deleter = await registry.registryAs(ownerUid)
  const kept = async () => {
    const blobs = await registry.app.db.get<{ total: number }>(sql`SELECT count(*) AS total FROM repo_blobs`)
    return [Number(blobs!.total), (await usageOf(registry.app.db, registry.org.uid)).bytes]
  }
  let afterwards: unknown[] = []
  adapter.breakWith((what, res, scan) => {
    if (what !== 'report') return false
    void deleter
      .ok(202, 'DELETE', `acme/app/manifests/${digest}`)
      .then(async () => {
        afterwards = await kept()
      })
      .finally(() => res.end(JSON.stringify(reportOf(scan!.order))))
    return true
  })
  await ask()
  await pass(2)
  await ask()
  assert.equal([...adapter.scans.values()][0]?.looks, 1)
  assert.deepEqual(await kept(), afterwards)
  await checkUsage(registry)
})

test('a credential is encrypted, never shown, and must be repeated to change the URL', async () => {
  const secret = 'Bearer very-secret-words'
  const made = ok(await put({ credential: secret }))
  assert.equal(made.hasCredential, true)
  assert.ok(!JSON.stringify([made, await scanners()]).includes('very-secret'))
  assertInvalid(await put({ url: `${adapter.url}/elsewhere` }), 'scanner.credential')
  assert.equal(ok(await put()).hasCredential, true, 'it stays where none is given')
  assert.equal(ok(await put({ credential: '' })).hasCredential, false)
  ok(await put({ url: `${adapter.url}/elsewhere`, credential: 'X-ScannerAdapter-API-Key: abc' }))
  ok(await put({ credential: 'X-ScannerAdapter-API-Key: abc' }))
  await push.pushImage('acme/app')
  await ask()
  const { authorization, 'x-scanneradapter-api-key': key } = adapter.headers.at(-1)!
  assert.deepEqual([authorization, key], [undefined, 'abc'])
})

test('validates the name and URL of a scanner, and limits the number of scanners', async () => {
  const invalid = async (more: Json, ...fields: string[]) => assertInvalid(await put(more), ...fields)
  await invalid({ name: 'Not a name' }, 'scanner.name')
  await invalid({ url: 'ftp://scanner.example.com' }, 'scanner.url')
  await invalid({ url: 'https://user:word@scanner.example.com' }, 'scanner.url')
  await invalid({ url: 'https://scanner.example.com/' }, 'scanner.url')
  await invalid({ url: 'https://scanner.example.com/x?y=1' }, 'scanner.url')
  await invalid({ registryUrl: 'here' }, 'scanner.registry_url')
  await invalid({ groups: ['here'] }, 'scanner.groups')
  await invalid({ credential: 'Bearer two words' }, 'scanner.credential')
  assertInvalid(await operator.post('/control/v1/scanners:put', {}), 'scanner')
  for (let i = 0; i < 20; i++) ok(await put({ name: `scanner-${i}`, onPush: false }))
  assert.equal((await put({ name: 'one-more' })).status, 429)
  ok(await put({ name: 'scanner-3', onPush: false }))
  assertNotFound(
    await operator.post('/control/v1/scanners:remove', { name: 'never' }),
    'scanning.pinfold.dev/Scanner',
    'never',
  )
})

test('sends no request to a scanner address that the settings do not allow', async () => {
  await using strict = await startRegistry({ clock: () => now, allowInsecureScanners: true })
  const scanner = { name: 'inside', url: adapter.url, onPush: true }
  ok(await strict.operator.post('/control/v1/scanners:put', { scanner }))
  await (await strict.registryAs(strict.pusher.uid)).pushImage('acme/app')
  await runJob(strict.app, askScanners)
  const { scanners: all } = ok(await strict.operator.get('/control/v1/scanners'))
  assert.deepEqual([all[0].problem, all[0].waiting], ['the host has a private address', '1'])
  assert.deepEqual(adapter.asked, [])
})

/** Runs more scans if `PINFOLD_SCANS=1000` is set. */
const scans = Number(process.env.PINFOLD_SCANS ?? 24)
test('loses no scan if a third of many scans fails', async () => {
  ok(await put())
  using _ = impatient(registry.app, 200)
  const kinds: AdapterFault[] = [status(500), status(404), cut, status(302, { 'refresh-after': '3' }), silence]
  const digests = new Set<string>()
  for (let i = 0; i < scans; i++) digests.add((await push.pushImage('acme/app')).digest)
  let asked = 0
  adapter.breakWith((what, res, scan) => {
    if (what === 'metadata' || asked++ % 3 !== 0) return false
    return kinds[asked % kinds.length]!(what, res, scan)
  })
  // One organization has few scans at the same time, and a failed scan is requested again half an hour later.
  await askAll(scans * 8_000)
  for (const digest of digests) {
    const [report, ...more] = await reportsOf(digest)
    assert.deepEqual([report?.state, more], ['read', []])
  }
})
