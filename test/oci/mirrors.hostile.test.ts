// Hostile upstreams of each kind, one in watch mode and one in a mode that copies content. test/fuzz/upstreams.ts runs all kinds
// in all modes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { recordConnections, resolveOnly } from '../support/connections.ts'
import { type Drawn, followingModes, startHostilePulls } from '../support/hostile-pulls.ts'
import { hostile, innerNames, startCanaries } from '../support/hostile-upstreams.ts'
import { randomFrom } from '../support/random.ts'

const connections = recordConnections()
const names = resolveOnly(innerNames)
after(() => {
  connections[Symbol.dispose]()
  names[Symbol.dispose]()
})
const canaries = await startCanaries()
after(() => canaries[Symbol.asyncDispose]())
const pulls = await startHostilePulls(canaries, 1)
after(() => pulls[Symbol.asyncDispose]())
const inModes = (kinds: string[], seed: number, modes: readonly Drawn['mode'][]) =>
  modes.map((mode, i) => ({ kinds, mode, random: randomFrom(seed * 10 + i) }))

for (const [i, kind] of Object.keys(hostile).entries()) {
  test(`stores nothing invalid from an upstream that ${kind}, and connects to no other address`, async () => {
    const pulled = await pulls.pullFrom(inModes([kind], i, ['WATCH', i % 2 ? 'FULL' : 'ON_DEMAND']))
    assert.deepEqual(
      pulled.flatMap(({ problems }) => problems),
      [],
      `answers were ${pulled.map(({ statuses }) => statuses.join(' ')).join(', ')}`,
    )
    assert.deepEqual([canaries.connections(), connections.elsewhere()], [0, []])
  })
}

test('copies all valid content of an upstream, and the test detects connections to other addresses', async () => {
  const pulled = await pulls.pullFrom(inModes([], 1, followingModes))
  assert.deepEqual(
    pulled.map(({ problems, rows, told, manifests }) => ({ problems, rows: rows > 0, told: told > 0, manifests })),
    [0, 3, 3].map((manifests) => ({ problems: [], rows: true, told: true, manifests })),
  )
  for (const { statuses } of pulled.slice(1)) assert.deepEqual(new Set(statuses), new Set([200]))
  await fetch(canaries.url)
  assert.equal(canaries.connections(), 1)
  assert.deepEqual(connections.elsewhere(), ['127.0.0.2'])
})
