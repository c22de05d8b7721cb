import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fixture } from '../../../../test/support/fixtures.ts'
import { berkeleyDatabase, ndbDatabase, rpmHeader } from '../../../../test/support/rpm.ts'
import type { Found } from '../../packages.ts'
import { readRpmDatabase } from './rpm-database.ts'
import { readRpmHeader } from './rpm-header.ts'
import { blobsInSqlite } from './sqlite-rows.ts'

const path = 'var/lib/rpm/Packages'
const shown = ({ packages }: Found): string[] =>
  packages
    .map(({ name, version, origin, originVersion, arch, module = '' }) =>
      [name, version, origin, originVersion, arch, module].join(' ').trim(),
    )
    .sort()

const real = [
  'bash 5.1.8-6.el9 bash 5.1.8-6.el9 noarch',
  'nodejs 1:18.14.2-2.module+el8.7.0+18111+f6ed2e6a nodejs 1:18.14.2-2.module+el8.7.0+18111+f6ed2e6a noarch nodejs:18',
  'openssl 1:3.0.7-6.el9_2 openssl 1:3.0.7-6.el9_2 noarch',
  'openssl-libs 1:3.0.7-6.el9_2 openssl 1:3.0.7-6.el9_2 noarch',
]

test('reads packages from databases created by rpm, in SQLite and in Berkeley format', async () => {
  for (const file of ['rpmdb.sqlite.gz', 'Packages.gz']) {
    const found = await readRpmDatabase(path, fixture(`contents/rpm/${file}`))
    assert.deepEqual([shown(found), found.gaps, found.isDatabase], [real, [], true], file)
    const owned = found.owned?.map(([file, name]) => `${name} ${file}`) ?? []
    assert.ok(owned.includes('bash usr/lib/python3.9/site-packages/bash-5.1.8.dist-info/METADATA'))
  }
})

const packages = [
  { name: 'a', version: '1', release: '2.el9', source: 'a-1-2.el9.src.rpm' },
  { name: 'a-libs', version: '5', release: '1.el9', epoch: 3, source: 'a-1-2.el9.src.rpm' },
  { name: 'b-x', version: '1.0', release: '1', epoch: 7, source: 'b-0.9-3.src.rpm', arch: 'noarch' },
  { name: 'c', version: '1', release: '1', epoch: 0, module: 'c:rhel8:1:2', files: ['/usr/bin/c', '/etc/c'] },
]
const blobs = packages.map(rpmHeader)
const all = [
  'a 1-2.el9 a 1-2.el9 x86_64',
  'a-libs 3:5-1.el9 a 1-2.el9 x86_64',
  'b-x 7:1.0-1 b 7:0.9-3 noarch',
  'c 1-1 c 1-1 x86_64 c:rhel8',
]

/** Database written by SQLite, with rows as large as rows of real packages. */
function sqliteDatabase(rows: readonly Buffer[], pageSize = 4096): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-rpm-'))
  try {
    const database = new DatabaseSync(join(folder, 'rpmdb.sqlite'))
    database.exec(`PRAGMA page_size = ${pageSize}`)
    database.exec("CREATE TABLE 'Other' (key TEXT, hnum INTEGER)")
    database.exec("CREATE TABLE 'Packages' (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)")
    const insert = database.prepare('INSERT INTO Packages (blob) VALUES (?)')
    database.exec('BEGIN')
    for (const row of rows) insert.run(row)
    database.exec('COMMIT')
    database.close()
    return readFileSync(join(folder, 'rpmdb.sqlite'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('reads name, version, epoch, source package and module in each format', async () => {
  const databases = {
    sqlite: sqliteDatabase(blobs),
    ndb: ndbDatabase(blobs),
    little: berkeleyDatabase(blobs),
    big: berkeleyDatabase(blobs, false),
  }
  for (const [format, bytes] of Object.entries(databases)) {
    const found = await readRpmDatabase(path, bytes)
    assert.deepEqual([shown(found), found.gaps, found.isDatabase], [all, [], true], format)
    assert.deepEqual(found.owned, [['usr/bin/c', 'c']], format)
  }
})

test('reads SQLite rows of any size, in trees of several levels and with any page size', () => {
  const rows = Array.from({ length: 700 }, (_, i) => Buffer.alloc((i * 37) % 9000, i))
  for (const pageSize of [512, 4096, 65_536]) {
    const read = [...blobsInSqlite(sqliteDatabase(rows, pageSize), 'Packages', 2 ** 20)]
    assert.equal(read.length, rows.length)
    const texts = (some: readonly (Buffer | undefined)[]) => new Set(some.map((row) => row?.toString('base64')))
    assert.deepEqual(texts(read), texts(rows))
  }
})

test('reports a package or a coverage gap for each entry in each format', async () => {
  const broken = [blobs[0]!, Buffer.from('no header'), rpmHeader({ name: '', version: '1', release: '1' }), blobs[1]!]
  const nameless = rpmHeader({ name: 'd', version: '', release: '' })
  const large = rpmHeader({ name: 'e'.repeat(600), version: '1', release: '1' })
  const given = [...broken, nameless, large]
  for (const bytes of [sqliteDatabase(given), ndbDatabase(given), berkeleyDatabase(given)]) {
    const found = await readRpmDatabase(path, bytes)
    assert.equal(found.packages.length + found.gaps.length, given.length)
    assert.deepEqual(shown(found), all.slice(0, 2))
    assert.deepEqual(found.gaps.map(({ reason }) => reason).sort(), [
      'DAMAGED',
      'LIMIT_EXCEEDED',
      'UNIDENTIFIED',
      'UNIDENTIFIED',
    ])
  }
})

test('copies the epoch of a source package from a package built with the same version', async () => {
  const source = 'perl-5.26.3-416.el8.src.rpm'
  const perl = [
    { name: 'perl-Errno', version: '1.28', release: '416.el8', source },
    { name: 'perl-libs', version: '5.26.3', release: '416.el8', epoch: 4, source },
  ]
  assert.deepEqual(shown(await readRpmDatabase(path, ndbDatabase(perl.map(rpmHeader)))), [
    'perl-Errno 1.28-416.el8 perl 4:5.26.3-416.el8 x86_64',
    'perl-libs 4:5.26.3-416.el8 perl 4:5.26.3-416.el8 x86_64',
  ])
})

test('reads the package list of Azure Linux images, which have no database', async () => {
  const line = (name: string, version: string, epoch: string) =>
    `${name}\t${version}\t1653816591\t1653628924\tMicrosoft Corporation\t${epoch}\t1\tx86_64\t0\t${name}-${version}.src.rpm\n`
  const text = `${line('bash', '5.1.8-1.cm2', '(none)')}${line('tcl', '8.6-1', '1')}broken\t1\n\n`
  const found = await readRpmDatabase('var/lib/rpmmanifest/container-manifest-2', Buffer.from(text))
  assert.deepEqual(shown(found), ['bash 5.1.8-1.cm2 bash 5.1.8-1.cm2 x86_64', 'tcl 1:8.6-1 tcl 1:8.6-1 x86_64'])
  assert.deepEqual([found.gaps.map(({ reason }) => reason), found.isDatabase], [['DAMAGED'], true])
})

test('reports a damaged file as a coverage gap and never fails, whatever is damaged', async () => {
  const files = [sqliteDatabase(blobs, 512), ndbDatabase(blobs), berkeleyDatabase(blobs)]
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from('x'),
    Buffer.alloc(8192),
    ...files.map((one) => one.subarray(0, 700)),
  ]) {
    const { gaps, isDatabase } = await readRpmDatabase(path, bytes)
    assert.deepEqual([gaps.length, isDatabase], [1, false])
  }
  let seed = 1
  const next = (most: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % most
  }
  for (let round = 0; round < 600; round++) {
    const bytes = Buffer.from(files[round % files.length]!)
    for (let i = 0; i < 3; i++) bytes[next(Math.min(bytes.length, 1500))] = next(256)
    const found = await readRpmDatabase(path, bytes)
    assert.ok(found.packages.length + found.gaps.length > 0 || found.isDatabase)
  }
})

test('reports a coverage gap if a page in a Berkeley file is overwritten', async () => {
  const bytes = fixture('contents/rpm/Packages.gz')
  const size = bytes.readUInt32LE(20)
  for (const type of [undefined, 0, 5, 7, 255]) {
    for (let page = 1; page < bytes.length / size; page++) {
      const damaged = Buffer.from(bytes)
      if (type === undefined) damaged.fill(0, page * size, (page + 1) * size)
      else damaged[page * size + 25] = type
      const { packages, gaps } = await readRpmDatabase(path, damaged)
      assert.ok(packages.length === real.length || gaps.length > 0, `page ${page} of type ${type}`)
    }
  }
})

test('several ndb slots with one blob return one package, and a coverage gap for each other slot', async () => {
  const bytes = ndbDatabase([blobs[0]!])
  bytes.copy(bytes, 48, 32, 48)
  const { packages, gaps } = await readRpmDatabase(path, bytes)
  assert.deepEqual([packages.length, gaps.length], [1, 1])
})

test('ndb blobs with overlapping bytes count as damage once they are larger than the file', async () => {
  const bytes = ndbDatabase([Buffer.alloc(20_000)])
  // Each blob extends to the end of the file.
  for (let i = 0; i < 11; i++) {
    const start = 4096 + 16 * i
    bytes.write('BlbS', start)
    for (const [j, value] of [i + 1, 1, bytes.length - start - 16].entries()) {
      bytes.writeUInt32LE(value, start + 4 + 4 * j)
    }
    bytes.write('Slot', 32 + 16 * i)
    bytes.writeUInt32LE(i + 1, 36 + 16 * i)
    bytes.writeUInt32LE(start / 16, 40 + 16 * i)
  }
  assert.equal((await readRpmDatabase(path, bytes)).isDatabase, false)
})

test('stops at the file limit while reading folders', () => {
  const { files } = readRpmHeader(
    rpmHeader({ name: 'a', version: '1', release: '1', files: Array.from({ length: 100 }, (_, i) => `/d${i}/f`) }),
  )
  assert.deepEqual([...files({ left: 60 })], [])
  assert.equal([...files({ left: 150 })].length, 50)
  assert.equal([...files({ left: 1000 })].length, 100)
})

test('stops at pages that refer to themselves or to each other', async () => {
  const sqlite = sqliteDatabase(
    Array.from({ length: 50 }, () => Buffer.alloc(400)),
    512,
  )
  // The interior page of the table refers to itself.
  const pages = sqlite.length / 512
  const interior = Array.from({ length: pages - 1 }, (_, i) => i + 1).find((i) => sqlite[i * 512] === 5)!
  sqlite.writeUInt32BE(interior + 1, interior * 512 + 8)
  assert.equal((await readRpmDatabase(path, sqlite)).isDatabase, false)
  const berkeley = berkeleyDatabase([Buffer.alloc(5000)])
  berkeley.writeUInt32LE(3, 3 * 512 + 16)
  const { gaps } = await readRpmDatabase(path, berkeley)
  assert.deepEqual(
    gaps.map(({ reason }) => reason),
    ['LIMIT_EXCEEDED'],
  )
})
