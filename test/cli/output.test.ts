// Commands whose output cannot be written.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { cleanEnv, program } from '../support/process.ts'

const full = '/dev/full'

for (const args of [['server', 'config'], ['--help'], ['complete', 'bash'], ['--version']]) {
  test(`${args.join(' ')} into a full disk ends with 1 and one line`, { skip: !existsSync(full) }, () => {
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

test('an error message that cannot be written changes no exit code', { skip: !existsSync(full) }, () => {
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

test('a reader that stops reading is no error', () => {
  const { status, stderr } = spawnSync('sh', ['-c', `{ "${program}" server config; echo "code $?" >&2; } | head -1`], {
    env: cleanEnv(),
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, 'code 0\n'])
})
