// Many hostile upstreams at once, of kinds drawn by chance: nothing wrong is stored or served, nobody goes where they lead,
// and the server goes on. By hand: bin/pinfold-node test/fuzz/upstreams.ts --n 300. On PostgreSQL when PINFOLD_TEST_DATABASE
// names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { startHostilePulls } from '../support/hostile-pulls.ts'
import { hostile, startCanary } from '../support/hostile-upstreams.ts'

const { values } = parseArgs({
  options: { n: { type: 'string', default: '300' }, at: { type: 'string', default: '8' } },
})
const [count, atOnce] = [Number(values.n), Number(values.at)]
await using canary = await startCanary()
await using pulls = await startHostilePulls(canary.url)
const kinds = Object.keys(hostile)
const begun = process.memoryUsage.rss()
const wrong: string[] = []
const answers = new Map<number, number>()
let done = 0
const work = async (): Promise<void> => {
  while (done < count) {
    const kind = kinds[done++ % kinds.length]!
    const { problems, statuses } = await pulls.pullFrom(kind)
    wrong.push(...problems.map((one) => `${kind}: ${one}`))
    for (const status of statuses) answers.set(status, (answers.get(status) ?? 0) + 1)
  }
}
await Promise.all(Array.from({ length: atOnce }, work))
const grown = Math.round((process.memoryUsage.rss() - begun) / 2 ** 20)
console.log(
  `${count} upstreams of ${kinds.length} kinds; answers ${JSON.stringify([...answers])}; memory grew by ${grown} MiB`,
)
for (const one of wrong) console.log(one)
assert.deepEqual([wrong.length, canary.connections()], [0, 0])
console.log('0 stored or served that should not be, 0 connections to private addresses')
