// Upstreams that try what they should not, one of each kind: see also test/fuzz/upstreams.ts.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startHostilePulls } from '../support/hostile-pulls.ts'
import { hostile, startCanary } from '../support/hostile-upstreams.ts'

const canary = await startCanary()
after(() => canary[Symbol.asyncDispose]())
const pulls = await startHostilePulls(canary.url)
after(() => pulls[Symbol.asyncDispose]())

for (const kind of Object.keys(hostile)) {
  test(`of an upstream that ${kind} nothing wrong is stored, and nobody goes where it leads`, async () => {
    const { problems, statuses } = await pulls.pullFrom(kind)
    assert.deepEqual(problems, [], `answers were ${statuses.join(' ')}`)
    assert.equal(canary.connections(), 0)
  })
}

test('what an upstream has that is as it should be comes whole, and who goes to the canary is seen there', async () => {
  assert.deepEqual(await pulls.pullFrom(''), { problems: [], statuses: [200, 200, 200, 200] })
  await fetch(canary.url)
  assert.equal(canary.connections(), 1)
})
