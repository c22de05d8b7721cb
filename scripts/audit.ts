// `npm run audit [-- --dev]`: looks for dependencies with severe advisories, with licenses that are not accepted, and without a
// checksum. Run it on a schedule, since advisories appear without a change here. It asks the package registry, about runtime
// dependencies only unless --dev is given. It ends with 0, with 1 for problems, or with 2 if the registry did not answer.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { auditAdvisories, auditLock, checkRules, type Lock, type Report, type Rules } from './audit-rules.ts'
import { root } from './run.ts'

const { values } = parseArgs({ options: { dev: { type: 'boolean', default: false } } })
const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'))
const rules = read('scripts/audit.json') as Rules

/** Returns the answer of `npm audit`, or the reason why there is none. */
function ask(): Report | string {
  const args = ['audit', '--json', ...(values.dev ? [] : ['--omit=dev'])]
  const { error, stdout, stderr } = spawnSync('npm', args, {
    cwd: root,
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 64 << 20,
  })
  if (error) return error.message
  try {
    const answer = JSON.parse(stdout) as Partial<Report> & { message?: string }
    return answer.auditReportVersion === 2 ? (answer as Report) : (answer.message ?? 'an unknown form of report')
  } catch {
    return stderr.trim().slice(0, 1000) || 'no report'
  }
}

const problems = [...checkRules(rules), ...auditLock(read('package-lock.json') as Lock, rules)]
const report = ask()
if (typeof report !== 'string') {
  const found = auditAdvisories(report, rules, new Date().toISOString().slice(0, 10))
  problems.push(...found.problems)
  for (const note of found.notes) console.log(`note: ${note}`)
}
for (const problem of problems) console.log(`problem: ${problem}`)
if (typeof report === 'string') console.log(`no advisories were read: ${report}`)
else if (problems.length === 0) console.log('no problems')
process.exitCode = problems.length > 0 ? 1 : typeof report === 'string' ? 2 : 0
