// Concurrent pulls by many identities. Each pull must be counted for its identity and its manifest. To run it by hand:
//   bin/pinfold-node test/fuzz/pull-counts.ts --pulls 10000 --identities 50
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { roleUids } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'

const { values } = parseArgs({
  options: { pulls: { type: 'string', default: '10000' }, identities: { type: 'string', default: '50' } },
})
await using registry = await startRegistry()
const { app, org, seed, pusher } = registry
const images: string[] = []
for (let i = 0; i < 7; i++) images.push((await pusher.pushImage('acme/app', `v${i}`)).digest)
const each = Math.ceil(Number(values.pulls) / Number(values.identities))
const expected = new Map<string, number>()
const began = performance.now()
const pull = async (_: unknown, nth: number): Promise<void> => {
  const { uid } = await seed.member(org.uid, roleUids.pull)
  const client = await registry.registryAs(uid)
  for (let i = 0; i < each; i++) {
    const image = (i * 5 + nth) % images.length
    const [method, kind] = i % 3 === 0 ? ['HEAD', 'checks'] : ['GET', 'gets']
    await client.ok(200, method, `acme/app/manifests/${i % 2 ? `v${image}` : images[image]}`)
    const key = `${images[image]} ${uid} ${kind}`
    expected.set(key, (expected.get(key) ?? 0) + 1)
  }
}
await Promise.all(Array.from({ length: Number(values.identities) }, pull))
const seconds = Math.round((performance.now() - began) / 1000)
await app.usage.flush()
const rows = await app.db.all<{ digest: string; caller: string; gets: number; checks: number }>(sql`
  SELECT digest, caller, sum(gets) AS gets, sum(checks) AS checks FROM digest_usage
   WHERE caller <> ${pusher.uid} GROUP BY digest, caller`)
const counted = new Map<string, number>(
  rows.flatMap(({ digest, caller, gets, checks }) => [
    [`${digest} ${caller} gets`, Number(gets)] as const,
    [`${digest} ${caller} checks`, Number(checks)] as const,
  ]),
)
const wrong = [...expected].filter(([key, count]) => counted.get(key) !== count)
const sum = [...counted.values()].reduce((all, one) => all + one, 0)
console.log(
  `${app.db.engine}: ${each * Number(values.identities)} pulls in ${seconds} s, ${sum} counted, ${wrong.length} counts wrong`,
)
assert.deepEqual([wrong.length, sum], [0, each * Number(values.identities)])
