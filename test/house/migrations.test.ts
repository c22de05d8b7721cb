// Two changes in parallel branches can each add a migration at the end of the list. Their order matters only when a server
// starts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrationIds, phaseOf } from '../../src/db/migration-ids.ts'
import { migrations } from '../../src/db/migrations/all.ts'
import { words } from '../../src/db/words.ts'

test('lists the migrations in the order of their names', () => {
  const ids = migrations.map(({ id }) => id)
  assert.deepEqual(ids, [...ids].sort())
  assert.equal(new Set(ids).size, ids.length)
})

test('the name of a migration is its file name, which commands use', () => {
  assert.deepEqual(
    migrationIds(),
    migrations.map(({ id }) => id),
  )
})

/** Changes that earlier builds tolerate, and that take no long locks however many rows there are. */
const harmless: Record<string, readonly RegExp[]> = {
  expand: [
    /^CREATE TABLE /,
    // An index that is built during writes if the table has rows. A unique index cannot be added to columns that earlier builds
    // write.
    /^CREATE INDEX \w+\s+ON \w+ /,
    /^CREATE UNIQUE INDEX \w+\s+ON (?<made>\w+) /,
    // A constant default, so that no row is rewritten.
    /^ALTER TABLE \w+ ADD COLUMN \w+ [A-Za-z]+(?: COLLATE "C")?(?: NOT NULL DEFAULT (?:'[^']*'|-?\d+))?$/,
    /^INSERT INTO /,
    /^CREATE (?:FUNCTION|TRIGGER) /,
  ],
  contract: [/^ALTER TABLE \w+ DROP COLUMN \w+$/, /^DROP (?:TABLE|INDEX|TRIGGER|FUNCTION) /],
}

/** Was released together with a change that requires all servers to stop. */
const besideNobody = ['0120-expand-scanners']

test('a migration that runs next to earlier builds only adds, and takes no long locks', () => {
  const found: string[] = []
  for (const one of migrations) {
    const forms = harmless[phaseOf(one.id)]
    if (!forms || !('up' in one) || besideNobody.includes(one.id)) continue
    const statements = one.up(words.postgres)
    const made = statements.flatMap((statement) => /^CREATE TABLE (\w+)/.exec(statement)?.[1] ?? [])
    for (const statement of statements) {
      const form = forms.map((pattern) => pattern.exec(statement)).find((match) => match !== null)
      const table = form?.groups?.made
      // Earlier builds delete only from tables that they know.
      const clings = [...statement.matchAll(/REFERENCES (\w+) \([^)]*\)(?! ON DELETE)/g)].some(
        ([, known]) => !made.includes(known!),
      )
      const isElsewhere = table !== undefined && !made.includes(table)
      if (!form || isElsewhere || clings) found.push(`${one.id}: ${statement.slice(0, 120)}`)
    }
  }
  assert.deepEqual(found, [])
})
