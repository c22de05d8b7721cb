// Reading sources of vulnerabilities with the command, from a mirror on this machine.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDb } from '#db/open.ts'
import { sql } from '#db/sql.ts'
import { type Answer, osv, startMirror } from '../support/mirror.ts'
import type { Json } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, type TestStorage } from '../support/process.ts'
import { zipOf } from '../support/zip.ts'

const syncing = async (storage: TestStorage, mirror: { url: string }, ...args: string[]) => {
  const found = await run(['vulnerabilities', 'sync', ...storage.args, '--mirror', mirror.url, ...args], {
    env: storage.env,
  })
  assert.deepEqual(
    readdirSync(storage.data).filter((name) => name.startsWith('sync-')),
    [],
    'what was downloaded is gone',
  )
  return found
}
const statusOf = async (storage: TestStorage): Promise<{ code: number | null; sources: Record<string, Json> }> => {
  const { code, stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
  return { code, sources: Object.fromEntries((JSON.parse(stdout) as Json[]).map((one) => [one.name, one])) }
}

test('reads an OSV database completely once, then only its changes, with or without a running server', async () => {
  await using storage = await createStorage()
  const changed = (...lines: string[]) => ({ body: `${lines.join('\n')}\n` })
  const first = changed('2026-11-20T03:00:00Z,PYSEC-2', '2026-11-20T02:00:00Z,PYSEC-1')
  await using mirror = await startMirror({
    'osv/PyPI/modified_id.csv': first,
    'osv/PyPI/all.zip': {
      body: zipOf({
        'PYSEC-1.json': osv('PYSEC-1', '1.2', { modified: '2026-11-20T02:00:00Z' }),
        'PYSEC-2.json': osv('PYSEC-2', '1.2', { modified: '2026-11-20T03:00:00Z' }),
        'note.txt': 'x',
      }),
    },
  })
  const args = ['--source', 'osv/PyPI']
  assert.deepEqual(await syncing(storage, mirror, ...args), {
    code: 0,
    stdout: 'osv/PyPI: 2 new, 0 changed, 0 unchanged, 0 withdrawn\n',
    stderr: '',
  })
  assert.deepEqual(mirror.asked(), ['osv/PyPI/all.zip', 'osv/PyPI/modified_id.csv'])

  assert.match(
    (await syncing(storage, mirror, ...args)).stdout,
    /^osv\/PyPI: 0 new, 0 changed, 0 unchanged, 0 withdrawn$/m,
  )
  assert.deepEqual(mirror.asked(), ['osv/PyPI/modified_id.csv'])

  mirror.files['osv/PyPI/modified_id.csv'] = changed(
    '2026-11-21T00:00:00Z,PYSEC-3',
    '2026-11-20T04:00:00Z,PYSEC-1',
    ...first.body.split('\n'),
  )
  mirror.files['osv/PyPI/PYSEC-1.json'] = { body: osv('PYSEC-1', '1.3') }
  mirror.files['osv/PyPI/PYSEC-3.json'] = { body: osv('PYSEC-3') }
  await using server = await startInProcess(storage)
  assert.match(
    (await syncing(storage, mirror, ...args)).stdout,
    /^osv\/PyPI: 1 new, 1 changed, 0 unchanged, 0 withdrawn$/m,
  )
  assert.deepEqual(mirror.asked(), ['osv/PyPI/PYSEC-1.json', 'osv/PyPI/PYSEC-3.json', 'osv/PyPI/modified_id.csv'])
  const { code, sources } = await statusOf(storage)
  assert.equal(code, 0)
  const { records, licence, ecosystems, buildTime, error } = sources['osv/PyPI']!
  assert.deepEqual(
    [records, licence, ecosystems, buildTime, error],
    ['3', 'CC-BY-4.0', ['PyPI'], '2026-11-21T00:00:00.000Z', ''],
  )
  assert.ok(server.url)

  // A complete read withdraws records that are missing in it, except records that are newer than the archive.
  mirror.files['osv/PyPI/modified_id.csv'] = changed('2026-11-20T05:00:00Z,PYSEC-3', ...first.body.split('\n'))
  assert.match(
    (await syncing(storage, mirror, ...args, '--full')).stdout,
    /^osv\/PyPI: 0 new, 1 changed, 2 unchanged, 0 withdrawn$/m,
  )
  mirror.files['osv/PyPI/modified_id.csv'] = first
  assert.match(
    (await syncing(storage, mirror, ...args, '--full')).stdout,
    /^osv\/PyPI: 0 new, 0 changed, 2 unchanged, 1 withdrawn$/m,
  )
})

test('reads all records that changed between the creation of an archive and of the list of changes', async () => {
  await using storage = await createStorage()
  const recordOf = (i: number, day: string) => osv(`P-${i}`, '1.2', { modified: `2026-11-${day}T00:00:00Z` })
  const archive = zipOf({ 'P-0.json': recordOf(0, '18'), 'P-1.json': recordOf(1, '19'), 'P-2.json': recordOf(2, '29') })
  const some = (count: number) => Array.from({ length: count }, (_, i) => `2026-11-21T00:00:00Z,P-${i + 10}`)
  await using mirror = await startMirror({ 'osv/PyPI/all.zip': { body: archive } })
  for (let i = 10; i < 262; i++) mirror.files[`osv/PyPI/P-${i}.json`] = { body: recordOf(i, '21') }
  const list = (count: number) => ({ body: [...some(count), '2026-11-19T00:00:00Z,P-1'].join('\n') })
  const args = ['--source', 'osv/PyPI']
  mirror.files['osv/PyPI/modified_id.csv'] = list(251)
  assert.match((await syncing(storage, mirror, ...args)).stdout, /^osv\/PyPI: 3 new,/)
  // The records were too many to read one by one. The next read does not assume that they were read.
  mirror.files['osv/PyPI/modified_id.csv'] = list(250)
  assert.match((await syncing(storage, mirror, ...args)).stdout, /^osv\/PyPI: 250 new,/)
  mirror.asked()
  assert.match((await syncing(storage, mirror, ...args)).stdout, /^osv\/PyPI: 0 new,/)
  assert.deepEqual(mirror.asked(), ['osv/PyPI/modified_id.csv'])
})

test('reads the whole database again if more than 250 records changed', async () => {
  await using storage = await createStorage()
  const lines = (day: string) => Array.from({ length: 251 }, (_, i) => `2026-11-${day}T00:00:00Z,P-${i}`).join('\n')
  await using mirror = await startMirror({
    'osv/npm/modified_id.csv': { body: lines('20') },
    'osv/npm/all.zip': { body: zipOf({ 'P-1.json': osv('P-1') }) },
  })
  await syncing(storage, mirror, '--source', 'osv/npm')
  mirror.asked()
  mirror.files['osv/npm/modified_id.csv'] = { body: lines('21') }
  assert.equal((await syncing(storage, mirror, '--source', 'osv/npm')).code, 0)
  assert.deepEqual(mirror.asked(), ['osv/npm/all.zip', 'osv/npm/modified_id.csv'])
})

test('reads Alpine and Debian when their ETag changes, also from a mirror without a list of changes', async () => {
  await using storage = await createStorage()
  const secdb = JSON.stringify({
    packages: [{ pkg: { name: 'openssl', secfixes: { '3.0.8-r0': ['CVE-2022-4203'], '0': ['CVE-2022-1'] } } }],
  })
  const tracker = JSON.stringify({
    openssl: { 'CVE-2022-4203': { releases: { bookworm: { status: 'open', urgency: 'low' } } } },
    broken: [],
  })
  await using mirror = await startMirror({
    'secdb/v3.20/main.json': { body: secdb, etag: '"one"' },
    'debian-tracker': { body: tracker, etag: '"two"' },
    'osv/Go/all.zip': { body: zipOf({ 'GO-1.json': osv('GO-1') }), etag: '"three"' },
  })
  const args = ['secdb/v3.20/main', 'debian-tracker', 'osv/Go'].flatMap((name) => ['--source', name])
  const first = await syncing(storage, mirror, ...args)
  assert.equal(first.code, 1)
  assert.equal(first.stderr, 'pinfold: broken: broken must be an object\n')
  assert.deepEqual(first.stdout.split('\n').slice(0, 3), [
    'secdb/v3.20/main: 2 new, 0 changed, 0 unchanged, 0 withdrawn',
    'debian-tracker: 1 new, 0 changed, 0 unchanged, 0 withdrawn; 1 problems, see above',
    'osv/Go: 1 new, 0 changed, 0 unchanged, 0 withdrawn',
  ])
  mirror.files['debian-tracker'] = { body: tracker.replace(',"broken":[]', ''), etag: '"four"' }
  const again = await syncing(storage, mirror, ...args)
  assert.equal(again.code, 0)
  assert.deepEqual(again.stdout.split('\n').slice(0, 3), [
    'secdb/v3.20/main: 0 new, 0 changed, 0 unchanged, 0 withdrawn',
    'debian-tracker: 0 new, 0 changed, 1 unchanged, 0 withdrawn',
    'osv/Go: 0 new, 0 changed, 0 unchanged, 0 withdrawn',
  ])
  const { sources } = await statusOf(storage)
  assert.deepEqual(
    Object.values(sources).map(({ name, records, buildTime }) => [name, records, buildTime]),
    [
      ['debian-tracker', '1', '2026-11-20T10:00:00.000Z'],
      ['osv/Go', '1', '2026-11-20T10:00:00.000Z'],
      ['secdb/v3.20/main', '2', '2026-11-20T10:00:00.000Z'],
    ],
  )
})

test('a failing source keeps its records and shows the reason, and the other sources are read', async () => {
  await using storage = await createStorage()
  const zip = zipOf({ 'X-1.json': osv('X-1'), 'X-2.json': osv('X-2') })
  await using mirror = await startMirror({ 'osv/npm/all.zip': { body: zip }, 'osv/Go/all.zip': { body: zip } })
  const args = ['--source', 'osv/npm', '--source', 'osv/Go']
  assert.equal((await syncing(storage, mirror, ...args)).code, 0)
  const damaged = Buffer.from(zip)
  // The compressed data begins after the header and the name of the first entry.
  damaged.fill(0xff, 40, 60)
  const failures: [Answer, RegExp][] = [
    [{ body: damaged }, /all\.zip cannot be read: /],
    [{ status: 500 }, /the server responded with HTTP 500$/],
    [{ cut: true, body: 'PK' }, /the host cannot be reached$/],
    [{ body: 'no archive' }, /all\.zip cannot be read: /],
    [{ body: zip.subarray(0, zip.length - 30) }, /all\.zip cannot be read: /],
  ]
  for (const [answer, reason] of failures) {
    mirror.files['osv/npm/all.zip'] = answer
    const { code, stdout } = await syncing(storage, mirror, ...args)
    const [npm = '', go = ''] = stdout.split('\n')
    assert.equal(code, 1)
    assert.match(npm, /^osv\/npm: failed, and keeps its former data: /)
    assert.match(npm, reason)
    assert.equal(go, 'osv/Go: 0 new, 0 changed, 2 unchanged, 0 withdrawn')
    const { code: state, sources } = await statusOf(storage)
    assert.deepEqual([state, sources['osv/npm']?.records, sources['osv/Go']?.error], [1, '2', ''])
    assert.match(sources['osv/npm']?.error, reason)
    assert.ok(sources['osv/npm']!.fetchTime < sources['osv/npm']!.tryTime)
  }
  const shown = await run(['vulnerabilities', 'status', ...storage.args], { env: storage.env })
  assert.match(shown.stdout, /^osv\/npm: 2 records, read .*\n {2}failed: all\.zip cannot be read/m)
})

test('names and skips invalid records, and withdraws nothing in such a read', async () => {
  await using storage = await createStorage()
  const good = { 'X-1.json': osv('X-1'), 'X-2.json': osv('X-2') }
  await using mirror = await startMirror({ 'osv/npm/all.zip': { body: zipOf(good), etag: '"one"' } })
  await syncing(storage, mirror, '--source', 'osv/npm')
  const before = (await statusOf(storage)).sources['osv/npm']!
  const wrong = { 'X-1.json': osv('X-1', '2'), 'X-2.json': '{', 'X-3.json': osv('X-3', '1', { aliases: ['a b'] }) }
  mirror.files['osv/npm/all.zip'] = { body: zipOf(wrong), etag: '"two"' }
  const { code, stdout, stderr } = await syncing(storage, mirror, '--source', 'osv/npm')
  assert.equal(code, 1)
  assert.match(stdout, /^osv\/npm: 0 new, 1 changed, 0 unchanged, 0 withdrawn; 2 problems, see above$/m)
  assert.match(stderr, /^pinfold: X-2\.json: the document is not valid JSON$/m)
  assert.match(
    stderr,
    /^pinfold: osv\/npm\/X-3: id: must be visible ASCII characters without spaces, and so must all aliases$/m,
  )
  const after = (await statusOf(storage)).sources['osv/npm']!
  assert.deepEqual([after.records, after.error], ['2', '2 records are invalid'])
  assert.equal(after.fetchTime, before.fetchTime)
})

test('refuses unknown names of sources, and invalid mirrors', async () => {
  await using storage = await createStorage()
  const trying = (...args: string[]) => run(['vulnerabilities', 'sync', ...storage.args, ...args], { env: storage.env })
  for (const name of ['osv', 'osv/../x', 'secdb/v3.20', 'secdb/../../main', 'kev/x']) {
    const { code, stderr } = await trying('--source', name)
    assert.equal(code, 64, name)
    assert.match(stderr, /is not a data source/)
  }
  for (const url of ['ftp://example.com', 'https://u:p@example.com', 'example.com']) {
    assert.equal((await trying('--source', 'osv/Go', '--mirror', url)).code, 64, url)
  }
  // The command creates no database.
  assert.equal((await run(['server', 'gc', ...storage.args], { env: storage.env })).code, 0)
  const { code, stdout } = await run(['vulnerabilities', 'status', ...storage.args], { env: storage.env })
  const text =
    'no data source was read yet: the server reads those that stored images need, within a minute after the push'
  assert.deepEqual([code, stdout], [0, `${text}\n`])
  const synced = await run(['vulnerabilities', 'sync', ...storage.args], { env: storage.env })
  assert.deepEqual([synced.code, synced.stdout], [0, ''])
  assert.match(synced.stderr, /no data source was read, because no stored image has known packages/)
})

test('verify names stored rows that contradict the records, and exits with 1', async () => {
  await using storage = await createStorage()
  await using mirror = await startMirror({
    'osv/PyPI/modified_id.csv': { body: '2026-11-20T02:00:00Z,PYSEC-1\n' },
    'osv/PyPI/all.zip': {
      body: zipOf({ 'PYSEC-1.json': osv('PYSEC-1', '1.2', { modified: '2026-11-20T02:00:00Z' }) }),
    },
  })
  assert.equal((await syncing(storage, mirror, '--source', 'osv/PyPI')).code, 0)
  const verify = (...args: string[]) =>
    run(['vulnerabilities', 'verify', ...storage.args, ...args], { env: storage.env })
  const clean = await verify()
  assert.deepEqual([clean.code, clean.stderr], [0, ''])
  assert.match(clean.stdout, /^0 packages and lists checked, 0 differences, \d+ comparisons wait\n$/)
  const db = await openDb({ database: storage.database, file: join(storage.data, 'pinfold.db') })
  try {
    // A package that is marked as compared, without findings.
    const said = await db.get<{ name: string }>(sql`SELECT name FROM affected_packages LIMIT 1`)
    await db.tx((tx) =>
      tx.run(sql`
        INSERT INTO components (kind, ecosystem, name, version, origin, origin_version, arch, match_time)
        VALUES ('python', 'PyPI', ${said!.name}, '1.0', ${said!.name}, '1.0', '', '2026-11-20T00:00:00.000Z')`),
    )
    const { code, stdout } = await verify()
    assert.equal(code, 1, stdout)
    assert.match(
      stdout,
      /^PyPI \S+ 1\.0: missing finding for affected entry \d+\n1 packages and lists checked, 1 differences, /,
    )
    const json = await verify('-o', 'json')
    assert.deepEqual([json.code, JSON.parse(json.stdout).differences.length], [1, 1])
  } finally {
    await db.close()
  }
})
