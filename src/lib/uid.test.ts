import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAtOrBelow, isUid, lineage, newUid, parentOf, rootOf, top } from './uid.ts'

const root = 'a'.repeat(40)
const child = `${root}/${'b'.repeat(16)}`
const grandchild = `${child}/${'c'.repeat(16)}`

test('a uid has 40 hex digits, and 16 more for each level', () => {
  for (const uid of [root, child, grandchild, newUid(top), newUid(newUid(top))]) assert.ok(isUid(uid), uid)
  const wrong = ['', '/', `${root}/`, root.toUpperCase(), `${root}/b`, `${child} `, ` ${root}`, `${root}\n`]
  for (const text of [...wrong, `${root}${'/0123456789abcdef'.repeat(20_000)}`])
    assert.ok(!isUid(text), text.slice(0, 60))
})

test('returns parent, root and ancestors of a uid', () => {
  assert.deepEqual([parentOf(grandchild), parentOf(root)], [child, top])
  assert.deepEqual([rootOf(grandchild), rootOf(root)], [root, root])
  assert.deepEqual(lineage(grandchild), [grandchild, child, root])
})

test('a uid that begins like another one is not below it', () => {
  assert.ok(isAtOrBelow(grandchild, root) && isAtOrBelow(root, root) && isAtOrBelow(root, top))
  assert.ok(!isAtOrBelow(root, child) && !isAtOrBelow(`${root}0`, root))
})
