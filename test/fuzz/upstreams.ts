// Many hostile upstreams, each with one to three random faults, mirrored in all modes. No wrong content may be stored, served,
// reported or recorded. This process may connect only to the allowed address, and the server must keep running. To run it by
// hand:
//   bin/pinfold-node test/fuzz/upstreams.ts --n 300
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { recordConnections, resolveOnly } from '../support/connections.ts'
import { type Drawn, followingModes, startHostilePulls } from '../support/hostile-pulls.ts'
import { hostile, innerNames, startCanaries } from '../support/hostile-upstreams.ts'
import { oneOf, randomFrom } from '../support/random.ts'

const { values } = parseArgs({
  options: {
    n: { type: 'string', default: '300' },
    at: { type: 'string', default: '8' },
    from: { type: 'string', default: '0' },
    seed: { type: 'string' },
  },
})
const [count, atOnce, from] = [Number(values.n), Number(values.at), Number(values.from)]
const seed = Number(values.seed ?? Date.now() % 1_000_000)
console.log(`--seed ${seed}`)
using connections = recordConnections()
using names = resolveOnly(innerNames)
await using canaries = await startCanaries()
await using pulls = await startHostilePulls(canaries, 3)
const kinds = Object.keys(hostile)

function draw(i: number): Drawn {
  const random = randomFrom(seed * 10_007 + i)
  const own = new Set([kinds[i % kinds.length]!])
  for (let more = random.below(3); more > 0; more--) own.add(oneOf(random, kinds))
  // Each kind of fault occurs in each mirror mode.
  const mode = followingModes[(i + Math.floor(i / kinds.length)) % followingModes.length]!
  return { kinds: [...own], mode, random }
}

const begun = process.memoryUsage.rss()
const wrong: string[] = []
const answers = new Map<number, number>()
const sum = { rows: 0, told: 0, manifests: 0 }
const modes = new Map<string, number>()
for (let i = from; i < from + count; i += atOnce) {
  const drawn = Array.from({ length: Math.min(atOnce, from + count - i) }, (_, k) => draw(i + k))
  for (const [k, pulled] of (await pulls.pullFrom(drawn)).entries()) {
    const { mode, kinds } = drawn[k]!
    modes.set(mode, (modes.get(mode) ?? 0) + 1)
    wrong.push(...pulled.problems.map((one) => `--from ${i + k} --n 1, ${mode}, ${kinds.join(' and ')}: ${one}`))
    for (const status of pulled.statuses) answers.set(status, (answers.get(status) ?? 0) + 1)
    for (const what of ['rows', 'told', 'manifests'] as const) sum[what] += pulled[what]
  }
}
const grown = Math.round((process.memoryUsage.rss() - begun) / 2 ** 20)
console.log(
  `${count} upstreams, ${JSON.stringify(Object.fromEntries(modes))}, with faults of ${kinds.length} kinds; answers ` +
    `${JSON.stringify([...answers].sort())}; ${JSON.stringify(sum)}; memory grew by ${grown} MiB; connected to ` +
    `${JSON.stringify(Object.fromEntries(connections.attempts))}, names asked for: ${names.asked.size}`,
)
for (const one of wrong) console.log(one.slice(0, 400))
assert.deepEqual([wrong.length, canaries.connections(), connections.elsewhere()], [0, 0, []])
assert.ok(sum.rows > 0 && sum.manifests > 0 && sum.told > 0, 'otherwise nothing was tried')
assert.ok(count < 100 || names.asked.size > 1, 'otherwise no name was tried')
console.log('nothing stored, served, told or in the ledger that should not be, no connection to another address')
