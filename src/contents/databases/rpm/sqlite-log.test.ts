import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { type LayerEntries, tarOf } from '../../../../test/support/layers.ts'
import { rpmHeader } from '../../../../test/support/rpm.ts'
import { insertPackages, type LoggedDatabase, loggedDatabase } from '../../../../test/support/sqlite-log.ts'
import { scanLayers } from '../../layers/layers.ts'
import { scanLimits } from '../../layers/scan-limits.ts'
import { readFiles } from '../files.ts'
import { readSqliteLog } from './sqlite-log.ts'
import { blobsInSqlite } from './sqlite-rows.ts'

const blobs = ['a', 'b', 'c', 'd'].map((name) => rpmHeader({ name, version: '1', release: '1' }))
const databasePath = 'var/lib/rpm/rpmdb.sqlite'
const sized = (count: number, factor: number) => Array.from({ length: count }, (_, i) => Buffer.alloc(i * factor, i))

async function scan(layers: readonly LayerEntries[], limits = {}) {
  const archives = await Promise.all(layers.map(tarOf))
  const sources = archives.map((archive) => async () => Readable.from([archive]) as AsyncIterable<Uint8Array>)
  const files = await scanLayers(sources, { ...scanLimits, ...limits }, new AbortController().signal)
  const contents = readFiles(files)
  return {
    names: contents?.packages.map(({ name }) => name).join(' ') ?? '',
    gaps: contents?.gaps.map(({ path, reason, message }) => `${path} ${reason}: ${message}`) ?? [],
    hasDatabase: contents?.hasDatabase ?? false,
  }
}
const image = ({ bytes, log }: LoggedDatabase): LayerEntries => ({
  [databasePath]: bytes,
  [`${databasePath}-wal`]: log,
})
const complete = (names: string) => ({ names, gaps: [], hasDatabase: true })

/** Database whose file has one package, and whose log adds two and removes the first. */
const changed = () =>
  loggedDatabase((database) => {
    insertPackages(database, blobs.slice(0, 1))
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    insertPackages(database, blobs.slice(1, 3))
    database.exec('DELETE FROM Packages WHERE hnum = 1')
  })

test('adds the committed transactions of a write-ahead log to the database', async () => {
  const { bytes, log } = changed()
  assert.deepEqual(await scan([image({ bytes, log })]), complete('b c'))
  assert.deepEqual(await scan([{ [databasePath]: bytes }]), complete('a'))
  assert.deepEqual(await scan([{ [databasePath]: bytes, [`${databasePath}-wal`]: '' }]), complete('a'))
})

test('reads a log in a higher layer than its database, and ignores a log that a layer has removed', async () => {
  const { bytes, log } = changed()
  const [lower, upper] = [{ [databasePath]: bytes }, { [`${databasePath}-wal`]: log }]
  assert.deepEqual(await scan([lower, upper]), complete('b c'))
  assert.deepEqual(await scan([{ ...upper, ...lower }]), complete('b c'))
  assert.deepEqual(await scan([lower, upper, { 'var/lib/rpm/.wh.rpmdb.sqlite-wal': '' }]), complete('a'))
  assert.deepEqual(await scan([lower, upper, { 'var/lib/.wh.rpm': '', [databasePath]: bytes }]), complete('a'))
})

test('reads the same rows as SQLite, for any page size and any history of the log', () => {
  const histories: Record<string, Parameters<typeof loggedDatabase>[0]> = {
    'several transactions': (database) => {
      insertPackages(database, sized(150, 61))
      database.exec('DELETE FROM Packages WHERE hnum % 3 = 0')
      database.exec('UPDATE Packages SET blob = zeroblob(5000) WHERE hnum % 7 = 0')
    },
    'a log that was started again': (database) => {
      insertPackages(database, sized(300, 20))
      database.exec('PRAGMA wal_checkpoint(RESTART)')
      insertPackages(database, sized(20, 100))
    },
    'a database that became smaller': (database) => {
      insertPackages(database, sized(200, 50))
      database.exec('PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM Packages WHERE hnum > 5; VACUUM')
    },
    'no transaction after a checkpoint': (database) => {
      insertPackages(database, sized(40, 50))
      database.exec('PRAGMA wal_checkpoint(RESTART)')
    },
  }
  for (const pageSize of [512, 4096, 65_536]) {
    for (const [history, write] of Object.entries(histories)) {
      let expected: string[] = []
      const { bytes, log } = loggedDatabase((database) => {
        write(database)
        const rows = database.prepare('SELECT blob FROM Packages').all() as { blob: Uint8Array }[]
        expected = rows.map(({ blob }) => Buffer.from(blob).toString('base64')).sort()
      }, pageSize)
      const read = readSqliteLog(log)
      const rows = [...blobsInSqlite(bytes, 'Packages', 2 ** 20, read)].map((row) => row?.toString('base64')).sort()
      assert.deepEqual([rows, read.damage], [expected, undefined], `${history}, pages of ${pageSize} bytes`)
    }
  }
})

test('leaves out the incomplete transaction at the end of a log, and reports a coverage gap', async () => {
  const uncommitted = loggedDatabase((database) => {
    insertPackages(database, blobs.slice(0, 2))
    database.exec('PRAGMA cache_size = 1; BEGIN')
    database.exec(`INSERT INTO Packages (blob) ${'SELECT zeroblob(9000) UNION ALL '.repeat(30)} SELECT x''`)
  })
  assert.deepEqual(await scan([image(uncommitted)]), {
    ...complete('a b'),
    gaps: [`${databasePath}-wal DAMAGED: the last transaction in the write-ahead log is incomplete`],
  })
})

test('reports a coverage gap for each damage of a log', async () => {
  const { bytes, log } = changed()
  const cut = await scan([image({ bytes, log: log.subarray(0, -1) })])
  assert.deepEqual(cut.gaps, [`${databasePath}-wal DAMAGED: the write-ahead log is damaged or incomplete`])
  assert.deepEqual((await scan([image({ bytes, log: Buffer.from('x') })])).gaps, [
    `${databasePath}-wal DAMAGED: the write-ahead log is incomplete`,
  ])
  for (let at = 0; at < log.length; at++) {
    const damaged = Buffer.from(log)
    damaged[at]! ^= 0x55
    assert.notEqual(readSqliteLog(damaged).damage, undefined, `byte ${at}`)
  }
  const other = loggedDatabase((database) => insertPackages(database, blobs), 1024)
  const { gaps, hasDatabase } = await scan([image({ bytes, log: other.log })])
  const sizes = 'the write-ahead log and the SQLite database have different page sizes'
  assert.deepEqual([gaps, hasDatabase], [[`${databasePath} DAMAGED: ${sizes}`], false])
})

test('reports a coverage gap for a log without database, a rollback journal, and files above the limit', async () => {
  const { bytes, log } = changed()
  const alone = await scan([{ 'etc/os-release': 'ID=rocky\n', [`${databasePath}-wal`]: log }])
  assert.deepEqual(alone.gaps, [
    `${databasePath}-wal DAMAGED: the write-ahead log has no rpm database that could be read`,
  ])
  const journal = { [databasePath]: bytes, [`${databasePath}-journal`]: Buffer.from('d9d505f920a163d7', 'hex') }
  assert.deepEqual((await scan([journal])).gaps, [
    `${databasePath}-journal DAMAGED: the rpm database has a rollback journal, which shows that a transaction was interrupted`,
  ])
  const ended = { [databasePath]: bytes, [`${databasePath}-journal`]: Buffer.alloc(512) }
  assert.deepEqual(await scan([ended]), complete('a'))
  const most = bytes.length + 100
  assert.deepEqual(await scan([image({ bytes, log })], { rpmBytes: most }), {
    ...complete('a'),
    gaps: [`${databasePath}-wal LIMIT_EXCEEDED: the rpm databases have more than ${most} bytes together`],
  })
})
