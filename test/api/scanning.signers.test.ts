// VEX statements of trusted signers hide findings that need no action. No other statement hides a finding.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { expireSignersJob } from '#domains/scanning/signers/signers.job.ts'
import {
  envelopeOf,
  type Keys,
  keysOf,
  pemOf,
  pushAttestations,
  pushBundle,
  pushEnvelope,
  pushInToto,
  refer,
  statementAbout,
} from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertError, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { indexOf, types } from '../support/registry.ts'
import { all, openssl, type SignedImages, said, startSignedImages, vex, without, zlib } from '../support/signers.ts'

let images: SignedImages
let viewer: Client
before(async () => {
  images = await startSignedImages()
  const { registry } = images
  viewer = await registry.as((await registry.seed.member(registry.org.uid, roleUids.viewer)).uid)
})
after(() => images[Symbol.asyncDispose]())

const unaffected = vex([said('CVE-2026-1', 'not_affected', [zlib], { justification: 'vulnerable_code_not_present' })])
const signedBy = (digest: string, keys: readonly Keys[], document = unaffected) =>
  envelopeOf(statementAbout(digest, document), keys)
const findingsOf = async (digest: string): Promise<Json[]> =>
  ok(await images.owner.get(`${images.at(digest)}/findings`)).findings
const revoke = async (signer: Json) => ok(await images.owner.post(`/registry/v2/vexSigners/${signer.uid}:revoke`, {}))

const layouts: Record<string, (digest: string, envelope: Json) => Promise<string>> = {
  'a bundle of Sigstore': (digest, envelope) => pushBundle(images.pusher, 'acme/app', digest, envelope),
  'an envelope by itself': (digest, envelope) => pushEnvelope(images.pusher, 'acme/app', digest, envelope),
  'in-toto in an envelope': (digest, envelope) => pushInToto(images.pusher, 'acme/app', digest, envelope),
  'attestations under a tag': (digest, envelope) => pushAttestations(images.pusher, 'acme/app', digest, [envelope]),
}

for (const [name, push] of Object.entries(layouts)) {
  for (const kind of Object.keys(keysOf)) {
    test(`${name}, signed with ${kind}, hides findings once its signer is trusted, without another push`, async () => {
      const digest = await images.image(`${name} ${kind}`)
      const keys = keysOf[kind]!()
      await push(digest, signedBy(digest, [keys]))
      await images.readAll()
      const [report] = await images.reportsOf(digest)
      assert.deepEqual(
        [report!.state, report!.format, report!.signatures, report!.signers],
        ['stated', 'openvex', 1, []],
      )
      assert.deepEqual(await images.counted(digest), all)
      const signer = await images.trusted(keys)
      assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
      assert.deepEqual((await images.reportsOf(digest))[0]!.signers, [signer.uid])
      await revoke(signer)
      assert.deepEqual(await images.counted(digest), all)
    })
  }
}

test('members with permission to accept risks can trust a signer, with an event; a hidden finding names its signer', async () => {
  const [digest, keys] = [await images.image('named'), keysOf.ecdsa!()]
  await pushBundle(images.pusher, 'acme/app', digest, signedBy(digest, [keys]))
  assertDenied(await images.trust(keys, {}, images.repo, viewer))
  let signer: Json = {}
  const events = await eventsOf(images.registry, async () => {
    signer = await images.trusted(keys)
  })
  assert.deepEqual(
    events.map(({ type, body }) => [type, body.uid]),
    [['dev.pinfold.control.scanning.signer.trusted.v1', signer.uid]],
  )
  const shown = (await findingsOf(digest)).find((one) => one.vulnerabilities[0] === 'CVE-2026-1')!
  assert.deepEqual(
    shown.acceptedBy.map((by: Json) => [by.vexSignerUid, by.riskAcceptanceUid ?? '', by.reason, by.actor]),
    [[signer.uid, '', 'signed by Acme security: Acme: not_affected, vulnerable_code_not_present', images.ownerUid]],
  )
  assert.deepEqual(shown.statements[0].signers, [signer.uid])
  assert.deepEqual(ok(await viewer.get(`/registry/v2/vexSigners/${signer.uid}`)).name, 'Acme security')
  const listed = ok(await viewer.get(`/registry/v2/vexSigners?scope_uid=${images.repo}`)).vexSigners
  assert.deepEqual(
    listed.map(({ uid }: Json) => uid),
    [signer.uid],
  )
  assertDenied(await viewer.post(`/registry/v2/vexSigners/${signer.uid}:revoke`, {}))
  const ended = await eventsOf(images.registry, () => revoke(signer))
  assert.deepEqual(
    ended.map(({ type, body }) => [type, body.state]),
    [['dev.pinfold.control.scanning.signer.revoked.v1', 'REVOKED']],
  )
  assert.deepEqual(ok(await images.owner.get(`/registry/v2/vexSigners?scope_uid=${images.repo}`)).vexSigners ?? [], [])
})

test('hides no finding without a valid signature over this image by a trusted key of the scope', async () => {
  const [mine, other] = [keysOf.ecdsa!(), keysOf.ecdsa!()]
  const elsewhere = (await images.registry.seed.repo(images.registry.org.uid, { name: 'elsewhere' })).uid
  const signers = [await images.trusted(mine), await images.trusted(other, {}, elsewhere)]
  const ofOther = await images.image('of other')
  const pushed: Record<string, (digest: string) => Json> = {
    unsigned: (digest) => signedBy(digest, []),
    'of a key of another scope': (digest) => signedBy(digest, [other]),
    'with another payload': (digest) => ({
      ...signedBy(digest, [mine]),
      payload: signedBy(digest, [], vex([said('CVE-2026-2', 'fixed', [openssl])])).payload,
    }),
    'signed as another type': (digest) => envelopeOf(statementAbout(digest, unaffected), [mine], 'text/plain'),
    'with half a signature': (digest) => {
      const { signatures, ...rest } = signedBy(digest, [mine])
      return { ...rest, signatures: [{ sig: signatures[0].sig.slice(0, 40) }] }
    },
  }
  for (const [what, envelope] of Object.entries(pushed)) {
    const digest = await images.image(what)
    await pushBundle(images.pusher, 'acme/app', digest, envelope(digest))
    await images.readAll()
    const [report] = await images.reportsOf(digest)
    assert.deepEqual([report!.state, report!.signers], ['stated', []], what)
    assert.deepEqual(await images.counted(digest), all, what)
  }
  const ignored: Record<string, [(digest: string) => Json, string]> = {
    'about another image': [() => signedBy(ofOther, [mine]), 'OTHER_SUBJECT'],
    'about nothing': [
      (digest) => envelopeOf({ ...statementAbout(digest, unaffected), subject: [] }, [mine]),
      'OTHER_SUBJECT',
    ],
    'not base64': [(digest) => ({ ...signedBy(digest, [mine]), payload: '{"_type":"https://in-toto.io"}' }), 'DAMAGED'],
    'with a signature that is no base64': [
      (digest) => ({ ...signedBy(digest, [mine]), signatures: [{ sig: '§' }] }),
      'DAMAGED',
    ],
    'with eleven signatures': [
      (digest) =>
        signedBy(
          digest,
          Array.from({ length: 11 }, () => mine),
        ),
      'LIMIT_EXCEEDED',
    ],
    'with no statement': [(digest) => ({ ...envelopeOf({ a: 1, digest }, [mine]) }), 'DAMAGED'],
  }
  for (const [what, [envelope, reason]] of Object.entries(ignored)) {
    const digest = await images.image(what)
    await pushBundle(images.pusher, 'acme/app', digest, envelope(digest))
    await images.readAll()
    const [report] = await images.reportsOf(digest)
    assert.deepEqual([report!.state, report!.reason], ['ignored', reason], what)
    assert.deepEqual(await images.counted(digest), all, what)
  }
  for (const one of signers) await revoke(one)
})

test('ignores signatures of an envelope above 8 MiB, and the report states this', async () => {
  const [digest, keys] = [await images.image('huge'), keysOf.ed25519!()]
  const signer = await images.trusted(keys)
  const statement = { ...statementAbout(digest, unaffected), padding: 'x'.repeat(8 * 2 ** 20) }
  await pushBundle(images.pusher, 'acme/app', digest, envelopeOf(statement, [keys]))
  await images.readAll()
  const [report] = await images.reportsOf(digest)
  assert.deepEqual([report!.state, report!.signatures], ['stated', 0])
  assert.match(report!.message, /more than 8388608 bytes/)
  assert.deepEqual(await images.counted(digest), all)
  await revoke(signer)
})

test('one valid signature of several is enough, and each signer hides findings separately', async () => {
  const [digest, one, other, stranger] = [await images.image('two'), keysOf.ecdsa!(), keysOf.rsa!(), keysOf.ed25519!()]
  await pushEnvelope(images.pusher, 'acme/app', digest, signedBy(digest, [stranger, one, other]))
  const first = await images.trusted(one)
  const second = await images.trusted(other, {}, images.registry.org.uid)
  assert.deepEqual((await images.reportsOf(digest))[0]!.signers, [second.uid, first.uid].sort(byUidOrder(first.uid)))
  await revoke(first)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await revoke(second)
  assert.deepEqual(await images.counted(digest), all)
})
const byUidOrder = (first: string) => (a: string) => (a === first ? -1 : 1)

test('trusting a signer does not change past reports, and trust expires with an event', async () => {
  const [digest, keys] = [await images.image('past'), keysOf.ecdsa!()]
  await pushBundle(images.pusher, 'acme/app', digest, signedBy(digest, [keys]))
  await images.readAll()
  const past = async () =>
    JSON.stringify(ok(await images.owner.get(`/registry/v1/vuln_reports?digest=${digest}`)).items.at(-1))
  const before = await past()
  await images.moveTo('2026-03-05T08:00:00Z')
  await images.trusted(keys, { expireTime: '2026-03-06T08:00:00Z' })
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  assert.equal(await past(), before)
  const during = ok(await images.owner.get(`/registry/v1/vuln_reports?digest=${digest}`)).items[0]
  await images.moveTo('2026-03-06T08:00:01Z')
  assert.deepEqual(await images.counted(digest), all)
  const events = await eventsOf(images.registry, () => runJob(images.registry.app, expireSignersJob))
  assert.deepEqual(
    events.map(({ type, body }) => [type, body.vex_signer.state]),
    [['dev.pinfold.control.scanning.signer.expired.v1', 'EXPIRED']],
  )
  assert.deepEqual(await images.counted(digest), all)
  const { items } = ok(await images.owner.get(`/registry/v1/vuln_reports?digest=${digest}`))
  assert.equal(JSON.stringify(items.at(-1)), before)
  const kept = items.find(({ createdAt }: Json) => createdAt === during.createdAt)
  assert.deepEqual({ ...kept, lastSeen: '' }, { ...during, lastSeen: '' })
})

test('a later document withdraws statements of an earlier one of the same signer; pushing the earlier one again does not', async () => {
  const [digest, keys] = [await images.image('later'), keysOf.ecdsa!()]
  const signer = await images.trusted(keys)
  const push = async (statements: readonly Json[], time: string) => {
    await pushAttestations(images.pusher, 'acme/app', digest, [signedBy(digest, [keys], vex(statements, time))])
    await images.readAll()
  }
  await push([said('CVE-2026-2', 'not_affected', [openssl]), said('CVE-2026-3', 'fixed', [])], '2026-02-02T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2', 'CVE-2026-3'))
  await push([said('CVE-2026-2', 'under_investigation', [openssl])], '2026-02-03T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-3'))
  await push(
    [said('CVE-2026-2', 'not_affected', [openssl]), said('CVE-2026-1', 'fixed', [zlib])],
    '2026-02-02T12:00:00Z',
  )
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-3'))
  await push([said('CVE-2026-3', 'affected', ['pkg:apk/alpine/openssl'])], '2026-02-04T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await push([said('CVE-2026-2', 'fixed', [openssl]), said('CVE-2026-2', 'affected', [])], '2026-02-05T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await push([said('CVE-2026-2', 'fixed', [openssl])], '2026-02-06T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  await push([said('CVE-2026-2', 'affected', [openssl])], '2026-02-05T12:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  await push([said('CVE-2026-1', 'affected', ['https://products.example.com/app'])], '2026-02-07T00:00:00Z')
  assert.deepEqual(await images.counted(digest), without('CVE-2026-2'))
  await revoke(signer)
})

test('a statement about an index applies to all its images, or to those that it names', async () => {
  const [one, other, keys] = [await images.image('amd64'), await images.image('arm64'), keysOf.ecdsa!()]
  const listed = [one, other].map((digest) => ({ mediaType: types.image, digest, size: 1 }))
  const sizes = await Promise.all(listed.map(async (entry) => ({ ...entry, size: await sizeOf(entry.digest) })))
  const { digest } = await images.pusher.pushManifest('acme/app', indexOf(sizes), 'both')
  const signer = await images.trusted(keys)
  const whole = vex([said('CVE-2026-1', 'fixed', [`pkg:oci/app@${digest}`])])
  await pushAttestations(images.pusher, 'acme/app', digest, [
    signedBy(digest, [keys], whole),
    signedBy(other, [keys], vex([said('CVE-2026-2', 'fixed', [])])),
  ])
  await images.readAll()
  assert.deepEqual(await images.counted(one), without('CVE-2026-1'))
  assert.deepEqual(await images.counted(other), without('CVE-2026-1', 'CVE-2026-2'))
  await revoke(signer)
})
const sizeOf = async (digest: string): Promise<number> => {
  const { headers } = await images.pusher.ok(200, 'HEAD', `acme/app/manifests/${digest}`)
  return Number(headers['content-length'])
}

test('a document of a pusher without permission counts once a member with permission pushes it again', async () => {
  const [digest, keys] = [await images.image('not allowed'), keysOf.ecdsa!()]
  const signer = await images.trusted(keys)
  const envelope = signedBy(digest, [keys])
  await pushAttestations(await images.registry.registryAs(images.registry.pusher.uid), 'acme/app', digest, [envelope])
  await images.readAll()
  assert.deepEqual(await images.counted(digest), all)
  assert.equal((await images.reportsOf(digest))[0]!.reason, 'NOT_ALLOWED')
  await pushAttestations(images.pusher, 'acme/app', digest, [envelope])
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  const before = (await images.reportsOf(digest)).length
  const second = signedBy(digest, [keys], vex([said('CVE-2026-2', 'fixed', [openssl])]))
  await pushAttestations(images.pusher, 'acme/app', digest, [envelope, second])
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  assert.equal((await images.reportsOf(digest)).length, before + 1)
  await revoke(signer)
})

test('an unsigned document counts once it is pushed with a signature', async () => {
  const [digest, keys] = [await images.image('again'), keysOf.ecdsa!()]
  const signer = await images.trusted(keys)
  await pushInToto(images.pusher, 'acme/app', digest, statementAbout(digest, unaffected))
  await images.readAll()
  assert.deepEqual(await images.counted(digest), all)
  const sealed = Buffer.from(JSON.stringify(signedBy(digest, [keys]))).toString('base64')
  ok(await images.owner.post(`${images.at(digest)}/scanReports`, { report: sealed }))
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  await revoke(signer)
})

test('documents read before signatures were supported count once their signer is trusted', async () => {
  const [digest, other, keys] = [await images.image('older'), await images.image('older, of another'), keysOf.ecdsa!()]
  for (const one of [digest, other]) await pushInToto(images.pusher, 'acme/app', one, signedBy(one, [keys]))
  await images.readAll()
  await images.registry.app.db.tx(async (tx) => {
    await tx.run(sql`UPDATE scan_reports SET signatures = -1`)
    const { raw } = (await tx.get<{ raw: string }>(
      sql`SELECT raw_digest AS raw FROM scan_reports WHERE digest = ${digest}`,
    ))!
    await tx.run(sql`UPDATE scan_reports SET raw_digest = ${raw} WHERE digest = ${other}`)
  })
  const signer = await images.trusted(keys)
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1'))
  assert.deepEqual(await images.counted(other), all)
  assert.deepEqual((await images.reportsOf(other))[0]!.signers, [])
  assert.deepEqual((await images.reportsOf(digest))[0]!.signatures, 1)
  await revoke(signer)
})

test('a CSAF VEX referrer hides findings of the image or of a part of it', async () => {
  const [digest, keys] = [await images.image('csaf'), keysOf.rsa!()]
  const signer = await images.trusted(keys)
  const named = (product_id: string, purl: string) => ({
    ...{ product_id, name: product_id, product_identification_helper: { purl } },
  })
  const csaf = {
    document: {
      ...{ category: 'csaf_vex', csaf_version: '2.0', publisher: { name: 'Acme' } },
      tracking: { version: '1', status: 'final', current_release_date: '2026-01-02T03:04:05Z' },
    },
    product_tree: { full_product_names: [named('app', `pkg:oci/app@${digest}`), named('openssl', openssl)] },
    vulnerabilities: [
      {
        ...{ cve: 'CVE-2026-1', product_status: { known_not_affected: ['app'] } },
        flags: [{ label: 'component_not_present', product_ids: ['app'] }],
      },
      { cve: 'CVE-2026-2', product_status: { fixed: ['openssl'] } },
      { cve: 'CVE-2026-3', product_status: { known_affected: ['openssl'] } },
    ],
  }
  await refer(images.pusher, 'acme/app', digest, { type: 'application/csaf+json', content: csaf, annotations: {} })
  await images.readAll()
  const { statements } = ok(await images.owner.get(`${images.at(digest)}/statements`))
  assert.deepEqual(
    statements.map((one: Json) => [one.vulnerability, one.status, one.justification ?? '', one.author, one.format]),
    [
      ['CVE-2026-1', 'not_affected', 'component_not_present', 'Acme', 'csaf'],
      ['CVE-2026-2', 'fixed', '', 'Acme', 'csaf'],
      ['CVE-2026-3', 'affected', '', 'Acme', 'csaf'],
    ],
  )
  assert.deepEqual(await images.counted(digest), all)
  const predicateType = 'https://docs.oasis-open.org/csaf/csaf/v2.0'
  const envelope = envelopeOf(statementAbout(digest, csaf, predicateType), [keys])
  await pushAttestations(images.pusher, 'acme/app', digest, [envelope], predicateType)
  await images.readAll()
  assert.deepEqual(await images.counted(digest), without('CVE-2026-1', 'CVE-2026-2'))
  await revoke(signer)
})

test('limits the number of trusted keys, and accepts only public keys of known types', async () => {
  await images.moveTo('2026-03-01T08:00:00Z')
  const keys = keysOf.ecdsa!()
  const field = 'vex_signer.public_key'
  const pems = [
    '',
    'x',
    keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    `${pemOf(keys)}${pemOf(keys)}`,
    pemOf({
      ...keys,
      publicKey: (await import('node:crypto')).generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey,
    }),
    pemOf({
      ...keys,
      publicKey: (await import('node:crypto')).generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey,
    }),
    'A'.repeat(20_000),
  ]
  for (const publicKey of pems) assertInvalid(await images.trust(keys, { publicKey }), field)
  assertInvalid(await images.trust(keys, { name: ' ' }), 'vex_signer.name')
  assertInvalid(await images.trust(keys, { name: 'two\nlines' }), 'vex_signer.name')
  assertInvalid(await images.trust(keys, { expireTime: '2027-06-01T00:00:00Z' }), 'vex_signer.expire_time')
  assertInvalid(await images.trust(keys, { expireTime: '2020-06-01T00:00:00Z' }), 'vex_signer.expire_time')
  assertNotFound(
    await images.trust(keys, {}, `${images.registry.org.uid}/${'0'.repeat(16)}`),
    'iam.pinfold.dev/Group',
    `${images.registry.org.uid}/${'0'.repeat(16)}`,
  )
  const folder = (await images.registry.seed.repo(images.registry.org.uid, { name: 'full' })).uid
  for (let i = 0; i < 20; i++) ok(await images.trust(keys, {}, folder))
  assertError(await images.trust(keys, {}, folder), 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
})
