import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { fixture } from '../../test/support/fixtures.ts'
import { tarOf } from '../../test/support/layers.ts'
import type { Layer } from './layers/layers.ts'
import { createReader, readerLimits } from './reader.ts'
import { maxSbomBytes } from './reader-messages.ts'

const path = 'lib/apk/db/installed'
const { signal } = new AbortController()
const stored = (...chunks: Uint8Array[]): Layer => {
  return async () => Readable.from(chunks) as AsyncIterable<Uint8Array>
}
const small = stored(await tarOf({ [path]: 'P:a\nV:1-r0\n' }))
const unreadable = (reason: string) => ({ name: 'Unreadable', reason })

test('reads layers and SBOMs in order, and returns their packages', async () => {
  await using reader = createReader()
  const database = fixture('contents/alpine-3.10/installed')
  const archive = gzipSync(await tarOf({ [path]: database, 'etc/os-release': 'ID=a' }))
  const pieces = [...Array(Math.ceil(archive.length / 1000)).keys()].map((i) =>
    archive.subarray(i * 1000, (i + 1) * 1000),
  )
  const above = stored(await tarOf({ 'etc/os-release': 'ID=b' }))
  const read = await reader.readLayers([stored(...pieces), above], signal)
  assert.deepEqual([read?.packages.length, read?.distribution.id], [14, 'b'])
  const sbom = await reader.readSbom(stored(fixture('contents/sboms/alpine-3.10.syft.spdx.json')), signal)
  assert.equal(sbom?.packages.length, 3)
  assert.equal(await reader.readLayers([], signal), undefined)
})

test('returns the reason for an unreadable image, and reads the next one', async () => {
  await using reader = createReader()
  const corrupt = stored(await tarOf({ [path]: fixture('contents/negative/apk-corrupt') }))
  await assert.rejects(reader.readLayers([corrupt], signal), unreadable('DAMAGED'))
  await assert.rejects(reader.readLayers([stored(Buffer.alloc(5000, 'x')), small], signal), unreadable('DAMAGED'))
  await assert.rejects(reader.readSbom(stored(Buffer.from('{}')), signal), unreadable('UNSUPPORTED'))
  assert.equal((await reader.readLayers([small], signal))?.packages.length, 1)
})

test('reads an SBOM up to its limit, whatever its declared size', async () => {
  await using reader = createReader()
  let sent = 0
  const endless: Layer = async () =>
    (async function* () {
      for (; ; sent += 2 ** 20) yield Buffer.alloc(2 ** 20, ' ')
    })()
  await assert.rejects(reader.readSbom(endless, signal), unreadable('LIMIT_EXCEEDED'))
  assert.ok(sent <= maxSbomBytes + 2 ** 20, `${sent} bytes`)
})

test('reports an image that needs too much memory as unreadable, and reads the next one', async () => {
  await using reader = createReader({ ...readerLimits, heapMb: 48 })
  const values = Buffer.from(`{"bomFormat":"CycloneDX","x":[${'{"a":{}},'.repeat(900_000)}0]}`)
  await assert.rejects(reader.readSbom(stored(values), signal), unreadable('LIMIT_EXCEEDED'))
  assert.equal((await reader.readLayers([small], signal))?.packages.length, 1)
  await using tiny = createReader({ ...readerLimits, heapMb: 4 })
  await assert.rejects(tiny.readLayers([small], signal), unreadable('LIMIT_EXCEEDED'))
})

test('reports an image that takes too long as unreadable, whether it computes or waits', async () => {
  await using reader = createReader({ ...readerLimits, sbomMs: 1, layersMs: 1 })
  const never: Layer = async () => Readable.from(new Promise(() => {}) as never) as AsyncIterable<Uint8Array>
  const silent: Layer = () => new Promise(() => {})
  for (const sbom of [stored(Buffer.from('{}')), silent]) {
    await assert.rejects(reader.readSbom(sbom, signal), unreadable('TIMED_OUT'))
  }
  await assert.rejects(reader.readLayers([small, never], signal), unreadable('TIMED_OUT'))
})

test('a failing blob store, or a stopping server, does not mark the image as unreadable', async () => {
  await using reader = createReader()
  const broken: Layer = () => Promise.reject(new Error('the disk is away'))
  await assert.rejects(reader.readLayers([small, broken], signal), { message: 'the disk is away' })
  const stop = new AbortController()
  const opened = Promise.withResolvers<void>()
  const silent: Layer = () => {
    opened.resolve()
    return new Promise(() => {})
  }
  const reading = reader.readLayers([silent], stop.signal)
  await opened.promise
  stop.abort(new Error('closing'))
  await assert.rejects(reading, { message: 'closing' })
  await assert.rejects(reader.readLayers([small], stop.signal), { message: 'closing' })
  assert.equal((await reader.readLayers([small], signal))?.packages.length, 1)
})

test('stops reading a layer once the result is known', async () => {
  await using reader = createReader()
  let given: AbortSignal | undefined
  const noted: Layer = async (until) => {
    given = until
    return Readable.from([Buffer.alloc(5000, 'x')]) as AsyncIterable<Uint8Array>
  }
  await assert.rejects(reader.readLayers([noted], signal), unreadable('DAMAGED'))
  assert.equal(given?.aborted, true)
})
