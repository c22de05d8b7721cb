import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchesType } from './type-patterns.ts'

test('a pattern matches the whole event type, and a star matches any text', () => {
  const type = 'dev.pinfold.api.iam.group.created.v1'
  const matching = [
    type,
    '*',
    'dev.pinfold.api.iam.*',
    '*.created.v1',
    'dev.*.group.*.v1',
    '*iam*group*',
    `${type}*`,
    `*${type}`,
    '**',
  ]
  for (const pattern of matching) assert.ok(matchesType([pattern], type), pattern)
  const others = [
    '',
    'dev.pinfold.api.iam',
    'iam.*',
    '*.created',
    'dev.*.deleted.*',
    '*group*iam*',
    `${type}.`,
    `${type}*v1`,
  ]
  for (const pattern of others) assert.ok(!matchesType([pattern], type), pattern)
  assert.ok(!matchesType(['aba*aba'], 'aba'), 'the pieces do not overlap')
})

test('one matching pattern of several is enough, and no patterns match each type', () => {
  assert.ok(matchesType([], 'a'))
  assert.ok(matchesType(['b', 'a*'], 'a'))
  assert.ok(!matchesType(['b', 'c'], 'a'))
})
