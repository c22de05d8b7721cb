// Two changes that were made side by side each add a migration at the end of the list; in which order shows only when a
// server starts.
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
    // Built beside writers where the table has rows; a unique one cannot be added to those that others write.
    /^CREATE INDEX \w+\s+ON \w+ /,
    /^CREATE UNIQUE INDEX \w+\s+ON (?<made>\w+) /,
    // A default that is constant, so that no row is written.
    /^ALTER TABLE \w+ ADD COLUMN \w+ [A-Za-z]+(?: COLLATE "C")?(?: NOT NULL DEFAULT (?:'[^']*'|-?\d+))?$/,
    /^INSERT INTO /,
    /^CREATE (?:FUNCTION|TRIGGER) /,
  ],
  contract: [/^ALTER TABLE \w+ DROP COLUMN \w+$/, /^DROP (?:TABLE|INDEX|TRIGGER|FUNCTION) /],
}

/** Came together with a change for which all servers stop. */
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
      // Earlier builds delete from tables that they know, and nothing of what they do not.
      const clings = [...statement.matchAll(/REFERENCES (\w+) \([^)]*\)(?! ON DELETE)/g)].some(
        ([, known]) => !made.includes(known!),
      )
      const isElsewhere = table !== undefined && !made.includes(table)
      if (!form || isElsewhere || clings) found.push(`${one.id}: ${statement.slice(0, 120)}`)
    }
  }
  assert.deepEqual(found, [])
})
