import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareInstalled, compareVersions } from '#versions/order.ts'
import type { RangeEvent } from '#versions/ranges.ts'
import { fixesFor, type Installed, isCleared, type Statement, type Verdict, verdictOf } from './match.ts'

const apk = (one: string, other: string) => compareVersions('apk', one, other)
const libssl: Installed = {
  name: 'libssl3',
  version: '3.1.4-r2',
  origin: 'openssl',
  originVersion: '3.1.4-r2',
  arch: 'x86_64',
}
const until = (fixed: string, more: Partial<Statement> = {}): Statement => ({
  name: 'openssl',
  ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
  versions: [],
  state: 'affected',
  qualifiers: {},
  ...more,
})

const rpm = (one: string, other: string) => compareVersions('rpm', one, other)
const node = '1:18.14.2-2.module+el8.7.0+18111+f6ed2e6a'
const fixedNode = '1:18.16.1-1.module+el8.8.0+19438+94e84959'
const nodeIn = (arch: string, version = node): Installed => ({
  ...{ name: 'nodejs', version, origin: 'nodejs', originVersion: version, arch },
})
const saidOf = (stream: string | undefined, fixed = fixedNode): Statement =>
  until(fixed, { name: 'nodejs', qualifiers: stream === undefined ? {} : { stream } })

test('a fix for another module stream does not match', () => {
  const modular = nodeIn('x86_64 nodejs:18')
  const verdict = (installed: Installed, statement: Statement) => verdictOf(installed, statement, rpm)
  assert.equal(verdict(modular, saidOf('nodejs:18')), 'vulnerable')
  assert.equal(verdict(modular, saidOf('nodejs:20')), 'clear')
  assert.equal(verdict(modular, saidOf('nodejs-devel:18 nodejs:18')), 'vulnerable')
  assert.equal(isCleared(modular, saidOf('nodejs:20', '1:16.0-1.module+el8'), rpm), false)
  assert.equal(isCleared(modular, saidOf('nodejs:18', '1:16.0-1.module+el8'), rpm), true)
  // Neither the package nor the statement names a stream.
  assert.equal(verdict(nodeIn('x86_64'), saidOf('nodejs:20')), 'unknown')
  assert.equal(verdict(modular, saidOf('')), 'unknown')
  assert.equal(verdict(modular, saidOf('', '1:16.0-1.module+el8')), 'clear')
  // Only one of the two belongs to a module.
  assert.equal(verdict(nodeIn('x86_64', '1:16.0-1.el9'), saidOf('nodejs:18')), 'clear')
  assert.equal(verdict(modular, saidOf(undefined, '1:18.16.1-1.el9')), 'clear')
  assert.equal(verdict(nodeIn('x86_64', '1:16.0-1.el9'), saidOf(undefined, '1:18.16.1-1.el9')), 'vulnerable')
  assert.equal(verdict(modular, until('', { name: 'nodejs', ranges: [], versions: [node] })), 'vulnerable')
})

test('compares an architecture separately from the module', () => {
  const statement = until(fixedNode, { name: 'nodejs', qualifiers: { stream: 'nodejs:18', arch: 'x86_64' } })
  assert.equal(verdictOf(nodeIn('x86_64 nodejs:18'), statement, rpm), 'vulnerable')
  assert.equal(verdictOf(nodeIn('aarch64 nodejs:18'), statement, rpm), 'clear')
})

const cases: readonly [
  what: string,
  installed: Partial<Installed>,
  statement: Statement,
  verdict: Verdict,
  cleared: boolean,
][] = [
  ['the origin is meant', {}, until('3.1.4-r3'), 'vulnerable', false],
  ['the fix is installed', {}, until('3.1.4-r2'), 'clear', true],
  ['the package itself is meant', {}, until('3.1.4-r3', { name: 'libssl3' }), 'vulnerable', false],
  ['another package is meant', {}, until('9-r0', { name: 'libcrypto3' }), 'clear', false],
  ['the version of the origin counts', { originVersion: '3.1.9-r0' }, until('3.1.4-r3'), 'clear', true],
  [
    'it has the name of its origin and another version',
    { name: 'openssl', version: '9-r0' },
    until('3.1.4-r3'),
    'vulnerable',
    false,
  ],
  [
    'it has the name of its origin, whose version is the fix',
    { name: 'openssl', version: '1-r0', originVersion: '3.1.4-r3' },
    until('3.1.4-r3'),
    'clear',
    true,
  ],
  [
    'its own version counts where it is named',
    { originVersion: '9-r0' },
    until('3.1.4-r3', { name: 'libssl3' }),
    'vulnerable',
    false,
  ],
  ['another architecture', {}, until('9-r0', { qualifiers: { arch: 'aarch64' } }), 'clear', false],
  ['this architecture', {}, until('9-r0', { qualifiers: { arch: 'x86_64' } }), 'vulnerable', false],
  ['nobody fixes it', {}, until('9-r0', { state: 'wont_fix' }), 'vulnerable', false],
  ['not affected', {}, until('9-r0', { state: 'not_affected' }), 'clear', true],
  ['fixed', {}, until('9-r0', { state: 'fixed' }), 'clear', true],
  ['all versions', {}, until('', { ranges: [] }), 'vulnerable', false],
  ['all versions but this one', {}, until('', { ranges: [], qualifiers: { except: ['3.1.4-r2'] } }), 'clear', false],
  ['named one by one', {}, until('', { ranges: [], versions: ['3.1.4-r1', '3.1.4-r2'] }), 'vulnerable', false],
  ['others are named one by one', {}, until('', { ranges: [], versions: ['3.1.4-r1'] }), 'clear', false],
  ['what is installed is no version', { originVersion: 'git!' }, until('9-r0'), 'unknown', false],
]

for (const [what, installed, statement, verdict, cleared] of cases) {
  test(`${what}: ${verdict}`, () => {
    assert.equal(verdictOf({ ...libssl, ...installed }, statement, apk), verdict)
    assert.equal(isCleared({ ...libssl, ...installed }, statement, apk), cleared)
  })
}

test('without a version order, no package that needs a comparison counts as unaffected', () => {
  assert.equal(verdictOf(libssl, until('1-r0'), undefined), 'unknown')
  assert.equal(verdictOf(libssl, until('', { ranges: [] }), undefined), 'vulnerable')
})

test('returns the fixed versions above the installed version', () => {
  assert.deepEqual(fixesFor(libssl, until('3.1.4-r5'), apk), ['3.1.4-r5'])
  assert.deepEqual(fixesFor(libssl, until('', { ranges: [] }), apk), [])
  assert.deepEqual(fixesFor(libssl, until('3.1.4-r2'), apk), [], 'it is installed')
  assert.deepEqual(fixesFor(libssl, until('3.1.4-r5', { name: 'libcrypto3' }), apk), [])
  assert.deepEqual(fixesFor({ ...libssl, originVersion: 'git!' }, until('3.1.4-r5'), apk), ['3.1.4-r5'])
  assert.deepEqual(fixesFor({ ...libssl, name: 'openssl', version: '9-r0' }, until('3.1.4-r5'), apk), ['3.1.4-r5'])
  assert.deepEqual(fixesFor(libssl, until('3.1.4-r5'), undefined), [])
})

const torch: Installed = {
  name: 'torch',
  version: '2.0.1+cu118',
  origin: 'torch',
  originVersion: '2.0.1+cu118',
  arch: '',
}
const pep440 = (one: string, other: string) => compareInstalled('pep440', one, other)
const about = (more: Partial<Statement>): Statement => {
  return { name: 'torch', ranges: [], versions: [], state: 'affected', qualifiers: {}, ...more }
}
const ending = (end: RangeEvent): Partial<Statement> => ({
  ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, end] }],
})
for (const [what, statement, verdict] of [
  ['last affected', ending({ lastAffected: '2.0.1' }), 'vulnerable'],
  ['last affected before', ending({ lastAffected: '2.0.0' }), 'clear'],
  ['last affected in another build', ending({ lastAffected: '2.0.1+cpu' }), 'clear'],
  ['fixed', ending({ fixed: '2.0.1' }), 'clear'],
  ['fixed in the same build', ending({ fixed: '2.0.1+cu118' }), 'clear'],
  ['fixed in a later build', ending({ fixed: '2.0.1+cu121' }), 'vulnerable'],
  ['named', { versions: ['2.0.1'] }, 'vulnerable'],
  ['named beside a range', { ...ending({ fixed: '1.0' }), versions: ['2.0.1'] }, 'vulnerable'],
  ['named as another build', { versions: ['2.0.1+cpu'] }, 'clear'],
] as const) {
  test(`a local Python version with a public version ${what}: ${verdict}`, () => {
    assert.equal(verdictOf(torch, about(statement as Partial<Statement>), pep440), verdict)
  })
}
