import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { project, runProcess } from '../support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'pinfold-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the test runner on files with these contents, in alphabetical order of names if all files take the same time. */
async function runTests(files: Record<string, string>) {
  const paths = Object.entries(files).map(([name, body]) => {
    const path = join(folder, `${name}.test.mjs`)
    writeFileSync(path, `${body}\n`)
    return path
  })
  const options = { command: join(project, 'bin/pinfold-node'), env: { NODE_TEST_CONTEXT: '' } }
  const { code, stdout } = await runProcess([join(project, 'scripts/test.ts'), ...paths], options)
  return { code, stdout, last: stdout.trim().split('\n').at(-1) }
}

const imports = `import { after, before, suite, test } from 'node:test'`

test('counts passed and skipped tests separately, and ends with the line that other programs read', async () => {
  const { code, stdout, last } = await runTests({
    one: `${imports}
      test('good', () => {})
      test('left out', { skip: 'no bucket' }, () => {})
      test('later', { todo: true }, () => {})
      suite('group', () => { test('inner', () => {}) })
      suite('group left out', { skip: 'no database' }, () => { test('never runs', () => {}) })`,
  })
  assert.equal(last, '2 passed, 0 failed')
  assert.match(stdout, /^1 files in 0:\d\d, 3 tests skipped$/m)
  assert.equal(code, 0)
})

test('prints file, name and reason of a failed test', async () => {
  const { code, stdout, last } = await runTests({
    bad: `${imports}
      test('outer', async (t) => { await t.test('inner', () => { throw new Error('the reason') }) })
      test('good', () => {})`,
  })
  assert.match(stdout, /^FAIL outer > inner \(.*bad\.test\.mjs on SQLite\): Error: the reason$/m)
  assert.deepEqual([code, last], [1, '1 passed, 1 failed'])
})

test('fails a file that cannot be loaded, ends its process, or fails outside of its tests', async () => {
  const { stdout, last } = await runTests({
    crash: `${imports}
      test('good', () => {})
      test('ends the process', () => process.exit(3))`,
    late: `${imports}
      test('good', () => { setTimeout(() => { throw new Error('too late') }, 1) })
      test('longer', () => new Promise((resolve) => setTimeout(resolve, 50)))`,
    load: `${imports}
      test('good', () => {})
      throw new Error('at load')`,
    next: `${imports}
      test('good', () => {})`,
  })
  assert.match(stdout, /^FAIL running the file \(.*crash\.test\.mjs on SQLite\): its process ended with exit code 3$/m)
  assert.match(stdout, /^FAIL outside of its tests \(.*late\.test\.mjs on SQLite\): .*too late/m)
  assert.match(stdout, /^FAIL loading the file \(.*load\.test\.mjs on SQLite\): Error: at load$/m)
  assert.equal(last, '5 passed, 3 failed')
})

test('closes what a file opened before the next file of the process starts', async () => {
  const same = (name: string) => `${imports}
    before(() => { globalThis.open = (globalThis.open ?? 0) + 1 })
    after(() => { globalThis.open-- })
    test('${name} is alone', () => { if (globalThis.open !== 1) throw new Error(String(globalThis.open)) })`
  const { last } = await runTests({ a: same('a'), b: same('b'), c: same('c'), d: same('d'), e: same('e') })
  assert.equal(last, '5 passed, 0 failed')
})

test('runs a file in its own process if the file asks for it', async () => {
  const body = `${imports}
    test('is the first', () => {
      const ran = globalThis.ran
      globalThis.ran = true
      if (ran) throw new Error('another file was here')
    })`
  const own = `// Own process: it counts files.\n${body}`
  const { last } = await runTests({ a: own, b: own, c: own, d: own, e: own })
  assert.equal(last, '5 passed, 0 failed')
  const shared = await runTests({ a: body, b: body, c: body, d: body, e: body })
  assert.match(shared.stdout, /another file was here/, 'other files share processes')
})

test('runs the tests of a folder, and refuses a name that is neither a file nor a folder', async () => {
  const runner = join(project, 'scripts/test.ts')
  const options = { command: join(project, 'bin/pinfold-node'), env: { NODE_TEST_CONTEXT: '' } }
  const { code, stdout } = await runProcess([runner, join(project, 'src/lib/caches')], options)
  assert.match(stdout, /^[1-9]\d* files in 0:\d\d, 0 tests skipped\n[1-9]\d* passed, 0 failed$/m)
  assert.equal(code, 0)
  const missing = await runProcess([runner, 'no-such.test.ts'], options)
  assert.deepEqual([missing.code, missing.stderr], [64, 'no-such.test.ts is no file, and no folder with tests\n'])
})
