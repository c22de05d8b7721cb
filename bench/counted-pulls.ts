// Cost of counting pulls by caller. Compares two servers, one of which counts, with many identities that pull from both. The
// servers alternate in each round, so that neither has an advantage. `bin/pinfold-node bench/counted-pulls.ts --pulls 10000
// --identities 50`. With `--check` it fails if the p99 with counting is more than 1.03 of the p99 without. It uses PostgreSQL if
// PINFOLD_TEST_DATABASE names one.
import { fork } from 'node:child_process'
import { on, once } from 'node:events'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { writeUsage } from '#domains/registry/usage/digest-usage.job.ts'
import { quantile } from '../test/fuzz/hostile/measure.ts'
import { roleUids } from '../test/support/pinfold.ts'
import { startRegistry, types } from '../test/support/registry.ts'
import { httpConnections } from './connections.ts'
import { pin, pinLoad } from './cpu-server.ts'
import { median, serverCore, spreadOf } from './load.ts'

const { values } = parseArgs({
  options: {
    pulls: { type: 'string', default: '10000' },
    identities: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '10' },
    check: { type: 'boolean', default: false },
    serve: { type: 'boolean', default: false },
  },
})
const identities = Number(values.identities)
const [warmUp, bound] = [1000, 1.03]

type Ready = { url: string; tokens: string[] }

if (values.serve) await serve()
else await measure()

/** Turns counting on or off with each message, and returns the number of counted pulls. */
async function serve(): Promise<void> {
  await using registry = await startRegistry({ jobs: [writeUsage] })
  const { app, org, url, seed, pusher, tokenFor } = registry
  await pusher.pushImage('acme/app', 'stable')
  const tokens: string[] = []
  for (let i = 0; i < identities; i++) {
    const { uid } = await seed.member(org.uid, roleUids.pull)
    tokens.push(await tokenFor(uid, { audience: new URL(url).host, lifetime: 3600 }))
  }
  const { note } = app.usage
  let counts = true
  app.usage.note = (...pull) => {
    if (counts) note(...pull)
  }
  process.send!({ url, tokens } satisfies Ready)
  for await (const [told] of on(process, 'message')) {
    if (told === 'over') break
    counts = told
    await app.usage.flush()
    const row = await app.db.get<{ pulls: number }>(sql`
      SELECT coalesce(sum(gets), 0) AS pulls FROM digest_usage WHERE caller <> ${pusher.uid}`)
    process.send!(Number(row!.pulls))
  }
  process.disconnect()
}

async function measure(): Promise<void> {
  const args = process.argv.slice(2)
  const servers = [0, 1].map(() => fork(import.meta.filename, [...args, '--serve']))
  const ready = await Promise.all(servers.map(async (child) => (await once(child, 'message'))[0] as Ready))
  for (const { pid } of servers) pin(pid!, serverCore)
  pinLoad()
  const lanes = ready.map(({ url, tokens }) => {
    return httpConnections(url, 1, (i) => ({
      path: '/v2/acme/app/manifests/stable',
      headers: { authorization: `Bearer ${tokens[i % identities]}`, accept: types.image },
    }))
  })
  const tell = async (which: number, counts: boolean): Promise<number> => {
    servers[which]!.send(counts)
    return (await once(servers[which]!, 'message'))[0] as number
  }
  const rounds = Number(values.rounds)
  if (rounds % 2 !== 0) throw new Error('--rounds must be even, since the two servers take turns')
  const perRound = Math.ceil(Number(values.pulls) / rounds)
  const took = { counted: [] as number[][], plain: [] as number[][] }
  for (let round = 0; round < rounds; round++) {
    const counting = round % 2
    await Promise.all([tell(counting, true), tell(1 - counting, false)])
    const [counted, plain]: [number[], number[]] = [[], []]
    for (let i = 0; i < warmUp + perRound; i++) {
      for (let turn = 0; turn < servers.length; turn++) {
        const which = (i + turn) % servers.length
        const began = performance.now()
        await lanes[which]!.send(0, i)
        if (i >= warmUp) (which === counting ? counted : plain).push(performance.now() - began)
      }
    }
    took.counted.push(counted)
    took.plain.push(plain)
  }
  for (const lane of lanes) lane.close()
  const sums = await Promise.all(servers.map((_, which) => tell(which, false)))
  for (const server of servers) server.send('over')
  const of = (part: number) => [took.counted, took.plain].map((list) => list.map((round) => quantile(round, part)))
  const [[counting, without], [fast, plain]] = [of(0.99), of(0.5)] as [[number[], number[]], [number[], number[]]]
  const ratios = counting.map((ms, i) => ms / without[i]!)
  const all = quantile(took.counted.flat(), 0.99) / quantile(took.plain.flat(), 0.99)
  console.log(
    `${rounds} rounds of ${perRound} pulls by ${identities} identities, ${sums.join(' and ')} counted; medians: ` +
      `p50 ${median(fast).toFixed(3)} and ${median(plain).toFixed(3)} ms, p99 ${median(counting).toFixed(3)} and ` +
      `${median(without).toFixed(3)} ms; p99 of all by each other **${all.toFixed(3)}**, of the rounds ` +
      `${median(ratios).toFixed(3)} (${spreadOf(ratios)})`,
  )
  if (sums[0]! + sums[1]! !== rounds * (warmUp + perRound)) throw new Error('the counts are wrong')
  if (values.check && all > bound) process.exitCode = 1
}
