import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findClaim, parseClaims } from './claims.ts'

test('integers above 2^53 keep their digits', () => {
  const text = '{"id":9007199254740993,"list":[-90071992547409931,1],"small":9007199254740991,"half":1.5,"far":1e20}'
  assert.deepEqual(parseClaims(text), {
    id: 9007199254740993n,
    list: [-90071992547409931n, 1],
    small: 9007199254740991,
    half: 1.5,
    far: 1e20,
  })
  assert.throws(() => parseClaims('{"a":1,"a":2}'), SyntaxError)
  assert.throws(() => parseClaims(`${'['.repeat(5000)}${']'.repeat(5000)}`))
})

test('a name with dots selects a claim inside objects', () => {
  const claims = {
    'kubernetes.io': { namespace: 'ci', pod: { name: 'p' } },
    realm_access: { roles: ['a'] },
    list: [{ a: 1 }],
  }
  assert.equal(findClaim(claims, 'kubernetes.io.namespace'), 'ci')
  assert.equal(findClaim(claims, 'kubernetes.io.pod.name'), 'p')
  assert.deepEqual(findClaim(claims, 'realm_access.roles'), ['a'])
  for (const none of [
    'kubernetes.io.pod.uid',
    'kubernetes.io.',
    'kubernetes',
    'list.0.a',
    'toString',
    '__proto__.x',
    '',
  ]) {
    assert.equal(findClaim(claims, none), undefined, none)
  }
})

test('a claim with the whole name has priority, and an ambiguous name selects no claim', () => {
  assert.equal(findClaim({ 'a.b': 1, a: { b: 2 } }, 'a.b'), 1)
  assert.equal(findClaim({ 'a.b': { c: 1 }, a: { 'b.c': 2 } }, 'a.b.c'), undefined)
})
