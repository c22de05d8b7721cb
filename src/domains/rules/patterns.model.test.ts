import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aboutTags, cacheMatches } from './patterns.model.ts'

test('a star matches any characters, and excluded tags do not match', () => {
  const rows: [tags: string[], exceptTags: string[], tag: string, expected: boolean][] = [
    [[], [], 'latest', true],
    [['latest'], [], 'latest', true],
    [['latest'], [], 'latest1', false],
    [['v*'], [], 'v', true],
    [['v*'], [], 'v1.2', true],
    [['v*'], [], 'av1', false],
    [['*-rc'], [], '-rc', true],
    [['ab*ba'], [], 'aba', false],
    [['ab*ba'], [], 'abba', true],
    [['v*.*.*'], [], 'v1.2', false],
    [['v*.*.*'], [], 'v1.2.3', true],
    [['**'], [], '', true],
    [['a*b*c'], [], 'a-c-b', false],
    [['v*'], ['v1*'], 'v1.2', false],
    [['v*'], ['v1*'], 'v2', true],
    [[], ['*'], 'v2', false],
    [['x', 'v*'], ['v2'], 'x', true],
  ]
  for (const [tags, exceptTags, tag, expected] of rows) {
    assert.equal(aboutTags({ tags, exceptTags })(tag), expected, JSON.stringify([tags, exceptTags, tag]))
  }
})

test('evaluates the patterns once per tag', () => {
  const asked: string[] = []
  const isAbout = cacheMatches((tag) => asked.push(tag) > 1)
  assert.deepEqual(['a', 'b', 'a', 'b'].map(isAbout), [false, true, false, true])
  assert.deepEqual(asked, ['a', 'b'])
})
