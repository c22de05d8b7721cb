import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { createApp } from '../../src/create-app.ts'
import { assertDenied, ok } from '../support/expect.ts'
import { type Client, clientOf, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'

/** Another node of the same database with the same URL, so that it accepts the same tokens. */
async function startSecondNode({ app, url }: Pinfold, monotonic: () => number) {
  const port = await freePort()
  const config = { ...app.config, url, listen: { host: '127.0.0.1', port } }
  const second = await createApp(config, undefined, monotonic)
  const server = await startServer(second)
  return {
    as: (client: Client) => clientOf(`http://127.0.0.1:${port}`, client.token),
    async [Symbol.asyncDispose]() {
      await server.close()
      await second.close()
    },
  }
}

test('a grant or revocation has effect at once on its own node, and within half a second on others', async () => {
  // Caches expire only when the test advances the clock, so earlier effects come from the change itself.
  let milliseconds = 0
  const monotonic = () => milliseconds
  await using pinfold = await startPinfold({ monotonic })
  await using node = await startSecondNode(pinfold, monotonic)
  const org = await pinfold.seed.group()
  const path = `/iam/v2/groups/${org.uid}`
  const { uid } = await pinfold.seed.person()
  const here = await pinfold.as(uid)
  const there = node.as(here)
  type Expected = (answer: Awaited<ReturnType<Client['get']>>) => void
  const changes = async (change: () => Promise<unknown>, before: Expected, after: Expected) => {
    for (const client of [here, there]) before(await client.get(path))
    await change()
    after(await here.get(path))
    milliseconds += 499
    before(await there.get(path))
    milliseconds += 1
    after(await there.get(path))
  }
  const { operator, seed } = pinfold

  await changes(() => seed.binding(org.uid, uid, roleUids.viewer), assertDenied, ok)
  const { roleBindings } = ok(await operator.get(`/iam/v2/roleBindings?identity=${uid}`))
  const binding = `/iam/v2/roleBindings/${roleBindings[0].uid}`
  const role = await seed.role(org.uid, ['repo.list'])
  await changes(async () => ok(await operator.patch(binding, { roleUid: role.uid })), ok, assertDenied)
  const patch = { capabilities: ['groups.list'] }
  await changes(async () => ok(await operator.patch(`/iam/v2/roles/${role.uid}`, patch)), assertDenied, ok)
  await changes(async () => ok(await operator.delete(binding)), ok, assertDenied)

  await seed.binding(org.uid, uid, roleUids.viewer)
  milliseconds += 500
  const gone = (answer: Awaited<ReturnType<Client['get']>>) => assert.equal(answer.status, 401, answer.text)
  await changes(async () => ok(await operator.delete(`/iam/v2/identities/${uid}`)), ok, gone)
  assert.equal((await node.as(operator).get(path)).status, 200)
})
