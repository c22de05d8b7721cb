// Benchmark of vulnerability matching: `bin/pinfold-node bench/vulnerabilities.ts --images 100000 --records 300000`. Compares all
// packages of many images with many records, then one record that applies to half of the images. Then it measures the time from a
// new record of a tagged image to its event. Meanwhile, an image that was not read yet is pulled through an admission policy.
// With `--shared 10`, ten images share a package list. Without it, every image has its own list, which is the worst case
// (`--lists` sets the number of lists). `--packages 200 --names 5000` set the packages of a list and of all lists. Exits with 1
// if a limit for 100,000 images is exceeded. With PINFOLD_TEST_DATABASE it measures PostgreSQL. It runs with the settings with
// which `bin/pinfold` starts a server.
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { readConfig } from '#config.ts'
import { sql } from '#db/sql.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { emitVulnerabilityEvents } from '#domains/scanning/changes/changes.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { completeList, prepareList } from '#domains/scanning/lists/lists.service.ts'
import { matchKinds } from '#domains/scanning/queue/queue.model.ts'
import { beginSource, finishSource, putRecords, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { signAccessToken } from '#issuer/sign-token.ts'
import { startServer } from '../src/api/server.ts'
import { createApp } from '../src/create-app.ts'
import { startWorkers } from '../src/workers.ts'
import { runJob } from '../test/support/background-jobs.ts'
import { pushLayers } from '../test/support/images.ts'
import { clientOf } from '../test/support/pinfold.ts'
import { registryClient } from '../test/support/registry.ts'
import { runAsServer } from './as-server.ts'

runAsServer()

const { values } = parseArgs({
  options: {
    images: { type: 'string' },
    shared: { type: 'string', default: '1' },
    lists: { type: 'string' },
    packages: { type: 'string', default: '200' },
    names: { type: 'string', default: '5000' },
    records: { type: 'string', default: '300000' },
  },
})
const wanted = values.lists ?? (values.images ? Math.ceil(Number(values.images) / Number(values.shared)) : 10_000)
const [lists, packages, names, records] = [wanted, values.packages, values.names, values.records].map(Number) as [
  number,
  number,
  number,
  number,
]
const folder = mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
const server = process.env.PINFOLD_TEST_DATABASE
const settings = server ? { database: server, masterKey: '0'.repeat(64) } : {}
const app = await createApp({
  ...readConfig({}),
  data: folder,
  logLevel: 'warn',
  listen: { host: '127.0.0.1', port: 0 },
  ...settings,
})
const door = await startServer(app)
const work = { app, log: app.log }
const ecosystem = 'Debian:12'
const distribution = { id: 'debian', version: '12' }

/** Random numbers that are the same in each run. */
let state = 1
const below = (most: number) => {
  state = (state * 1103515245 + 12345) % 2 ** 31
  return Math.floor((state / 2 ** 31) * most)
}

function record(id: string, name: string, fixed: string): SourceRecord {
  const texts = { summary: 'A flaw', publishTime: '', modifyTime: '', withdrawTime: '' }
  const ranges = [{ type: 'ECOSYSTEM' as const, events: [{ introduced: '0' }, { fixed }] }]
  const said = { ecosystem, name, ranges, versions: [], state: 'affected' as const, severity: 'high' as const }
  return {
    id,
    aliases: [],
    upstream: [],
    ...texts,
    severities: [],
    references: [],
    affected: [{ ...said, qualifiers: {} }],
  }
}

/** A source that speaks of no ecosystem is an import, of which nothing is old. */
async function sync(source: string, given: Iterable<SourceRecord>, ecosystems = [ecosystem]): Promise<void> {
  const run = await beginSource(work, { name: source, url: '', licence: 'MIT', ecosystems })
  let some: SourceRecord[] = []
  for (const one of given) {
    some.push(one)
    if (some.length < 500) continue
    await putRecords(work, run, some)
    some = []
  }
  if (some.length > 0) await putRecords(work, run, some)
  await finishSource(work, run, { fingerprint: '', buildTime: '', complete: true, error: '' })
}

/** Most records are of versions before the oldest that is installed, as they are of real images. */
function* recordsOf(): Generator<SourceRecord> {
  for (let i = 0; i < records; i++) {
    const fixed = i % 50 === 0 ? `${1 + below(20)}.0-1` : '0.1-1'
    yield record(`CVE-2024-${10_000 + i}`, `package-${below(names)}`, fixed)
  }
}

async function addLists(): Promise<void> {
  for (let i = 0; i < lists; i++) {
    const half = i % 2 === 0 ? ['common'] : []
    const chosen = new Set([...half, ...Array.from({ length: packages }, () => `package-${below(names)}`)])
    const found = [...chosen].map((name) => {
      const version = name === 'common' ? `1.${i % 500}-1` : `${1 + below(20)}.0-1`
      return { kind: 'deb' as const, name, version, origin: name, originVersion: version, arch: 'amd64' }
    })
    const list = await prepareList(app, { hash: hash('sha256', `${i}`), distribution }, found)
    await app.db.tx((tx) => completeList(tx, list, `${i % 50}`.padStart(40, '0'), app.clock().toISOString()))
  }
}

async function untilMatched(): Promise<void> {
  while (await app.db.get(sql`SELECT 1 AS waits FROM match_queue LIMIT 1`)) await sleep(50)
}

const tokenFor = (audience: string): Promise<string> =>
  signAccessToken(app.keyring, { issuer: door.url, subject: operatorUid, audience, now: app.clock() })
const registryOf = async () => registryClient(door.localUrl, await tokenFor(new URL(door.url).host))

const pushed = 'bench/app'
const pulls = { all: 0, refused: [] as number[] }

/** Creates an image with a package that no source covers, in a group with an admission policy. */
async function pushOne(): Promise<void> {
  const api = clientOf(door.localUrl, await tokenFor(door.url))
  const group = await api.post('/iam/v2/groups/', { name: 'bench' })
  const layer = {
    'etc/os-release': 'ID=debian\nVERSION_ID=12\n',
    'var/lib/dpkg/status': 'Package: lonely\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\n',
  }
  await pushLayers(await registryOf(), pushed, [layer], 'latest')
  const gate = { name: 'gate', mode: 'ENFORCE', vulnerabilities: { leastSeverity: 'LOW' } }
  const made = await api.post(`/registry/v2/gates/${group.body.uid}`, gate)
  if (made.status !== 200) throw new Error(`the gate was answered with ${made.status}`)
}

async function untilTold(): Promise<void> {
  const told = sql`SELECT 1 AS found FROM events_outbox WHERE type LIKE '%.registry.vulnerability.found.v1' LIMIT 1`
  while (!(await app.db.get(told))) await sleep(50)
}

/** All of it, its own, and of files, of which the mapped database is one: those the system takes back when it needs the room. */
function memory(): Record<'rss' | 'anon' | 'file', number> {
  const status = readFileSync('/proc/self/status', 'utf8')
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024
  return { rss: mebibytes('VmRSS'), anon: mebibytes('RssAnon'), file: mebibytes('RssFile') }
}

/** Delay of other requests during the work, and memory. */
function watch() {
  const [times, most] = [[] as number[], { rss: 0, anon: 0, file: 0 }]
  let ended = false
  const asking = (async () => {
    const [headers, puller] = [{ authorization: `Bearer ${await tokenFor(door.url)}` }, await registryOf()]
    while (!ended) {
      const began = performance.now()
      await (await fetch(new URL('/iam/v2/groups?pageSize=10', door.localUrl), { headers })).arrayBuffer()
      times.push(performance.now() - began)
      pulls.all++
      const answer = await puller.call('GET', `${pushed}/manifests/latest`).catch(() => ({ status: 0 }))
      if (answer.status !== 200) pulls.refused.push(answer.status)
      const now = memory()
      for (const name of ['rss', 'anon', 'file'] as const) most[name] = Math.max(most[name], now[name])
      await sleep(10)
    }
  })()
  return async () => {
    ended = true
    await asking
    const sorted = times.toSorted((a, b) => a - b)
    const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1)
    const [median, p99] = [at(0.5), at(0.99)]
    const [rss, anon, file] = [most.rss, most.anon, most.file].map(Math.round) as [number, number, number]
    return { requests: sorted.length, median, p99, rss, anon, file }
  }
}

/** Bounds for 100,000 images and 300,000 records, on SQLite and two processors. */
type Bounds = { seconds: number; p99: number; rss: number }
let missed = 0

async function timed(what: string, job: () => Promise<void>, bounds?: Bounds): Promise<void> {
  const stop = watch()
  const cpu = process.cpuUsage()
  const began = performance.now()
  await job()
  const { user, system } = process.cpuUsage(cpu)
  const [wall, busy] = [(performance.now() - began) / 1000, (user + system) / 1e6]
  const { requests, median, p99, rss, anon, file } = await stop()
  const held = `RSS at most ${rss} MiB, RssAnon ${anon} MiB, RssFile ${file} MiB`
  const others = `${requests} requests meanwhile, median ${median} ms, p99 ${p99} ms; ${held}`
  console.log(`${what}: ${wall.toFixed(1)} s, ${busy.toFixed(1)} s of CPU; ${others}`)
  if (!bounds) return
  const over = [
    ...(wall > bounds.seconds ? [`more than ${bounds.seconds} s`] : []),
    ...(Number(p99) > bounds.p99 ? [`p99 of more than ${bounds.p99} ms`] : []),
    ...(rss > bounds.rss ? [`more than ${bounds.rss} MiB`] : []),
  ]
  missed += over.length
  for (const one of over) console.log(`MISSED, ${what}: ${one}`)
}

console.log(`${lists} lists of ${packages} of ${names} packages, ${records} records`)
await pushOne()
await timed('taking in the records', () => sync('osv/Debian', recordsOf()))
await timed('taking in the lists', addLists)
const count = async (table: 'components' | 'findings') =>
  Number(
    (await app.db.get<{ n: number }>(
      table === 'findings' ? sql`SELECT count(*) AS n FROM findings` : sql`SELECT count(*) AS n FROM components`,
    ))!.n,
  )
const workers = await startWorkers(app, { jobs: [matchPackages, emitVulnerabilityEvents] })
await timed('first match', untilMatched, { seconds: 600, p99: 50, rss: 500 })
console.log(`${await count('components')} package versions, ${await count('findings')} findings`)
await timed(
  'a record that half of the lists have',
  async () => {
    const began = performance.now()
    await sync('osv/One', [record('CVE-2025-1', 'common', '2-1')])
    while (await app.db.get(sql`SELECT 1 AS waits FROM match_queue WHERE kind = ${matchKinds.package} LIMIT 1`))
      await sleep(5)
    console.log(
      `found in all of them after ${((performance.now() - began) / 1000).toFixed(1)} s; what is counted in the lists follows`,
    )
    await untilMatched()
  },
  { seconds: 10, p99: 50, rss: 500 },
)
console.log(
  `${pulls.all} pulls of an image that nobody had read, ${pulls.refused.length} refused ${[...new Set(pulls.refused)]}`,
)
missed += pulls.refused.length
await runJob(app, readImages)
await untilMatched()
const { read } = app.blobs
let reads = 0
app.blobs.read = (location) => {
  reads++
  return read.call(app.blobs, location)
}
await timed(
  'a record that the image has, until its event',
  async () => {
    await sync('import/osv', [record('CVE-2025-2', 'lonely', '2-1')], [])
    await untilTold()
  },
  { seconds: 5, p99: 1000, rss: 500 },
)
console.log(`${reads} reads of blobs`)
missed += reads
await workers.close()
await door.close()
await app.close()
rmSync(folder, { recursive: true, force: true })
if (missed > 0) process.exitCode = 1
