// Time of daily vulnerability counts for many tags, each of which points to another image each day. To run it by hand:
//   bin/pinfold-node bench/counts.ts --tags 50 --days 90 --packages 200
// It exits with 1 if one of the two requests of version 1 takes more than a second. It uses PostgreSQL if PINFOLD_TEST_DATABASE
// names one.
import { parseArgs } from 'node:util'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { makeDays, tagOf } from '../test/support/count-history.ts'
import { grpcClientOf } from '../test/support/grpc.ts'
import { roleUids } from '../test/support/pinfold.ts'
import { startRegistry } from '../test/support/registry.ts'

const { values } = parseArgs({
  options: {
    tags: { type: 'string', default: '50' },
    days: { type: 'string', default: '90' },
    packages: { type: 'string', default: '200' },
    names: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '5' },
  },
})
const [tags, days, packages, names] = [values.tags, values.days, values.packages, values.names].map(Number) as [
  number,
  number,
  number,
  number,
]
const boundMs = 1000
const first = '2026-01-01'

let now = new Date(`${first}T08:00:00Z`)
await using registry = await startRegistry({ clock: () => now })
const repo = await registry.seed.repo(registry.org.uid, { name: 'app' })
const owner = await registry.seed.member(registry.org.uid, roleUids.owner)
const history = {
  app: registry.app,
  repo: { uid: repo.uid as string, path: 'acme/app' },
  setTime(time: string): void {
    now = new Date(time)
  },
  pusher: () => registry.registryAs(registry.pusher.uid),
}
console.log(`${registry.app.db.engine}: ${tags} tags, ${days} days, ${packages} of ${names} packages an image`)
await makeDays(history, first, { tags, days, packages, names })

using client = grpcClientOf(registry, Vulnerabilities, await registry.tokenFor(owner.uid))
const references = Array.from({ length: tags }, (_, i) => ({ repo: 'acme/app', tag: tagOf(i) }))
const second = BigInt(Date.parse(first) / 1000)
const from = { seconds: second, nanos: 0 }
const question = { references, from, to: { seconds: second + BigInt(86_400 * (days - 1)), nanos: 0 } }
for (const name of ['listVulnCountReports', 'listCumulativeVulnCountReports'] as const) {
  const times: number[] = []
  let items = 0
  let counted = 0
  const { user, system } = process.cpuUsage()
  for (let i = 0; i < Number(values.rounds); i++) {
    const began = performance.now()
    const answer = await client[name](question)
    times.push(performance.now() - began)
    items = answer.items.length
    counted = answer.items.reduce((sum, { cveIds }) => sum + cveIds.length, 0)
  }
  const spent = process.cpuUsage()
  const cpu = (spent.user + spent.system - user - system) / 1000 / times.length
  const sorted = times.toSorted((a, b) => a - b).map((ms) => ms.toFixed(0))
  const median = sorted[sorted.length >> 1]!
  console.log(
    `${name}: ${items} days with ${counted} ids; ${sorted[0]} ms at best, ${median} median, ${cpu.toFixed(0)} of CPU`,
  )
  if (items !== tags * days) throw new Error('some days are missing')
  if (Number(median) > boundMs) {
    console.log(`MISSED: ${name} takes more than ${boundMs} ms`)
    process.exitCode = 1
  }
}
