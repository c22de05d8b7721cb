import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder } from './folders.ts'

test('syncs the names of a folder and its new parents to disk, even if another process created it', (t) => {
  const top = fs.mkdtempSync(join(tmpdir(), 'pinfold-folders-'))
  const synced: string[] = []
  const fsync = t.mock.method(fs, 'fsyncSync', (fd: number) => synced.push(fs.readlinkSync(`/proc/self/fd/${fd}`)))
  syncBuiltinESMExports()
  try {
    makeFolder(join(top, 'one/two/three'))
    assert.deepEqual(synced, [join(top, 'one/two'), join(top, 'one'), top])
    synced.length = 0
    makeFolder(join(top, 'one/two/three'))
    assert.deepEqual(synced, [join(top, 'one/two')])
    assert.equal(fs.statSync(join(top, 'one/two/three')).mode & 0o777, 0o700)
  } finally {
    fsync.mock.restore()
    syncBuiltinESMExports()
    fs.rmSync(top, { recursive: true })
  }
})
