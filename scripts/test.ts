// `npm test [FILE or FOLDER…]`: runs the tests on SQLite, and also on PostgreSQL if PINFOLD_TEST_DATABASE names one. `npm test --
// --postgresql`: only on PostgreSQL. `npm run test:quick [FILE…]`: on SQLite, only the test files that changed code can affect,
// nearest first.
import { globSync, readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { root } from './run.ts'
import { affectedTests, changedFiles } from './test/affected.ts'
import { expectedMs, keyOf, readDurations, writeDurations } from './test/durations.ts'
import { runUnits, type Unit } from './test/pool.ts'
import { createProgress } from './test/progress.ts'

// Compiled code is cached between runs, as in bin/pinfold.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/pinfold')

/** These tests open no database, so they run only once. */
const withoutDatabase = /^(?:src\/(?!db\/)|test\/(?:house|scripts)\/)/
/** Beginning of the comment in a test file that needs its own process. The reason follows. */
const ownProcess = /^\/\/ Own process: \S/m

const flags = ['--quick', '--postgresql']
const isQuick = process.argv.includes('--quick')
const onlyPostgres = process.argv.includes('--postgresql')
const named = process.argv.slice(2).filter((word) => !flags.includes(word))
const postgres = isQuick ? '' : (process.env.PINFOLD_TEST_DATABASE ?? '')
const all = globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root }).sort()
const given = named.flatMap(filesOf)

const durations = readDurations()

/** Test files of an argument: the named file, or all test files of the folder. */
function filesOf(name: string): string[] {
  const path = relative(root, resolve(name))
  const inFolder = all.filter((file) => file.startsWith(`${path}/`))
  if (inFolder.length > 0) return inFolder
  if (statSync(join(root, path), { throwIfNoEntry: false })?.isFile()) return [path]
  console.error(`${name} is no file, and no folder with tests`)
  return process.exit(64)
}

function unitsOf(files: readonly string[], engine: string, database: string): Unit[] {
  return files.map((file) => ({
    file,
    engine,
    database,
    isAlone: ownProcess.test(readFileSync(join(root, file), 'utf8')),
    expectedMs: expectedMs(durations, file, engine),
  }))
}

const changed = isQuick && given.length === 0 ? changedFiles() : given
const files = isQuick ? affectedTests(all, changed) : given.length > 0 ? given : all
const onPostgres = postgres === '' ? [] : files.filter((file) => given.length > 0 || !withoutDatabase.test(file))
const onSqlite = onlyPostgres ? [] : files
const units = [...unitsOf(onSqlite, 'SQLite', ''), ...unitsOf(onPostgres, 'PostgreSQL', postgres)]
if (isQuick) console.log(`${changed.length} changed files can affect ${files.length} of ${all.length} test files`)
// The pool runs the longest units first, so the nearest tests get the highest durations.
if (isQuick) for (const [at, unit] of units.entries()) unit.expectedMs = units.length - at

const write = (text: string) => void process.stdout.write(text)
const progress = createProgress(units, write, process.stdout.isTTY ? process.stdout.columns : undefined)
const known = new Set(all)
const failed = new Set<Unit>()
const timer = setInterval(progress.show, 1000)
/** Many tests wait for a process or the network and use no processor meanwhile, so there are more workers than cores. */
const size = Math.min(units.length, Math.max(2, availableParallelism()) + 1)
await runUnits(units, size, {
  told(unit, report) {
    if (report.kind !== 'failed') return progress[report.kind]()
    failed.add(unit)
    progress.failed(unit, report.name, report.reason)
  },
  ended(unit, ms, output) {
    if (known.has(unit.file)) durations[keyOf(unit.file, unit.engine)] = ms
    if (failed.has(unit) && output !== '') write(`Output of ${unit.file}:\n${output}\n`)
    progress.fileDone(unit)
  },
})
clearInterval(timer)
writeDurations(durations)
progress.end()
const { passed, failed: failures } = progress.counts
// A quick run may find no tests to run. Any other run without tests is an error.
const isNothing = passed === 0 && !(isQuick && units.length === 0)
process.exitCode = failures > 0 || isNothing ? 1 : 0
