import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid } from '../support/expect.ts'
import { artifactsOf, importInto, importPath } from '../support/libraries.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const time = (day: number) => `2026-01-0${day}T00:00:00.000Z`
const counts = (...[created, updated, unchanged, versionsCreated, versionsUpdated, versionsUnchanged]: number[]) => ({
  created,
  updated,
  unchanged,
  versionsCreated,
  versionsUpdated,
  versionsUnchanged,
})
const python = (given: Parameters<typeof artifactsOf>[1]) => artifactsOf('python', given)

async function shown(name: string, from = pinfold): Promise<{ artifact: Json; versions: Json[] }> {
  const { body } = await from.operator.get(`/libraries/v2/artifacts?ecosystems=2&query=${name}&page_size=200`)
  const versions = await from.operator.get(`/libraries/v2/artifacts/python%3A${name}/versions?page_size=200`)
  return {
    artifact: body.artifacts.find((one: Json) => one.name === name),
    versions: versions.body.artifactVersions,
  }
}

test('an import reports new entries, and none when repeated', async () => {
  const given = [python({ again: ['1.0', { version: '2.0', sizeBytes: '5', releaseTime: time(2) }], other: ['1'] })]
  assert.deepEqual((await importInto(pinfold, ...given)).body, counts(2, 0, 0, 3, 0, 0))
  const before = await shown('again')
  assert.deepEqual((await importInto(pinfold, ...given)).body, counts(0, 0, 2, 0, 0, 3))
  assert.deepEqual(await shown('again'), before)
  const more = python({ again: ['1.0', '3.0', { version: '2.0', sizeBytes: '6' }], third: ['1'] })
  assert.deepEqual((await importInto(pinfold, more)).body, counts(1, 1, 0, 2, 1, 1))
})

test('merges data of several sources, in any order and however often it is imported', async () => {
  const sources = [
    python({ joined: [{ version: '1.0', sizeBytes: '10', releaseTime: time(3), changeTime: time(4) }] }),
    python({ joined: ['1.0', '0.9'] }),
    python({
      Joined: [
        { version: '1.0', sizeBytes: '7', releaseTime: time(2), remediated: true },
        { version: '2.0', releaseTime: time(5) },
      ],
    }),
    python({ joined: [{ version: '1.0', changeTime: time(6), description: 'one line' }] }),
  ]
  const seed = randomInt(2 ** 31)
  const random = randomFrom(seed)
  const results: string[] = []
  for (let round = 0; round < 4; round++) {
    await using other = await startPinfold({ clock: () => new Date(time(9)) })
    const order = [...sources, ...sources]
      .map((source) => ({ source, at: random.below(1000) }))
      .sort((a, b) => a.at - b.at)
    for (const { source } of order) assert.equal((await importInto(other, source)).status, 200)
    results.push(JSON.stringify(await shown('joined', other)))
  }
  assert.equal(new Set(results).size, 1, `seed ${seed}: ${results.join('\n')}`)

  const { artifact, versions } = JSON.parse(results[0]!)
  assert.deepEqual(
    [artifact.versionCount, artifact.latestVersion, artifact.createTime, artifact.updateTime],
    [3, '2.0', time(2), time(5)],
  )
  const one = versions.find(({ version }: Json) => version === '1.0')
  assert.deepEqual(
    [one.sizeBytes, one.createTime, one.updateTime, one.description],
    ['10', time(2), time(6), 'one line'],
  )
})

test('counts a library or version once if a request names it twice', async () => {
  const twice = [
    ...python({ Twice_: [] }),
    ...python({ 'twi.ce': ['1', { version: '1', sizeBytes: '3' }] }),
    ...python({ 'Twi-Ce': ['1', '2'] }),
  ].slice(1)
  assert.deepEqual((await importInto(pinfold, twice)).body, counts(1, 0, 0, 2, 0, 0))
  assert.deepEqual(
    (await shown('twi-ce')).versions.map(({ sizeBytes }) => sizeBytes),
    ['0', '3'],
  )
})

test('one invalid value refuses the whole request, and the error names the value', async () => {
  const good = python({ 'never-seen': ['1.0'] })[0]!
  const wrong: [Json, string][] = [
    [{ name: '' }, 'name'],
    [{ name: 'a b' }, 'name'],
    [{ name: '-a' }, 'name'],
    [{ name: 'a'.repeat(256) }, 'name'],
    [{ ecosystem: 'ECOSYSTEM_JAVA' }, 'name'],
    [{ ecosystem: 'ECOSYSTEM_JAVA', name: 'g:a:b' }, 'name'],
    [{ ecosystem: 'ECOSYSTEM_UNSPECIFIED' }, 'ecosystem'],
    [{ versions: [] }, 'versions'],
    [{ versions: [{ version: '' }] }, 'versions[0].version'],
    [{ versions: [{ version: '1' }, { version: '1 0' }] }, 'versions[1].version'],
    [{ versions: [{ version: '1é' }] }, 'versions[0].version'],
    [{ versions: [{ version: '1'.repeat(129) }] }, 'versions[0].version'],
    [{ versions: [{ version: '1', description: 'two\nlines' }] }, 'versions[0].description'],
    [{ versions: [{ version: '1', description: 'x'.repeat(513) }] }, 'versions[0].description'],
    [{ versions: [{ version: '1', sizeBytes: '-1' }] }, 'versions[0].size_bytes'],
    [{ versions: [{ version: '1', sizeBytes: '9223372036854775807' }] }, 'versions[0].size_bytes'],
  ]
  for (const [change, field] of wrong) {
    assertInvalid(await importInto(pinfold, [good, { ...good, ...change }]), `artifacts[1].${field}`)
  }
  const { versions } = await shown('never-seen')
  assert.equal(versions, undefined)
  const many = (count: number, ...of: string[]) =>
    Array.from({ length: count }, () => ({ ...good, versions: of.map((version) => ({ version })) }))
  assertInvalid(await importInto(pinfold, many(1001, '1')), 'artifacts')
  assertInvalid(await importInto(pinfold, many(501, ...Array(100).fill('1'))), 'artifacts')
})

test('keeps an import run with its imported data until the run ends', async () => {
  const id = 'ab'.repeat(32)
  const run = async () => (await pinfold.operator.get(`/control/v1/artifactImportRuns/${id}`)).body
  assert.deepEqual(await run(), { id, after: '' })
  const send = (artifacts: Json[], after: string) =>
    pinfold.operator.post(importPath, { artifacts, run: { id, after } })
  for (const after of ['run-a', 'run-b']) {
    assert.equal((await send(python({ [after]: ['1'] }), after)).status, 200)
    assert.deepEqual(await run(), { id, after })
  }
  assert.equal((await send(python({ 'run c': ['1'] }), 'run c')).status, 400)
  assert.deepEqual(await run(), { id, after: 'run-b' })
  assert.equal((await send([], '')).status, 200)
  assert.deepEqual(await run(), { id, after: '' })
  assertInvalid(await pinfold.operator.get('/control/v1/artifactImportRuns/short'), 'id')
  assertInvalid(
    await pinfold.operator.post(importPath, { run: { id: 'short', after: 'x'.repeat(256) } }),
    'run.id',
    'run.after',
  )
})

test('only the operator can import', async () => {
  const group = (await pinfold.seed.group()).uid
  const owner = await pinfold.as((await pinfold.seed.member(group, roleUids.owner)).uid)
  assertDenied(await owner.post(importPath, { artifacts: python({ mine: ['1'] }) }))
  assertDenied(await owner.get(`/control/v1/artifactImportRuns/${'0'.repeat(64)}`))
  assert.equal((await pinfold.anonymous.post(importPath, {})).status, 401)
})

test('after concurrent imports, lists, totals and search agree with the tables', async () => {
  await using other = await startPinfold()
  const seed = randomInt(2 ** 31)
  const random = randomFrom(seed)
  const words = ['core', 'util', 'torch', 'gpu-cu12', 'a', 'Z']
  const one = () => {
    const of = random.below(2) === 0 ? 'java' : 'python'
    const word = () => words[random.below(words.length)]!
    const version = () => ({
      version: ['1.0', '1.1', '2.0+cu121', '2.0-rc1', '0'][random.below(5)]!,
      sizeBytes: String(random.below(3)),
      remediated: random.below(4) === 0,
      ...(random.below(2) === 0 ? { releaseTime: time(1 + random.below(9)) } : {}),
    })
    return artifactsOf(of, { [of === 'java' ? `${word()}:${word()}` : `${word()}-${word()}`]: [version(), version()] })
  }
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const answer = await importInto(other, one(), one(), one())
      assert.equal(answer.status, 200, answer.text)
    }),
  )
  await checkTables(other)
})

type Row = {
  id: number
  uid: string
  ecosystem: string
  name: string
  version_count: number
  places: string
  create_time: string
  update_time: string
}

async function checkTables({ app: { db } }: Pinfold): Promise<void> {
  const rows = await db.all<Row>(sql`SELECT * FROM artifacts`)
  const [keys, totals, grams, gramTotals] = [
    new Set<string>(),
    new Map<string, number>(),
    new Set<string>(),
    new Map<string, number>(),
  ]
  const add = (to: Map<string, number>, key: string) => to.set(key, (to.get(key) ?? 0) + 1)
  for (const { id, uid, ecosystem, name, places, version_count, create_time, update_time } of rows) {
    const counted = await db.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM artifact_versions WHERE artifact_id = ${id}`,
    )
    assert.equal(version_count, counted!.n)
    const values = { uid, name, create_time, update_time }
    for (const scope of JSON.parse(places) as string[]) {
      add(totals, scope)
      for (const [key, value] of Object.entries(values))
        keys.add(JSON.stringify([`artifacts.${key}`, scope, value, uid, id]))
    }
    const text = name.toLowerCase()
    const within = (length: number, of: string) =>
      new Set(Array.from({ length: Math.max(0, of.length - length + 1) }, (_, i) => of.slice(i, i + length)))
    for (const gram of within(3, `${text}\u0001\u0001`)) grams.add(JSON.stringify([`artifacts.${ecosystem}`, gram, id]))
    for (const length of [1, 2, 3])
      for (const gram of within(length, text)) add(gramTotals, `artifacts.${ecosystem} ${gram}`)
  }
  type Key = { list: string; place: string; value: string; uid: string; id: number }
  const listed = await db.all<Key>(sql`SELECT * FROM list_keys WHERE list LIKE 'artifacts.%'`)
  assert.deepEqual(
    listed.map((k) => JSON.stringify([k.list, k.place, k.value, k.uid, Number(k.id)])).sort(),
    [...keys].sort(),
  )
  const found = await db.all<{ kind: string; gram: string; id: number }>(sql`SELECT * FROM trigrams`)
  assert.deepEqual(
    found.map(({ kind, gram, id }) => JSON.stringify([kind, gram, Number(id)])).sort(),
    [...grams].sort(),
  )
  type Total = { key: string; total: number }
  const summed = async (rows: Promise<Total[]>) => new Map((await rows).map(({ key, total }) => [key, Number(total)]))
  const counted = db.all<Total>(sql`
    SELECT place AS key, sum(total) AS total FROM list_counts WHERE kind = 'artifacts' GROUP BY place`)
  assert.deepEqual(await summed(counted), totals)
  const ofGrams = db.all<Total>(sql`
    SELECT kind || ' ' || gram AS key, sum(total) AS total FROM trigram_counts GROUP BY kind, gram`)
  assert.deepEqual(await summed(ofGrams), gramTotals)
}
