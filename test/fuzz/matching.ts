// Adds and changes package lists and vulnerability records at random while they are compared, and kills the process repeatedly.
// Then it compares everything anew: the findings must be the same. Some lists have more findings than the limit, at times. To
// run it by hand:
//   bin/pinfold-node test/fuzz/matching.ts --operations 1000 --kills 200
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Package } from '#contents/packages.ts'
import { sql } from '#db/sql.ts'
import { emitVulnerabilityEvents } from '#domains/scanning/changes/changes.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { verifyStep } from '#domains/scanning/findings/verify.service.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import { beginSource, putRecords } from '#domains/scanning/records/records.service.ts'
import { readConfig } from '../../src/config.ts'
import { createApp } from '../../src/create-app.ts'
import { runJob } from '../support/background-jobs.ts'
import { cleanEnv, createStorage } from '../support/process.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { recordAbout } from '../support/scanning.ts'

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '1000' },
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    // Progress of the killed process: number of completed operations, and number of operations to do.
    from: { type: 'string' },
    upTo: { type: 'string' },
  },
})
const seed = Number(values.seed)
const ecosystem = 'Alpine:v3.19'
const organization = 'a'.repeat(40)
const names = 6
const vulnerabilityFindingsPerImage = 40

if (values.from === undefined) await supervise(Number(values.operations), Number(values.kills))
else await live(Number(values.from), Number(values.upTo))

async function supervise(operations: number, kills: number): Promise<void> {
  await using storage = await createStorage()
  const random = randomFrom(seed)
  const env = {
    ...storage.env,
    PINFOLD_DATA: storage.data,
    ...(storage.database ? { PINFOLD_DATABASE: storage.database } : {}),
  }
  console.log(`${storage.database ? 'PostgreSQL' : 'SQLite'}, --seed ${seed}`)
  const start = (from: number) => {
    const args = [import.meta.filename, '--seed', `${seed}`, '--from', `${from}`, '--upTo', `${operations}`]
    return spawn(process.execPath, args, { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'inherit'] })
  }
  let done = 0
  for (let killed = 0; killed < kills; ) {
    // The remaining processes share the remaining operations. The last ones only compare.
    const most = random.below(Math.ceil((2.2 * (operations - done)) / (kills - killed)) + 1)
    const child = start(done)
    const [ended, first] = [once(child, 'close'), done]
    for await (const line of createInterface({ input: child.stdout })) {
      done = Number(line)
      if (done - first >= most || done === operations) break
    }
    await sleep(random.below(60))
    child.kill('SIGKILL')
    await ended
    await storage.settled()
    killed++
    if (killed % 20 === 0) console.log(`${killed} kills, ${done} operations`)
  }
  const child = start(done)
  child.stdout.resume()
  const [code] = await once(child, 'close')
  assert.equal(code, 0, `it ended with ${code}; --seed ${seed}`)
}

/** Runs operations until it is killed. After the last operation, compares everything anew and ends. */
async function live(from: number, upTo: number): Promise<void> {
  await using app = await openApp()
  console.log(from)
  let isAtWork = true
  const comparing = (async () => {
    while (isAtWork) await compare(app)
  })()
  for (let i = from; i < upTo; i++) {
    // Each operation has its own random numbers, so an operation that is repeated after a kill is the same.
    await operate(app, randomFrom(seed + i * 7919), i)
    console.log(i + 1)
  }
  isAtWork = false
  await comparing
  const count = async (of: ReturnType<typeof sql>) => Number((await app.db.get<{ n: number }>(of))!.n)
  while ((await count(sql`SELECT count(*) AS n FROM match_queue`)) > 0) await compare(app)
  const found: string[] = []
  let checked = 0
  for (let step = 'c:0'; step !== ''; ) {
    const { differences, next, checked: some } = await verifyStep(app, step)
    found.push(...differences)
    checked += some
    step = next
  }
  const findings = await count(sql`SELECT count(*) AS n FROM findings`)
  const over = await count(sql`SELECT count(*) AS n FROM list_limits`)
  process.stderr.write(`${checked} packages and lists, ${findings} findings, ${over} times over the bound, `)
  process.stderr.write(`${[`${found.length} differences`, ...found.slice(0, 20)].join('\n')}\n`)
  assert.ok(checked > 0 && findings > 0, 'otherwise nothing was tested')
  assert.deepEqual(found, [])
}

type App = Awaited<ReturnType<typeof openApp>>

async function openApp() {
  const app = await createApp({ ...readConfig(process.env), logLevel: 'error', vulnerabilityFindingsPerImage })
  return Object.assign(app, { [Symbol.asyncDispose]: () => app.close() })
}

async function compare(app: App): Promise<void> {
  await runJob(app, matchPackages)
  await runJob(app, emitVulnerabilityEvents)
  await sleep(1)
}

async function operate(app: App, random: Random, number: number): Promise<void> {
  const name = `p${random.below(names)}`
  const version = `${random.below(5)}-r${random.below(3)}`
  if (random.below(3) === 0) return addList(app, random, number)
  const upstream = [`CVE-1-${random.below(8)}`]
  const withdrawTime = random.below(4) === 0 ? '2026-03-01T00:00:00.000Z' : ''
  const record = recordAbout(`R-${random.below(60)}`, ecosystem, name, version, { upstream, withdrawTime })
  const work = { app, log: app.log }
  const run = await beginSource(work, { name: 'random', url: '', licence: 'MIT', ecosystems: [ecosystem] })
  await putRecords(work, run, [record])
}

async function addList(app: App, random: Random, number: number): Promise<void> {
  const distribution = { id: 'alpine', version: '3.19.1' }
  const packages = Array.from({ length: 1 + random.below(8) }, (_, i): Package => {
    const [name, version] = [`p${random.below(names)}`, `${random.below(5)}-r${random.below(3)}`]
    return { kind: 'apk', name: `${name}-${i}`, version, origin: name, originVersion: version, arch: 'x86_64' }
  })
  const list = await prepareList(app, { hash: `list ${number}`, distribution }, packages)
  await app.db.tx((tx) => completeList(tx, list, organization, app.clock().toISOString()))
}
