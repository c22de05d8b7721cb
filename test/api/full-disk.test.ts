// A server with a full disk: readiness fails, and succeeds again once there is free space.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { isDiskFull } from '#lib/files/room.ts'
import { startPinfold } from '../support/pinfold.ts'

/** A file system of 16 MiB. Creating it requires root. */
const folder = mkdtempSync(join(tmpdir(), 'pinfold-small-'))
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', folder]).status === 0
after(() => {
  if (isMounted) spawnSync('umount', ['-l', folder])
  rmSync(folder, { recursive: true, force: true })
})
const skip = isMounted ? false : 'no file system can be mounted here'

function fill(file: string): void {
  try {
    for (let i = 0; ; i++) writeFileSync(file, Buffer.alloc(64 * 1024, i), { flag: 'a' })
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
}

test('a disk counts as full if a small file does not fit, and the check leaves no file behind', { skip }, async () => {
  assert.equal(await isDiskFull(folder), false)
  const filler = join(folder, 'filler')
  fill(filler)
  assert.equal(await isDiskFull(folder), true)
  rmSync(filler)
  assert.equal(await isDiskFull(folder), false)
  assert.equal(await isDiskFull(tmpdir()), false)
})

test('/readyz fails and names the blob folder if its disk is full, and /healthz succeeds', { skip }, async () => {
  const blobs = join(folder, 'blobs')
  mkdirSync(blobs)
  let shift = 0
  await using pinfold = await startPinfold({ blobs, clock: () => new Date(Date.now() + shift) })
  const ask = async (path: string) => {
    shift += 2000
    const answer = await fetch(`${pinfold.url}${path}`)
    return [answer.status, (await answer.text()).trim()]
  }
  assert.deepEqual(await ask('/readyz'), [200, 'ok'])
  const filler = join(folder, 'filler')
  fill(filler)
  assert.deepEqual(await ask('/readyz'), [503, 'the disk of the blob folder is full'])
  assert.deepEqual(await ask('/healthz'), [200, 'ok'])
  rmSync(filler)
  assert.deepEqual(await ask('/readyz'), [200, 'ok'])
})

test('/readyz fails if the disk of an embedded database is full', { skip }, async (t) => {
  const data = join(folder, 'data')
  mkdirSync(data)
  let shift = 0
  await using pinfold = await startPinfold({ data, blobs: '', clock: () => new Date(Date.now() + shift) })
  if (pinfold.app.db.shared) return t.skip('the database is elsewhere')
  const filler = join(folder, 'filler')
  fill(filler)
  const answer = await fetch(`${pinfold.url}/readyz`)
  assert.deepEqual([answer.status, (await answer.text()).trim()], [503, 'the disk of the data folder is full'])
  rmSync(filler)
  shift += 2000
  assert.equal((await fetch(`${pinfold.url}/readyz`)).status, 200)
})
