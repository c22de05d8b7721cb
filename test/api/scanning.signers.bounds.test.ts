// Limits for signed statements and imported documents: they use bounded space and time, and can still be withdrawn above the
// limits.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readerLimits } from '#contents/reader.ts'
import { sql } from '#db/sql.ts'
import { readReportsWithin } from '#domains/scanning/signers/read-reports.job.ts'
import { mostSigned } from '#domains/scanning/signers/signers.model.ts'
import { keysOf, statementAbout } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { checkUsage } from '../support/check-usage.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { indexOf, types } from '../support/registry.ts'
import { all, openssl, type SignedImages, said, startSignedImages, vex, without, zlib } from '../support/signers.ts'

let images: SignedImages
before(async () => {
  images = await startSignedImages()
})
after(() => images[Symbol.asyncDispose]())

const day = (number: number): string => `2026-02-0${number}T00:00:00Z`
const change = (query: ReturnType<typeof sql>) => images.registry.app.db.tx((tx) => tx.run(query))
const begin = async (name: string) => {
  const [digest, keys] = [await images.image(name), keysOf.ed25519!()]
  await images.trusted(keys)
  return { digest, keys }
}
const rowsOf = async (digest: string): Promise<number> => {
  const row = await images.registry.app.db.get<{ rows: number }>(
    sql`SELECT count(*) AS rows FROM signed_statements WHERE digest = ${digest}`,
  )
  return Number(row!.rows)
}
const handIn = async (digest: string, document: Json) => {
  const report = Buffer.from(JSON.stringify(document)).toString('base64')
  ok(await images.owner.post(`${images.at(digest)}/scanReports`, { report }))
}
/** As an index lists them. */
async function listing(...digests: string[]) {
  const listed: { mediaType: string; digest: string; size: number }[] = []
  for (const digest of digests) {
    const { headers } = await images.pusher.ok(200, 'HEAD', `acme/app/manifests/${digest}`)
    listed.push({ mediaType: types.image, digest, size: Number(headers['content-length']) })
  }
  return listed
}
/** Statements about the given number of versions of a package, none of which the image has. */
const versions = (status: string, from: number, count: number): Json[] =>
  Array.from({ length: count / 100 }, (_, i) =>
    said(
      ...(['CVE-2026-1', status] as const),
      Array.from({ length: 100 }, (_, j) => `pkg:apk/alpine/zlib@${from + i * 100 + j}`),
    ),
  )

test('a document with very many statements about one package lets other work run in between', async () => {
  const { digest, keys } = await begin('versions')
  await images.push(digest, keys, vex([...versions('affected', 0, 2000), ...versions('fixed', 2000, 2000)]))
  const seen = new Set<number>()
  const reading = images.readAll()
  for (let done = false; !done; ) {
    done = await Promise.race([reading.then(() => true), sleep(2, false)])
    seen.add(await rowsOf(digest))
  }
  seen.delete(0)
  // Other requests run between the batches, because each batch is a transaction followed by a pause.
  assert.ok(seen.has(4000) && seen.size > 1, `others saw ${[...seen]}`)
})

test('statements beyond 20,000 rows of an image hide no more findings, and can still be withdrawn', async () => {
  const { digest, keys } = await begin('full')
  await images.says(digest, keys, [said('CVE-2026-2', 'fixed', [openssl])], day(1))
  await change(sql`
    INSERT INTO signed_statements (repo_uid, digest, vulnerability, package, signer_uid, status, stated, statement, said_time, from_time)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 19998)
    SELECT ${images.repo}, CAST(${digest} AS TEXT), 'CVE-1', CAST(i AS TEXT), 'x', 'fixed', '', '', '', '' FROM n`)
  await images.says(digest, keys, [said('CVE-2026-3', 'fixed', []), said('CVE-2026-1', 'fixed', [zlib])], day(2))
  assert.equal(await rowsOf(digest), 20_000)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2', 'CVE-2026-3'))
  await images.says(digest, keys, [said('CVE-2026-2', 'affected', [openssl])], day(3))
  assert.equal(await rowsOf(digest), 20_001)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-3'))
  await change(sql`DELETE FROM signed_statements WHERE signer_uid = 'x'`)
})

const readWithin = (limits: { rows?: number; verifiedBytes?: number }) => {
  const reader = { ...readerLimits, verifiedBytes: limits.verifiedBytes ?? readerLimits.verifiedBytes }
  return runJob(images.registry.app, readReportsWithin({ reader, rows: limits.rows ?? mostSigned.ofDocument }))
}

test('statements beyond the row limit of a document hide no more findings in any image, and can still be withdrawn', async () => {
  const { digest, keys } = await begin('document')
  const other = await images.image('document, other')
  const index = await images.pusher.pushManifest('acme/app', indexOf(await listing(digest, other)), 'document')
  const say = async (statements: readonly Json[], number: number, rows: number) => {
    await images.push(index.digest, keys, vex(statements, day(number)))
    await readWithin({ rows })
  }
  // Two images of the index, two other images, and one of the other index.
  await say([said('CVE-2026-1', 'fixed', [zlib]), said('CVE-2026-2', 'fixed', [openssl])], 1, 5)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  assert.deepEqual(await images.counted(other), without('CVE-2026-1'))
  await say([said('CVE-2026-1', 'affected', [zlib]), said('CVE-2026-3', 'fixed', [])], 2, 1)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
  assert.deepEqual(await images.counted(other), all)
})

test('an envelope with too many bytes to verify with all keys hides no finding', async () => {
  const [digest, keys, stranger] = [await images.image('verified'), keysOf.ed25519!(), keysOf.ed25519!()]
  await images.trusted(stranger)
  await images.trusted(keys)
  const document = vex([said('CVE-2026-1', 'fixed', [zlib])])
  await images.push(digest, keys, document)
  const { length } = JSON.stringify(statementAbout(digest, document))
  await readWithin({ verifiedBytes: length * 1.5 })
  assert.deepEqual(await images.counted(digest), all)
  // A new signer makes the server verify the envelope again.
  await images.trusted(keysOf.ed25519!())
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
})

test('signed statements count for the quota of the organization, and hide no finding above it', async () => {
  const { digest, keys } = await begin('charged')
  const { bytes } = (await checkUsage(images.registry)).get(images.registry.org.uid)!
  await images.says(digest, keys, [said('CVE-2026-2', 'fixed', [openssl])], day(1))
  await images.push(digest, keys, vex([...versions('fixed', 0, 5000), said('CVE-2026-2', 'affected', [])], day(2)))
  const limits = [{ name: 'bytes', limit: String(bytes + 1_000_000) }]
  const organization = images.registry.org.uid
  ok(await images.registry.operator.post('/control/v1/quotas:set', { organization, limits }))
  await images.readAll()
  const rows = await rowsOf(digest)
  assert.ok(rows >= 1 && rows < 1000, `${rows}`)
  assert.deepEqual(await images.counted(digest), all)
  await checkUsage(images.registry)
  const none = [{ name: 'bytes' }]
  ok(await images.registry.operator.post('/control/v1/quotas:set', { organization, limits: none }))
  await images.says(digest, keys, [said('CVE-2026-2', 'fixed', [openssl])], day(1))
  assert.deepEqual(await images.counted(digest), all, 'what had no room has still taken it back')
  await images.pusher.ok(202, 'DELETE', `acme/app/manifests/${digest}`)
  await checkUsage(images.registry)
})

test('reads the first hundred images of an index', async () => {
  const { digest, keys } = await begin('many')
  const manifest = (await images.pusher.ok(200, 'GET', `acme/app/manifests/${digest}`)).body
  const copies: string[] = []
  for (let i = 0; i < 105; i++) {
    const one = await images.pusher.pushManifest('acme/app', { ...manifest, annotations: { number: `${i}` } })
    copies.push(one.digest)
  }
  const index = await images.pusher.pushManifest('acme/app', indexOf(await listing(...copies)), 'many')
  await images.says(index.digest, keys, [said('CVE-2026-77', 'fixed', [])])
  const row = await images.registry.app.db.get<{ digests: number }>(
    sql`SELECT count(DISTINCT digest) AS digests FROM signed_statements WHERE vulnerability = 'CVE-2026-77'`,
  )
  assert.equal(Number(row!.digests), 100)
})

test('imported documents do not prevent a signed document from counting', async () => {
  const { digest, keys } = await begin('beside')
  await images.push(digest, keys, vex([said('CVE-2026-2', 'fixed', [openssl])]))
  for (let i = 0; i < 55; i++) await handIn(digest, vex([said(`CVE-2026-${1000 + i}`, 'affected', [])]))
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
})

test('does not lose a document that cannot be read yet while other documents are imported', async () => {
  const [digest, keys] = [await images.image('meanwhile'), keysOf.ed25519!()]
  await images.push(digest, keys, vex([said('CVE-2026-2', 'fixed', [openssl])]))
  await images.readAll()
  const { raw } = (await images.registry.app.db.get<{ raw: string }>(
    sql`SELECT raw_digest AS raw FROM scan_reports WHERE digest = ${digest}`,
  ))!
  const missing = `sha256:${'0'.repeat(64)}`
  await change(sql`UPDATE scan_reports SET raw_digest = ${missing} WHERE digest = ${digest}`)
  await images.trusted(keys)
  for (let i = 0; i < 55; i++) await handIn(digest, vex([said(`CVE-2026-${2000 + i}`, 'affected', [])]))
  await images.readAll()
  await change(sql`UPDATE scan_reports SET raw_digest = ${raw} WHERE raw_digest = ${missing}`)
  await images.moveTo('2026-03-01T08:05:00Z')
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
})

test('a document refused because of a full queue counts once it is pushed again', async () => {
  const { digest, keys } = await begin('no place')
  const organization = images.registry.org.uid
  const row = await images.registry.app.db.get<{ repo: number }>(sql`SELECT repo_id AS repo FROM scan_reports LIMIT 1`)
  const due = '2026-03-02T00:00:00.000Z'
  await change(sql`
    INSERT INTO scan_reports (repo_id, organization, digest, origin, referrer, raw_digest, actor, take_time, state, due_time)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
    SELECT ${Number(row!.repo)}, CAST(${organization} AS TEXT), 'sha256:0', 1, '', 'sha256:0', '', '', 1, CAST(${due} AS TEXT) FROM n`)
  const push = () => images.push(digest, keys, vex([said('CVE-2026-1', 'fixed', [zlib])]))
  await push()
  assert.deepEqual((await images.reportsOf(digest))[0]!.reason, 'TOO_MANY')
  await change(sql`DELETE FROM scan_reports WHERE digest = 'sha256:0'`)
  await push()
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
})

test('a statement about an unidentified package never applies to the whole image', async () => {
  const { digest, keys } = await begin('not told')
  await images.says(digest, keys, [said('CVE-2026-1', 'fixed', ['pkg:npm/a%2F']), said('CVE-2026-2', 'fixed', [])])
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
  await change(sql`UPDATE signed_statements SET package = 'pkg:npm/a/' WHERE digest = ${digest}`)
  assert.deepEqual(await images.counted(digest), all)
  const accept = (named: string) =>
    images.owner.post(`/registry/v2/riskAcceptances/${images.repo}`, {
      ...{ vulnerability: 'CVE-2026-1', package: named, reason: 'we know', digest },
      expireTime: '2026-03-10T00:00:00Z',
    })
  assertInvalid(await accept('pkg:npm/a%2F'), 'risk_acceptance.package')
  ok(await accept(zlib))
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await change(sql`UPDATE risk_acceptances SET package = 'pkg:npm/a/'`)
  assert.deepEqual(await images.counted(digest), all)
})
