import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { fixture } from '../../../test/support/fixtures.ts'
import { type LayerEntries, tarOf } from '../../../test/support/layers.ts'
import { readFiles } from '../databases/files.ts'
import { type Layer, scanLayers } from './layers.ts'
import { type ScanLimits, scanLimits } from './scan-limits.ts'

const apk = 'lib/apk/db/installed'
const folder = 'var/lib/dpkg/status.d'
const stored = (...chunks: Uint8Array[]): Layer => {
  return async () => Readable.from(chunks) as AsyncIterable<Uint8Array>
}
const scan = (layers: readonly Layer[], limits: Partial<ScanLimits> = {}, signal = new AbortController().signal) =>
  scanLayers(layers, { ...scanLimits, ...limits }, signal)
const scanTars = async (...layers: LayerEntries[]) => {
  const archives = await Promise.all(layers.map(tarOf))
  const files = await scan(archives.map((archive) => stored(archive)))
  return Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]))
}
const unreadable = (reason: string) => ({ name: 'Unreadable', reason })

test('finds the package database in each compression and each spelling of its path', async () => {
  const database = fixture('contents/alpine-3.10/installed')
  const files: LayerEntries = { 'bin/busybox': Buffer.alloc(200_000, 1), [apk]: database, 'etc/passwd': 'root' }
  const archive = await tarOf(files)
  const inPieces = [...Array(Math.ceil(archive.length / 777)).keys()].map((i) =>
    archive.subarray(i * 777, i * 777 + 777),
  )
  for (const layer of [
    stored(archive),
    stored(gzipSync(archive)),
    stored(zstdCompressSync(archive)),
    stored(...inPieces),
  ]) {
    const found = await scan([layer])
    assert.deepEqual(
      found.map(({ path }) => path),
      [apk],
    )
    assert.equal(readFiles(found)?.packages.length, 14)
  }
  for (const name of [`./${apk}`, `/${apk}`, `.//lib/./apk/db//installed`]) {
    assert.deepEqual(await scanTars({ [name]: 'P:a\n' }), { [apk]: 'P:a\n' }, name)
  }
})

/** A skippable frame, which decompressors ignore. zstd:chunked stores its table of contents in such a frame. */
function skippable(content: Buffer, number = 0): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(0x184d2a50 + number)
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}

test('reads zstd layers with several frames, and with skippable frames around and between them', async () => {
  const database = fixture('contents/alpine-3.10/installed')
  const archive = await tarOf({ 'etc/passwd': 'root', [apk]: database, 'var/cache/x': Buffer.alloc(300_000, 7) })
  const frames = [archive.subarray(0, 512), archive.subarray(512, 5000), archive.subarray(5000)].map((one, i) =>
    zstdCompressSync(one, { params: { [constants.ZSTD_c_checksumFlag]: i % 2 } }),
  )
  const [first, second, third] = frames as [Buffer, Buffer, Buffer]
  const chunked = [skippable(Buffer.from('x'), 14), first, skippable(Buffer.alloc(0)), second, third]
  const whole = Buffer.concat([...chunked, skippable(Buffer.alloc(70_000)), skippable(Buffer.alloc(64))])
  const inPieces = Array.from({ length: Math.ceil(whole.length / 7) }, (_, i) => whole.subarray(i * 7, i * 7 + 7))
  for (const layer of [stored(Buffer.concat(frames)), stored(...frames), stored(whole), stored(...inPieces)]) {
    assert.equal(readFiles(await scan([layer]))?.packages.length, 14)
  }
  const members = Buffer.concat([gzipSync(archive.subarray(0, 512)), gzipSync(archive.subarray(512))])
  assert.equal(readFiles(await scan([stored(members)]))?.packages.length, 14)
})

test('refuses a truncated zstd layer, also in a skippable frame or after the first frame', async () => {
  const frame = zstdCompressSync(await tarOf({ [apk]: 'P:a\n' }))
  const broken = [
    [frame, skippable(Buffer.alloc(64)).subarray(0, 40)],
    [frame, Buffer.from([0x28, 0xb5])],
    [frame, Buffer.from('no frame')],
    [skippable(Buffer.alloc(2)).subarray(0, 6)],
  ]
  for (const parts of broken) await assert.rejects(scan([stored(Buffer.concat(parts))]), unreadable('DAMAGED'))
})

test('reads package databases only at the root of the image', async () => {
  const database = fixture('contents/mixed-coverage/installed')
  const found = await scanTars({
    [`pkgs/${apk}`]: 'P:b\n',
    'pkgs/var/lib/dpkg/status': 'x',
    [apk]: database,
    'lib/apk/db': undefined,
  })
  assert.deepEqual(found, { [apk]: database.toString() })
})

test('an upper layer replaces the files of a lower one', async () => {
  const lower = { [apk]: 'old', 'etc/os-release': 'ID=a', [`${folder}/a`]: 'a', [`${folder}/a.md5sums`]: 'no' }
  const found = await scanTars(lower, { [apk]: 'new', [`${folder}/b`]: 'b' }, {})
  assert.deepEqual(found, { [apk]: 'new', 'etc/os-release': 'ID=a', [`${folder}/a`]: 'a', [`${folder}/b`]: 'b' })
})

test('a whiteout hides a file or a folder of lower layers, but not of its own layer', async () => {
  const lower = { [apk]: 'old', [`${folder}/a`]: 'a', [`${folder}/b`]: 'b' }
  assert.deepEqual(await scanTars(lower, { [`${folder}/.wh.a`]: '' }), { [apk]: 'old', [`${folder}/b`]: 'b' })
  assert.deepEqual(await scanTars(lower, { 'var/lib/.wh.dpkg': '' }), { [apk]: 'old' })
  assert.deepEqual(await scanTars(lower, { '.wh.lib': '', '.wh.var': '' }), {})
  const readded = { [`${folder}/a`]: 'mine', 'var/lib/.wh.dpkg': '', [`${folder}/c`]: 'c' }
  assert.deepEqual(await scanTars(lower, readded), { [apk]: 'old', [`${folder}/a`]: 'mine', [`${folder}/c`]: 'c' })
})

test('hides the content of lower layers in a folder with an opaque whiteout, wherever the whiteout is in its layer', async () => {
  const lower = { [apk]: 'old', [`${folder}/a`]: 'a' }
  const upper = { [`${folder}/b`]: 'b', [`${folder}/.wh..wh..opq`]: '' }
  assert.deepEqual(await scanTars(lower, upper), { [apk]: 'old', [`${folder}/b`]: 'b' })
  assert.deepEqual(await scanTars(lower, { '.wh..wh..opq': '', [`${folder}/b`]: 'b' }), { [`${folder}/b`]: 'b' })
  assert.deepEqual(await scanTars(lower, { 'lib/apk/.wh..wh..opq': '' }, {}), { [`${folder}/a`]: 'a' })
})

test('an entry of any type hides a file with the same path or below it', async () => {
  const lower = { [apk]: 'old' }
  for (const type of ['symlink', 'link', 'fifo', 'character-device', 'block-device'] as const) {
    const gap = type.endsWith('link') ? { [apk]: '' } : {}
    assert.deepEqual(await scanTars(lower, { [apk]: { type, linkname: 'etc/passwd' } }), gap, type)
    assert.deepEqual(await scanTars(lower, { lib: { type, linkname: 'usr/lib' } }), {}, type)
  }
  assert.deepEqual(await scanTars(lower, { [apk]: undefined }), {})
  assert.deepEqual(await scanTars(lower, { lib: 'a file now' }), {})
  assert.deepEqual(await scanTars(lower, { lib: undefined, 'lib/apk': undefined }), lower)
})

test('never follows links, and paths never lead out of the image', async () => {
  const target = { 'x/installed': 'P:a\n', [apk]: { type: 'link', linkname: 'x/installed' } } as const
  assert.deepEqual(await scanTars(target), { [apk]: '' }, 'a gap and no content')
  assert.deepEqual(await scanTars({ lib: { type: 'symlink', linkname: '/etc' }, 'etc/apk/db/installed': 'P:a\n' }), {})
  const names = [
    `../${apk}`,
    `x/../${apk}`,
    `lib/apk/db/..`,
    `/../../${apk}`,
    `${apk}/..`,
    'lib/apk/db/.wh...',
    '.wh.',
    '.wh...',
  ]
  assert.deepEqual(await scanTars({ [apk]: 'mine' }, Object.fromEntries(names.map((name) => [name, 'P:evil\n']))), {
    [apk]: 'mine',
  })
})

test('uses the path from pax headers, of any length', async () => {
  const long = `${'x/'.repeat(2000)}end`
  assert.deepEqual(await scanTars({ [long]: 'y', [apk]: 'P:a\n' }), { [apk]: 'P:a\n' })
  const renamed = { x: { pax: { path: apk } } } as unknown as LayerEntries
  assert.deepEqual(await scanTars(renamed), { [apk]: '' })
})

test('each limit stops reading, with its reason', async () => {
  const archive = await tarOf({ a: 'x'.repeat(5000), b: 'y', [apk]: 'P:a\n'.repeat(300) })
  const limit = unreadable('LIMIT_EXCEEDED')
  const cases: Partial<ScanLimits>[] = [
    { bytes: 4000 },
    { entries: 2 },
    { fileBytes: 1000 },
    { bytesBetween: 300 },
    { totalBytes: 1000 },
    { maxFiles: 0 },
  ]
  for (const limits of cases) await assert.rejects(scan([stored(archive)], limits), limit, JSON.stringify(limits))
  await assert.rejects(scan([stored(archive), stored(archive)], { layers: 1 }), limit)
  await assert.rejects(scan([stored(archive), stored(archive)], { entries: 5 }), limit)
  const bounds = { bytes: 4 * archive.length, entries: 6, fileBytes: 1200, totalBytes: 1200, maxFiles: 1, layers: 2 }
  assert.equal((await scan([stored(archive), stored(archive)], bounds)).length, 1)
})

test('the limit on kept bytes applies to all layers together', async () => {
  const [below, above] = await Promise.all([
    tarOf({ [apk]: 'x'.repeat(600) }),
    tarOf({ 'etc/os-release': 'x'.repeat(600) }),
  ])
  const both = [stored(below), stored(above)]
  await assert.rejects(scan(both, { totalBytes: 1199 }), unreadable('LIMIT_EXCEEDED'))
  assert.equal((await scan(both, { totalBytes: 1200 })).length, 2)
  // Content that an upper layer removes does not count.
  const away = stored(await tarOf({ 'lib/apk/db/.wh.installed': '' }))
  assert.equal((await scan([stored(below), away, stored(above)], { totalBytes: 1199 })).length, 1)
})

test('stops reading decompression bombs at the limit, whatever the compression', async () => {
  const zeros = Buffer.alloc(64 * 2 ** 20)
  const inFile = await tarOf({ zeros })
  const limits = { bytes: 2 ** 20 }
  const bombs = [gzipSync(inFile), zstdCompressSync(inFile), gzipSync(zeros), zstdCompressSync(zeros)]
  for (const bomb of bombs) {
    assert.ok(bomb.length < 2 ** 20)
    await assert.rejects(scan([stored(bomb)], limits), unreadable('LIMIT_EXCEEDED'))
  }
  const emptyMembers = Buffer.concat(Array<Buffer>(60_000).fill(gzipSync('')))
  await assert.rejects(scan([stored(emptyMembers)], limits), unreadable('LIMIT_EXCEEDED'))
})

test('stops and closes an endless stream', async () => {
  let closed = false
  async function* endless() {
    try {
      for (;;) yield Buffer.alloc(65_536)
    } finally {
      closed = true
    }
  }
  await assert.rejects(scan([async () => endless()], { bytes: 2 ** 24 }), unreadable('LIMIT_EXCEEDED'))
  assert.ok(closed)
})

test('refuses a header that announces more bytes than follow, or than are possible', async () => {
  const archive = await tarOf({ [apk]: 'P:a\n'.repeat(1000) })
  const damaged = unreadable('DAMAGED')
  await assert.rejects(scan([stored(archive.subarray(0, 700))]), damaged)
  await assert.rejects(scan([stored(archive.subarray(0, 100))]), damaged)
  await assert.rejects(scan([stored(gzipSync(archive).subarray(0, 60))]), damaged)
  await assert.rejects(scan([stored(zstdCompressSync(archive).subarray(0, 30))]), damaged)
  await assert.rejects(scan([stored(Buffer.from('not an archive, but longer than a header'.repeat(30)))]), damaged)
  const huge = await tarOf({ x: { pax: { size: '99999999999999999999' } } as never })
  await assert.rejects(scan([stored(huge)]), damaged)
  const sizeless = Buffer.from(archive)
  sizeless[124] = 0xda
  await assert.rejects(scan([stored(withChecksum(sizeless))]), damaged)
  const paxOfGigabytes = Buffer.from(huge)
  paxOfGigabytes.write('77777777777', 124)
  await assert.rejects(scan([stored(withChecksum(paxOfGigabytes))]), damaged)
})

function withChecksum(archive: Buffer): Buffer {
  archive.fill(' ', 148, 156)
  const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0)
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return archive
}

test('aborts the signal of a layer as soon as the layer is no longer read', async () => {
  const archive = await tarOf({ [apk]: 'P:a\n' })
  for (const bytes of [archive, Buffer.from('garbage'), Buffer.alloc(0), gzipSync(archive).subarray(0, 30)]) {
    const signals: AbortSignal[] = []
    const layer: Layer = async (signal) => {
      signals.push(signal)
      return Readable.from([bytes]) as AsyncIterable<Uint8Array>
    }
    await scan([layer]).catch(() => {})
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true],
    )
  }
})

test('a layer of zero bytes is an empty layer', async () => {
  assert.deepEqual(await scan([stored(), stored(Buffer.alloc(1024)), stored(gzipSync(Buffer.alloc(1024)))]), [])
  assert.deepEqual(await scan([]), [])
})

test('an error of the blob store does not mark the image as unreadable', async () => {
  const failing = new Error('disk')
  async function* broken() {
    yield gzipSync('x').subarray(0, 8)
    throw failing
  }
  await assert.rejects(scan([async () => broken()]), failing)
  await assert.rejects(scan([() => Promise.reject(failing)]), failing)
})

test('a stalled blob store ends the read at the time limit, or when the caller cancels it', async () => {
  const never = new Promise<never>(() => {})
  async function* stalled() {
    yield Buffer.alloc(512)
    await never
  }
  for (const layer of [
    async () => stalled(),
    () => never,
    async () => ({ [Symbol.asyncIterator]: () => ({ next: () => never }) }),
  ]) {
    await assert.rejects(scan([layer], { ms: 20 }), unreadable('TIMED_OUT'))
    const stop = new AbortController()
    const scanned = scan([layer], {}, stop.signal)
    stop.abort(new Error('closing'))
    await assert.rejects(scanned, { message: 'closing' })
  }
})
