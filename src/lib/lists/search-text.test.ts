import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldText, maxPart, partsOf, rankOf, standings } from './search-text.ts'

test('ranks an equal name before a prefix, a prefix before a word, and a word before any other part', () => {
  assert.equal(rankOf(['api'], 'api'), 'exact')
  assert.equal(rankOf(['api-server'], 'api'), 'prefix')
  assert.equal(rankOf(['billing-api'], 'api'), 'word')
  assert.equal(rankOf(['rapid'], 'api'), 'part')
  assert.equal(rankOf(['billing'], 'api'), undefined)
})

test('uses the best match in all names, and in all positions of one name', () => {
  assert.equal(rankOf(['Ada Lovelace', 'ada@acme.example'], 'acme'), 'word')
  assert.equal(rankOf(['rapid-api'], 'api'), 'word')
  assert.equal(rankOf(['x', 'api'], 'api'), 'exact')
})

test('ignores case and the composition of characters', () => {
  assert.equal(foldText('Zoe\u0301 ÅNGSTRÖM'), 'zoé ångström')
  assert.equal(rankOf(['ZOÉ'], foldText('zoe\u0301')), 'exact')
})

test('has a part of the name for each character, with its position', () => {
  assert.deepEqual(partsOf('a-b1'), [
    { standing: standings.start, part: 'a-b1' },
    { standing: standings.inside, part: '-b1' },
    { standing: standings.word, part: 'b1' },
    { standing: standings.inside, part: '1' },
  ])
})

test('does not split an emoji, and replaces half of one', () => {
  assert.deepEqual(
    partsOf('🚀x').map(({ part }) => part),
    ['🚀x', 'x'],
  )
  assert.equal(foldText('\ud83d'), '\ufffd')
})

test('limits the parts of a long name in number and length', () => {
  const parts = partsOf(`${'ab'.repeat(200)}`)
  assert.ok(parts.every(({ part }) => part.length <= maxPart))
  assert.ok(parts.length <= 128)
})
