import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { startServer } from '#api/server.ts'
import { createApp } from '../../src/create-app.ts'
import { assertDenied, ok } from '../support/expect.ts'
import { type Client, clientOf, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { freePort } from '../support/ports.ts'

/** Another node on the same database, known by the same URL, so that it takes the same tokens. */
async function startSecondNode({ app, url }: Pinfold) {
  const port = await freePort()
  const second = await createApp({ ...app.config, url, listen: { host: '127.0.0.1', port } })
  const server = await startServer(second)
  return {
    as: (client: Client) => clientOf(`http://127.0.0.1:${port}`, client.token),
    async [Symbol.asyncDispose]() {
      await server.close()
      await second.close()
    },
  }
}

test('what is granted and revoked on one node counts there at once, and on another within a second', async () => {
  await using pinfold = await startPinfold()
  await using node = await startSecondNode(pinfold)
  const org = await pinfold.seed.group()
  const path = `/iam/v2/groups/${org.uid}`
  const uid = randomBytes(20).toString('hex')
  const here = await pinfold.as(uid)
  const there = node.as(here)
  const answerOf = async (status: number) => {
    const end = performance.now() + 1000
    let answer = await there.get(path)
    while (answer.status !== status && performance.now() < end) answer = await there.get(path)
    return answer
  }

  assertDenied(await here.get(path))
  assertDenied(await there.get(path))
  const binding = await pinfold.seed.binding(org.uid, uid, roleUids.viewer)
  ok(await here.get(path))
  ok(await answerOf(200))

  const role = await pinfold.seed.role(org.uid, ['repo.list'])
  ok(await here.get(path)) // so that this node has just looked
  ok(await pinfold.operator.patch(`/iam/v2/roleBindings/${binding.uid}`, { roleUid: role.uid }))
  assertDenied(await here.get(path))
  assertDenied(await answerOf(403))

  assertDenied(await here.get(path))
  ok(await pinfold.operator.patch(`/iam/v2/roles/${role.uid}`, { capabilities: ['groups.list'] }))
  ok(await here.get(path))
  ok(await answerOf(200))

  ok(await here.get(path))
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding.uid}`))
  assertDenied(await here.get(path))
  assertDenied(await answerOf(403))
  assert.equal((await node.as(pinfold.operator).get(path)).status, 200)
})
