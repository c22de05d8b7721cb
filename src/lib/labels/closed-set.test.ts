import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClosedSet } from './closed-set.ts'

test('maps all undeclared words to one value', () => {
  const set = new ClosedSet(['GET'])
  set.declare(['PUT', 'HEAD'])
  assert.deepEqual(
    ['GET', 'PUT', 'HEAD', 'BREW', 'get', '', '__proto__'].map((word) => set.of(word)),
    ['GET', 'PUT', 'HEAD', 'other', 'other', 'other', 'other'],
  )
})
