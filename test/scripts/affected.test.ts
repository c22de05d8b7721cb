import assert from 'node:assert/strict'
import { test } from 'node:test'
import { affectedTests } from '../../scripts/test/affected.ts'

const tests = ['src/versions/maven.test.ts', 'src/versions/pep440.test.ts', 'test/api/bodies.test.ts']

test('selects the tests that import a changed file, directly or through others, nearest first', () => {
  assert.deepEqual(affectedTests(tests, ['src/versions/pep440.ts']), [
    'src/versions/pep440.test.ts',
    'test/api/bodies.test.ts',
  ])
  assert.deepEqual(affectedTests(tests, ['test/support/pinfold.ts']), ['test/api/bodies.test.ts'])
})

test('selects a changed test file itself, and no test for an unused file', () => {
  assert.deepEqual(affectedTests(tests, ['src/versions/maven.test.ts']), ['src/versions/maven.test.ts'])
  assert.deepEqual(affectedTests(tests, ['docs/no-such-page.md', 'src/gone.ts']), [])
})

test('selects each test after a change of dependencies or of the runner', () => {
  for (const file of ['package-lock.json', 'bin/pinfold-node', 'scripts/test.ts', 'scripts/test/pool.ts']) {
    assert.deepEqual(affectedTests(tests, [file]), tests)
  }
})
