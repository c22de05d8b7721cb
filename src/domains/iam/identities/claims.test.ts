import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchClaims, trustsIssuer } from './claims.ts'

const failing = (match: Parameters<typeof matchClaims>[0], claims: Record<string, unknown>) =>
  matchClaims(match, claims, ['https://ours.example.com'])
    .filter(({ matches }) => !matches)
    .map(({ claim }) => claim)

const match = { issuer: 'https://a.example', subject: 's' }
const claims = { iss: 'https://a.example', sub: 's', aud: 'https://ours.example.com' }

test('each claim that the identity names is told by itself', () => {
  assert.deepEqual(failing(match, claims), [])
  assert.deepEqual(failing(match, { ...claims, iss: 'https://a.example/' }), ['iss'])
  assert.deepEqual(failing({ ...match, claims: { a: '1' }, claimPatterns: { b: '2' } }, {}), [
    'iss',
    'sub',
    'aud',
    'a',
    'b',
  ])
  const [first] = matchClaims(match, claims, [])
  assert.deepEqual(first, { claim: 'iss', wanted: 'https://a.example', got: 'https://a.example', matches: true })
})

test('a match that names nothing lets nobody in', () => {
  assert.deepEqual(failing({}, { ...claims, iss: '', sub: '' }), ['iss', 'sub'])
  assert.deepEqual(failing({ issuerPattern: '(', subjectPattern: '[' }, claims), ['iss', 'sub'])
  assert.equal(trustsIssuer({}, ''), false)
})

test('an issuer is trusted by its exact name or by a pattern for all of it', () => {
  assert.equal(trustsIssuer(match, 'https://a.example'), true)
  assert.equal(trustsIssuer(match, 'https://a.example.evil'), false)
  assert.equal(trustsIssuer({ issuerPattern: 'https://[a-z]\\.example' }, 'https://b.example'), true)
  assert.equal(trustsIssuer({ issuerPattern: 'https://[a-z]\\.example' }, 'https://b.example.evil'), false)
  // The old spelling of one large issuer is read as its name, in tokens as well as in identities.
  assert.equal(trustsIssuer({ issuer: 'accounts.google.com' }, 'https://accounts.google.com'), true)
  assert.equal(trustsIssuer({ issuer: 'https://accounts.google.com' }, 'https://accounts.google.com'), true)
})

// With one for each value this would not come to an end.
test('a list of many values costs one compilation of its pattern', () => {
  const many = Array.from({ length: 300_000 }, (_, i) => `v${i}`)
  assert.deepEqual(failing({ ...match, claimPatterns: { many: 'x.{0,1000}' } }, { ...claims, many }), ['many'])
})
