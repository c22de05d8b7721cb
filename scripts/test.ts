// `npm test [FILE…]`: the whole suite on SQLite, and on PostgreSQL as well when PINFOLD_TEST_DATABASE names one, at the same
// time: what is told of the second comes behind what is told of the first.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run as runTests } from 'node:test'
import { spec } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { root } from './run.ts'

// Each file is a process that loads much of the same code; compiled once, it is kept as bin/pinfold keeps it.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/pinfold')

const given = process.argv.slice(2)
const files = given.length > 0 ? given : globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()
/** These open no database, so that another engine changes nothing for them. */
const withoutDatabase = /^(src|test\/house)\//
const postgres = process.env.PINFOLD_TEST_DATABASE ?? ''

/** Many of them wait for a process or for a time to pass, and leave a core to another meanwhile. */
const atOnce = Math.max(2, availableParallelism()) + (postgres === '' ? 1 : 2)
const execArgv = ['--import', pathToFileURL(join(root, 'test/support/give-up.mjs')).href]

async function suite(
  engine: string,
  database: string,
  some: readonly string[],
  tell: (text: string) => void,
): Promise<{ passed: number; failed: number }> {
  tell(`\n# ${engine}\n`)
  const counts = { passed: 0, failed: 0 }
  const concurrency = Math.ceil(atOnce / (postgres === '' ? 1 : 2))
  const env = { ...process.env, PINFOLD_TEST_DATABASE: database }
  const stream = runTests({ files: [...some], cwd: root, concurrency, timeout: 300_000, execArgv, env })
  stream.on('test:pass', (event) => {
    if (event.details.type !== 'suite') counts.passed++
  })
  stream.on('test:fail', (event) => {
    if (event.details.type === 'suite') return
    counts.failed++
    // The report tells why at its end, which a run that is cut short does not have.
    tell(
      `FAIL ${event.name} (${event.file} on ${engine}): ${inspect(event.details.error.cause ?? event.details.error)}\n`,
    )
  })
  for await (const text of stream.compose(spec)) tell(String(text))
  return counts
}

const later: string[] = []
const first = suite('SQLite', '', files, (text) => void process.stdout.write(text))
const second =
  postgres === ''
    ? { passed: 0, failed: 0 }
    : suite(
        'PostgreSQL',
        postgres,
        files.filter((file) => given.length > 0 || !withoutDatabase.test(file)),
        (text) => void later.push(text),
      )
const counts = await Promise.all([first, second])
process.stdout.write(later.join(''))
const passed = counts.reduce((sum, one) => sum + one.passed, 0)
const failed = counts.reduce((sum, one) => sum + one.failed, 0)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
