import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../test/support/fixtures.ts'
import { readContents } from './read-contents.ts'

const path = 'lib/apk/db/installed'
const signal = new AbortController().signal

test('the thread reads files and SBOMs and says what they contain', async () => {
  const files = [{ path, bytes: fixture('contents/alpine-3.10/installed') }]
  const read = await readContents({ files: [...files, { path: 'etc/os-release', bytes: Buffer.from('ID=a') }] }, signal)
  assert.deepEqual([read?.packages.length, read?.distribution.id], [14, 'a'])
  const sbom = await readContents({ sbom: fixture('contents/sboms/alpine-3.10.syft.spdx.json') }, signal)
  assert.equal(sbom?.packages.length, 3)
  assert.equal(await readContents({ files: [] }, signal), undefined)
})

test('what is wrong with a document comes out of the thread with its reason', async () => {
  const corrupt = { files: [{ path, bytes: fixture('contents/negative/apk-corrupt') }] }
  await assert.rejects(readContents(corrupt, signal), { name: 'Unreadable', reason: 'DAMAGED' })
  await assert.rejects(readContents({ sbom: Buffer.from('{}') }, signal), { name: 'Unreadable', reason: 'UNSUPPORTED' })
})

test('a document that takes too long ends with the thread, and so does one that nobody waits for', async () => {
  const sbom = Buffer.from(`[${'1,'.repeat(1_500_000)}1]`)
  await assert.rejects(readContents({ sbom }, signal, 0), { name: 'Unreadable', reason: 'TIMED_OUT' })
  const stop = new AbortController()
  const reading = readContents({ sbom }, stop.signal)
  stop.abort(new Error('closing'))
  await assert.rejects(reading, { message: 'closing' })
  await assert.rejects(readContents({ sbom }, stop.signal), { message: 'closing' })
})
