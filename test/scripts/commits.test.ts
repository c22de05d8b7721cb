import assert from 'node:assert/strict'
import { test } from 'node:test'
import { problemsOf } from '../../scripts/commits/subjects.ts'

test('accepts subjects with a component and an imperative', () => {
  for (const subject of [
    'registry: cache resolved tags per age',
    'cli, docs: rename the command for organizations',
    'test/oci: pass the clock of the server',
    'db: embed the schema',
    `lists: ${'x'.repeat(65)}`,
  ]) {
    assert.deepEqual(problemsOf(subject), [], subject)
  }
})

test('names each problem of a subject', () => {
  const rejected: Record<string, RegExp[]> = {
    [`lists: ${'x'.repeat(66)}`]: [/^has 73 characters; at most 72/],
    'Cache resolved tags': [/^must begin with the component/],
    'Registry: cache tags': [/^must begin with the component/],
    'registry: cached tags': [/not "cached"/],
    'registry: caching tags': [/not "caching"/],
    'registry: caches tags': [/not "caches"/],
    'registry: Cache tags': [/not "Cache"/],
    'registry: cache tags.': [/^must not end with a period/],
    [`Caches tags ${'x'.repeat(61)}.`]: [/^has 74 characters/, /^must begin/, /^must not end/],
  }
  for (const [subject, wanted] of Object.entries(rejected)) {
    const problems = problemsOf(subject)
    assert.equal(problems.length, wanted.length, subject)
    for (const [i, one] of wanted.entries()) assert.match(problems[i]!, one)
  }
})
