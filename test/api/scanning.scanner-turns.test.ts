// Fair use of an external scanner: no organization and no image blocks the scans of others.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { askScanners } from '#domains/scanning/scanners/ask-scanners.job.ts'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'
import { type AdapterFault, localScanners, startAdapter, type TestAdapter } from '../support/scanner-adapter.ts'

let now = new Date('2026-03-01T08:00:00Z')
let registry: TestRegistry
let adapter: TestAdapter
let repo: string
let operator: Client
let push: RegistryClient
/** Another organization, with one repo and an identity that pushes to it. */
let late: { repo: string; pusher: string }
before(async () => {
  registry = await startRegistry({ clock: () => now, ...localScanners })
  await pass(0)
  repo = (await registry.seed.repo(registry.org.uid, { name: 'app' })).uid
  const { uid } = await registry.seed.group('', { name: 'late' })
  const { uid: only } = await registry.seed.repo(uid, { name: 'only' })
  late = { repo: only, pusher: (await registry.seed.member(uid, roleUids.push)).uid }
})
after(() => registry[Symbol.asyncDispose]())
beforeEach(async () => {
  adapter = await startAdapter()
  ok(await operator.post('/control/v1/scanners:put', { scanner: { name: 'finder', url: adapter.url, onPush: true } }))
})
afterEach(async () => {
  ok(await operator.post('/control/v1/scanners:remove', { name: 'finder' }))
  await adapter[Symbol.asyncDispose]()
})

async function pass(seconds: number): Promise<void> {
  now = new Date(now.getTime() + seconds * 1000)
  operator = registry.withToken(await registry.tokenFor(operatorUid))
  push = await registry.registryAs(registry.pusher.uid)
}

const scanner = async (): Promise<Json> => ok(await operator.get('/control/v1/scanners')).scanners[0]
const ask = () => runJob(registry.app, askScanners)
const reportsOf = async (digest: string, uid = repo): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${uid}/digests/${digest}/scanReports`)).reports ?? []

/** Runs the scanner job until nothing waits, or until the given number of seconds of the server's clock has passed. */
async function askAll(seconds = 400_000): Promise<void> {
  const until = now.getTime() + seconds * 1000
  for (let step = 5; now.getTime() <= until; step = Math.min(step * 2, 1800)) {
    await ask()
    if (Number((await scanner()).waiting) === 0) break
    await pass(step)
  }
  await runJob(registry.app, readReports)
}

const status = (code: number, headers: Record<string, string> = {}): AdapterFault => {
  return (_what, res) => {
    res.writeHead(code, headers).end()
    return true
  }
}

test('many scans of one organization do not delay other organizations', async () => {
  adapter.breakWith((what, res) => what === 'report' && status(302, { 'refresh-after': '60' })(what, res))
  for (let i = 0; i < 12; i++) await push.pushImage('acme/app')
  await pass(10)
  const { digest } = await (await registry.registryAs(late.pusher)).pushImage('late/only')
  await ask()
  const ordered = adapter.orders().map(({ artifact }) => artifact)
  assert.ok(
    ordered.some((one) => one.digest === digest),
    'its turn has come',
  )
  assert.equal(ordered.filter(({ repository }) => repository === 'acme/app').length, 5, 'five at once, and no more')
  adapter.mend()
  await askAll()
  assert.equal(adapter.orders().length, 13)
  assert.equal((await reportsOf(digest, late.repo))[0]?.state, 'read')
})

test('an image that makes a scanner fail does not delay other organizations, and is given up', async () => {
  const { digest: bad } = await push.pushImage('acme/app')
  adapter.breakWith(
    (what, res, scan) => what === 'report' && scan?.order.artifact.digest === bad && status(504)(what, res),
  )
  await ask()
  await pass(10)
  await ask()
  assert.match((await scanner()).problem, /504/)
  // Both scans are due, and the first has found the scanner unavailable again.
  await pass(61)
  const others = await registry.registryAs(late.pusher)
  const { digest } = await others.pushImage('late/only')
  await ask()
  const { digest: next } = await others.pushImage('late/only')
  await ask()
  const ordered = adapter.orders().map(({ artifact }) => artifact.digest)
  assert.deepEqual([ordered.includes(digest), ordered.includes(next)], [true, true], 'nobody waits for it')
  await askAll()
  const [report] = await reportsOf(bad)
  assert.deepEqual([report?.state, report?.reason], ['ignored', 'SCANNER_FAILED'])
})
