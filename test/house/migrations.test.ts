// Order of migrations. If two branches each add a migration at the end of the list, a wrong order would show only when a server
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

test('the name of a migration is the name of its file', () => {
  assert.deepEqual(
    migrationIds(),
    migrations.map(({ id }) => id),
  )
})

/** Changes that servers of an earlier release tolerate, and that take no long locks in a table of any size. */
const harmless: Record<string, readonly RegExp[]> = {
  expand: [
    /^CREATE TABLE /,
    // An index on a table with rows must be built while other transactions write. A unique index cannot be added to such a table.
    /^CREATE INDEX \w+\s+ON \w+ /,
    /^CREATE UNIQUE INDEX \w+\s+ON (?<made>\w+) /,
    // A constant default, for which the database does not rewrite rows.
    /^ALTER TABLE \w+ ADD COLUMN \w+ [A-Za-z]+(?: COLLATE "C")?(?: NOT NULL DEFAULT (?:'[^']*'|-?\d+))?$/,
    /^INSERT INTO /,
    /^CREATE (?:FUNCTION|TRIGGER) /,
  ],
  contract: [/^ALTER TABLE \w+ DROP COLUMN \w+$/, /^DROP (?:TABLE|INDEX|TRIGGER|FUNCTION) /],
}

/** Migrations of a release for which all servers had to be stopped. */
const besideNobody = ['0120-expand-scanners']

test('a migration that runs while earlier releases serve only adds, and takes no long locks', () => {
  const found: string[] = []
  for (const one of migrations) {
    const forms = harmless[phaseOf(one.id)]
    if (!forms || !('up' in one) || besideNobody.includes(one.id)) continue
    const statements = one.up(words.postgres)
    const made = statements.flatMap((statement) => /^CREATE TABLE (\w+)/.exec(statement)?.[1] ?? [])
    for (const statement of statements) {
      const form = forms.map((pattern) => pattern.exec(statement)).find((match) => match !== null)
      const table = form?.groups?.made
      // An earlier release deletes rows of the tables that it knows, but no rows of new tables.
      const clings = [...statement.matchAll(/REFERENCES (\w+) \([^)]*\)(?! ON DELETE)/g)].some(
        ([, known]) => !made.includes(known!),
      )
      const isElsewhere = table !== undefined && !made.includes(table)
      if (!form || isElsewhere || clings) found.push(`${one.id}: ${statement.slice(0, 120)}`)
    }
  }
  assert.deepEqual(found, [])
})
