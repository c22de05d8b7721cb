import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf } from './bulk.ts'
import { list, type Sql, sql } from './sql.ts'

test('asks for some of the values at a time and returns the rows of all statements in order', async () => {
  const asked: unknown[] = []
  const reader = {
    async all<T>({ values }: Sql): Promise<T[]> {
      asked.push(values)
      return values.map((value) => ({ value })) as T[]
    },
    get: async () => undefined,
  }
  const query = (some: readonly number[]) => sql`SELECT ${list(some)}`
  const rows = await allOf<{ value: number }, number>(reader, [1, 2, 3, 4, 5], query, 2)
  assert.deepEqual(
    rows.map(({ value }) => value),
    [1, 2, 3, 4, 5],
  )
  assert.deepEqual(asked, [[1, 2], [3, 4], [5]])
  assert.deepEqual(await allOf(reader, [], query), [])
})
