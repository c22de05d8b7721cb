// `npm test [FILE…]`: the whole suite on SQLite, and on PostgreSQL as well when PINFOLD_TEST_DATABASE names one, at the same
// time: what is told of the second comes behind what is told of the first.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
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

/** Many of them wait for a process or for a time to pass, and leave a core to another meanwhile. */
const lanes = Math.max(2, availableParallelism()) + (postgres === '' ? 1 : 2)
const execArgv = ['--import', pathToFileURL(join(root, 'test/support/give-up.mjs')).href]

/** One engine: what its files say becomes one report. */
function createSuite(engine: string, database: string, tell: (text: string) => void) {
  const events = new PassThrough({ objectMode: true })
  const counts = { passed: 0, failed: 0 }
  const report = (async () => {
    tell(`\n# ${engine}\n`)
    for await (const text of events.compose(spec)) tell(String(text))
  })()
  return {
    counts,
    async run(file: string): Promise<void> {
      const env = { ...process.env, PINFOLD_TEST_DATABASE: database }
      const stream = runTests({ files: [file], cwd: root, concurrency: 1, timeout: 300_000, execArgv, env })
      stream.on('test:pass', (event) => {
        if (event.details.type !== 'suite') counts.passed++
      })
      stream.on('test:fail', (event) => {
        if (event.details.type !== 'suite') counts.failed++
      })
      for await (const event of stream) if (!isSum(event)) events.write(event)
    },
    async end(): Promise<void> {
      events.end()
      await report
    },
  }
}

/** How many there were of one file, which nobody wants to read for each. */
function isSum({ type, data }: { type: string; data: unknown }): boolean {
  const { nesting, message = '' } = data as { nesting?: number; message?: string }
  return type === 'test:summary' || (type === 'test:diagnostic' && nesting === 0 && /^[a-z_]+ [\d.]+$/.test(message))
}

const later: string[] = []
const sqlite = createSuite('SQLite', '', (text) => void process.stdout.write(text))
const suites = [sqlite]
const waiting = files.map((file) => ({ suite: sqlite, file }))
if (postgres !== '') {
  const second = createSuite('PostgreSQL', postgres, (text) => void later.push(text))
  suites.push(second)
  const some = files.filter((file) => given.length > 0 || !withoutDatabase.test(file))
  // Between the others, so that the machine has some of both to do all the time.
  for (const [i, file] of some.entries()) waiting.splice(2 * i + 1, 0, { suite: second, file })
}
const work = waiting.values()
await Promise.all(
  Array.from({ length: lanes }, async () => {
    for (const { suite, file } of work) await suite.run(file)
  }),
)
for (const suite of suites) await suite.end()
process.stdout.write(later.join(''))
const passed = suites.reduce((sum, { counts }) => sum + counts.passed, 0)
const failed = suites.reduce((sum, { counts }) => sum + counts.failed, 0)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0
