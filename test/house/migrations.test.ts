// Two changes that were made side by side each add a migration at the end of the list; in which order shows only when a
// server starts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrationIds } from '../../src/db/migration-ids.ts'
import { migrations } from '../../src/db/migrations/all.ts'

test('the migrations are listed in the order of their names', () => {
  const ids = migrations.map(({ id }) => id)
  assert.deepEqual(ids, [...ids].sort())
  assert.equal(new Set(ids).size, ids.length)
})

test('a migration is called as its file is, by which commands know it', () => {
  assert.deepEqual(
    migrationIds(),
    migrations.map(({ id }) => id),
  )
})
