import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProgress } from '../../scripts/test/progress.ts'

const unit = (file: string, expectedMs: number) => ({
  file,
  engine: 'SQLite',
  database: '',
  isAlone: false,
  expectedMs,
})
const units = [unit('a.test.ts', 3000), unit('b.test.ts', 1000)]

test('shows files, tests and remaining time in one line that fits the terminal', (t) => {
  t.mock.timers.enable({ apis: ['Date'] })
  const shown: string[] = []
  const progress = createProgress(units, (text) => shown.push(text), 120)
  progress.passed()
  progress.skipped()
  t.mock.timers.setTime(90_000)
  progress.fileDone(units[0]!)
  const line = '1 of 2 files, 1 tests passed, 0 failed, 1 skipped, 1:30 elapsed, about 0:30 left'
  assert.deepEqual(shown, [`\r\x1b[K${line}`])
  const narrow = createProgress(units, (text) => shown.push(text), 20)
  narrow.show()
  assert.equal(shown.at(-1), '\r\x1b[K0 of 2 files, 0 tes')
})

test('prints a line each 20 s without a terminal, and a failure at once', (t) => {
  t.mock.timers.enable({ apis: ['Date'] })
  const shown: string[] = []
  const progress = createProgress(units, (text) => shown.push(text), undefined)
  progress.show()
  t.mock.timers.setTime(19_999)
  progress.show()
  assert.deepEqual(shown, [])
  progress.failed(units[0]!, 'adds', 'Error: 3')
  assert.deepEqual(shown, ['FAIL adds (a.test.ts on SQLite): Error: 3\n'])
  t.mock.timers.setTime(20_000)
  progress.show()
  assert.equal(shown.at(-1), '0 of 2 files, 0 tests passed, 1 failed, 0 skipped, 0:20 elapsed\n')
  progress.end()
  assert.ok(shown.join('').endsWith('\n2 files in 0:20, 0 tests skipped\n0 passed, 1 failed\n'))
})
