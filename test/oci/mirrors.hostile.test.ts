// Upstreams that try what they should not, one of each kind watched, and one in a mode that brings content: all
// of them in all modes are in test/fuzz/upstreams.ts.
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
  test(`of an upstream that ${kind} nothing wrong is kept, and nobody goes where it leads`, async () => {
    const pulled = await pulls.pullFrom(inModes([kind], i, ['WATCH', i % 2 ? 'FULL' : 'ON_DEMAND']))
    assert.deepEqual(
      pulled.flatMap(({ problems }) => problems),
      [],
      `answers were ${pulled.map(({ statuses }) => statuses.join(' ')).join(', ')}`,
    )
    assert.deepEqual([canaries.connections(), connections.elsewhere()], [0, []])
  })
}

test('what an upstream has that is as it should be comes whole, and who goes elsewhere is seen', async () => {
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
