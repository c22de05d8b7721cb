// Failover of PostgreSQL with real parts: Patroni, etcd, HAProxy, three members and three Pinfold servers with a bucket, in network
// namespaces. Each round breaks the primary in one way. With synchronous replication no acknowledged write may be lost. No fork
// of a log may be signed, service must be back within 5 s of the new primary, and no client may get a 500.
// By hand, as root: bin/pinfold-node test/fuzz/failover.ts --rounds 100 --patroni /path/to/patroni
//
// The logs of the servers in a failed round are written to the folder of `--logs`. It needs the Debian packages postgresql,
// etcd-server, haproxy, iptables and iproute2, Patroni 4 from PyPI, and versitygw.
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { lastingToken, type Process, runProcess, startProcess, tokenOf } from '../support/process.ts'
import { registryClient, types } from '../support/registry.ts'
import { addressOf, Bed, clientsAddress, type MemberName, memberNames, proxyPorts } from './failover/bed.ts'
import { badAnswers, contradictions, longestGapMs, lostPushes, recoveryMs } from './failover/judge.ts'
import { type Head, Load, type Target } from './failover/load.ts'
import { runInNamespaces } from './failover/network.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    clients: { type: 'string', default: '8' },
    patroni: { type: 'string', default: 'patroni' },
    faults: { type: 'string', default: 'kill,stop,drop,switchover' },
    modes: { type: 'string', default: 'sync,async' },
    logs: { type: 'string', default: tmpdir() },
    inside: { type: 'boolean', default: false },
  },
})
const faults = ['kill', 'stop', 'drop', 'switchover'] as const
type Fault = (typeof faults)[number]
type Mode = 'sync' | 'async'
const combinations = values.modes
  .split(',')
  .flatMap((mode) => values.faults.split(',').map((fault) => ({ mode: mode as Mode, fault: fault as Fault })))

const url = `http://${clientsAddress}:8000`
const masterKey = 'f0'.repeat(32)
/** Ports of the proxy for each server. The last server uses the port that keeps sessions of a failed member open. */
const servers = [proxyPorts.closes, proxyPorts.closes, proxyPorts.keeps]

async function inside(): Promise<void> {
  await using bed = await Bed.start(values.patroni)
  await using bucket = await startBucket()
  const blobs = bucket.url()
  const leader = await bed.primary(60)
  const admin = new pg.Client({ host: addressOf(leader), user: 'postgres', database: 'postgres' })
  await admin.connect()
  for (const statement of ['CREATE ROLE pinfold LOGIN', 'CREATE DATABASE pinfold OWNER pinfold'])
    await admin.query(statement)
  await admin.end()
  const data = join(bed.folder, 'data')
  mkdirSync(data)
  const env = { PINFOLD_MASTER_KEY: masterKey, PINFOLD_URL: url, PINFOLD_TRANSPARENCY_LOG: 'public', ...bucket.aws }
  const whereOf = (port: number) => ({
    env,
    args: ['--data', data, '--database', `postgres://pinfold@${clientsAddress}:${port}/pinfold`, '--blobs', blobs],
  })
  const where = whereOf(proxyPorts.closes)
  const withoutBlobs = { env, args: where.args.slice(0, 4) }
  const command = async (name: string, { args } = where) => {
    const { code, stderr, stdout } = await runProcess([...name.split(' '), ...args], { env })
    assert.equal(code, 0, `pinfold ${name}: ${stderr}${stdout}`)
  }
  await command('migrate', withoutBlobs)
  const start = () =>
    Promise.all(servers.map((port, i) => startProcess(whereOf(port), { listen: `${clientsAddress}:${8001 + i}` })))
  let running = await start()
  const stop = async () => {
    for (const server of running) server.kill('SIGTERM')
    await Promise.all(running.map(({ exited }) => exited))
  }
  try {
    const targets = await makeTargets(withoutBlobs)
    const rounds = new Rounds(bed, targets, () => running)
    console.log(`${values.rounds} rounds, ${values.clients} pushing clients for each of ${servers.length} servers`)
    for (let i = 0; i < Number(values.rounds); i++) {
      const { mode, fault } = combinations[i % combinations.length]!
      const hasStopped = await rounds.run(i, mode, fault)
      if (!hasStopped) continue
      assert.equal(mode, 'async', 'a log stopped although replication is synchronous')
      await stop()
      await command('server complete-restore')
      running = await start()
      await rounds.nextLog()
    }
    await command('server verify')
    rounds.report()
  } finally {
    for (const server of running) await server[Symbol.asyncDispose]()
  }
}

async function makeTargets(where: Parameters<typeof tokenOf>[0]): Promise<Target[]> {
  const bases = servers.map((_, i) => `http://${clientsAddress}:${8001 + i}`)
  const api = clientOf(bases[0]!, await tokenOf(where, ['--audience', url]))
  const organization = (await api.post('/iam/v2/groups/', { name: 'acme' })).body.uid as string
  const token = lastingToken(where, ['--audience', 'registry'])
  return Promise.all(
    bases.map(async (base, i): Promise<Target> => {
      const repo = `acme/app${i}`
      const config = await registryClient(base, await token()).pushBlob(repo, '{}', types.config)
      return { base, organization, repo, config, token }
    }),
  )
}

/** Maximum time from the new primary until a server answers a push. */
const mostBackMs = 5000

/** Maximum time from a restore to the first checkpoint of the new log. */
const mostSignedMs = 20_000

const seconds = (ms: number): string => (ms / 1000).toFixed(1)

/** True if the newest log has a larger checkpoint after this time than before. */
function isGrowing(heads: readonly Head[], after: number): boolean {
  const newest = heads.filter(({ origin }) => origin === heads.at(-1)?.origin)
  const largest = (some: readonly Head[]) => Math.max(0, ...some.map(({ size }) => size))
  return largest(newest.filter(({ at }) => at > after)) > largest(newest.filter(({ at }) => at <= after))
}

function notGrown(heads: readonly Head[], after: number): string {
  const seen = heads.map(({ origin, size, at }) => `${seconds(at - after)} s: ${origin.split('/').at(-1)} ${size}`)
  return `no larger head was signed after the failover: ${seen.slice(-30).join(', ')}`
}

type Round = {
  mode: Mode
  fault: Fault
  load: Load
  began: number
  electedAt: number
  /** Time at which the new primary completed a commit of this program. */
  primaryAt: number
  members: string
  logged: number[]
}

/** Queries for the state of logs, jobs and sessions, to find out why signing stopped. */
const stateQueries = [
  'SELECT id, generation, state, size, checkpoint_size, stored_size FROM ledger_logs ORDER BY id',
  'SELECT ledger_id, count(*) FROM ledger_pending GROUP BY ledger_id ORDER BY ledger_id',
  "SELECT * FROM duties WHERE name LIKE 'ledger%' ORDER BY name",
  "SELECT now(), pid, client_addr, client_port, state, wait_event, xact_start, query_start, left(query, 300) AS query FROM pg_stat_activity WHERE datname = 'pinfold'",
  'SELECT pid, locktype, relation::regclass::text, mode, granted FROM pg_locks WHERE NOT granted',
]

async function noteState(primary: MemberName, round: number): Promise<void> {
  const admin = new pg.Client({ host: addressOf(primary), user: 'postgres', database: 'pinfold' })
  await admin.connect()
  const lines: string[] = []
  for (const query of stateQueries) {
    const { rows } = await admin.query(query).catch((error: unknown) => ({ rows: [String(error)] }))
    lines.push(query, ...rows.map((row) => JSON.stringify(row)))
  }
  await admin.end()
  writeFileSync(join(values.logs, `failover-${round + 1}-state.log`), lines.join('\n'))
}

class Rounds {
  readonly #bed: Bed
  readonly #targets: readonly Target[]
  readonly #running: () => readonly Process[]
  readonly #heads: Head[] = []
  readonly #sum = { acknowledged: 0, lost: { sync: 0, async: 0 }, stops: 0, slowest: 0, failed: 0 }
  #mode: Mode = 'async'
  #rounds = 0

  constructor(bed: Bed, targets: readonly Target[], running: () => readonly Process[]) {
    this.#bed = bed
    this.#targets = targets
    this.#running = running
  }

  /** Runs a round. Returns true if a server has stopped signing, since the database has lost signed entries. */
  async run(round: number, mode: Mode, fault: Fault): Promise<boolean> {
    if (mode !== this.#mode) await this.#bed.setMode(mode)
    this.#mode = mode
    const before = await this.#bed.primary(60)
    const logged = this.#running().map(({ output }) => output.stderr.length)
    const load = new Load(this.#targets, Number(values.clients))
    await sleep(3000)
    load.burst()
    const began = performance.now()
    await this.#break(before, mode, fault)
    const after = await this.#bed.primary(90, before)
    const electedAt = performance.now()
    await this.#bed.commits(after, 90)
    const primaryAt = performance.now()
    await sleep(8000)
    await this.#heal(before, fault)
    await sleep(4000)
    await load.stop()
    if (!isGrowing(load.heads, primaryAt)) await noteState(after, round)
    await this.#bed.revive(before, mode)
    return this.#judge(round, {
      mode,
      fault,
      load,
      began,
      electedAt,
      primaryAt,
      members: `${before} to ${after}`,
      logged,
    })
  }

  /** Waits until the log after a restore has a checkpoint, so that the next fault does not come before. */
  async nextLog(): Promise<void> {
    const former = this.#heads.at(-1)?.origin
    const began = performance.now()
    const load = new Load(this.#targets, 1)
    const origin = () => load.heads.at(-1)?.origin
    while ((origin() === undefined || origin() === former) && performance.now() - began < mostSignedMs) await sleep(100)
    await load.stop()
    this.#heads.push(...load.heads)
    assert.notEqual(origin(), former, 'no log was begun after the restore')
    console.log(`the next log was signed ${seconds(performance.now() - began)} s after the restore`)
  }

  async #break(member: MemberName, mode: Mode, fault: Fault): Promise<void> {
    if (fault === 'switchover') return this.#bed.switchover(member)
    if (fault === 'stop') return this.#bed.signal(member, 'SIGSTOP')
    if (fault === 'drop') return this.#bed.dropPackets(member)
    // Replicas lag by only milliseconds, so a simple kill loses nothing. Before the fault, some writes must reach only the
    // primary.
    if (mode === 'async') {
      this.#bed.dropPackets(
        member,
        memberNames.filter((name) => name !== member),
      )
      await sleep(3000)
    }
    this.#bed.signal(member, 'SIGKILL')
  }

  async #heal(member: MemberName, fault: Fault): Promise<void> {
    if (fault === 'stop') this.#bed.signal(member, 'SIGCONT')
    if (fault === 'drop' || fault === 'kill') this.#bed.restoreNetwork(member)
  }

  async #judge(
    round: number,
    { mode, fault, load, began, electedAt, primaryAt, members, logged }: Round,
  ): Promise<boolean> {
    const said = this.#running().map(({ output }, i) => output.stderr.slice(logged[i]))
    const hasStopped = said.some((text) => text.includes('lost entries of a transparency log'))
    this.#heads.push(...load.heads)
    const lost = await lostPushes(load, this.#targets[0]!)
    const recovered = recoveryMs(load.answers, servers.length, primaryAt)
    const gap = longestGapMs(load.answers, servers.length)
    const served = load.heads.at(-1)
    const noHead = hasStopped ? [] : ['no head was served']
    const forks = served ? await contradictions(this.#heads, this.#targets[0]!, served) : noHead
    const failed = load.answers.filter(({ status }) => status >= 500).length
    this.#sum.acknowledged += load.acknowledged.size
    this.#sum.lost[mode] += lost.length
    this.#sum.stops += hasStopped ? 1 : 0
    this.#sum.slowest = Math.max(this.#sum.slowest, ...recovered)
    this.#rounds++
    console.log(
      `round ${round + 1}: ${mode} ${fault} ${members}, new primary after ${seconds(electedAt - began)} s, commits after ${seconds(primaryAt - began)} s, ` +
        `pushes again ${recovered.map(seconds).join(', ')} s later, longest gap ${seconds(gap)} s, ` +
        `${load.acknowledged.size} acknowledged, ${lost.length} lost, ${failed} answers of 503, ` +
        `${said.join('').split('\n').length} log lines${hasStopped ? ', signing stopped' : ''}`,
    )
    const isLost = mode === 'sync' && lost.length > 0
    const problems = [
      ...badAnswers(load.answers, lost.length > 0),
      ...forks,
      ...(gap > primaryAt - began + mostBackMs ? [`a server answered no push for ${seconds(gap)} s`] : []),
      ...(hasStopped || isGrowing(load.heads, primaryAt) ? [] : [notGrown(load.heads, primaryAt)]),
      ...recovered.flatMap((ms, i) => (ms > mostBackMs ? [`server ${i}: back after ${seconds(ms)} s`] : [])),
      ...(isLost ? [`lost with synchronous replication: ${lost.slice(0, 5).join(', ')}`] : []),
    ]
    if (problems.length > 0) {
      this.#sum.failed++
      console.error(`round ${round + 1} failed:\n  ${problems.slice(0, 20).join('\n  ')}`)
      for (const [i, text] of said.entries())
        writeFileSync(join(values.logs, `failover-${round + 1}-server-${i}.log`), text)
    }
    return hasStopped
  }

  /** Prints the summary. Throws if a round has failed. */
  report(): void {
    const { acknowledged, lost, stops, slowest, failed } = this.#sum
    console.log(
      `${this.#rounds} rounds, ${failed} failed: ${acknowledged} pushes acknowledged, ${lost.sync} lost with synchronous and ` +
        `${lost.async} with asynchronous replication, signing stopped ${stops} times, service back at most ${seconds(slowest)} s ` +
        'after the new primary',
    )
    assert.equal(failed, 0)
    // If no write was lost, the test could not have found a fork.
    const cuts = combinations.findIndex(({ mode, fault }) => mode === 'async' && fault === 'kill')
    if (cuts >= 0 && cuts < this.#rounds)
      assert.ok(lost.async > 0 && stops > 0, 'no round has lost a write, so forks were not tested')
  }
}

if (values.inside) await inside()
else {
  const words = [
    process.execPath,
    ...process.execArgv,
    fileURLToPath(import.meta.url),
    ...process.argv.slice(2),
    '--inside',
  ]
  process.exitCode = await runInNamespaces(words)
}
