// Records of vulnerability sources are stored with their former contents, and read in batches.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { insertsOf } from '#db/bulk.ts'
import { sql } from '#db/sql.ts'
import { beginSource, finishSource, putRecords, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { countRecords, findSource } from '#domains/scanning/records/records.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let now = new Date('2026-03-01T00:00:00Z')
before(async () => {
  pinfold = await startPinfold({ clock: () => now })
})
after(() => pinfold[Symbol.asyncDispose]())

const work = () => ({ app: pinfold.app, log: pinfold.app.log })
const facts = { name: 'osv/Alpine:v3.19', url: 'https://osv.test', licence: 'MIT', ecosystems: ['Alpine:v3.19'] }
const ended = { fingerprint: 'a', buildTime: '2026-02-28T00:00:00.000Z', complete: true, error: '' }

function recordOf(id: string, fixed: string, more: Partial<SourceRecord> = {}): SourceRecord {
  return {
    id,
    aliases: [],
    upstream: [`CVE-${id}`],
    summary: 'a flaw',
    publishTime: '',
    modifyTime: '',
    withdrawTime: '',
    severities: [],
    references: [],
    affected: [
      {
        ecosystem: 'Alpine:v3.19',
        name: 'openssl',
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
        versions: [],
        state: 'affected',
        severity: '',
        qualifiers: {},
      },
    ],
    ...more,
  }
}

const affectedNow = async () => {
  const rows = await pinfold.app.db.all<{ ranges: string }>(sql`
    SELECT a.ranges FROM affected_packages a WHERE a.until_time = '' ORDER BY a.id`)
  return rows.map(({ ranges }) => JSON.parse(ranges)[0].events[1].fixed)
}

test('replaces a record with different content, and keeps a record that differs only in time', async () => {
  const first = await beginSource(work(), facts)
  const many = Array.from({ length: 250 }, (_, i) => recordOf(`R-${i}`, '1-r0'))
  assert.deepEqual(await putRecords(work(), first, many), { created: 250, updated: 0, unchanged: 0 })
  await finishSource(work(), first, ended)

  const second = await beginSource(work(), facts)
  const changed = many.map((one, i) => (i === 7 ? recordOf(one.id, '2-r0') : { ...one, modifyTime: now.toISOString() }))
  assert.deepEqual(await putRecords(work(), second, changed), { created: 0, updated: 1, unchanged: 249 })
  await finishSource(work(), second, ended)
  assert.equal((await affectedNow()).filter((fixed) => fixed === '2-r0').length, 1)
  assert.equal((await affectedNow()).length, 250)
})

test('a complete run withdraws missing records, and an incremental run does not', async () => {
  const source = await findSource(pinfold.app.db, facts.name)
  const incremental = await beginSource(work(), facts)
  await putRecords(work(), incremental, [recordOf('R-1', '3-r0')])
  assert.deepEqual(await finishSource(work(), incremental, { ...ended, complete: false }), { withdrawn: 0 })
  assert.equal((await countRecords(pinfold.app.db)).get(source!.sourceNo), 250)

  const complete = await beginSource(work(), facts)
  await putRecords(work(), complete, [recordOf('R-1', '3-r0')])
  assert.deepEqual(await finishSource(work(), complete, ended), { withdrawn: 249 })
  assert.deepEqual(await affectedNow(), ['3-r0'])
})

test('a failing source keeps its records and its last read time', async () => {
  now = new Date('2026-03-02T00:00:00Z')
  const run = await beginSource(work(), facts)
  await finishSource(work(), run, { ...ended, fingerprint: 'b', error: 'the server is away' })
  const source = await findSource(pinfold.app.db, facts.name)
  assert.equal(source?.error, 'the server is away')
  assert.equal(source?.fingerprint, 'a')
  assert.equal(source?.fetchTime, '2026-03-01T00:00:00.000Z')
  assert.equal(source?.tryTime, '2026-03-02T00:00:00.000Z')
  assert.deepEqual(await affectedNow(), ['3-r0'])
})

test('a withdrawn record affects no package', async () => {
  const run = await beginSource(work(), facts)
  await putRecords(work(), run, [recordOf('R-1', '3-r0', { withdrawTime: '2026-03-02T00:00:00.000Z' })])
  await finishSource(work(), run, ended)
  assert.deepEqual(await affectedNow(), [])
})

test('refuses a record longer than any real one, and names the field', async () => {
  const run = await beginSource(work(), facts)
  const long = recordOf('R-2', '1', { aliases: Array.from({ length: 1001 }, (_, i) => `A-${i}`), upstream: [] })
  await assert.rejects(putRecords(work(), run, [long]), /records\[0\]\.aliases|INVALID_ARGUMENT|must hold/)
})

test('keeps all reads for a time, then one of each day, including the first', async () => {
  const daily = { ...facts, name: 'osv/daily' }
  const whole = async (error = '') => finishSource(work(), await beginSource(work(), daily), { ...ended, error })
  now = new Date('2026-04-01T00:00:00Z')
  await whole()
  const { sourceNo } = (await findSource(pinfold.app.db, daily.name))!
  const at = (day: number, hour: number) => new Date(Date.UTC(2026, 3, 1 + day, hour)).toISOString()
  const rows = Array.from(
    { length: 60 * 24 },
    (_, i) => sql`(${sourceNo}, ${at(1 + Math.floor(i / 24), i % 24)}, '', '[]')`,
  )
  const into = sql`INSERT INTO vulnerability_source_reads (source_id, fetch_time, build_time, ecosystems)`
  await pinfold.app.db.tx(async (tx) => {
    for (const insert of insertsOf(into, rows)) await tx.run(insert)
  })
  now = new Date(at(61, 0))
  await whole()
  const left = await pinfold.app.db.all<{ time: string }>(sql`
    SELECT fetch_time AS time FROM vulnerability_source_reads WHERE source_id = ${sourceNo} ORDER BY fetch_time`)
  const old = left.slice(0, -1000).map(({ time }) => time)
  assert.deepEqual(old.slice(0, 3), ['2026-04-01T00:00:00.000Z', at(1, 23), at(2, 23)])
  assert.equal(left.at(-1)?.time, at(61, 0))
  assert.deepEqual(
    old.map((time) => time.slice(0, 10)),
    [...new Set(old.map((time) => time.slice(0, 10)))],
  )
})
