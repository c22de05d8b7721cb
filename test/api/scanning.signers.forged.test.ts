// Forged signed statements: only the signed content hides findings, only as its signed type, and nothing that comes with it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { envelopeOf, inTotoType, keysOf, pushEnvelope, refer, statementAbout } from '../support/attest.ts'
import { ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { all, openssl, type SignedImages, said, startSignedImages, vex, without, zlib } from '../support/signers.ts'

let images: SignedImages
before(async () => {
  images = await startSignedImages()
})
after(() => images[Symbol.asyncDispose]())

const change = (query: ReturnType<typeof sql>) => images.registry.app.db.tx((tx) => tx.run(query))
const genuine = vex([said('CVE-2026-1', 'not_affected', [zlib])])
const forged = vex(all.map((name) => said(name, 'not_affected', [])))
const statementsOf = async (digest: string): Promise<Json[]> =>
  ok(await images.owner.get(`${images.at(digest)}/statements`)).statements

const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'
const confused: Record<string, (digest: string, envelope: Json) => Json> = {
  'a document around a bundle': (_, envelope) => ({ ...forged, mediaType: bundleType, dsseEnvelope: envelope }),
  'an envelope around a bundle': (digest, envelope) => ({
    ...{ mediaType: bundleType, payloadType: inTotoType, dsseEnvelope: envelope, signatures: envelope.signatures },
    payload: envelopeOf(statementAbout(digest, forged), []).payload,
  }),
}

for (const [name, contentOf] of Object.entries(confused)) {
  test(`${name} that an earlier server read differently hides only findings in the signed content`, async () => {
    const [digest, keys] = [await images.image(name), keysOf.ed25519!()]
    const content = contentOf(digest, envelopeOf(statementAbout(digest, genuine), [keys]))
    await refer(images.pusher, 'acme/app', digest, { type: 'application/vnd.openvex+json', content, annotations: {} })
    await images.readAll()
    const [{ id }] = (await images.registry.app.db.all<{ id: number }>(
      sql`SELECT id FROM scan_reports WHERE digest = ${digest}`,
    )) as [{ id: number }]
    const before = all.map((vulnerability) => ({
      ...{ vulnerability, aliases: [], status: 'not_affected', justification: '', text: '', products: [] },
    }))
    await change(
      sql`UPDATE scan_report_texts SET statements = ${JSON.stringify(before)} WHERE report_id = ${Number(id)}`,
    )
    await change(sql`UPDATE scan_reports SET signatures = -1 WHERE id = ${Number(id)}`)
    await images.trusted(keys)
    assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
    assert.deepEqual((await images.reportsOf(digest))[0]!.signers ?? [], [])
    assert.deepEqual(
      (await statementsOf(digest)).map(({ signers = [] }) => signers),
      [[], [], []],
      'nobody has signed what is shown of it',
    )
  })
}

test('a statement signed with another predicate type hides no finding, even if it looks like VEX', async () => {
  const [digest, keys] = [await images.image('policy'), keysOf.ecdsa!()]
  await images.trusted(keys)
  const push = async (predicateType: string) => {
    const statement = statementAbout(digest, genuine, predicateType)
    await pushEnvelope(images.pusher, 'acme/app', digest, envelopeOf(statement, [keys]))
    await images.readAll()
    return (await images.reportsOf(digest))[0]!
  }
  const report = await push('https://acme.example/what-we-found/v1')
  assert.deepEqual([report.state, report.signatures, report.signers], ['stated', 0, []])
  assert.match(report.message, /the predicate does not have a VEX type/)
  await change(sql`UPDATE scan_reports SET signatures = -1 WHERE digest = ${digest}`)
  await images.trusted(keys, {}, images.registry.org.uid)
  assert.deepEqual(await images.counted(digest), all)
  await push('https://openvex.dev/ns/v0.2.0')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
})

test('a package name with half a surrogate pair stops no processing', async () => {
  const [digest, keys] = [await images.image('cut'), keysOf.ed25519!()]
  await images.trusted(keys)
  const cut = `pkg:deb/${'a'.repeat(127)}\u{1f600}/openssl@1`
  const text = `${'x'.repeat(980 - 'Acme: fixed, '.length)}${'\u{1f600}'.repeat(20)}`
  await images.says(digest, keys, [
    said('CVE-2026-2', 'not_affected', [cut]),
    said('CVE-2026-1', 'fixed', [zlib], { impact_statement: `x${text}` }),
  ])
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  const [statement] = (await statementsOf(digest)).filter(({ vulnerability }) => vulnerability === 'CVE-2026-2')
  const adopting = { statement: statement!.uid, digest, reason: 'we know', expireTime: '2026-03-10T00:00:00Z' }
  ok(await images.owner.post(`/registry/v2/riskAcceptances/${images.repo}`, adopting))
})

test('retries a missing document until it exists, and gives up after many attempts', async () => {
  const [digest, keys] = [await images.image('missing'), keysOf.ed25519!()]
  await images.push(digest, keys, genuine)
  await images.readAll()
  const [{ raw }] = (await images.registry.app.db.all<{ raw: string }>(
    sql`SELECT raw_digest AS raw FROM scan_reports WHERE digest = ${digest}`,
  )) as [{ raw: string }]
  const missing = `sha256:${'0'.repeat(64)}`
  await change(sql`UPDATE scan_reports SET raw_digest = ${missing} WHERE digest = ${digest}`)
  await images.trusted(keys)
  assert.deepEqual(await images.counted(digest), all)
  await change(sql`UPDATE scan_reports SET raw_digest = ${raw} WHERE digest = ${digest}`)
  await images.moveTo('2026-03-01T08:01:00Z')
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))

  await change(sql`UPDATE scan_reports SET raw_digest = ${missing}, check_time = '2026' WHERE digest = ${digest}`)
  for (let day = 2; day < 12; day++) {
    assert.notEqual(await dueOf(digest), '', `${day}`)
    await images.moveTo(`2026-03-${String(day).padStart(2, '0')}T08:00:00Z`)
    await images.readAll()
  }
  assert.equal(await dueOf(digest), '')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'), 'what was taken stays')
})
const dueOf = async (digest: string): Promise<string> => {
  const [{ due }] = (await images.registry.app.db.all<{ due: string }>(
    sql`SELECT check_time AS due FROM scan_reports WHERE digest = ${digest}`,
  )) as [{ due: string }]
  return due
}

test('statements about a missing image count once it is pushed, and use no storage before', async () => {
  await images.moveTo('2026-03-20T08:00:00Z')
  const keys = keysOf.ed25519!()
  const digest = await images.image('not yet', 'not-yet')
  await images.trusted(keys)
  await images.pusher.ok(202, 'DELETE', `acme/app/manifests/${digest}`)
  await images.push(digest, keys, vex([said('CVE-2026-2', 'fixed', [openssl])]))
  await images.readAll()
  const rows = await images.registry.app.db.all(sql`SELECT 1 AS found FROM signed_statements WHERE digest = ${digest}`)
  assert.equal(rows.length, 0)
  await images.image('not yet', 'not-yet')
  await images.moveTo('2026-03-20T08:01:00Z')
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
})
