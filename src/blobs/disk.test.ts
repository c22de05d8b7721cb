import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Part, StoreFull } from './blobs.ts'
import { openDisk } from './disk.ts'

const chunk = Buffer.alloc(1 << 20, 7)
/** Number of bytes that are synced to disk before the content ends. */
const enough = 32

/** Disk whose syncs wait for `datasync`. Final syncs are counted separately. */
async function newDisk(t: TestContext, datasync: () => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-disk-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const blobs = await openDisk(folder)
  const probe = await open(join(folder, 'probe'), 'w')
  await probe.close()
  const files = Object.getPrototypeOf(probe) as FileHandle
  const early = t.mock.method(files, 'datasync', datasync)
  const last = t.mock.method(files, 'sync', async () => {})
  return { folder, blobs, early: () => early.mock.callCount(), last: () => last.mock.callCount() }
}

async function write(part: Part, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await part.write([chunk])
}

test('syncs large content to disk while it is written, one file at a time', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { folder, blobs, early, last } = await newDisk(t, () => promise)
  const [first, second] = [await blobs.begin(0, ''), await blobs.begin(0, '')]
  await write(first, enough - 1)
  assert.equal(early(), 0)
  await write(first, 1)
  assert.equal(early(), 1)
  await write(first, enough)
  await write(second, enough)
  assert.equal(early(), 1, 'the one before is still under way')

  const finished = first.finish()
  await write(second, 1)
  assert.equal(last(), 0, 'its end waits for what is under way')
  resolve()
  await finished
  assert.equal(last(), 1)
  await write(second, 1)
  assert.equal(early(), 2, 'then it is the turn of the other')
  await write(second, enough - 1)
  assert.equal(early(), 2, 'of which as much more has to come')
  await second.finish()
  assert.equal(readFileSync(join(folder, first.name)).length, 2 * enough * chunk.length)
})

test('reports an early sync failure for the content that it affects, even if the system reports it only once', async (t) => {
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' })
  const { promise, reject } = Promise.withResolvers<void>()
  const { folder, blobs, last } = await newDisk(t, () => promise)
  const [atItsEnd, onItsWay] = [await blobs.begin(0, ''), await blobs.begin(0, '')]
  await write(atItsEnd, enough)
  const finished = atItsEnd.finish()
  reject(full)
  await assert.rejects(finished, StoreFull)
  assert.equal(last(), 0)
  await atItsEnd.discard()

  await write(onItsWay, enough)
  await assert.rejects(write(onItsWay, 2), StoreFull)
  await onItsWay.discard()
  assert.deepEqual(readdirSync(join(folder, 'uploads')), [])
})

test('does not wait for the disk sync of discarded content', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  t.after(() => resolve())
  const { folder, blobs } = await newDisk(t, () => promise)
  const part = await blobs.begin(0, '')
  await write(part, enough)
  await part.discard()
  assert.deepEqual(readdirSync(join(folder, 'uploads')), [])
})
