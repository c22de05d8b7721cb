// Lists of exploited vulnerabilities: they are read like other sources, change the order of findings, and create none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startMirror } from '../support/mirror.ts'
import type { Json } from '../support/pinfold.ts'
import { createStorage, run, type TestStorage } from '../support/process.ts'

const kev = (...ids: string[]) =>
  JSON.stringify({
    vulnerabilities: ids.map((cveID) => ({
      cveID,
      dateAdded: '2026-11-01',
      dueDate: '2026-11-22',
      knownRansomwareCampaignUse: 'Unknown',
    })),
  })
const epss = (...rows: string[]) => gzipSync(`#model_version:v1\ncve,epss,percentile\n${rows.join('\n')}\n`)

const sync = (storage: TestStorage, mirror: { url: string }, ...names: string[]) => {
  const sources = names.flatMap((name) => ['--source', name])
  return run(['vulnerabilities', 'sync', ...storage.args, '--mirror', mirror.url, ...sources], { env: storage.env })
}
const status = async (storage: TestStorage): Promise<Record<string, Json>> => {
  const { stdout } = await run(['vulnerabilities', 'status', ...storage.args, '-o', 'json'], { env: storage.env })
  return Object.fromEntries((JSON.parse(stdout) as Json[]).map((one) => [one.name, one]))
}

test('reads lists of exploited vulnerabilities completely, and deletes entries that are missing later', async () => {
  await using storage = await createStorage()
  const rows = Array.from({ length: 2500 }, (_, i) => `CVE-2026-${10000 + i},0.0001,0.5`)
  await using mirror = await startMirror({
    'kev.json': { body: kev('CVE-2026-1000', 'CVE-2026-1001'), etag: '"a"' },
    'epss.csv.gz': { body: epss(...rows), etag: '"b"' },
  })
  const first = await sync(storage, mirror, 'kev', 'epss')
  assert.deepEqual([first.code, first.stderr], [0, ''])
  assert.deepEqual(first.stdout.split('\n').slice(0, 2), [
    'kev: 2 new, 0 changed, 0 unchanged, 0 withdrawn',
    'epss: 2500 new, 0 changed, 0 unchanged, 0 withdrawn',
  ])
  mirror.files['kev.json'] = { body: kev('CVE-2026-1001'), etag: '"c"' }
  mirror.files['epss.csv.gz'] = { body: epss('CVE-2026-10000,0.2,0.9', ...rows.slice(1)), etag: '"d"' }
  assert.deepEqual((await sync(storage, mirror, 'kev', 'epss')).stdout.split('\n').slice(0, 2), [
    'kev: 0 new, 0 changed, 1 unchanged, 1 withdrawn',
    'epss: 0 new, 1 changed, 2499 unchanged, 0 withdrawn',
  ])
  const { kev: listed, epss: scored } = await status(storage)
  assert.deepEqual([listed!.records, listed!.licence, listed!.ecosystems], ['1', 'CC0-1.0', []])
  assert.deepEqual([scored!.records, scored!.licence, scored!.error], ['2500', 'unknown', ''])
})

test('a damaged list, or one with an invalid line, fails with the reason and keeps its entries', async () => {
  await using storage = await createStorage()
  const good = epss('CVE-2026-1000,0.1,0.5')
  await using mirror = await startMirror({ 'epss.csv.gz': { body: good }, 'kev.json': { body: kev('CVE-2026-1000') } })
  await sync(storage, mirror, 'kev', 'epss')
  for (const [body, reason] of [
    [good.subarray(0, 20), 'the file cannot be decompressed'],
    [Buffer.from('no gzip'), 'the file cannot be decompressed'],
    [epss('CVE-2026-1000,0.1,0.5', 'CVE-2026-1001,7,0.5'), 'line 4 is not a valid score'],
  ] as const) {
    mirror.files['epss.csv.gz'] = { body }
    const { code, stdout } = await sync(storage, mirror, 'epss', 'kev')
    assert.equal(code, 1)
    assert.deepEqual(stdout.split('\n').slice(0, 2), [
      `epss: failed, and keeps its former data: ${reason}`,
      'kev: 0 new, 0 changed, 1 unchanged, 0 withdrawn',
    ])
  }
  mirror.files['epss.csv.gz'] = { body: epss('CVE-2026-1000,0.1,0.5', 'CVE-2026-1000,0.2,0.6') }
  const twice = await sync(storage, mirror, 'epss')
  assert.deepEqual([twice.code, twice.stderr], [1, 'pinfold: epss/CVE-2026-1000: cve: is given twice\n'])
  assert.deepEqual((await status(storage)).epss!.records, '1')
})

test('a bundle contains only the ranking lists whose license allows it', async () => {
  await using storage = await createStorage()
  await using mirror = await startMirror({
    'kev.json': { body: kev('CVE-2026-1000') },
    'epss.csv.gz': { body: epss('CVE-2026-1000,0.1,0.5') },
  })
  const bundle = `${storage.data}-bundle`
  const sources = ['--source', 'kev', '--source', 'epss', '--mirror', mirror.url]
  const packed = await run(['vulnerabilities', 'pack', bundle, ...sources], { env: storage.env })
  assert.equal(packed.code, 0)
  assert.match(packed.stderr, /^pinfold: epss was left out: its license \(unknown\) forbids redistribution$/m)
  const from = ['vulnerabilities', 'sync', ...storage.args, '--from', bundle]
  assert.match((await run(from, { env: storage.env })).stdout, /^kev: 1 new, 0 changed, 0 unchanged, 0 withdrawn$/m)
})
