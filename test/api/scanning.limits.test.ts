// Limits of scanners, and the number of attempts at a scan and at a report.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { askScanners } from '#domains/scanning/scanners/ask-scanners.job.ts'
import { mostGroups, mostScanners } from '#domains/scanning/scanners/scanners.model.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { operatorUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertError, assertInvalid, ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers } from '../support/images.ts'
import type { Client, Json } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { localScanners, startAdapter } from '../support/scanner-adapter.ts'

let now = Date.parse('2026-03-01T08:00:00.000Z')
let registry: TestRegistry
let repo: string
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now), ...localScanners })
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
})
after(() => registry[Symbol.asyncDispose]())

/** Tokens live for an hour of the clock. */
const api = (): Promise<Client> => registry.as(operatorUid)
const put = async (scanner: Json) => (await api()).post('/control/v1/scanners:put', { scanner })
const scanners = async (): Promise<Json[]> => ok(await (await api()).get('/control/v1/scanners')).scanners ?? []
const reportsOf = async (digest: string): Promise<Json[]> =>
  ok(await (await api()).get(`/registry/v2/repos/${repo}/digests/${digest}/scanReports`)).reports ?? []

/** Repeats the work once a day. */
async function inDays(work: () => Promise<unknown>, days: number): Promise<void> {
  for (let i = 0; i < days; i++) {
    await work()
    now += 86_400_000
  }
}

test(`a scanner can serve at most ${mostGroups} groups`, async () => {
  const groups = (count: number) => Array.from({ length: count }, (_, i) => `${i}`.padStart(40, '0'))
  assertInvalid(
    await put({ name: 'of-groups', url: 'http://127.0.0.1:9', groups: groups(mostGroups + 1) }),
    'scanner.groups',
  )
  ok(await put({ name: 'of-groups', url: 'http://127.0.0.1:9', groups: groups(mostGroups) }))
  ok(await (await api()).post('/control/v1/scanners:remove', { name: 'of-groups' }))
})

test(`a server has at most ${mostScanners} scanners, which can still be changed at this limit`, async () => {
  const names = Array.from({ length: mostScanners }, (_, i) => `scanner${i}`)
  for (const name of names) ok(await put({ name, url: 'http://127.0.0.1:9' }))
  assertError(await put({ name: 'another', url: 'http://127.0.0.1:9' }), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  ok(await put({ name: names[0], url: 'http://127.0.0.1:10' }))
  for (const name of names) ok(await (await api()).post('/control/v1/scanners:remove', { name }))
  assert.deepEqual(await scanners(), [])
})

test('requests a scan up to eight times if its report fails', async () => {
  await using adapter = await startAdapter((what, res) => {
    if (what !== 'report') return false
    res.writeHead(500).end()
    return true
  })
  ok(await put({ name: 'finder', url: adapter.url, onPush: true }))
  const { digest } = await (await registry.registryAs(registry.pusher.uid)).pushImage('acme/app')
  const work = () => runJob(registry.app, askScanners)
  await inDays(work, 24)
  await runJob(registry.app, readReports)
  assert.equal(adapter.orders().filter(({ artifact }) => artifact.digest === digest).length, 8)
  const [report] = await reportsOf(digest)
  assert.equal(report?.reason, 'SCANNER_FAILED')
  ok(await (await api()).post('/control/v1/scanners:remove', { name: 'finder' }))
})

test('tries to read an unreadable report ten times', async () => {
  const { app } = registry
  const { digest } = await pushLayers(await registry.registryAs(registry.pusher.uid), 'acme/app', [{ text: 'x' }])
  const path = `/registry/v2/repos/${repo}/digests/${digest}/scanReports`
  const report = fixture('scan-reports/trivy-alpine-39.json').toString('base64')
  ok(await (await api()).post(path, { report }))
  const [{ read }, { error }] = [app.blobs, app.log]
  let tries = 0
  app.blobs.read = () => {
    tries++
    return Promise.reject(new Error('the disk is broken'))
  }
  app.log.error = () => undefined
  try {
    await inDays(() => runJob(app, readReports), 12)
  } finally {
    app.blobs.read = read
    app.log.error = error
  }
  const [failed] = await reportsOf(digest)
  assert.deepEqual([tries, failed?.state, failed?.reason], [10, 'ignored', 'FAILED'])
})
