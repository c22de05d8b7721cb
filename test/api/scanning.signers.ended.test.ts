// Expired signers and accepted risks end for each caller before the job stores their end and sends the event.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { expireRisksJob } from '#domains/scanning/risks/risks.job.ts'
import { expireSignersJob } from '#domains/scanning/signers/signers.job.ts'
import { keysOf } from '../support/attest.ts'
import { runJob } from '../support/background-jobs.ts'
import { eventsOf, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { openssl, type SignedImages, said, startSignedImages, zlib } from '../support/signers.ts'

let images: SignedImages
before(async () => {
  images = await startSignedImages()
})
after(() => images[Symbol.asyncDispose]())

const expireTime = '2026-03-02T08:00:00.000Z'
const get = async (path: string): Promise<Json> => ok(await images.owner.get(path))

/** Everything that the API shows of expired signers and risks, and of the findings that they hide in an image. */
async function told(digest: string, uids: { signers: string; risks: string }) {
  const at = `scope_uid=${images.repo}`
  const made = { vexSigners: uids.signers, riskAcceptances: uids.risks }
  const each: Record<string, unknown> = {}
  for (const [member, uid] of Object.entries(made)) {
    const live = (await get(`/registry/v2/${member}?${at}`))[member] as Json[]
    const all = (await get(`/registry/v2/${member}?${at}&include_ended=true`))[member] as Json[]
    const one = await get(`/registry/v2/${member}/${uid}`)
    assert.deepEqual(all, [one])
    each[member] = [live.length, one.state, one.endTime]
  }
  const { findings } = await get(`${images.at(digest)}/findings`)
  const accepted = findings.flatMap(({ acceptedBy }: Json) => (acceptedBy as Json[]).map(({ reason }) => reason))
  const states: string[] = []
  for (const name of ['CVE-2026-1', 'CVE-2026-2']) {
    const { images: found } = await get(`/registry/v2/vulnerableImages?vulnerability=${name}&scope_uid=${images.repo}`)
    states.push(...found.filter((one: Json) => one.digest === digest).map(({ state }: Json) => state))
  }
  return { ...each, accepted: accepted.sort(), states }
}

/** A verdict may be cached for some seconds, so the test requests it once for each image. */
const passes = async (digest: string): Promise<boolean> => {
  const { results } = ok(await images.owner.post(`/registry/v1/repos/${images.repo}:checkPolicies`, { digest }))
  return results[0].result === 'RESULT_ALLOWED'
}

test('expired signers and accepted risks end at once for each caller, and the job only sends the event', async () => {
  const [digest, other, keys] = [await images.image('ended'), await images.image('other'), keysOf.ed25519!()]
  ok(
    await images.owner.post(`/registry/v2/gates/${images.repo}`, {
      name: 'none',
      vulnerabilities: {},
      mode: 'ENFORCE',
    }),
  )
  const signer = await images.trusted(keys, { expireTime })
  for (const one of [digest, other]) {
    await images.says(one, keys, [said('CVE-2026-1', 'fixed', [zlib]), said('CVE-2026-3', 'fixed', [openssl])])
  }
  const acceptance = { vulnerability: 'CVE-2026-2', reason: 'we know', expireTime }
  const risk = ok(await images.owner.post(`/registry/v2/riskAcceptances/${images.repo}`, acceptance))
  const uids = { signers: signer.uid, risks: risk.uid }
  await images.moveTo('2026-03-02T07:59:59.999Z')
  assert.deepEqual(await told(digest, uids), {
    ...{ vexSigners: [1, 'LIVE', undefined], riskAcceptances: [1, 'LIVE', undefined] },
    accepted: ['signed by Acme security: Acme: fixed', 'signed by Acme security: Acme: fixed', 'we know'],
    states: ['ACCEPTED', 'ACCEPTED'],
  })
  assert.ok(await passes(digest))
  await images.moveTo(expireTime)
  const over = {
    ...{ vexSigners: [0, 'EXPIRED', expireTime], riskAcceptances: [0, 'EXPIRED', expireTime] },
    ...{ accepted: [], states: ['AFFECTED', 'AFFECTED'] },
  }
  assert.deepEqual(await told(digest, uids), over)
  assert.ok(!(await passes(other)))
  const revoked = await eventsOf(images.registry, async () => {
    for (const one of [`vexSigners/${signer.uid}`, `riskAcceptances/${risk.uid}`]) {
      assert.equal(ok(await images.owner.post(`/registry/v2/${one}:revoke`, {})).state, 'EXPIRED')
    }
  })
  assert.deepEqual(revoked, [])
  const events = await eventsOf(images.registry, async () => {
    await runJob(images.registry.app, expireSignersJob)
    await runJob(images.registry.app, expireRisksJob)
  })
  assert.deepEqual(
    events.map(({ type }) => type),
    ['signer', 'risk'].map((kind) => `dev.pinfold.control.scanning.${kind}.expired.v1`),
  )
  assert.deepEqual(await told(digest, uids), over)
})
