import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startPinfold } from '../support/pinfold.ts'

test('a patch changes only the fields in its mask, and sends one event', async () => {
  await using pinfold = await startPinfold()
  const group = await pinfold.seed.group()
  const repo = await pinfold.seed.repo(group.uid, { name: 'web', description: 'old' })

  const body = { name: 'ignored', description: 'new' }
  const res = await pinfold.operator.patch(`/registry/v2/repos/${repo.uid}?updateMask=description`, body)

  assert.equal(res.status, 200)
  assert.deepEqual(res.body, { ...repo, description: 'new', updateTime: res.body.updateTime })
  assert.deepEqual((await pinfold.events()).slice(-1), ['dev.pinfold.api.platform.registry.repo.updated.v1'])
})
