// `npm test [FILE…]`: the whole suite on SQLite, then on PostgreSQL as well when PINFOLD_TEST_DATABASE names one.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { run as runTests } from 'node:test'
import { spec } from 'node:test/reporters'
import { root } from './run.ts'

const given = process.argv.slice(2)
const files = given.length > 0 ? given : globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()
const postgres = process.env.PINFOLD_TEST_DATABASE ?? ''

async function suite(engine: string, database: string): Promise<{ passed: number; failed: number }> {
  console.log(`\n# ${engine}`)
  process.env.PINFOLD_TEST_DATABASE = database
  const counts = { passed: 0, failed: 0 }
  const stream = runTests({ files, cwd: root, concurrency: Math.max(2, availableParallelism()), timeout: 300_000 })
  stream.on('test:pass', (event) => {
    if (event.details.type !== 'suite') counts.passed++
  })
  stream.on('test:fail', (event) => {
    if (event.details.type !== 'suite') counts.failed++
  })
  stream.compose(spec).pipe(process.stdout, { end: false })
  await new Promise((resolve) => stream.once('end', resolve))
  return counts
}

const total = await suite('SQLite', '')
if (postgres !== '') {
  const more = await suite('PostgreSQL', postgres)
  total.passed += more.passed
  total.failed += more.failed
}
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
