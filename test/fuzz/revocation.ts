// Time until a deleted role binding has no effect on any server. The program deletes bindings through one server and sends
// requests to every server until all refuse them. The clock of one server is five minutes ahead. To run it by hand:
//   PINFOLD_TEST_DATABASE=postgres://… bin/pinfold-node test/fuzz/revocation.ts --trials 1000 --nodes 3
// With --check, the program fails if a server still allowed a request after one second.
import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { ok } from '../support/expect.ts'
import { secondNode } from '../support/nodes.ts'
import { clientOf, onPostgres, startPinfold } from '../support/pinfold.ts'

const { values } = parseArgs({
  options: {
    trials: { type: 'string', default: '1000' },
    nodes: { type: 'string', default: '3' },
    check: { type: 'boolean', default: false },
  },
})
if (!onPostgres) throw new Error('PINFOLD_TEST_DATABASE must name a PostgreSQL')
const [trials, nodes] = [Number(values.trials), Number(values.nodes)]
const aheadMs = 300_000
await using stack = new AsyncDisposableStack()
const pinfold = stack.use(await startPinfold({ requestsPerSource: 1_000_000 }))
const ports = [pinfold.port]
for (let i = 1; i < nodes; i++) ports.push(stack.use(await secondNode(pinfold, i === 1 ? aheadMs : 0)).port)
const org = await pinfold.seed.group()
const role = await pinfold.seed.role(org.uid, ['groups.list'])
const path = `/iam/v2/groups/${org.uid}`
const times: number[][] = ports.map(() => [])
for (let trial = 0; trial < trials; trial++) {
  const identity = await pinfold.seed.member(org.uid, role.uid)
  const { token } = await pinfold.as(identity.uid)
  const clients = ports.map((port) => clientOf(`http://127.0.0.1:${port}`, token))
  for (const client of clients) assert.equal((await client.get(path)).status, 200)
  const [binding] = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${identity.uid}`)).roleBindings
  const at = clientOf(`http://127.0.0.1:${ports[trial % nodes]}`, pinfold.operator.token)
  ok(await at.delete(`/iam/v2/roleBindings/${binding.uid}`))
  const began = performance.now()
  await Promise.all(
    clients.map(async (client, i) => {
      // The time of the last allowed request counts, not the time of its answer.
      let last = 0
      for (;;) {
        const asked = performance.now() - began
        if ((await client.get(path)).status !== 200) break
        last = asked
        assert.ok(last < 10_000, 'it is never refused')
      }
      times[i]!.push(last)
    }),
  )
}
for (const [i, list] of times.entries()) {
  list.sort((a, b) => a - b)
  const of = (share: number) => list[Math.min(list.length - 1, Math.floor(list.length * share))]!.toFixed(0)
  console.log(
    `server ${i + 1}${i === 1 ? ' (5 min ahead)' : ''}: let in for ${of(0.5)} ms, p99 ${of(0.99)}, at most ${of(1)} ms`,
  )
}
if (values.check)
  assert.ok(
    times.flat().every((ms) => ms <= 1000),
    'somebody was let in for more than a second',
  )
