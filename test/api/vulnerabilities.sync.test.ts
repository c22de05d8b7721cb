// Scheduled reads of vulnerability sources by the server, as configured.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { readConfig } from '#config.ts'
import { countRecords, findSource } from '#domains/scanning/records/records.store.ts'
import { syncSources } from '#domains/scanning/sources/sync.job.ts'
import { syncDue } from '#domains/scanning/sources/sync.service.ts'
import { startWorkers } from '#workers.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { osv, startMirror } from '../support/mirror.ts'
import { type Json, startPinfold } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, pythonPackage } from '../support/scanning.ts'
import { zipOf } from '../support/zip.ts'

const start = Date.parse('2026-12-01T00:00:00Z')
const hours = (count: number) => new Date(start + count * 3_600_000)
const settings = (mirror: { url: string }) => ({
  vulnerabilityMirror: mirror.url,
  vulnerabilitySources: ['osv/Go', 'kev'],
  vulnerabilitySyncHours: 6,
  vulnerabilityPrivate: ['127.0.0.1'],
})
const zip = { body: zipOf({ 'X-1.json': osv('X-1') }) }
const kev = { body: '{"vulnerabilities":[]}' }

test('reads sources on schedule, and a failing source with growing delays', async () => {
  let now = hours(0)
  await using mirror = await startMirror({ 'osv/Go/all.zip': zip, 'kev.json': kev })
  await using pinfold = await startPinfold({ ...settings(mirror), clock: () => now })
  const { app } = pinfold
  const asked = async (at: number) => {
    now = hours(at)
    await runJob(app, syncSources)
    return mirror.asked().filter((path) => !path.endsWith('.csv'))
  }
  assert.deepEqual(await asked(0), ['kev.json', 'osv/Go/all.zip'])
  assert.deepEqual(await asked(5.9), [])
  mirror.files['osv/Go/all.zip'] = { status: 500 }
  assert.deepEqual(await asked(6.1), ['kev.json', 'osv/Go/all.zip'])
  const failed = await findSource(app.db, 'osv/Go')
  assert.deepEqual([failed?.error, failed?.fetchTime], ['the server responded with HTTP 500', hours(0).toISOString()])
  assert.deepEqual(await asked(6.15), [])
  assert.deepEqual(await asked(6.25), ['osv/Go/all.zip'])
  assert.deepEqual(await asked(6.45), [])
  assert.deepEqual(await asked(6.55), ['osv/Go/all.zip'])
  mirror.files['osv/Go/all.zip'] = zip
  assert.deepEqual(await asked(7.2), ['osv/Go/all.zip'])
  assert.equal((await findSource(app.db, 'osv/Go'))?.error, '')
  assert.deepEqual(await asked(12.2), ['kev.json'])
  assert.deepEqual(
    readdirSync(app.config.data).filter((name) => name.startsWith('sync-')),
    [],
  )
})

test('skips invalid records, and reports failing sources in the metrics', async () => {
  const twoWrong = zipOf({ 'a.json': osv('X-1'), 'b.json': '{', 'c.json': osv('X-2', '1', { aliases: ['a b'] }) })
  await using mirror = await startMirror({ 'osv/Go/all.zip': { body: twoWrong }, 'kev.json': kev })
  await using pinfold = await startPinfold(settings(mirror))
  assert.deepEqual(await runJob(pinfold.app, syncSources), { sources: 2, failed: 1 })
  assert.equal((await findSource(pinfold.app.db, 'osv/Go'))?.error, '2 records are invalid')
  const text = await pinfold.app.metrics.registry.metrics()
  assert.match(text, /^pinfold_vulnerability_source_failed\{source="osv\/Go"\} 1$/m)
  assert.match(text, /^pinfold_vulnerability_source_failed\{source="kev"\} 0$/m)
  assert.match(text, /^pinfold_vulnerability_source_age_seconds\{source="kev"\} /m)
  assert.doesNotMatch(text, /age_seconds\{source="osv\/Go"\}/)
  // Once another server reports shared metrics, this one stops showing its last values.
  pinfold.app.fleet.isFirst = false
  assert.doesNotMatch(await pinfold.app.metrics.registry.metrics(), /^pinfold_vulnerability_source_\w+\{/m)
})

test('one invalid record marks the read as incomplete, and the read withdraws no record', async () => {
  let now = hours(0)
  await using mirror = await startMirror({ 'osv/Go/all.zip': zip, 'kev.json': kev })
  await using pinfold = await startPinfold({ ...settings(mirror), clock: () => now })
  const { app } = pinfold
  const readAt = async (at: number, files: Record<string, string>) => {
    now = hours(at)
    mirror.files['osv/Go/all.zip'] = { body: zipOf(files) }
    await runJob(app, syncSources)
    const { error, sourceNo } = (await findSource(app.db, 'osv/Go'))!
    return [error, (await countRecords(app.db)).get(sourceNo) ?? 0]
  }
  assert.deepEqual(await readAt(0, { 'a.json': osv('X-1'), 'b.json': osv('X-2') }), ['', 2])
  for (const [i, wrong] of ['{', osv('X-9', '1', { aliases: ['a b'] })].entries()) {
    const files = { 'a.json': osv('X-1'), 'b.json': wrong }
    assert.deepEqual(await readAt(7 + 7 * i, files), ['1 record is invalid', 2])
  }
  assert.deepEqual(await readAt(21, { 'a.json': osv('X-1') }), ['', 1], 'a complete read withdraws')
})

test('reads only the data sources that the packages of stored images need', async () => {
  let now = hours(0)
  await using mirror = await startMirror({ 'kev.json': kev })
  const image = { ...apkLayer('alpine', '3.19.1', ['musl 1.2.4-r2']), ...pythonPackage('flask', '2.0.0') }
  const sources = { vulnerabilitySources: ['auto', 'debian-tracker'], clock: () => now }
  await using registry = await startRegistry({ ...settings(mirror), ...sources })
  const { app, operator } = registry
  const asked = async (at: number) => {
    now = hours(at)
    await runJob(app, syncSources)
    return mirror.asked().filter((path) => !path.endsWith('.csv'))
  }
  const needed = async () => ok(await operator.get('/control/v1/vulnerabilitySources')).needed ?? []
  assert.deepEqual(await needed(), [])
  const { syncInterval } = ok(await operator.get('/control/v1/vulnerabilitySources'))
  assert.equal(syncInterval, `${app.config.vulnerabilitySyncHours * 3600}s`)
  assert.deepEqual(await asked(0), ['debian-tracker'])
  const digest = await pushAndScan(registry, 'acme/app', image, 'latest')
  await pushAndScan(registry, 'acme/app', { ...image, ...pythonPackage('click', '1.0') }, 'next')
  assert.deepEqual(await needed(), ['osv/Alpine', 'osv/PyPI', 'epss', 'kev'])
  assert.deepEqual(await asked(0.01), ['epss.csv.gz', 'kev.json', 'osv/Alpine/all.zip', 'osv/PyPI/all.zip'])
  const [repo] = ok(await operator.get('/registry/v2/repos')).repos
  const { gaps } = ok(await operator.get(`/registry/v2/repos/${repo.uid}/digests/${digest}/findings`))
  assert.deepEqual(
    gaps.map(({ subject, message }: Json) => `${subject}: ${message}`),
    ['Alpine:v3.19', 'PyPI'].map((one) => {
      const source = `osv/${one.split(':')[0]}`
      return `${one}: its data source ${source} was not read completely yet: the server responded with HTTP 404`
    }),
  )
  const text = await app.metrics.registry.metrics()
  assert.match(text, /^pinfold_vulnerability_source_failed\{source="osv\/PyPI"\} 1$/m)
  assert.match(text, /^pinfold_vulnerability_source_failed\{source="kev"\} 0$/m)
})

test('reads the needed data sources once a day by default, and none if no image has known packages', async () => {
  assert.deepEqual([readConfig({}).vulnerabilitySources, readConfig({}).vulnerabilitySyncHours], [['auto'], 24])
  await using mirror = await startMirror({})
  await using pinfold = await startPinfold({ ...settings(mirror), vulnerabilitySources: ['auto'] })
  assert.deepEqual(await runJob(pinfold.app, syncSources), { sources: 0, failed: 0 })
  assert.deepEqual(mirror.asked(), [])
})

test('stops reading a data source that would store too many records, and keeps what it has', async () => {
  let now = hours(0)
  const files = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}.json`, osv(`X-${i}`)]))
  await using mirror = await startMirror({ 'osv/Go/all.zip': { body: zipOf(files(100)) }, 'kev.json': kev })
  await using pinfold = await startPinfold({ ...settings(mirror), vulnerabilityMaxRecords: 300, clock: () => now })
  const { app } = pinfold
  const read = async (at: number) => {
    now = hours(at)
    await runJob(app, syncSources)
    const { error, sourceNo } = (await findSource(app.db, 'osv/Go'))!
    return [error, (await countRecords(app.db)).get(sourceNo)]
  }
  assert.deepEqual(await read(0), ['', 100])
  mirror.files['osv/Go/all.zip'] = { body: zipOf(files(1200)) }
  const limit = 'more than 300 records would be stored, the limit of PINFOLD_VULNERABILITY_MAX_RECORDS'
  assert.deepEqual(await read(7), [limit, 500])
  mirror.files['osv/Go/all.zip'] = { body: zipOf({ ...files(500), '0.json': osv('X-0', '9.9') }) }
  assert.deepEqual(await read(14), ['', 500])
})

test('logs a reason why a data source cannot be read once', async (t) => {
  let now = hours(0)
  await using mirror = await startMirror({ 'kev.json': { status: 500 } })
  await using pinfold = await startPinfold({ ...settings(mirror), vulnerabilitySources: ['kev'], clock: () => now })
  const warn = t.mock.method(pinfold.app.log, 'warn')
  for (const at of [0, 2, 4]) {
    now = hours(at)
    assert.deepEqual(await runJob(pinfold.app, syncSources), { sources: 1, failed: 1 })
  }
  assert.equal(warn.mock.callCount(), 1)
})

test('reads no source if the schedule is off, and none from a private address that is not listed', async () => {
  await using mirror = await startMirror({ 'osv/Go/all.zip': zip, 'kev.json': kev })
  await using off = await startPinfold({ ...settings(mirror), vulnerabilitySyncHours: 0 })
  assert.deepEqual(await runJob(off.app, syncSources), { sources: 0, failed: 0 })
  await using other = await startPinfold({ ...settings(mirror), vulnerabilityPrivate: ['10.0.0.0/8'] })
  assert.deepEqual(await runJob(other.app, syncSources), { sources: 2, failed: 2 })
  assert.match((await findSource(other.app.db, 'kev'))!.error, /the host has a private address/)
  assert.deepEqual(mirror.asked(), [])
})

test('a stopping server interrupts its reads, which are repeated and do not count as failures', async () => {
  await using silent = await startSilent()
  const app = await startPinfold({ ...settings(silent), vulnerabilitySources: ['kev'] })
  await using pinfold = app
  const workers = await startWorkers(pinfold.app, { jobs: [syncSources] })
  await silent.asked
  await workers.close(0)
  const known = await findSource(pinfold.app.db, 'kev')
  assert.deepEqual([known?.error, known?.fetchTime], ['', ''])
  await using mirror = await startMirror({ 'kev.json': kev })
  const next = { ...pinfold.app, config: { ...pinfold.app.config, vulnerabilityMirror: mirror.url } }
  assert.deepEqual(await runJob(next, syncSources), { sources: 1, failed: 0 })
})

test('an endless source fails, and the following sources are read', async () => {
  await using silent = await startSilent(new Map([['/kev.json', kev.body]]))
  await using pinfold = await startPinfold(settings(silent))
  const { app } = pinfold
  const site = { signal: AbortSignal.timeout(300_000), holds: () => true, now: app.clock, mostReadingMs: 5000 }
  assert.deepEqual(await syncDue({ app, log: app.log }, site), { sources: 2, failed: 1 })
  assert.notEqual((await findSource(app.db, 'osv/Go'))?.error, '')
  assert.notEqual((await findSource(app.db, 'kev'))?.fetchTime, '')
})

/** Accepts requests without answering, except for these paths. */
async function startSilent(answers: ReadonlyMap<string, string> = new Map()) {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const server: Server = createServer((request, response) => {
    const answer = answers.get(request.url ?? '')
    if (answer !== undefined) return response.end(answer)
    resolve()
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
