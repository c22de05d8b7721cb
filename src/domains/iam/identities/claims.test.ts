import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RE2JS } from 're2js'
import { costOf, patterns } from '#lib/patterns/patterns.ts'
import { generatePatterns } from '../../../../test/support/generated-patterns.ts'
import { matchClaims, trustsIssuer } from './claims.ts'

const failing = (match: Parameters<typeof matchClaims>[0], claims: Record<string, unknown>) =>
  matchClaims(match, claims, ['https://ours.example.com'])
    .filter(({ matches }) => !matches)
    .map(({ claim }) => claim)

const match = { issuer: 'https://a.example', subject: 's' }
const claims = { iss: 'https://a.example', sub: 's', aud: 'https://ours.example.com' }

test('reports each claim rule of the identity separately', () => {
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

test('a claim match without conditions matches no token', () => {
  assert.deepEqual(failing({}, { ...claims, iss: '', sub: '' }), ['iss', 'sub'])
  assert.deepEqual(failing({ issuerPattern: '(', subjectPattern: '[' }, claims), ['iss', 'sub'])
  assert.equal(trustsIssuer({}, ''), false)
})

test('an issuer is trusted by its exact URL, or by a pattern for the whole URL', () => {
  assert.equal(trustsIssuer(match, 'https://a.example'), true)
  assert.equal(trustsIssuer(match, 'https://a.example.evil'), false)
  assert.equal(trustsIssuer({ issuerPattern: 'https://[a-z]\\.example' }, 'https://b.example'), true)
  assert.equal(trustsIssuer({ issuerPattern: 'https://[a-z]\\.example' }, 'https://b.example.evil'), false)
  // The old spelling of one large issuer means its URL, in tokens and in identities.
  assert.equal(trustsIssuer({ issuer: 'accounts.google.com' }, 'https://accounts.google.com'), true)
  assert.equal(trustsIssuer({ issuer: 'https://accounts.google.com' }, 'https://accounts.google.com'), true)
})

test('a value that is too long for its pattern does not match, and the check names this reason', () => {
  const wanted = { issuer: 'https://a.example', subjectPattern: 'repo:.{0,100}(?:x|y)*' }
  const short = `repo:${'x'.repeat(300)}`
  const long = `repo:${'x'.repeat(400)}`
  assert.deepEqual(failing(wanted, { ...claims, sub: short }), [])
  assert.deepEqual(failing(wanted, { ...claims, sub: long }), ['sub'])
  const [, subject] = matchClaims(wanted, { ...claims, sub: long }, [])
  assert.match(subject!.wanted, /too long for this pattern/)
  // An exact value has no match limit.
  assert.deepEqual(failing({ issuer: 'https://a.example', subject: long }, { ...claims, sub: long }), [])
})

test('the unverified issuer of a token has a lower match limit than other claims', () => {
  const issuerPattern = 'https://[a-z.]{1,60}/.*'
  const issuer = (length: number) => `https://a.example/${'x'.repeat(length)}`
  assert.equal(trustsIssuer({ issuerPattern }, issuer(50)), true)
  assert.equal(trustsIssuer({ issuerPattern }, issuer(500)), false)
})

test('all patterns of an identity share one match limit, and so do all values of a list', () => {
  const names = Array.from({ length: 10 }, (_, i) => `c${i}`)
  const patterns = Object.fromEntries(names.map((name) => [name, 'x{0,100}y*']))
  const of = (length: number) => Object.fromEntries(names.map((name) => [name, `x${'y'.repeat(length)}`]))
  assert.deepEqual(failing({ ...match, claimPatterns: patterns }, { ...claims, ...of(30) }), [])
  const failed = failing({ ...match, claimPatterns: patterns }, { ...claims, ...of(150) })
  assert.ok(failed.length > 0 && failed.length < names.length, failed.join())
  const list = (count: number) => Array.from({ length: count }, () => 'no').concat('x')
  assert.deepEqual(failing({ ...match, claimPatterns: { a: 'x{0,100}' } }, { ...claims, a: list(20) }), [])
  assert.deepEqual(failing({ ...match, claimPatterns: { a: 'x{0,100}' } }, { ...claims, a: list(1000) }), ['a'])
})

test('case-insensitive patterns can match claims of usual length', () => {
  const names = ['a', 'b', 'c']
  const of = (text: string) => Object.fromEntries(names.map((name) => [name, text]))
  const claimPatterns = of(`(?i)${'x'.repeat(78)}.*`)
  assert.deepEqual(failing({ ...match, claimPatterns }, { ...claims, ...of('X'.repeat(95)) }), [])
})

test('limits the characters matched by a program to 80,000 instructions, or 20,000 for the issuer', () => {
  const alternatives = [
    'repo:acme/web:main|repo:acme/web:dev|repo:acme/web:v.*',
    '(?i)repo:acme/web:main|repo:acme/web:dev',
    `${'a|'.repeat(100)}b`,
  ]
  let compared = 0
  for (const pattern of [...alternatives, ...generatePatterns(5, 700)]) {
    const cost = costOf(pattern)
    // Other patterns exceed the compile limits.
    if (!cost || cost.compile > 4000) continue
    const size = sizeOf(pattern)
    if (size === undefined) continue
    const tooLong: string[] = []
    // No token is longer than this.
    const text = (most: number) => 'a'.repeat(Math.min(Math.max(0, Math.floor(most / size) - 1), 12_000))
    trustsIssuer({ issuerPattern: pattern }, text(20_000), (claim) => tooLong.push(claim))
    const subject = { issuer: match.issuer, subjectPattern: pattern }
    matchClaims(subject, { ...claims, sub: text(80_000) }, [], (claim) => tooLong.push(claim))
    assert.deepEqual(tooLong, [], `${pattern} of ${size} instructions`)
    compared++
  }
  assert.ok(compared > 300, `${compared} compared`)
})

/** Size of the program for the pattern alone. */
function sizeOf(pattern: string): number | undefined {
  try {
    return RE2JS.compile(pattern).programSize()
  } catch {
    return undefined
  }
}

test('compiles no pattern far above the limits, and reports a stored pattern above them', () => {
  const { compiled } = patterns.counts()
  const hostile = { issuer: 'https://a.example', subjectPattern: '(?:[a-z]{1,100}){1,100}', claimPatterns: { a: 'x' } }
  assert.deepEqual(failing(hostile, { ...claims, a: 'x' }), ['sub', 'a'])
  assert.equal(patterns.counts().compiled, compiled, 'nothing after what was too much')
  const [, subject] = matchClaims({ issuer: 'https://a.example', subjectPattern: 's.{0,600}' }, claims, [])
  assert.equal(subject!.matches, true)
  assert.match(subject!.wanted, /above the limits of patterns\)$/)
})

test('compiles an identity pattern once for all checks', () => {
  const wanted = { issuer: 'https://a.example', subjectPattern: 's|compiled-once' }
  const { compiled } = patterns.counts()
  for (let i = 0; i < 20; i++) assert.deepEqual(failing(wanted, claims), [])
  assert.equal(patterns.counts().compiled, compiled + 1)
})

test('an identity stored before the limits existed still matches short claims', () => {
  const wanted = { issuer: 'https://a.example', subjectPattern: 's.{0,1000}' }
  assert.deepEqual(failing(wanted, claims), [])
})

// If each value compiled the pattern again, this test would not finish.
test('compiles a pattern once for a list of many values', () => {
  const many = Array.from({ length: 300_000 }, (_, i) => `v${i}`)
  assert.deepEqual(failing({ ...match, claimPatterns: { many: 'x.{0,1000}' } }, { ...claims, many }), ['many'])
})
