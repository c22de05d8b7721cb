// `npm run check`: types, lint and format, prose, house rules. Runs all checks, then fails if one of them failed. With `--no-tests`,
// leaves out the house rules, which are tests.
import { run } from './run.ts'

const results = [
  run('tsc', ['--noEmit', '-p', '.']),
  run('tsc', ['--noEmit', '-p', 'console']),
  run('biome', ['check', '--error-on-warnings', '.']),
  run(process.execPath, ['scripts/prose.ts']),
  ...(process.argv.includes('--no-tests')
    ? []
    : [run(process.execPath, ['--test', '--test-reporter=dot', 'test/house/*.test.ts'])]),
]
process.exit(results.every((code) => code === 0) ? 0 : 1)
