// Limits on the images and repositories that one request about packages reads.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ident, join, type Reader, sql, type Tx, type Value } from '#db/sql.ts'
import { ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { digestOf, startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const ecosystem = 'Alpine:v3.19'
let registry: TestRegistry
let viewer: Client
before(async () => {
  registry = await startRegistry()
  viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
  await readSource(registry.app, ecosystem, [recordAbout('CVE-2026-1', ecosystem, 'musl', '9')])
})
after(() => registry[Symbol.asyncDispose]())

type Row = Record<string, Value>
const rowOf = async (reader: Reader, table: string, name: string, value: Value): Promise<Row> =>
  (await reader.get<Row>(sql`SELECT * FROM ${ident(table)} WHERE ${ident(name)} = ${value}`))!
const insert = (tx: Tx, table: string, row: Row) => {
  const names = Object.keys(row).map((name) => ident(name))
  const values = Object.values(row).map((value) => sql`${value}`)
  return tx.run(sql`INSERT INTO ${ident(table)} (${join(names, ', ')}) VALUES (${join(values, ', ')})`)
}

test('lists the packages of up to 1000 images of a repository', async () => {
  const { uid } = await registry.seed.repo(registry.org.uid, { name: 'many' })
  const digest = await pushAndScan(registry, 'acme/many', apkLayer('alpine', '3.19.1', ['musl 1-r0']), 'latest')
  const row = await rowOf(registry.app.db, 'image_contents', 'digest', digest)
  const plant = (from: number, to: number) =>
    registry.app.db.tx(async (tx) => {
      for (let i = from; i < to; i++) await insert(tx, 'image_contents', { ...row, digest: digestOf(`image ${i}`) })
    })
  const list = () => viewer.get(`/registry/v1/repos/${uid}/manifestmetdata`)
  await plant(1, 1000)
  assert.equal(ok(await list()).items.length, 1000)
  await plant(1000, 1001)
  const refused = await list()
  assert.deepEqual([refused.status, /1000 images/.test(refused.text)], [429, true], refused.text)
})

test('finds the report of an image after a page of repositories of other organizations', async () => {
  const layer = apkLayer('alpine', '3.19.1', ['musl 1-r0', 'same 1-r0'])
  const other = (await registry.seed.group('', { name: 'beside' })).uid
  const { uid: pusher } = await registry.seed.member(other, roleUids.push)
  const { uid: hidden } = await registry.seed.repo(other, { name: 'app' })
  const digest = await pushAndScan(
    { ...registry, pusher: { ...registry.pusher, uid: pusher } },
    'beside/app',
    layer,
    'v1',
  )
  const { db } = registry.app
  const [repo, contents] = [
    await rowOf(db, 'repos', 'uid', hidden),
    await rowOf(db, 'image_contents', 'digest', digest),
  ]
  await db.tx(async (tx) => {
    for (let i = 1; i < 500; i++) {
      const { id } = (await tx.get<{ id: number }>(sql`INSERT INTO repo_ids DEFAULT VALUES RETURNING id`))!
      const uid = `${other}/${`${i}`.padStart(16, '0')}`
      await insert(tx, 'repos', { ...repo, id, uid, name: `app${i}`, ledger_id: null })
      await insert(tx, 'image_contents', { ...contents, repo_id: id })
    }
  })
  await registry.seed.repo(registry.org.uid, { name: 'last' })
  assert.equal(await pushAndScan(registry, 'acme/last', layer, 'v1'), digest)
  const { items } = ok(await viewer.get(`/registry/v1/vuln_reports?digest=${digest}`)) as { items: Json[] }
  assert.deepEqual(
    items[0]?.vulnerabilities.map(({ id }: Json) => id),
    ['CVE-2026-1'],
  )
})
