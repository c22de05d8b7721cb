// Commands whose output cannot be written.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { cleanEnv, program } from '../support/process.ts'

const full = '/dev/full'

for (const args of [['server', 'config'], ['--help'], ['complete', 'bash'], ['--version']]) {
  test(`${args.join(' ')} with output to a full disk exits with 1 and one line`, { skip: !existsSync(full) }, () => {
    const file = openSync(full, 'w')
    try {
      const { status, stderr } = spawnSync(program, args, {
        env: cleanEnv(),
        stdio: ['ignore', file, 'pipe'],
        encoding: 'utf8',
      })
      assert.equal(status, 1)
      assert.match(stderr, /^pinfold: standard output cannot be written: [^\n]*no space left on device[^\n]*\n$/i)
    } finally {
      closeSync(file)
    }
  })
}

test('the exit code stays the same if an error message cannot be written', { skip: !existsSync(full) }, () => {
  const file = openSync(full, 'w')
  try {
    const { status, stdout } = spawnSync(program, ['nosuch'], {
      env: cleanEnv(),
      stdio: ['ignore', 'pipe', file],
      encoding: 'utf8',
    })
    assert.deepEqual([status, stdout], [64, ''])
  } finally {
    closeSync(file)
  }
})

test('a reader that stops reading causes no error', () => {
  const { status, stderr } = spawnSync('sh', ['-c', `{ "${program}" server config; echo "code $?" >&2; } | head -1`], {
    env: cleanEnv(),
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, 'code 0\n'])
})
