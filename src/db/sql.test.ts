import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf } from './bulk.ts'
import { compile, ident, join, list, type Sql, sql } from './sql.ts'

function shape(query: Sql) {
  return { text: compile(query, '$'), values: query.values }
}

test('values become numbered parameters in the order of the text', () => {
  const query = sql`SELECT * FROM t WHERE a = ${1} AND b = ${'x'} AND c = ${null}`
  assert.equal(compile(query, '?'), 'SELECT * FROM t WHERE a = ?1 AND b = ?2 AND c = ?3')
  assert.equal(compile(query, '$'), 'SELECT * FROM t WHERE a = $1 AND b = $2 AND c = $3')
  assert.deepEqual(query.values, [1, 'x', null])
})

test('nested fragments become part of the text, and parameter numbers continue', () => {
  const inner = sql`b = ${2} AND ${sql`c = ${3}`}`
  const query = sql`${ident('t.a')} = ${1} AND ${inner} AND d = ${4}`
  assert.deepEqual(shape(query), { text: 't.a = $1 AND b = $2 AND c = $3 AND d = $4', values: [1, 2, 3, 4] })
  assert.equal(query.parts.length, query.values.length + 1)
})

test('using a fragment twice does not change it', () => {
  const below = sql`uid > ${'a'}`
  assert.deepEqual(shape(sql`${below} OR ${below}`), { text: 'uid > $1 OR uid > $2', values: ['a', 'a'] })
  assert.deepEqual(shape(below), { text: 'uid > $1', values: ['a'] })
})

test('join writes the separator only between fragments', () => {
  const query = join([sql`a = ${1}`, sql`b = ${2}`, sql`1 = 1`], ' AND ')
  assert.deepEqual(shape(query), { text: 'a = $1 AND b = $2 AND 1 = 1', values: [1, 2] })
  assert.deepEqual(shape(join([], ', ')), { text: '', values: [] })
})

test('list writes one parameter per value, and NULL for none', () => {
  assert.deepEqual(shape(sql`IN (${list(['a', 'b', 'c'])})`), { text: 'IN ($1, $2, $3)', values: ['a', 'b', 'c'] })
  assert.deepEqual(shape(sql`IN (${list(['a'])})`), { text: 'IN ($1)', values: ['a'] })
  assert.deepEqual(shape(sql`IN (${list([])})`), { text: 'IN (NULL)', values: [] })
})

test('throws for a value of an unsupported type where it is used', () => {
  const wrong = [undefined, true, new Date(), 1n, Number.NaN, Number.POSITIVE_INFINITY, {}, [1], () => 1, Symbol('a')]
  for (const value of wrong) {
    assert.throws(() => sql`SELECT ${value as never}`, TypeError)
    assert.throws(() => list([value as never]), TypeError)
  }
})

test('does not accept another object with the shape of a fragment', () => {
  const forged = { parts: ['1); DROP TABLE repos --'], values: [] }
  assert.throws(() => sql`SELECT (${forged})`, TypeError)
  assert.throws(() => join([forged], ', '), TypeError)
})

test('ident accepts only plain lower-case names', () => {
  for (const name of ['uid', 'repos.uid', '_a1']) assert.equal(compile(ident(name), '?'), name)
  for (const name of ['', 'a b', 'a;', 'A', '1a', 'a.b.c', 'a.', '"a"', 'a\n']) {
    assert.throws(() => ident(name), TypeError, name)
  }
})

test('queries the values in parts, and returns the rows of all queries in order', async () => {
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
