// Withdrawal of statements: a later document of a signer withdraws their earlier statements, whatever comes in between.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { keysOf } from '../support/attest.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { all, openssl, type SignedImages, said, startSignedImages, vex, without, zlib } from '../support/signers.ts'

let images: SignedImages
before(async () => {
  images = await startSignedImages()
})
after(() => images[Symbol.asyncDispose]())

const day = (number: number): string => `2026-02-0${number}T00:00:00Z`
const begin = async (name: string) => {
  const [digest, keys] = [await images.image(name), keysOf.ed25519!()]
  await images.trusted(keys)
  return { digest, keys }
}
const rowsOf = (digest: string) =>
  images.registry.app.db.all<{ status: string; statement: string; until: string }>(sql`
    SELECT status, statement, until_time AS until FROM signed_statements WHERE digest = ${digest} ORDER BY id`)

test('a newer document with the same text as an older one withdraws statements made in between', async () => {
  const { digest, keys } = await begin('same words')
  const looking = said('CVE-2026-2', 'under_investigation', [])
  await images.says(digest, keys, [looking], day(1))
  await images.says(digest, keys, [said('CVE-2026-2', 'not_affected', [openssl])], day(2))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
  await images.says(digest, keys, [looking], day(3))
  assert.deepEqual(await images.counted(digest), all)
})

test('a late document withdraws earlier statements, as if it had arrived in time', async () => {
  const { digest, keys } = await begin('late')
  await images.says(digest, keys, [said('CVE-2026-2', 'not_affected', [])], day(1))
  await images.says(digest, keys, [said('CVE-2026-2', 'fixed', [zlib])], day(3))
  await images.says(digest, keys, [said('CVE-2026-2', 'affected', [zlib])], day(2))
  assert.deepEqual(await images.counted(digest), all)
})

test('withdrawing a statement about one name of a vulnerability applies to all its names', async () => {
  const { digest, keys } = await begin('names')
  await images.says(digest, keys, [said('CVE-2026-3', 'fixed', [])], day(1))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-3'))
  const vulnerability = { name: 'ACME-7', aliases: ['CVE-2026-3', 'ACME-8'] }
  await images.says(digest, keys, [{ ...said('', 'affected', []), vulnerability }], day(2))
  assert.deepEqual(await images.counted(digest), all)
})

test('two statements of the same time about one package count as one, however often they are read', async () => {
  const { digest, keys } = await begin('two words')
  const twice = (text: string) => said('CVE-2026-2', 'fixed', [openssl], { impact_statement: text })
  await images.says(digest, keys, [twice('one'), twice('other')], day(1))
  await images.says(digest, keys, [twice('other'), twice('third')], day(1))
  assert.deepEqual(
    (await rowsOf(digest)).map(({ status, until }) => [status, until]),
    [['fixed', '']],
  )
})

const analysed = (states: Record<string, string>, timestamp?: string): Json => ({
  ...{ bomFormat: 'CycloneDX', specVersion: '1.6', components: [] },
  metadata: { ...(timestamp && { timestamp }), tools: [{ name: 'acme' }] },
  vulnerabilities: Object.entries(states).map(([id, state]) => ({ id, analysis: { state } })),
})
const cyclonedx = 'https://cyclonedx.org/bom/v1.6'

test('an analysis in CycloneDX counts from the time of its document', async () => {
  const { digest, keys } = await begin('cyclonedx')
  const push = async (...given: Parameters<typeof analysed>) => {
    await images.push(digest, keys, analysed(...given), cyclonedx)
    await images.readAll()
  }
  await push({ 'CVE-2026-1': 'in_triage', 'CVE-2026-2': 'resolved' }, day(1))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
  await push({ 'CVE-2026-1': 'resolved', 'CVE-2026-2': 'exploitable' }, day(2))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
})

test('a statement without a time hides findings without another statement, and withdraws statements made before its arrival', async () => {
  const { digest, keys } = await begin('no time')
  await images.push(digest, keys, analysed({ 'CVE-2026-1': 'resolved' }), cyclonedx)
  await images.readAll()
  await images.says(digest, keys, [said('CVE-2026-2', 'fixed', [])], day(2))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  await images.push(digest, keys, analysed({ 'CVE-2026-1': 'in_triage', 'CVE-2026-2': 'exploitable' }), cyclonedx)
  await images.readAll()
  assert.deepEqual(await images.counted(digest), all)
  const again = vex([said('CVE-2026-2', 'fixed', [])])
  await images.push(digest, keys, { ...again, timestamp: '', last_updated: '' })
  await images.readAll()
  assert.deepEqual(await images.counted(digest), all)
})

test('deleting an image deletes statements that hide findings, but keeps those that withdraw older documents', async () => {
  const { digest, keys } = await begin('deleted')
  const old = [said('CVE-2026-1', 'fixed', [zlib]), said('CVE-2026-2', 'fixed', [openssl])]
  await images.says(digest, keys, old, day(1))
  await images.says(digest, keys, [said('CVE-2026-2', 'affected', [openssl])], day(2))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await images.pusher.ok(202, 'DELETE', `acme/app/manifests/${digest}`)
  assert.deepEqual(
    (await rowsOf(digest)).map(({ status }) => status),
    ['affected'],
  )
  assert.equal(await images.image('deleted'), digest)
  await images.says(digest, keys, old, day(1))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
})

test('keeps a signed document longer than unsigned ones', async () => {
  const { digest, keys } = await begin('pruned')
  await images.says(digest, keys, [said('CVE-2026-2', 'affected', [])], day(2))
  const hand = async (i: number) => {
    const document = JSON.stringify(vex([said(`CVE-2026-${i}`, 'affected', [])], `2026-01-01T00:00:${10 + (i % 50)}Z`))
    const report = Buffer.from(document).toString('base64')
    ok(await images.owner.post(`${images.at(digest)}/scanReports`, { report }))
  }
  for (let i = 0; i < 55; i++) await hand(1000 + i)
  await images.readAll()
  const reports = await images.reportsOf(digest)
  assert.equal(reports.filter(({ state }) => state === 'stated').length, 50)
  assert.equal(reports.filter(({ signers }) => signers?.length > 0).length, 1)
})
