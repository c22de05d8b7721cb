// Admission policies that deny unknown contents also deny images with more findings than are stored or read.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { ownSource } from '#domains/scanning/own-advisories/own-advisories.service.ts'
import { beginSource, putSlice, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Reply, startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const [kept, looked] = [6000, 5000]
let registry: TestRegistry
let machine = 0
before(async () => {
  registry = await startRegistry({ vulnerabilityFindingsPerImage: kept, monotonic: () => machine })
  await readSource(registry.app, ecosystem, records)
})
after(() => registry[Symbol.asyncDispose]())

const ecosystem = 'Alpine:v3.19'
const records = Array.from({ length: 100 }, (_, i) => recordAbout(`CVE-2026-${i}`, ecosystem, 'big', '2-r0'))

/**
 * Pushes an image with packages with a hundred findings each. The admission policy of its repository denies exploited
 * vulnerabilities.
 */
async function scene(name: string, packages: number) {
  const lines = Array.from({ length: packages }, (_, i) => `${name}${i} 1-r0 big`)
  const digest = await pushAndScan(
    registry,
    `acme/${name}`,
    apkLayer('alpine', '3.19.1', ['one 1-r0', ...lines]),
    'latest',
  )
  const { repo } = await registry.app.paths.find(`acme/${name}`)
  const gate = { name: 'gate', mode: 'ENFORCE', vulnerabilities: { onlyExploited: true, unknown: 'DENY' } }
  const { uid } = ok(await registry.operator.post(`/registry/v2/gates/${repo!.uid}`, gate))
  const pull = async (): Promise<Reply> => {
    machine += 60_000
    const puller = await registry.registryAs(registry.puller.uid)
    return puller.call('GET', `acme/${name}/manifests/${digest}`)
  }
  const pass = async () => {
    const path = `/registry/v2/gates/${uid}?updateMask=vulnerabilities.unknown`
    ok(await registry.operator.call('PATCH', path, { vulnerabilities: { unknown: 'PASS' } }))
  }
  return { pull, pass }
}
const reasonOf = ({ status, body }: Reply) => (status === 403 ? body.errors[0].detail.reason : status)

test('allows an image whose findings are within the limit', async () => {
  const { pull } = await scene('few', looked / 100)
  assert.equal(reasonOf(await pull()), 200)
})

test('reports a coverage gap if an image has more findings than the admission policy reads', async () => {
  const { pull, pass } = await scene('many', looked / 100 + 1)
  assert.equal(reasonOf(await pull()), 'not scanned: the image has more findings than the list')
  await pass()
  assert.equal(reasonOf(await pull()), 200)
})

test('reports a coverage gap if an image has more findings than are stored for it', async () => {
  const { pull, pass } = await scene('over', kept / 100 + 20)
  assert.equal(
    reasonOf(await pull()),
    'not scanned: the image has more findings than are stored for one image, the image has more findings than the list',
  )
  await pass()
  assert.equal(reasonOf(await pull()), 200)
})

test('reports a coverage gap if an organization has more records of a package than are stored', async () => {
  const { pull } = await scene('own', 0)
  const { app, org } = registry
  const now = app.clock().toISOString()
  const say = async (from: number, count: number) => {
    const said = Array.from({ length: count }, (_, i): { record: SourceRecord; organization: string; hash: string } => {
      const id = `CVE-2027-${from + i}`
      return { record: recordAbout(id, ecosystem, 'one', ''), organization: org.uid, hash: id }
    })
    const work = { app, log: app.log }
    const run = await beginSource(work, { name: ownSource, url: '', licence: '', ecosystems: [] })
    await app.db.tx((tx) => putSlice(tx, { sourceNo: run.sourceNo, generation: 0, now }, said))
    await runJob(app, matchPackages)
  }
  await say(0, 999)
  assert.equal(reasonOf(await pull()), 200)
  await say(999, 1)
  assert.equal(
    reasonOf(await pull()),
    'not scanned: more than 999 advisories of the organization apply to one of the packages',
  )
})
