// `npm test [FILE…]`: the whole suite on SQLite, then on PostgreSQL as well when PINFOLD_TEST_DATABASE names one.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run as runTests } from 'node:test'
import { spec } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'
import { root } from './run.ts'

// Each file is a process that loads much of the same code; compiled once, it is kept as bin/pinfold keeps it.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/pinfold')

const given = process.argv.slice(2)
const files = given.length > 0 ? given : globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()
/** These open no database, so that another engine changes nothing for them. */
const withoutDatabase = /^(src|test\/house)\//
const postgres = process.env.PINFOLD_TEST_DATABASE ?? ''

async function suite(
  engine: string,
  database: string,
  files: readonly string[],
): Promise<{ passed: number; failed: number }> {
  console.log(`\n# ${engine}`)
  process.env.PINFOLD_TEST_DATABASE = database
  const counts = { passed: 0, failed: 0 }
  // Many of them wait for a process or for a time to pass, and leave a core to another meanwhile.
  const concurrency = Math.max(2, availableParallelism()) + 1
  const execArgv = ['--import', pathToFileURL(join(root, 'test/support/give-up.mjs')).href]
  const stream = runTests({ files: [...files], cwd: root, concurrency, timeout: 300_000, execArgv })
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

const total = await suite('SQLite', '', files)
if (postgres !== '') {
  const more = await suite(
    'PostgreSQL',
    postgres,
    files.filter((file) => given.length > 0 || !withoutDatabase.test(file)),
  )
  total.passed += more.passed
  total.failed += more.failed
}
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
