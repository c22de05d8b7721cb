// `bin/pinfold-node bench/cpu.ts --before DIR`: processor time per request of this checkout (or of `--after DIR`), compared with
// another checkout. Each needs its own node_modules. Defaults: `--rounds 9` and `--turns 40`. `--database URL` uses PostgreSQL,
// and counts only the time of the server. `--only 'tag move,manifest by tag'` selects measurements. Uses taskset if it is
// installed. Also compares requests per second.
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { create, toBinary } from '@bufbuild/protobuf'
import { GetRepoRequestSchema } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { atOnce } from '../test/support/at-once.ts'
import { types } from '../test/support/registry.ts'
import { type Connections, grpcConnections, httpConnections } from './connections.ts'
import { idle, type Measured, pinLoad, startMeasured } from './cpu-server.ts'
import { cpuSeconds, median, spreadOf } from './load.ts'

const lanes = 32
const movingTags = 128
/**
 * Maximum ratio of the processor time to that of the other checkout. The limit is lower for pulls, which are the most frequent
 * requests.
 */
const [most, mostOfPulls] = [1.05, 1.03]
const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    after: { type: 'string', default: join(import.meta.dirname, '..') },
    rounds: { type: 'string', default: '9' },
    turns: { type: 'string', default: '40' },
    database: { type: 'string' },
    only: { type: 'string' },
  },
})
/** Number of turns of each side in a case. */
const measured = Number(values.turns)
const warmUp = Math.ceil(measured / 8) * 2
if (values.before === undefined) throw new Error('--before DIR, the checkout to compare with, is missing')

const sides = ['before', 'after'] as const
type Side = (typeof sides)[number]
const checkouts: Record<Side, string> = { before: resolve(values.before), after: resolve(values.after) }

/** Number of requests in a turn. They take a server a few hundredths of a second. */
type Case = { name: string; turn: number; lanes?: number; most?: number; connect(server: Measured): Connections }

function rest(path: (server: Measured) => string): Case['connect'] {
  return (server) => {
    const wanted = { path: path(server), headers: { authorization: `Bearer ${server.token}` } }
    return httpConnections(server.url, lanes, () => wanted)
  }
}

function manifests(wanted: (server: Measured, index: number) => { reference: string; body?: string }): Case['connect'] {
  return (server) =>
    httpConnections(server.url, lanes, (index) => {
      const { reference, body } = wanted(server, index)
      const path = `/v2/bench/app/manifests/${reference}`
      const authorization = `Bearer ${server.registryToken}`
      if (body === undefined) return { path, headers: { authorization, accept: types.image } }
      return { path, method: 'PUT', headers: { authorization, 'content-type': types.image }, body }
    })
}

const all: Case[] = [
  { name: 'Get', turn: 640, connect: rest(({ repo }) => `/registry/v2/repos/${repo}`) },
  {
    name: 'Get over gRPC',
    turn: 320,
    connect: ({ url, token, repo }) =>
      grpcConnections(url, lanes, {
        path: '/pinfold.platform.registry.v2.ReposService/GetRepo',
        token: () => token,
        message: toBinary(GetRepoRequestSchema, create(GetRepoRequestSchema, { uid: repo })),
      }),
  },
  {
    name: 'List of 50 by name',
    turn: 160,
    connect: rest(({ org }) => `/registry/v2/repos?uidp.descendants_of=${org}&order_by=name&page_size=50`),
  },
  { name: 'manifest by tag', turn: 512, most: mostOfPulls, connect: manifests(() => ({ reference: 't50' })) },
  {
    name: 'manifest by digest',
    turn: 512,
    most: mostOfPulls,
    connect: manifests(({ digest }) => ({ reference: digest })),
  },
  {
    name: 'tag move',
    // In one turn all tags get the first manifest, in the next one the second. So each request after the first turn moves a tag.
    turn: movingTags,
    // With more requests at the same time, PostgreSQL may refuse some of them because of conflicts.
    lanes: 8,
    connect: manifests(({ pushed }, index) => ({
      reference: `moving${index % movingTags}`,
      body: pushed[Math.floor(index / movingTags) % 2]!,
    })),
  },
]

const only = values.only?.split(',')
const cases = all.filter(({ name }) => only?.includes(name) ?? true)

/**
 * Result of one round. `rate` is the number of requests that the new checkout answers in the time in which the old one answers
 * one.
 */
type Compared = Record<Side, number> & { rate: number }

/**
 * Microseconds for each request of a case, including its work in the background. The two sides take short turns, so that a slow
 * phase of the machine affects both.
 */
async function compare(servers: Record<Side, Measured>, one: Case, first: Side): Promise<Compared> {
  const second: Side = first === 'before' ? 'after' : 'before'
  const connections = { before: one.connect(servers.before), after: one.connect(servers.after) }
  const turns = { before: 0, after: 0 }
  const took = { before: 0, after: 0 }
  const play = async (side: Side) => {
    const start = turns[side]++ * one.turn
    const began = performance.now()
    await atOnce(one.lanes ?? lanes, one.turn, (i, lane) => connections[side].send(lane, start + i))
    took[side] += performance.now() - began
  }
  const playAll = async (count: number) => {
    for (let i = 0; i < count; i += 2) for (const side of [first, second, second, first]) await play(side)
    for (const side of sides) await idle(servers[side].pid)
  }
  const used = (side: Side) => cpuSeconds(servers[side].pid)
  await playAll(warmUp)
  const began = { before: used('before'), after: used('after') }
  Object.assign(took, { before: 0, after: 0 })
  await playAll(measured)
  for (const side of sides) connections[side].close()
  const each = (side: Side) => ((used(side) - began[side]) * 1e6) / (one.turn * measured)
  return { before: each('before'), after: each('after'), rate: took.before / took.after }
}

async function playRound(first: Side): Promise<Compared[]> {
  await using stack = new AsyncDisposableStack()
  const servers = {} as Record<Side, Measured>
  for (const side of first === 'before' ? sides : sides.toReversed()) {
    servers[side] = stack.use(await startMeasured(checkouts[side]))
  }
  const results: Compared[] = []
  for (const one of cases) results.push(await compare(servers, one, first))
  return results
}

function versionOf(checkout: string): string {
  const { stdout } = spawnSync('git', ['-C', checkout, 'describe', '--always', '--dirty'], { encoding: 'utf8' })
  return stdout?.trim() || 'unknown'
}

if (values.database === undefined) delete process.env.PINFOLD_TEST_DATABASE
else process.env.PINFOLD_TEST_DATABASE = values.database
pinLoad()
const engine = values.database === undefined ? 'SQLite' : 'PostgreSQL'
const title = `Before: ${versionOf(checkouts.before)}, after: ${versionOf(checkouts.after)}, ${values.rounds} rounds on ${engine}.`
const rounds: Compared[][] = []
for (let round = 0; round < Number(values.rounds); round++) {
  const began = performance.now()
  rounds.push(await playRound(round % 2 === 0 ? 'before' : 'after'))
  const figures = rounds.at(-1)!.map(({ before, after }) => `${before.toFixed(0)}→${after.toFixed(0)}`)
  console.error(`round ${round + 1}: ${figures.join(', ')} µs, in ${Math.round((performance.now() - began) / 1000)} s`)
}

const rows = cases.map(({ name, most: bound = most }, i) => {
  const of = (side: Side) => median(rounds.map((round) => round[i]![side]))
  const ratios = rounds.map((round) => round[i]!.after / round[i]!.before)
  const rates = rounds.map((round) => round[i]!.rate)
  return { name, bound, before: of('before'), after: of('after'), ratio: median(ratios), ratios, rates }
})
const lines = rows.map(({ name, before, after, ratio, ratios, rates }) => {
  const medians = `${before.toFixed(1)} | ${after.toFixed(1)} | ${(after / before).toFixed(3)}`
  const rate = `${median(rates).toFixed(3)} (${spreadOf(rates, 3)})`
  return `| ${name} | ${medians} | **${ratio.toFixed(3)}** | ${spreadOf(ratios, 3)} | ${rate} |`
})
const over = rows.filter(({ ratio, bound }) => ratio > bound)
console.log(`
${title}

| µs of processor time for a request | before | after | ratio of medians | median of the rounds' ratios | from to | requests a second, by each other |
| --- | --- | --- | --- | --- | --- | --- |
${lines.join('\n')}

More than ${most}, or ${mostOfPulls} of pulls: ${over.map(({ name, ratio }) => `${name} (${ratio.toFixed(3)})`).join(', ') || 'none'}.
`)
