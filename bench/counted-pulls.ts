// What counting who pulls what costs a pull: two servers side by side, one of which counts nothing, and many identities that pull
// from both in turn. `bin/pinfold-node bench/counted-pulls.ts --pulls 10000 --identities 50`. With `--check` it fails where p99 with
// counts is more than 1.03 of that without. On PostgreSQL when PINFOLD_TEST_DATABASE names one.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { writeUsage } from '#domains/registry/usage/digest-usage.duty.ts'
import { quantile } from '../test/fuzz/hostile/measure.ts'
import { roleUids } from '../test/support/pinfold.ts'
import { startRegistry, types } from '../test/support/registry.ts'
import { httpConnections } from './connections.ts'
import { median } from './load.ts'

const { values } = parseArgs({
  options: {
    pulls: { type: 'string', default: '10000' },
    identities: { type: 'string', default: '50' },
    rounds: { type: 'string', default: '9' },
    check: { type: 'boolean', default: false },
    serve: { type: 'string' },
  },
})
const identities = Number(values.identities)
const [warmUp, bound] = [1000, 1.03]

type Ready = { url: string; tokens: string[] }

if (values.serve === undefined) await measure()
else await serve(values.serve === 'counting')

async function serve(counts: boolean): Promise<void> {
  await using registry = await startRegistry({ duties: [writeUsage] })
  const { app, org, url, seed, pusher, tokenFor } = registry
  await pusher.pushImage('acme/app', 'stable')
  const tokens: string[] = []
  for (let i = 0; i < identities; i++) {
    const { uid } = await seed.member(org.uid, roleUids.pull)
    tokens.push(await tokenFor(uid, { audience: new URL(url).host, lifetime: 3600 }))
  }
  if (!counts) app.usage.note = () => {}
  process.send!({ url, tokens } satisfies Ready)
  await once(process, 'message')
  await app.usage.flush()
  const row = await app.db.get<{ pulls: number }>(sql`
    SELECT coalesce(sum(gets), 0) AS pulls FROM digest_usage WHERE caller <> ${pusher.uid}`)
  process.send!(Number(row!.pulls))
  process.disconnect()
}

async function measure(): Promise<void> {
  const kinds = ['counting', 'without']
  const args = process.argv.slice(2)
  const servers = kinds.map((kind) => fork(import.meta.filename, [...args, '--serve', kind]))
  const ready = await Promise.all(servers.map(async (child) => (await once(child, 'message'))[0] as Ready))
  const lanes = ready.map(({ url, tokens }) => {
    return httpConnections(url, 1, (i) => ({
      path: '/v2/acme/app/manifests/stable',
      headers: { authorization: `Bearer ${tokens[i % identities]}`, accept: types.image },
    }))
  })
  const rounds = Number(values.rounds)
  const perRound = Math.ceil(Number(values.pulls) / rounds)
  const took = kinds.map(() => Array.from({ length: rounds }, (): number[] => []))
  for (let i = 0; i < warmUp + rounds * perRound; i++) {
    for (let turn = 0; turn < kinds.length; turn++) {
      const which = (i + turn) % kinds.length
      const began = performance.now()
      await lanes[which]!.send(0, i)
      if (i >= warmUp) took[which]![Math.floor((i - warmUp) / perRound)]!.push(performance.now() - began)
    }
  }
  for (const lane of lanes) lane.close()
  const counted = await Promise.all(
    servers.map(async (child) => {
      child.send('over')
      return (await once(child, 'message'))[0] as number
    }),
  )
  const of = (part: number) => took.map((list) => list.map((round) => quantile(round, part)))
  const [[counting, without], [fast, plain]] = [of(0.99), of(0.5)] as [[number[], number[]], [number[], number[]]]
  const ratios = counting.map((ms, i) => ms / without[i]!)
  const [is, spread] = [median(ratios), `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`]
  console.log(
    `${rounds} rounds of ${perRound} pulls by ${identities} identities, ${counted.join(' and ')} counted; medians: ` +
      `p50 ${median(fast).toFixed(3)} and ${median(plain).toFixed(3)} ms, p99 ${median(counting).toFixed(3)} and ` +
      `${median(without).toFixed(3)} ms, by each other **${is.toFixed(2)}** (${spread})`,
  )
  if (counted[0] !== warmUp + rounds * perRound || counted[1] !== 0) throw new Error('the counts are wrong')
  if (values.check && is > bound) process.exitCode = 1
}
