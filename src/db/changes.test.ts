import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { changesOf } from './changes.ts'
import { compile, ident, join, raw, sql } from './sql.ts'

test('reads the table and the kind of change from a statement', () => {
  const cases = [
    [sql`SELECT name FROM items WHERE name = ${'a'}`, []],
    [sql`SELECT name FROM items FOR UPDATE`, []],
    [sql`INSERT INTO items (name) VALUES (${'a'}) ON CONFLICT DO NOTHING RETURNING id`, ['insert items']],
    [
      sql`
        INSERT INTO items (name) VALUES ${join([sql`(${'a'})`, sql`(${'b'})`], ', ')}
            ON CONFLICT (name) DO UPDATE SET amount = ${1}`,
      ['insert items', 'update items'],
    ],
    [sql`UPDATE ${ident('items')} SET name = ${'DELETE FROM parts'}`, ['update items']],
    [sql`\n  DELETE FROM items`, ['delete items']],
    [raw('ALTER TABLE items ADD COLUMN colour TEXT'), []],
  ] as const
  for (const [query, expected] of cases) {
    const text = compile(query, '$')
    assert.deepEqual(changesOf(text), expected, text)
  }
})

test('each writing statement in the sources begins with its verb and the table name', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !/\.test\.ts$|migrations\//.test(file))
  const strange = files.flatMap((file) => {
    const texts = readFileSync(`${root}/${file}`, 'utf8').match(/\bsql`[^`]*/g) ?? []
    const writing = texts.filter((text) =>
      /\b(?:INSERT INTO|(?<!FOR |DO )UPDATE|DELETE FROM|REPLACE INTO|MERGE)\s/.test(text),
    )
    return writing.filter((text) => !/^sql`\s*(?:INSERT INTO|UPDATE|DELETE FROM) (?:[a-z_]+|\$\{ident\()/.test(text))
  })
  assert.deepEqual(strange, [])
})
