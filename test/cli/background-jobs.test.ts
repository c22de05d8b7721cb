// Two nodes as processes: after one is killed, the other takes over the jobs that run on only one node.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, onPostgres } from '../support/pinfold.ts'
import { createStorage, freeAddress, run, startProcess, tokenOf } from '../support/process.ts'
import { eventually } from '../support/receiver.ts'

const metricsToken = 'a-test-reads-this'
const env = { PINFOLD_METRICS_TOKEN: metricsToken, PINFOLD_LEASE_MS: '3000', PINFOLD_URL: 'http://pinfold.example.com' }
const held = async (address: string): Promise<number> => {
  const text = await (
    await fetch(`http://${address}/metrics`, { headers: { authorization: `Bearer ${metricsToken}` } })
  ).text()
  return [...text.matchAll(/^pinfold_duty_lease_held\{.*\} 1$/gm)].length
}

test('when the node with the leases is killed, the other node takes them', {
  skip: !onPostgres && 'one node',
}, async () => {
  await using storage = await createStorage()
  const [here, there, third] = [await freeAddress(), await freeAddress(), await freeAddress()]
  await using first = await startProcess(storage, { env, listen: here })
  const all = await eventually(
    () => held(here),
    (count) => count >= 7,
  )
  await using second = await startProcess(storage, { env, listen: there })
  assert.equal(await held(there), 0)

  // The second node requests the job, and the first node runs it because it holds the lease.
  const client = clientOf(`http://${there}`, await tokenOf(storage))
  const asked = await client.post('/control/v1/blobs:collect', { dryRun: true })
  assert.deepEqual([asked.status, asked.body.finished], [200, true])

  first.kill('SIGKILL')
  await first.exited
  const waiting = client.post('/control/v1/blobs:collect', {})
  await eventually(
    () => held(there),
    (count) => count === all,
  )
  assert.equal((await waiting).body.finished, true)

  second.kill('SIGTERM')
  assert.equal((await second.exited).code, 0)
  // The node has released its leases, so no other node waits until they expire.
  await using _third = await startProcess(storage, { env: { ...env, PINFOLD_LEASE_MS: '600000' }, listen: third })
  assert.equal(await held(third), all)
})

test('gc of a folder without a running server runs in its own process', async () => {
  await using storage = await createStorage()
  const first = await run(['server', 'gc', ...storage.args], { env: storage.env })
  assert.match(first.stdout, /^removed 0 blobs with 0 bytes, 0 unfinished uploads$/m)
  const { code, stdout, stderr } = await run(['server', 'gc', '--dry-run', ...storage.args], { env: storage.env })
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^would remove 0 blobs with 0 bytes, 0 unfinished uploads$/m)
})
