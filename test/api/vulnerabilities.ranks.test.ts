// Order of the findings of an image: exploited vulnerabilities come first, but a list of exploited vulnerabilities creates no
// finding.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { assertDenied, assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let operator: Client
let viewer: Client
before(async () => {
  registry = await startRegistry()
  operator = await registry.as(operatorUid)
  viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.owner)).uid)
})
after(() => registry[Symbol.asyncDispose]())

const source = (name: string) => ({ name, url: 'https://ranks.example.com/', licence: 'CC0-1.0', ecosystems: [] })
const begin = async (name: string): Promise<Json> =>
  ok(await operator.post('/control/v1/vulnerabilitySources:begin', { source: source(name) })).run
const put = (run: Json, ranks: Json[]) => operator.post('/control/v1/vulnerabilitySources:putRanks', { run, ranks })
const finish = (run: Json) => operator.post('/control/v1/vulnerabilitySources:finish', { run, complete: true })

async function rank(name: string, ranks: Json[]): Promise<void> {
  const run = await begin(name)
  ok(await put(run, ranks))
  ok(await finish(run))
}

const alpine = 'Alpine:v3.19'
const about = (id: string, severity: 'low' | 'high') => {
  const one = recordAbout(id, alpine, 'openssl', '9')
  return { ...one, affected: one.affected.map((said) => ({ ...said, severity })) }
}

test('orders findings by exploitation, then severity, then likelihood, without comparing packages again', async () => {
  const repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const records = [
    about('CVE-2026-1001', 'low'),
    about('CVE-2026-1002', 'high'),
    about('CVE-2026-1003', 'high'),
    about('CVE-2026-1004', 'low'),
  ]
  await readSource(registry.app, alpine, records)
  const digest = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', ['openssl 3.1.4-r0']))
  const found = async (): Promise<Json[]> =>
    ok(await viewer.get(`/registry/v2/repos/${repo}/digests/${digest}/findings`)).findings
  const ids = async () => (await found()).map(({ vulnerabilities }) => vulnerabilities[0].slice(-1)).join('')
  assert.equal(await ids(), '2314')

  await rank('epss', [
    { cve: 'CVE-2026-1003', likelihood: { epss: 0.25, percentile: 0.9 } },
    { cve: 'CVE-2026-1002', likelihood: { epss: 0.125, percentile: 0.5 } },
    { cve: 'CVE-2026-9999', likelihood: { epss: 1, percentile: 1 } },
  ])
  assert.equal(await ids(), '3214')
  const days = { addDate: '2026-11-01', dueDate: '2026-11-22' }
  await rank('kev', [{ cve: 'CVE-2026-1004', exploited: { ...days, ransomware: true } }])
  assert.equal(await ids(), '4321')
  const [first, second, , last] = await found()
  assert.deepEqual([first!.exploited, first!.likelihood ?? null], [{ ...days, ransomware: true }, null])
  assert.deepEqual([second!.exploited ?? null, second!.likelihood], [null, { epss: 0.25, percentile: 0.9 }])
  assert.deepEqual([last!.exploited ?? null, last!.likelihood ?? null], [null, null])
  assert.equal(await registry.app.db.get(sql`SELECT 1 AS waits FROM match_queue LIMIT 1`), undefined)

  await rank('kev', [{ cve: 'CVE-2026-1001', exploited: {} }])
  assert.equal(await ids(), '1324')
})

test('an error names an invalid rank by its position, and only the operator can set ranks', async () => {
  const run = await begin('kev')
  const likelihood = { epss: 0.5, percentile: 0.5 }
  for (const [rankOf, field] of [
    [{ cve: 'GHSA-1', likelihood }, 'ranks[1].cve'],
    [{ cve: 'CVE-2026-1001', likelihood }, 'ranks[1].cve'],
    [{ cve: 'CVE-2026-1002' }, 'ranks[1].exploited'],
    [{ cve: 'CVE-2026-1002', exploited: { addDate: 'today' } }, 'ranks[1].exploited.addDate'],
    [{ cve: 'CVE-2026-1002', likelihood: { ...likelihood, epss: 1.5 } }, 'ranks[1].likelihood.epss'],
  ] as const) {
    assertInvalid(await put(run, [{ cve: 'CVE-2026-1001', likelihood }, rankOf]), field)
  }
  const many = Array.from({ length: 2001 }, (_, i) => ({ cve: `CVE-2026-${10000 + i}`, likelihood }))
  assertInvalid(await put(run, many), 'ranks')
  assertInvalid(await put({ ...run, generation: '1' }, []), 'run')
  assertDenied(await viewer.post('/control/v1/vulnerabilitySources:putRanks', { run, ranks: [] }))
})
