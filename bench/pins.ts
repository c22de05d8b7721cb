// Pulls through views compared with plain pulls, and proofs of a log with many entries: `bin/pinfold-node bench/pins.ts --pulls
// 5000 --entries 1000000`. The server runs on one processor, and the load on the other. With `--check` it fails if the p99 of
// pulls through a view is above 1.1 of that of plain pulls, or if the p99 of proofs is above 5 ms. With `--fsck PROGRAM`, the
// command fsck of Tessera verifies the whole log. With `--entries 0` it measures only pulls. It uses PostgreSQL if
// PINFOLD_TEST_DATABASE names one.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { raw } from '#db/sql.ts'
import { routeBacklog } from '#domains/events/routing/routing.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { signLogs } from '#domains/ledger/proofs/signing.service.ts'
import { quantile } from '../test/fuzz/hostile/measure.ts'
import { withoutLease } from '../test/support/background-jobs.ts'
import { type Client, clientOf, type Json, startPinfold } from '../test/support/pinfold.ts'
import { createStorage, lastingToken, startProcess, tokenOf } from '../test/support/process.ts'
import { registryClient, types } from '../test/support/registry.ts'
import { httpConnections } from './connections.ts'
import { pin, pinLoad } from './cpu-server.ts'
import { median, serverCore, spreadOf } from './load.ts'

const { values } = parseArgs({
  options: {
    pulls: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '9' },
    entries: { type: 'string', default: '1000000' },
    check: { type: 'boolean', default: false },
    fsck: { type: 'string' },
  },
})
const [pulls, rounds, entries] = [Number(values.pulls), Number(values.rounds), Number(values.entries)]
const bounds = { ratio: 1.1, proofMs: 5 }
const [day, minute] = [86_400_000, 60_000]
const daysAgo = (days: number): string => new Date(Date.now() - days * day).toISOString()
const quiet = { env: { PINFOLD_LOG_LEVEL: 'error' } }

/** Sets the exit code. Values above their bounds have been printed before. */
function bounded(what: string, is: number, most: number): void {
  if (!values.check || is <= most) return
  console.error(`${what}: ${is.toFixed(2)} is more than ${most}`)
  process.exitCode = 1
}

async function made(client: Client, path: string, body: Json): Promise<Json> {
  const answer = await client.post(path, body)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body
}

const proofsPerRound = 1000
const perTag = 10
const tags = Math.ceil(entries / perTag)
const digest = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`
const timeOf = (move: number): string => new Date(Date.parse('2026-01-01') + move * 60 * minute).toISOString()
/** Tags with their history, as ledgers of elsewhere have it. */
const historyOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    name: `t${from + i}`,
    records: Array.from({ length: perTag }, (_, k) => ({ time: timeOf(k), digest: digest(`${from + i} ${k}`) })),
  }))

pinLoad()
await using storage = await createStorage()
const { org, repo, host } = await measurePulls()
if (entries > 0) {
  await fillLog()
  await measureProofs()
}

async function measurePulls() {
  await using server = await startProcess(storage, quiet)
  const { url } = server
  pin(server.pid, serverCore)
  const operator = clientOf(url, await tokenOf(storage))
  const org = (await made(operator, '/iam/v2/groups/', { name: 'acme' })).uid as string
  const repo = (await made(operator, `/registry/v2/repos/${org}`, { name: 'app' })).uid as string
  const registryToken = lastingToken(storage, ['--audience', 'registry'])
  const registry = registryClient(url, await registryToken())
  const [old, fresh] = [await registry.pushImage('acme/app'), await registry.pushImage('acme/app')]
  const records = [
    { time: daysAgo(40), digest: old.digest },
    { time: daysAgo(1), digest: fresh.digest },
  ]
  await made(operator, '/control/v1/tagHistory:import', { repoUid: repo, tags: [{ name: 'stable', records }] })
  const at = daysAgo(20).slice(0, 10).replaceAll('-', '')
  const kinds = {
    plain: '/v2/acme/app/manifests/stable',
    [`at-${at}`]: `/v2/at-${at}/acme/app/manifests/stable`,
    'min-7d': '/v2/min-7d/acme/app/manifests/stable',
  }
  const perRound = Math.ceil(pulls / rounds)
  const figures: Figures = {}
  for (let round = 0; round < rounds; round++) {
    const took = await timed(url, kinds, await registryToken(), perRound)
    for (const [name, list] of Object.entries(took)) {
      figures[name] ??= []
      figures[name].push(list)
    }
  }
  showPulls(figures, perRound)
  return { org, repo, host: new URL(url).host }
}

/** Milliseconds of each request. Requests of all kinds run one after the other, in turn. */
async function timed(
  url: string,
  kinds: Record<string, string>,
  token: string,
  count: number,
): Promise<Record<string, number[]>> {
  const names = Object.keys(kinds)
  const headers = { authorization: `Bearer ${token}`, accept: types.image }
  const all = httpConnections(url, names.length, (i) => ({ path: kinds[names[i]!]!, headers }))
  const took: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let i = 0; i < count + 200; i++) {
    for (let turn = 0; turn < names.length; turn++) {
      // Every second time the other way round, so that each of them comes after each other one.
      const lane = (i + (i % 2 === 0 ? turn : names.length - turn)) % names.length
      const began = performance.now()
      await all.send(lane, lane)
      if (i >= 200) took[names[lane]!]!.push(performance.now() - began)
    }
  }
  all.close()
  return took
}

/** Milliseconds of each pull, by round. */
type Figures = Record<string, number[][]>

function showPulls(figures: Figures, perRound: number): void {
  console.log(
    `\n| pull of a tag, ${rounds} rounds of ${perRound} | p50 ms | p99 ms | p99 by the plain one, of all | of the rounds |`,
  )
  console.log('| --- | --- | --- | --- | --- |')
  const p99 = (list: readonly number[]) => quantile(list, 0.99)
  for (const [name, list] of Object.entries(figures)) {
    const ratios = list.map((round, i) => p99(round) / p99(figures.plain![i]!))
    const all = p99(list.flat()) / p99(figures.plain!.flat())
    const [fast, slow] = [median(list.map((round) => quantile(round, 0.5))), median(list.map(p99))]
    const spread = `${median(ratios).toFixed(2)} (${spreadOf(ratios)})`
    console.log(`| ${name} | ${fast.toFixed(3)} | ${slow.toFixed(3)} | **${all.toFixed(2)}** | ${spread} |`)
    bounded(`p99 of pulls through ${name} by the plain one`, all, bounds.ratio)
  }
}

/** Imports rows of other tags and logs them, in this process, which has no jobs that would wait between some and more. */
async function fillLog(): Promise<void> {
  const given = { data: storage.data, database: storage.database, masterKey: storage.env.PINFOLD_MASTER_KEY ?? '' }
  await using pinfold = await startPinfold({ ...given, logLevel: 'error', jobs: [] })
  const { app, operator } = pinfold
  const began = performance.now()
  for (let from = 0; from < tags; from += 1000) {
    const some = { repoUid: repo, tags: historyOf(from, Math.min(1000, tags - from)) }
    await made(operator, '/control/v1/tagHistory:import', some)
  }
  const imported = performance.now()
  const later = { isolation: 'rowLocks', durability: 'later' } as const
  while ((await app.db.tx((tx) => sequenceSome(tx, app, host), later)) > 0) await setImmediate()
  await signLogs(app, withoutLease(app))
  const logged = performance.now()
  // Other work of a server, or of PostgreSQL itself, while proofs are measured.
  await routeBacklog(app, new Date().toISOString())
  await app.db.alone?.((one) => one.all(raw('VACUUM ANALYZE')))
  const seconds = (from: number, to: number) => Math.round((to - from) / 1000)
  console.log(
    `\n${tags * perTag} rows imported in ${seconds(began, imported)} s, in the log ${seconds(imported, logged)} s later`,
  )
}

async function measureProofs(): Promise<void> {
  await using server = await startProcess(storage, quiet)
  const { url } = server
  pin(server.pid, serverCore)
  const token = await tokenOf(storage)
  const api = clientOf(url, token)
  const size = Number((await api.get(`/ledger/${org}/checkpoint`)).text.split('\n')[1])
  // Besides the entry of the log itself, and two of the tag above.
  if (size !== tags * perTag + 3) throw new Error(`the log has ${size} entries`)
  const pathOf = (i: number) => `/ledger/${org}/repos/${repo}/tags/t${(i * 7919) % tags}/proof?at=${timeOf(i % perTag)}`
  const bytes = (await api.get(pathOf(0))).text.length
  const headers = { authorization: `Bearer ${token}` }
  const one = httpConnections(url, 1, (i) => ({ path: pathOf(i), headers }))
  const took: number[][] = []
  for (let i = 0; i < 200 + rounds * proofsPerRound; i++) {
    const start = performance.now()
    await one.send(0, i)
    if (i < 200) continue
    const round = Math.floor((i - 200) / proofsPerRound)
    took[round] ??= []
    took[round].push(performance.now() - start)
  }
  one.close()
  const [p50, p99] = [0.5, 0.99].map((part) => took.map((some) => quantile(some, part))) as [number[], number[]]
  console.log(
    `proofs of ${bytes} bytes, ${rounds} rounds of ${proofsPerRound}, medians: p50 ${median(p50).toFixed(2)} ms,`,
    `p99 ${median(p99).toFixed(2)} ms (${Math.min(...p99).toFixed(2)} to ${Math.max(...p99).toFixed(2)})`,
  )
  bounded('p99 of proofs in ms', median(p99), bounds.proofMs)
  if (values.fsck !== undefined) checkLog(values.fsck, url, token, (await api.get(`/ledger/${org}/policy`)).text)
}

/** Fails if the program has found a fault; it ends with 0 in any case. */
function checkLog(program: string, url: string, token: string, policy: string): void {
  const key = join(tmpdir(), `pinfold-log-${process.pid}.key`)
  writeFileSync(key, /^log (\S+)/m.exec(policy)![1]!)
  const began = performance.now()
  const asked = [
    '--storage_url',
    `${url}/ledger/${org}/`,
    '--bearer_token',
    token,
    '--public_key',
    key,
    '--ui=false',
    '--N=4',
  ]
  const { status, stderr, stdout } = spawnSync(program, asked, { encoding: 'utf8', maxBuffer: 64 << 20 })
  rmSync(key)
  if (status !== 0 || /failed/i.test(stderr + stdout)) throw new Error(`fsck: ${stderr.slice(-2000)}`)
  console.log(`fsck found nothing wrong in ${Math.round((performance.now() - began) / 1000)} s`)
}
