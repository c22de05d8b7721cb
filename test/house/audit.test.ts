// Tests of `npm run audit` without a network: its rules, and the script with a fake npm.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import {
  auditAdvisories,
  auditLock,
  checkRules,
  isAllowed,
  type Report,
  type Rules,
} from '../../scripts/audit-rules.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const rules = JSON.parse(read('scripts/audit.json')) as Rules

const advisory = (id: string, name: string, severity: string) => ({
  source: 1000,
  name,
  title: 'Reads too far',
  url: `https://advisories.example.com/${id}`,
  severity,
  range: '<2.0.0',
})

/** Two packages with advisories, and one that is affected only through one of them. */
const report: Report = {
  auditReportVersion: 2,
  vulnerabilities: {
    parser: { via: [advisory('GHSA-aaaa', 'parser', 'critical'), advisory('GHSA-bbbb', 'parser', 'moderate')] },
    reader: { via: ['parser', advisory('GHSA-cccc', 'reader', 'high')] },
    server: { via: ['reader'] },
  },
}
const about = (id: string, name: string, severity: string) => `${id}: ${severity}: ${name} <2.0.0: Reads too far`
const accepting = (id: string, until: string): Rules => ({
  ...rules,
  accepted: [{ id, reason: 'we never read', until }],
})

test('severe advisories fail an audit, others are notes', () => {
  assert.deepEqual(auditAdvisories(report, { ...rules, accepted: [] }, '2026-08-01'), {
    problems: [about('GHSA-aaaa', 'parser', 'critical'), about('GHSA-cccc', 'reader', 'high')],
    notes: [about('GHSA-bbbb', 'parser', 'moderate')],
  })
})

test('an accepted advisory is only a note until its acceptance expires', () => {
  const on = (today: string) => auditAdvisories(report, accepting('GHSA-cccc', '2026-08-01'), today)
  const one = about('GHSA-cccc', 'reader', 'high')
  assert.deepEqual(on('2026-08-01').problems, [about('GHSA-aaaa', 'parser', 'critical')])
  assert.ok(on('2026-08-01').notes.includes(`${one} (accepted: we never read)`))
  assert.ok(on('2026-08-02').problems.includes(`${one} (accepted until 2026-08-01: we never read)`))
  const none = auditAdvisories({ ...report, vulnerabilities: {} }, accepting('GHSA-cccc', '2026-08-01'), '2026-08-01')
  assert.deepEqual(none, { problems: [], notes: ['GHSA-cccc is accepted, but nothing has it any more'] })
})

test('rejects an accepted advisory without a reason or an expiry', () => {
  assert.deepEqual(checkRules(rules), [])
  assert.deepEqual(checkRules(accepting('GHSA-cccc', '2026-08-01')), [])
  const wrong = ['scripts/audit.json: GHSA-cccc needs an id, a reason and a day, until']
  assert.deepEqual(checkRules(accepting('GHSA-cccc', 'never')), wrong)
  assert.deepEqual(checkRules({ ...rules, accepted: [{ id: 'GHSA-cccc', reason: '', until: '2026-08-01' }] }), wrong)
  assert.deepEqual(checkRules({ licenses: [], accepted: [] }), ['scripts/audit.json lists no licences'])
})

test('accepts a license expression that the allowed licenses can satisfy', () => {
  const allowed = ['MIT', 'ISC', '0BSD']
  const yes = ['MIT', '(MIT)', 'GPL-3.0 OR MIT', 'MIT AND ISC', '(MIT AND ISC) OR GPL-3.0', 'MIT AND (GPL-3.0 OR ISC)']
  for (const expression of yes) assert.ok(isAllowed(expression, allowed), expression)
  const no = [
    '',
    'GPL-3.0',
    'MIT AND GPL-3.0',
    '(MIT',
    'MIT)',
    'MIT ISC',
    'MIT OR',
    'GPL-3.0 OR X AND MIT',
    'mit',
    '()',
  ]
  for (const expression of no) assert.ok(!isAllowed(expression, allowed), expression)
})

test('requires a checksum of each locked package, and an accepted license of each runtime package', () => {
  const good = { version: '1.0.0', license: 'MIT', integrity: 'sha512-x' }
  const packages = {
    '': { version: '1.0.0' },
    'node_modules/a': good,
    'node_modules/@b/b': { version: '1.0.0', license: 'GPL-3.0', integrity: 'sha512-x' },
    'node_modules/a/node_modules/c': { version: '1.0.0', license: 'MIT' },
    'node_modules/d': { version: '1.0.0', integrity: 'sha1-x' },
    'node_modules/e': { ...good, license: 'GPL-3.0', dev: true },
  }
  assert.deepEqual(auditLock({ packages }, rules), [
    '@b/b 1.0.0 has the licence GPL-3.0, which scripts/audit.json does not list',
    'c 1.0.0 has no sha512 integrity in package-lock.json',
    'd 1.0.0 has no sha512 integrity in package-lock.json',
    'd 1.0.0 has the licence unknown, which scripts/audit.json does not list',
  ])
})

test('our own package-lock.json passes', () => {
  assert.deepEqual(auditLock(JSON.parse(read('package-lock.json')), rules), [])
})

/** Runs the script with an npm that prints `answer`. Returns its result, and the arguments that npm got. */
function audit(answer: string, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-audit-'))
  try {
    writeFileSync(join(folder, 'answer'), answer)
    writeFileSync(join(folder, 'npm'), `#!/bin/sh\necho "$@" >'${folder}/asked'\ncat '${folder}/answer'\nexit 1\n`)
    chmodSync(join(folder, 'npm'), 0o755)
    const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` }
    const done = spawnSync(process.execPath, [join(root, 'scripts/audit.ts'), ...args], { env, encoding: 'utf8' })
    return { code: done.status, out: done.stdout, asked: readFileSync(join(folder, 'asked'), 'utf8').trim() }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the exit code is 1 for problems, and 2 if the registry did not answer', () => {
  const clean = audit(JSON.stringify({ auditReportVersion: 2, vulnerabilities: {} }))
  assert.deepEqual(clean, { code: 0, out: 'no problems\n', asked: 'audit --json --omit=dev' })
  const grave = audit(JSON.stringify(report), '--dev')
  assert.deepEqual([grave.code, grave.asked], [1, 'audit --json'])
  assert.match(grave.out, /^problem: GHSA-aaaa: critical: parser/m)
  const refused = audit(JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405 }))
  assert.deepEqual([refused.code, refused.out], [2, 'no advisories were read: 405 Method Not Allowed\n'])
  assert.equal(audit('').code, 2)
  assert.equal(audit('{"auditReportVersion":3}').code, 2)
})

test('the example workflow for a schedule runs the audit script', () => {
  const workflow = parse(read('examples/audit/github-actions.yaml'))
  assert.match(workflow.on.schedule[0].cron, /^\S+ \S+ \* \* \*$/)
  assert.ok(workflow.jobs.audit.steps.some(({ run }: { run?: string }) => run === 'npm run audit'))
  assert.ok(JSON.parse(read('package.json')).scripts.audit)
})
