// Many clients move one tag with If-Match at the same time. In each round, exactly one must succeed. The tag history must be the
// chain of these moves. To run it by hand:
//   bin/pinfold-node test/fuzz/conditions.ts --writers 64 --moves 100000
// It uses PostgreSQL if PINFOLD_TEST_DATABASE names one.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { sql } from '#db/sql.ts'
import { roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, types } from '../support/registry.ts'

const { values } = parseArgs({
  options: { writers: { type: 'string', default: '64' }, moves: { type: 'string', default: '100000' } },
})
const [writers, most] = [Number(values.writers), Number(values.moves)]
await using registry = await startRegistry()
const { app, pusher, seed, org } = registry
const config = await pusher.pushBlob('acme/app', '{}', types.config)
const images: { digest: string; text: string }[] = []
for (let i = 0; i <= writers; i++) {
  const text = JSON.stringify(imageOf(config, [], { annotations: { writer: String(i) } }))
  images.push({ text, digest: (await pusher.pushManifest('acme/app', text)).digest })
}
const { uid } = await seed.member(org.uid, roleUids.push)
const began = performance.now()
const chain = [images[writers]!.digest]
await pusher.pushManifest('acme/app', images[writers]!.text, 'raced')
let tried = 0
const statuses = new Map<number, number>()
while (tried < most) {
  // Tokens expire before the run ends.
  const clients = await Promise.all(Array.from({ length: writers }, () => registry.registryAs(uid)))
  for (let round = 0; round < 100 && tried < most; round++) {
    const from = chain.at(-1)!
    const headers = { 'content-type': types.image, 'if-match': `"${from}"` }
    const racers = images.slice(0, writers).filter(({ digest }) => digest !== from)
    const answers = await Promise.all(
      racers.map(({ text }, i) => clients[i]!.call('PUT', 'acme/app/manifests/raced', { body: text, headers })),
    )
    tried += racers.length
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const won = racers.filter((_, i) => answers[i]!.status === 201)
    assert.equal(won.length, 1, answers.map(({ status }) => status).join(' '))
    chain.push(won[0]!.digest)
  }
}
const rows = await app.db.all<{ digest: string }>(sql`SELECT digest FROM tag_history WHERE tag = 'raced' ORDER BY time`)
assert.deepEqual(
  rows.map(({ digest }) => digest),
  chain,
)
assert.deepEqual([...statuses.keys()].sort(), [201, 412])
const seconds = Math.round((performance.now() - began) / 1000)
console.log(
  `${app.db.engine}: ${tried} moves of ${writers} writers in ${seconds} s, ${chain.length - 1} rounds with one winner each`,
)
