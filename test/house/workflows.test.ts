// Check that the workflows of the forge run the same steps as .ci/run: each part belongs to exactly one job.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('all jobs together run every part of .ci/run exactly once', () => {
  const [, known] = /^parts=" \$\{\*:-([a-z0-9 ]+)\} "$/m.exec(read('.ci/run'))!
  const { jobs } = parse(read('.github/workflows/checks.yaml'))
  const named = (jobs.parts.strategy.matrix.parts as string[]).flatMap((parts) => parts.split(' '))
  assert.deepEqual(named.sort(), known!.split(' ').sort())
})

test('.ci/run refuses an unknown part before it runs anything', () => {
  const { status, stdout, stderr } = spawnSync(join(root, '.ci/run'), ['sqlite', 'nothing'], { encoding: 'utf8' })
  assert.deepEqual([status, stdout, stderr], [64, '', 'unknown part: nothing\n'])
})

test('every workflow file is valid YAML', () => {
  const files = globSync('.github/**/*.{yaml,yml}', { cwd: root })
  assert.ok(files.length >= 5)
  for (const file of files) assert.equal(typeof parse(read(file)), 'object', file)
})
