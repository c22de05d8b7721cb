import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repoList } from '../../src/domains/registry/repos/repos.store.ts'
import { startPinfold } from '../support/pinfold.ts'

test('a list supports any number of groups', async () => {
  await using pinfold = await startPinfold()
  const group = await pinfold.seed.group()
  const { uid } = await pinfold.seed.repo(group.uid)
  const elsewhere = Array.from({ length: 1200 }, (_, i) => ({ below: i.toString(16).padStart(40, '0') }))
  for (const [field, column] of [
    ['uid', 'uid'],
    ['name', 'name'],
  ] as const) {
    const page = { order: { field, column, desc: false }, after: undefined, size: 10, skip: 0, binding: '' }
    const found = await repoList.list(pinfold.app.db, [...elsewhere, { below: group.uid }], page, { name: undefined })
    assert.deepEqual(
      found.map((repo) => repo.uid),
      [uid],
    )
  }
})
