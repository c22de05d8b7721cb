// Check of docs/operations/monitoring.md: it lists every metric with its help text. The sources contain every log message that it
// lists, at its level.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Db } from '#db/sql.ts'
import { createMetrics } from '../../src/metrics.ts'
import { project } from '../support/process.ts'

const page = readFileSync(join(project, 'docs/operations/monitoring.md'), 'utf8')

/** Cells of the table below a heading, by row. */
function tableOf(heading: string): string[][] {
  const [, section = ''] = page.split(`${heading}\n`)
  const lines = section.split(/^#/m)[0]!.split('\n')
  const rows = lines.filter((line) => line.startsWith('| '))
  return rows.slice(2).map((row) => row.split('|').map((cell) => cell.trim()))
}

test('the sources log every documented message as a fixed text, at the documented level', () => {
  const files = globSync('src/**/*.ts', { cwd: project }).filter((file) => !file.endsWith('.test.ts'))
  const source = files.map((file) => readFileSync(join(project, file), 'utf8')).join('\n')
  const rows = tableOf('### Messages for alerts')
  assert.ok(rows.length > 20)
  for (const [, messages = '', level = ''] of rows) {
    for (const [, message] of messages.matchAll(/`([^`]+)`/g)) {
      const levels = level.replace(' or ', '|')
      const call = `(?:\\blog\\.(?:${levels})\\(\\s*|failures\\.request\\([\\w.]+, )`
      assert.match(source, new RegExp(`${call}'${RegExp.escape(message!)}'`), message)
    }
  }
})

test('each metric of the server is documented with its help text', () => {
  const stats = () => ({ transactions: 0, commits: 0, refused: 0, again: new Map() })
  const metrics = createMetrics({ stats } as unknown as Db, [])
  metrics.watchClock(() => 0)
  metrics.watchBlobStore(() => true)
  metrics.watchLedgerLogs(() => 0)
  metrics.watchBudgets(() => 0)
  const all = metrics.registry.getMetricsAsArray().filter(({ name }) => name.startsWith('pinfold_'))
  const expected = all.map(({ name, help }) => [`\`${name}\``, help])
  const documented = tableOf('### All metrics').map(([, name, , , help]) => [name, help])
  assert.deepEqual(documented.sort(), expected.sort())
})
