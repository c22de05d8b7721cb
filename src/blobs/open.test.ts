import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openBlobs } from './open.ts'

const none = { env: {} }

function newFolder() {
  const path = mkdtempSync(join(tmpdir(), 'pinfold-blobs-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

test('creates the named folder, and a folder in the data folder with all its parents', async () => {
  using parent = newFolder()
  for (const setting of [join(parent.path, 'a'), pathToFileURL(join(parent.path, 'b')).href]) {
    await openBlobs(setting, '', none)
    await openBlobs(setting, '', none)
  }
  await openBlobs('', join(parent.path, 'new', 'data'), none)
  assert.deepEqual(readdirSync(parent.path).sort(), ['a', 'b', 'new'])
  assert.deepEqual(readdirSync(join(parent.path, 'a', 'uploads')), [], 'trying leaves nothing behind')
})

test('refuses a path that cannot be a folder, and names the reason', async () => {
  using parent = newFolder()
  const file = join(parent.path, 'file')
  writeFileSync(file, '')
  const missing = join(parent.path, 'not-mounted', 'blobs')
  const cases: [folder: string, reason: string][] = [
    [file, 'it is not a folder'],
    [join(file, 'below'), 'it is not a folder'],
    [missing, 'its parent folder does not exist'],
  ]
  // Root can write to it with any mode.
  if (process.getuid?.() !== 0) {
    const closed = join(parent.path, 'closed')
    for (const name of ['uploads', 'sha256', 'sha512']) mkdirSync(join(closed, name), { recursive: true })
    chmodSync(join(closed, 'uploads'), 0o500)
    cases.push([closed, 'the server has no permission to write to it'])
  }
  for (const [folder, reason] of cases) {
    await assert.rejects(openBlobs(folder, '', none), { message: `blobs cannot be stored in ${folder}: ${reason}` })
  }
  assert.ok(!existsSync(missing))
})
