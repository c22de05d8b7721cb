// Raw reports that are too long for an answer are fetched by a link, which is good for five minutes.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createReportMemory } from '#domains/scanning/scan-reports/report-memory.service.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { Scanner_Name, Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertError, ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const begin = Date.parse('2026-03-01T08:00:00Z')
const minute = 60_000
const ecosystem = 'Alpine:v3.19'
let now = begin
let registry: TestRegistry
let repo: string
let owner: Client
let digest: string
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now) })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const { uid } = await registry.seed.member(registry.org.uid, roleUids.owner)
  owner = await registry.as(uid)
  digest = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', ['zlib 1-r0', 'xz 1-r0']), 'latest')
})
after(() => registry[Symbol.asyncDispose]())

const about = (count: number, summary: string) =>
  Array.from({ length: count }, (_, i) => recordAbout(`CVE-2026-${1000 + i}`, ecosystem, 'zlib', '2-r0', { summary }))
const trivy = (padding: number) => {
  const report = JSON.parse(fixture('scan-reports/trivy-alpine-39.json').toString()) as Json
  report.Results[0].Vulnerabilities[0].Title = `${padding}`
  return Buffer.from(JSON.stringify({ ...report, Padding: 'ä'.repeat(padding / 2) }))
}
async function handIn(report: Buffer): Promise<void> {
  ok(
    await owner.post(`/registry/v2/repos/${repo}/digests/${digest}/scanReports`, { report: report.toString('base64') }),
  )
  await runJob(registry.app, readReports)
}
const rawOf = async (scanner: string): Promise<Json> =>
  ok(await owner.get(`/registry/v1/vuln_reports/raw?digest=${digest}&scanner=${scanner}`))
const fetchText = async (url: string): Promise<[number, string]> => {
  const answer = await fetch(url)
  return [answer.status, await answer.text()]
}

test('returns a report up to one MiB in the response, and a longer one as a link that works without a token', async () => {
  const short = trivy(1000)
  await handIn(short)
  assert.deepEqual([(await rawOf('TRIVY')).rawReport, (await rawOf('TRIVY')).rawReportUrl], [short.toString(), ''])
  now += 1000
  const long = trivy(2 ** 20)
  await handIn(long)
  const { rawReport, rawReportUrl } = await rawOf('TRIVY')
  assert.equal(rawReport, '')
  assert.ok(rawReportUrl.startsWith(`${registry.url}/downloads/reports/`), rawReportUrl)
  const answer = await fetch(rawReportUrl)
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(long))
  const header = (name: string) => answer.headers.get(name)
  assert.deepEqual(
    [answer.status, header('content-length'), header('content-type'), header('content-disposition')],
    [200, String(long.length), 'application/json', 'attachment; filename="report.json"'],
  )
  assert.deepEqual([header('cache-control'), header('x-content-type-options')], ['no-store', 'nosniff'])
  assert.match(header('content-security-policy') ?? '', /sandbox/)
  const head = await fetch(rawReportUrl, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(long.length)])
  assert.equal((await fetch(rawReportUrl, { method: 'POST' })).status, 405)
})

test('returns an own report of more than 4 MiB as a link over gRPC, and an earlier link keeps its report after later findings', async () => {
  await readSource(registry.app, ecosystem, about(3, 'short'))
  assert.equal((await rawOf('UNKNOWN')).rawReportUrl, '')
  now += 10 * minute
  await readSource(registry.app, ecosystem, about(1300, 'ß'.repeat(4000)))
  using client = grpcClientOf(registry, Vulnerabilities, registry.operator.token)
  const { rawReport, rawReportUrl } = await client.getRawVulnReport({ digest, scanner: Scanner_Name.UNKNOWN })
  assert.equal(rawReport, '')
  const [status, text] = await fetchText(rawReportUrl)
  assert.ok(status === 200 && text.length > 4 * 2 ** 20, `${status} ${text.length}`)
  assert.equal(JSON.parse(text).vulnerabilities.length, 1300)
  now += 2 * minute
  await readSource(registry.app, ecosystem, [recordAbout('CVE-2026-9', ecosystem, 'xz', '')])
  const later = await fetchText((await rawOf('UNKNOWN')).rawReportUrl)
  assert.equal(JSON.parse(later[1]).vulnerabilities.length, 1301)
  assert.deepEqual(await fetchText(rawReportUrl), [200, text])
  assert.equal(registry.app.scanning.reading.held(), 0)
})

test('a link expires after five minutes, and an invalid ticket returns no report', async () => {
  for (const scanner of ['TRIVY', 'UNKNOWN']) {
    const { rawReportUrl } = await rawOf(scanner)
    const base = `${registry.url}/downloads/reports/`
    const ticket = rawReportUrl.slice(base.length)
    const changed = [0, 20, ticket.length - 3].map((at) => {
      return ticket.slice(0, at) + (ticket[at] === 'A' ? 'B' : 'A') + ticket.slice(at + 1)
    })
    const page = registry.app.cipher.encrypt('page-token', Buffer.from('{}')).toString('base64url')
    for (const wrong of ['', 'x', ...changed, ticket.slice(0, -4), `${ticket}A`, `${ticket}/..`, page]) {
      assert.equal((await fetch(base + wrong)).status, 404, wrong)
    }
    assert.equal((await fetch(rawReportUrl.replace('/reports/', '/other/'))).status, 404)
    now += 5 * minute - 1
    assert.equal((await fetch(rawReportUrl)).status, 200)
    now += 1
    assert.deepEqual(await fetchText(rawReportUrl), [
      403,
      'the link has expired; request the report again to get a new one\n',
    ])
  }
})

test('limits the memory of concurrent report requests by queueing them', async () => {
  const { scanning } = registry.app
  const list = () => owner.get(`/registry/v1/vuln_reports?digest=${digest}&scanner.name=TRIVY`)
  const raw = () => owner.get(`/registry/v1/vuln_reports/raw?digest=${digest}`)
  const before = scanning.reading
  try {
    scanning.reading = createReportMemory(100, 60_000)
    const all = await scanning.reading.reserve(100, AbortSignal.timeout(60_000))
    let answered = 0
    const waiting = [list, raw, list].map(async (ask) => {
      ok(await ask())
      answered++
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal(answered, 0)
    all.free()
    await Promise.all(waiting)
    assert.equal(scanning.reading.held(), 0)

    scanning.reading = createReportMemory(100, 20)
    const { rawReportUrl } = await rawOf('UNKNOWN')
    const retry = { type: 'RetryInfo', retryDelay: '5s' }
    const again = await scanning.reading.reserve(100, AbortSignal.timeout(60_000))
    assert.equal((await list()).status, 503)
    assertError(await raw(), 503, 14, 'TOO_BUSY', retry)
    const link = await fetch(rawReportUrl)
    assert.deepEqual([link.status, link.headers.get('retry-after')], [503, '5'])
    again.free()
    assert.equal((await fetchText(rawReportUrl))[0], 200)
    ok(await list())
    assert.equal(scanning.reading.held(), 0)
  } finally {
    scanning.reading = before
  }
})

test('frees the memory of a report when its client disconnects', async () => {
  const { scanning } = registry.app
  const before = scanning.reading
  try {
    scanning.reading = createReportMemory(100, 60_000)
    const { rawReportUrl } = await rawOf('UNKNOWN')
    const gone = new AbortController()
    const left = await fetch(rawReportUrl, { signal: gone.signal })
    assert.ok(left.status === 200 && scanning.reading.held() > 0)
    gone.abort()
    for (let i = 0; scanning.reading.held() > 0; i++) {
      assert.ok(i < 3000)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    assert.equal((await fetchText(rawReportUrl))[0], 200)
  } finally {
    scanning.reading = before
  }
})

test('reports require access in the repository, and can be requested by repository, tag or digest', async () => {
  const { seed, org } = registry
  const folder = await seed.group(org.uid)
  const outsiders = [
    await registry.as((await seed.member(folder.uid, roleUids.owner)).uid),
    await registry.as((await seed.member((await seed.group()).uid, roleUids.owner)).uid),
  ]
  for (const query of [`repo_id=${repo}`, `repo_id=${repo}&tag=latest`, `digest=${digest}`]) {
    const path = `/registry/v1/vuln_reports?scanner.name=TRIVY&${query}`
    assert.ok(ok(await owner.get(path)).items.length > 0, query)
    for (const client of outsiders) {
      const answer = await client.get(path)
      assert.deepEqual([answer.status, answer.body.items ?? []], [200, []], `${query} ${answer.text}`)
    }
  }
})

test('a link returns nothing after the repository was deleted', async () => {
  const urls = [(await rawOf('TRIVY')).rawReportUrl, (await rawOf('UNKNOWN')).rawReportUrl]
  ok(await owner.delete(`/registry/v2/repos/${repo}`))
  for (const url of urls) assert.equal((await fetch(url)).status, 404)
})
