// Retention of signatures: tags that cosign finds by name are kept with their image, like referrers with a subject.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import type { Answer, Json } from '../support/pinfold.ts'
import { codeOf } from '../support/registry.ts'
import { startRetentionLocks, type TestRepo } from '../support/retention-locks.ts'

const day = 86_400_000
const registry = await startRetentionLocks()
const { app, clock, owner, createRepo, pusher, pushing, rule } = registry
after(() => registry[Symbol.asyncDispose]())

const tagOf = ({ digest }: { digest: string }, suffix = 'sig'): string => `${digest.replace(':', '-')}.${suffix}`
const remove = async ({ name }: TestRepo, reference: string) =>
  (await pushing()).call('DELETE', `${name}/manifests/${reference}`)

function assertKept({ status, body }: Answer): void {
  assert.deepEqual([status, body.code, body.details[0].reason], [400, 9, 'CONTENT_KEPT'])
}

for (const suffix of ['sig', 'att', 'sbom']) {
  test(`keeps the tag .${suffix} and its digest with a protected image, at each entry point, until its date`, async () => {
    const at = await createRepo()
    const uid = await rule(at.folder, { tags: ['v*'], keepDaysAfter: 10 })
    const client = await pushing()
    const image = await client.pushImage(at.name, 'v1')
    const other = await client.pushImage(at.name, 'nightly')
    const tag = tagOf(image, suffix)
    const signature = await client.pushImage(at.name, tag)
    const ofOther = await client.pushImage(at.name, tagOf(other, suffix))
    clock.now += 1000
    await client.pushImage(at.name, 'v1')
    const until = new Date(clock.now + 10 * day).toISOString()
    for (const reference of [tag, signature.digest]) {
      const refused = await remove(at, reference)
      assert.deepEqual([refused.status, codeOf(refused)], [409, 'DENIED'])
      assert.deepEqual(refused.body.errors[0].detail, { until, rule: uid, tags: ['v1'] })
      assert.ok(refused.body.errors[0].message.includes(`because it belongs to ${image.digest}, which is protected: `))
    }
    const api = await registry.as(pusher.uid)
    const tags: Json[] = ok(await api.get(`/registry/v2/tags?uidp.children_of=${at.repo}&include_referrers=true`)).tags
    const tagUid = tags.find((one) => one.name === tag)!.uid
    for (const version of ['v2', 'v1']) assertKept(await api.delete(`/registry/${version}/tags/${tagUid}`))
    const promise = ok(await (await owner()).get(`/registry/v2/repos/${at.repo}/promises/${signature.digest}`))
    assert.deepEqual([promise.reason, promise.until], ['PROMISED', until])
    for (const reference of [tagOf(other, suffix), ofOther.digest]) {
      assert.equal((await remove(at, reference)).status, 202, 'nothing keeps what it is about')
    }
    clock.now = Date.parse(until)
    for (const reference of [tag, signature.digest]) assert.equal((await remove(at, reference)).status, 202)
  })
}

test('cosign tags of a deleted image are not kept, whatever later rules are', async () => {
  const at = await createRepo()
  const client = await pushing()
  const image = await client.pushImage(at.name, 'v1')
  const { body: document } = await client.ok(200, 'GET', `${at.name}/manifests/${image.digest}`)
  const [tag, att] = [tagOf(image), tagOf(image, 'att')]
  for (const one of [tag, att]) await client.pushImage(at.name, one)
  for (const reference of ['v1', image.digest]) assert.equal((await remove(at, reference)).status, 202)
  await rule(at.folder, { tags: ['v*'], forever: true })
  assert.equal((await remove(at, tag)).status, 202)
  assert.equal((await client.pushManifest(at.name, document)).digest, image.digest)
  assert.equal((await remove(at, att)).status, 409)
})

test('adding a cosign signature updates its tag; the former signature is kept, and deleted after the image', async () => {
  const at = await createRepo()
  await rule(at.folder, { keepDaysAfter: 1 })
  let client = await pushing()
  const image = await client.pushImage(at.name, 'v1')
  const [first, second] = [await client.pushImage(at.name, tagOf(image)), await client.pushImage(at.name, tagOf(image))]
  clock.now += 2 * day
  const planned = async (): Promise<Json> => {
    const api = await owner()
    const { uid } = ok(await api.post(`/registry/v2/retentionPlans/${at.repo}`, {}))
    await runJob(app, sweepRetention)
    const { deletions = [] } = ok(await api.get(`/registry/v2/retentionPlans/${uid}/deletions`))
    return { uid, digests: deletions.map(({ digest }: Json) => digest).sort() }
  }
  assert.deepEqual((await planned()).digests, [], 'its own date has passed, and that of the image has not begun')
  assert.equal((await remove(at, first.digest)).status, 409)
  client = await pushing()
  const found = await client.ok(200, 'GET', `${at.name}/manifests/${tagOf(image)}`)
  assert.equal(found.headers['docker-content-digest'], second.digest)
  const pulled = await client.ok(200, 'GET', `${at.name}/manifests/${first.digest}`)
  assert.equal(pulled.headers.sunset, undefined, 'it is kept with the image, and for how long nobody knows')
  await client.pushImage(at.name, 'v1')
  clock.now += day
  const { uid, digests } = await planned()
  assert.deepEqual(digests, [image.digest, first.digest].sort())
  clock.now += day
  ok(await (await owner()).post(`/registry/v2/retentionPlans/${uid}:apply`, {}))
  await runJob(app, sweepRetention)
  client = await pushing()
  for (const { digest } of [image, first])
    assert.equal((await client.call('GET', `${at.name}/manifests/${digest}`)).status, 404)
  await client.ok(200, 'GET', `${at.name}/manifests/${second.digest}`)
})

test('cosign tags do not count as last tags of a rule, and are kept together with the last tags', async () => {
  const at = await createRepo()
  await rule(at.folder, { keepLast: 2 })
  const client = await pushing()
  const images = []
  const signatures = []
  for (let i = 0; i < 3; i++) {
    const image = await client.pushImage(at.name, 'v1')
    images.push(image)
    clock.now += 1000
    for (const suffix of ['sig', 'att']) signatures.push(await client.pushImage(at.name, tagOf(image, suffix)))
    clock.now += 1000
  }
  const statuses = []
  for (const { digest } of [...images, ...signatures]) statuses.push((await remove(at, digest)).status)
  assert.deepEqual(statuses, [202, 409, 409, 202, 202, 409, 409, 409, 409])
})

test('a hold of an image also holds its signatures, and no request overrides it', async () => {
  const at = await createRepo()
  const client = await pushing()
  const image = await client.pushImage(at.name, 'v1')
  const signature = await client.pushImage(at.name, tagOf(image))
  const api = await owner()
  const { uid } = ok(
    await api.post(`/registry/v2/holds/${at.folder}`, { digest: image.digest, reason: 'the court asks for it' }),
  )
  for (const reference of [tagOf(image), signature.digest]) assert.equal((await remove(at, reference)).status, 409)
  const breaking = { digest: signature.digest, reason: 'space' }
  assertKept(await api.post(`/registry/v2/repos/${at.repo}:breakPromises`, breaking))
  ok(await api.post(`/registry/v2/holds/${uid}:release`, {}))
  for (const reference of [tagOf(image), signature.digest]) assert.equal((await remove(at, reference)).status, 202)
})

test('a cosign tag does not make a digest part of an image if the digest had another tag before', async () => {
  const at = await createRepo()
  const client = await pushing()
  const image = await client.pushImage(at.name, 'v1')
  const malware = await client.pushImage(at.name, 'nightly')
  clock.now += 1000
  const signature = await client.pushImage(at.name, tagOf(image))
  const api = await registry.as(pusher.uid)
  ok(await api.post(`/registry/v2/tags/${at.repo}`, { name: tagOf(image, 'att'), digest: malware.digest }))
  ok(await (await owner()).post(`/registry/v2/holds/${at.folder}`, { digest: image.digest, reason: 'the court asks' }))
  // The signature stays a signature, although other tags point to it later.
  ok(await api.post(`/registry/v2/tags/${at.repo}`, { name: 'later', digest: signature.digest }))
  assert.equal((await remove(at, malware.digest)).status, 202)
  assert.equal((await remove(at, signature.digest)).status, 409)
})

test('cosign tags that name each other, or their own digest, protect nothing', async () => {
  const at = await createRepo()
  await rule(at.folder, { tags: ['v*'], keepDaysAfter: 1 })
  const client = await pushing()
  const [one, other] = [await client.pushImage(at.name), await client.pushImage(at.name)]
  const api = await registry.as(pusher.uid)
  for (const [name, digest] of [
    [tagOf(one), other.digest],
    [tagOf(other), one.digest],
    [tagOf(one, 'att'), one.digest],
  ])
    ok(await api.post(`/registry/v2/tags/${at.repo}`, { name, digest }))
  for (const reference of [tagOf(one, 'att'), one.digest, other.digest])
    assert.equal((await remove(at, reference)).status, 202)
})
