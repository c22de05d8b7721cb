import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readReports } from '#domains/scanning/signers/read-reports.job.ts'
import { createReadScheduler } from '#lib/scheduling/read-scheduler.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { fixture } from '../support/fixtures.ts'
import { pushLayers } from '../support/images.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'

let registry: TestRegistry
before(async () => {
  registry = await startRegistry()
})
after(() => registry[Symbol.asyncDispose]())

/** Adds an organization, and returns a function that imports a report about a new image. */
async function newOrganization(name: string) {
  const group = await registry.seed.group('', { name })
  const repo = (await registry.seed.repo(group.uid, { name: 'app' })).uid
  const { uid } = await registry.seed.member(group.uid, roleUids.owner)
  const [owner, pusher] = [await registry.as(uid), await registry.registryAs(uid)]
  return async (image: string) => {
    const { digest } = await pushLayers(pusher, `${name}/app`, [{ image, name }])
    const path = `/registry/v2/repos/${repo}/digests/${digest}/scanReports`
    ok(await owner.post(path, { report: fixture('scan-reports/trivy-alpine-39.json').toString('base64') }))
    return { digest, reports: async (): Promise<Json[]> => ok(await owner.get(path)).reports }
  }
}

/** Reads all reports, and returns the digests of their images in the order in which they were read. */
async function readAll(): Promise<string[]> {
  const order: string[] = []
  const { info } = registry.app.log
  registry.app.log.info = (message, fields) => {
    if (message === 'scanner report read') order.push(String(fields?.digest))
    info(message, fields)
  }
  await runJob(registry.app, readReports)
  registry.app.log.info = info
  return order
}

test('an organization with slow reports gets a quarter of the time, or all of it if no other waits', async () => {
  const [slow, quick] = [await newOrganization('a-slow'), await newOrganization('b-quick')]
  const long = new Set<string>()
  for (const image of ['a', 'b', 'c']) long.add((await slow(image)).digest)
  for (let i = 0; i < 9; i++) await quick(`image-${i}`)
  const { turns } = registry.app.scanning
  let time = 0
  const { choose, take } = createReadScheduler(() => time, { giveWayMs: 60_000, shortMs: 1000 })
  registry.app.scanning.turns = {
    choose,
    take: (read, others, work) =>
      take(read, others, async (signal) => {
        // Short reports alternate between the organizations.
        time += long.has(read.digest) ? 4000 : 900
        await work(signal)
      }),
  }
  const order = (await readAll()).map((digest) => (long.has(digest) ? 'S' : 'q')).join('')
  registry.app.scanning.turns = turns
  // After 4 seconds of one organization, the other gets 12 seconds. Either one can be first.
  assert.match(order, /^q?Sq{8,9}SS$/)
})

test('a slow report yields to waiting reports, and is read completely later', async () => {
  const [slow, quick] = [await newOrganization('c-slow'), await newOrganization('d-quick')]
  const long = await slow('a')
  const other = await quick('a')
  const { turns } = registry.app.scanning
  registry.app.scanning.turns = createReadScheduler(() => performance.now(), { giveWayMs: 1, shortMs: 1 })
  const { take } = registry.app.scanning.turns
  const { read } = registry.app.blobs
  // The store does not respond at first, so the report would wait until its time limit.
  let isAsked = false
  const silent = () => {
    isAsked = true
    registry.app.blobs.read = read
    return new Promise<never>(() => {})
  }
  const givenWay: string[] = []
  registry.app.scanning.turns.take = (one, others, work) => {
    const isLong = one.digest === long.digest
    if (isLong && givenWay.length === 0) registry.app.blobs.read = silent
    const waiting = async () => isLong && isAsked && (await others())
    return take(one, waiting, (signal) => {
      signal.addEventListener('abort', () => givenWay.push(one.digest))
      return work(signal)
    })
  }
  // The first organization has its next turn after the other one.
  registry.app.scanning.turns.choose = async (due) => {
    const all = await Array.fromAsync(due)
    return all.find(({ digest }) => (digest === long.digest) === (givenWay.length === 0)) ?? all[0]
  }
  const order = await readAll()
  registry.app.scanning.turns = turns
  assert.deepEqual([order, givenWay], [[other.digest, long.digest], [long.digest]])
  assert.deepEqual(
    (await long.reports()).map(({ reason }) => reason),
    [''],
  )
})
