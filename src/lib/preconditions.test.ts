import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from './errors.ts'
import { holds, readPrecondition } from './preconditions.ts'

const read = (ifMatch?: string, ifNoneMatch?: string) => readPrecondition(ifMatch, ifNoneMatch)

test('returns no precondition for a request without one', () => {
  assert.equal(read(), undefined)
})

test('reads lists of entity tags, and weak ones count only for If-None-Match', () => {
  assert.deepEqual(read('"a" , "b"'), { match: ['a', 'b'], noneMatch: undefined })
  assert.deepEqual(read('*', '*'), { match: '*', noneMatch: '*' })
  assert.deepEqual(read('W/"a", "b"', 'W/"a", "b"'), { match: ['b'], noneMatch: ['a', 'b'] })
})

test('refuses a header that is not a list of entity tags, and names the header', () => {
  const many = Array<string>(51).fill('"a"').join(',')
  for (const bad of ['', 'a', '"a', '"a" "b"', '"a",', 'sha256:00', '*, "a"', many]) {
    const names = (field: string) => (error: unknown) =>
      error instanceof AppError && error.code === 'INVALID_ARGUMENT' && error.message.includes(`${field}:`)
    assert.throws(() => read(bad), names('If-Match'), bad)
    assert.throws(() => read(undefined, bad), names('If-None-Match'), bad)
  }
})

test('evaluates each part of a precondition against the current state', () => {
  const cases: [string | undefined, string | undefined, string[], boolean][] = [
    ['"a"', undefined, ['a'], true],
    ['"a"', undefined, ['b'], false],
    ['"a"', undefined, [], false],
    ['"a", "b"', undefined, ['b', 'c'], true],
    ['*', undefined, ['a'], true],
    ['*', undefined, [], false],
    [undefined, '*', [], true],
    [undefined, '*', ['a'], false],
    [undefined, '"a"', ['a'], false],
    [undefined, '"a"', ['b'], true],
    ['"a"', '*', ['a'], false],
  ]
  for (const [ifMatch, ifNoneMatch, present, expected] of cases) {
    assert.equal(holds(read(ifMatch, ifNoneMatch)!, present), expected, `${ifMatch} ${ifNoneMatch} ${present}`)
  }
})
