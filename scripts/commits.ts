// `bin/pinfold-node scripts/commits.ts [RANGE]`: checks commit subjects. Default: the last 30 commits.
import { spawnSync } from 'node:child_process'
import { problemsOf } from './commits/subjects.ts'
import { root } from './run.ts'

const [range] = process.argv.slice(2)
const which = range === undefined ? ['-n', '30'] : [range]
// Git refuses a checkout that belongs to another user, as on a build machine, unless it is named as safe.
const log = ['-c', 'safe.directory=*', 'log', '--no-merges', '--format=%h %s', ...which]
const { status, stdout, stderr } = spawnSync('git', log, { cwd: root, encoding: 'utf8' })
if (status !== 0) {
  console.error(stderr)
  process.exit(2)
}
const lines = stdout.split('\n').filter((line) => line !== '')
const faults = lines.flatMap((line) => {
  const [hash, subject] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]
  return problemsOf(subject).map((problem) => `${hash} ${subject}\n    ${problem}`)
})
for (const fault of faults) console.error(fault)
console.log(`${lines.length} commits, ${faults.length} problems`)
process.exit(faults.length === 0 ? 0 : 1)
