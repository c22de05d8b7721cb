// Pulls through views against plain ones, and proofs of a log with many entries: `bin/pinfold-node bench/pins.ts --pulls 5000
// --entries 1000000`. With `--fsck PROGRAM`, Tessera's command of that name reads the log and checks all of it. With --entries 0
// only pulls. On PostgreSQL when PINFOLD_TEST_DATABASE names one.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { quantile } from '../test/fuzz/hostile/measure.ts'
import { clientOf, type Json } from '../test/support/pinfold.ts'
import { makePlace, startProcess, tokenOf } from '../test/support/process.ts'
import { registryClient, types } from '../test/support/registry.ts'
import { httpConnections } from './connections.ts'
import { median } from './load.ts'

const { values } = parseArgs({
  options: {
    pulls: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '9' },
    entries: { type: 'string', default: '1000000' },
    fsck: { type: 'string' },
  },
})
const [pulls, rounds, entries] = [Number(values.pulls), Number(values.rounds), Number(values.entries)]
const [day, minute] = [86_400_000, 60_000]
const daysAgo = (days: number): string => new Date(Date.now() - days * day).toISOString()

await using place = await makePlace()
await using server = await startProcess(place, { env: { PINFOLD_LOG_LEVEL: 'error' } })
const { url } = server
const operator = async () => clientOf(url, await tokenOf(place))
async function made(path: string, body: Json): Promise<Json> {
  const answer = await (await operator()).post(path, body)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.body
}
const org = (await made('/iam/v2/groups/', { name: 'acme' })).uid as string
const repo = (await made(`/registry/v2/repos/${org}`, { name: 'app' })).uid as string
const registryToken = await tokenOf(place, ['--audience', 'registry'])
const registry = registryClient(url, registryToken)
const [old, fresh] = [await registry.pushImage('acme/app'), await registry.pushImage('acme/app')]
const records = [
  { time: daysAgo(40), digest: old.digest },
  { time: daysAgo(1), digest: fresh.digest },
]
await made('/control/v1/tagHistory:import', { repoUid: repo, tags: [{ name: 'stable', records }] })

/** One after the other, each kind in turn; milliseconds of each. */
async function timed(kinds: Record<string, string>, token: string, count: number): Promise<Record<string, number[]>> {
  const names = Object.keys(kinds)
  const headers = { authorization: `Bearer ${token}`, accept: types.image }
  const all = httpConnections(url, names.length, (i) => ({ path: kinds[names[i]!]!, headers }))
  const took: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let i = 0; i < count + 200; i++) {
    for (let turn = 0; turn < names.length; turn++) {
      const lane = (i + turn) % names.length
      const began = performance.now()
      await all.send(lane, lane)
      if (i >= 200) took[names[lane]!]!.push(performance.now() - began)
    }
  }
  all.close()
  return took
}

const at = daysAgo(20).slice(0, 10).replaceAll('-', '')
const kinds = {
  plain: '/v2/acme/app/manifests/stable',
  [`at-${at}`]: `/v2/at-${at}/acme/app/manifests/stable`,
  'min-7d': '/v2/min-7d/acme/app/manifests/stable',
}
const perRound = Math.ceil(pulls / rounds)
const quantiles = { p50: 0.5, p99: 0.99 }
const figures: Record<string, Record<string, number>[]> = {}
for (let round = 0; round < rounds; round++) {
  const took = await timed(kinds, await tokenOf(place, ['--audience', 'registry']), perRound)
  for (const [name, list] of Object.entries(took)) {
    figures[name] ??= []
    figures[name].push(Object.fromEntries(Object.entries(quantiles).map(([q, part]) => [q, quantile(list, part)])))
  }
}
console.log(
  `\n| pull of a tag, ${rounds} rounds of ${perRound} | p50 ms | p99 ms | p99 by the plain one, median of the rounds, from to |`,
)
console.log('| --- | --- | --- | --- |')
for (const [name, list] of Object.entries(figures)) {
  const ratios = list.map(({ p99 }, i) => p99! / figures.plain![i]!.p99!)
  const of = (q: string) => median(list.map((one) => one[q]!)).toFixed(2)
  const spread = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
  console.log(`| ${name} | ${of('p50')} | ${of('p99')} | **${median(ratios).toFixed(2)}** (${spread}) |`)
}

const perTag = 10
const tags = Math.ceil(entries / perTag)
const digest = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`
/** Their history, as ledgers of elsewhere have it. */
async function importTags(from: number, count: number): Promise<void> {
  const some = Array.from({ length: count }, (_, i) => ({
    name: `t${from + i}`,
    records: Array.from({ length: perTag }, (_, k) => ({
      time: new Date(Date.parse('2026-01-01') + k * 60 * minute).toISOString(),
      digest: digest(`${from + i} ${k}`),
    })),
  }))
  await made('/control/v1/tagHistory:import', { repoUid: repo, tags: some })
}
async function sizeOfLog(): Promise<number> {
  const { status, text } = await (await operator()).get(`/ledger/${org}/checkpoint`)
  return status === 200 ? Number(text.split('\n')[1]) : 0
}
if (entries > 0) {
  const began = performance.now()
  for (let from = 0; from < tags; from += 1000) await importTags(from, Math.min(1000, tags - from))
  const imported = performance.now()
  // Two more, of the tag above.
  while ((await sizeOfLog()) < tags * perTag + 2) await sleep(2000)
  const seconds = (from: number, to = performance.now()) => Math.round((to - from) / 1000)
  console.log(
    `\n${tags * perTag} rows imported in ${seconds(began, imported)} s, in the log ${seconds(imported)} s later`,
  )
  const api = await operator()
  const took: number[] = []
  let bytes = 0
  for (let i = 0; i < 2200; i++) {
    const tag = `t${(i * 7919) % tags}`
    const asOf = new Date(Date.parse('2026-01-01') + (i % perTag) * 60 * minute).toISOString()
    const start = performance.now()
    const { status, text } = await api.get(`/ledger/${org}/repos/${repo}/tags/${tag}/proof?at=${asOf}`)
    if (status !== 200) throw new Error(text)
    if (i >= 200) took.push(performance.now() - start)
    bytes = text.length
  }
  const ms = (part: number) => quantile(took, part).toFixed(2)
  console.log(`2000 proofs of ${bytes} bytes: p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms (expected 5)`)
  if (values.fsck !== undefined)
    checkLog(values.fsck, await tokenOf(place), (await api.get(`/ledger/${org}/policy`)).text)
}

/** That the program has found nothing wrong; it ends with 0 whatever it finds. */
function checkLog(program: string, token: string, policy: string): void {
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
