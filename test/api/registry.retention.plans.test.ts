// Retention plans: the deletions that rules allow, and their application.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { writeUsage } from '#domains/registry/usage/digest-usage.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { newUid } from '#lib/uid.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertError, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { indexOf, type RegistryClient, startRegistry } from '../support/registry.ts'
import { ledgerOf } from '../support/tags.ts'

const day = 86_400_000
let now = Date.parse('2026-05-01T10:00:00.000Z')
const registry = await startRegistry({ clock: () => new Date(now) })
const { app, org } = registry
after(() => registry[Symbol.asyncDispose]())

/** Tokens live for an hour of the clock that tests set forward, so each call has a new one. */
const callerOf = (uid: string) => ({
  get: async (path: string) => (await registry.as(uid)).get(path),
  post: async (path: string, body: object) => (await registry.as(uid)).post(path, body),
  patch: async (path: string, body: object) => (await registry.as(uid)).patch(path, body),
})
const owner = callerOf((await registry.seed.member(org.uid, roleUids.owner)).uid)
const operator = callerOf(operatorUid)
const pushing = (): Promise<RegistryClient> => registry.registryAs(registry.pusher.uid)
const work = () => runJob(app, sweepRetention)

const other = (await registry.seed.group('', { name: 'plans' })).uid
const folders: string[] = []
const otherFolders: string[] = []
for (let i = 0; i < 20; i++) otherFolders.push((await registry.seed.group(other, { name: `p${i}` })).uid)
for (let i = 0; i < 10; i++) folders.push((await registry.seed.group(org.uid, { name: `f${i}` })).uid)
let used = 0
/** A folder of its own for each test, with one repo to push to. */
function nextFolder(): { folder: string; name: string; repo: () => Promise<string> } {
  const folder = folders[used]!
  const repo = async () => ok(await owner.get(`/registry/v2/repos?uidp.children_of=${folder}`)).repos[0].uid
  return { folder, name: `acme/f${used++}/app`, repo }
}

const rule = async (scope: string, says: Json): Promise<Json> =>
  ok(await owner.post(`/registry/v2/retentionRules/${scope}`, { mode: 'ENFORCE', ...says }))

async function plan(scope: string): Promise<Json> {
  const { uid } = ok(await owner.post(`/registry/v2/retentionPlans/${scope}`, {}))
  await work()
  return ok(await owner.get(`/registry/v2/retentionPlans/${uid}`))
}

const deletionsOf = async (uid: string): Promise<Json[]> =>
  ok(await owner.get(`/registry/v2/retentionPlans/${uid}/deletions?pageSize=200`)).deletions

async function apply(uid: string): Promise<Json> {
  ok(await owner.post(`/registry/v2/retentionPlans/${uid}:apply`, {}))
  await work()
  return ok(await owner.get(`/registry/v2/retentionPlans/${uid}`))
}

const sorted = (digests: readonly Json[]): string[] => digests.map(({ digest }) => digest).sort()

test('a plan lists deletions with reason and size, and deletes only these, when it is applied', async () => {
  const { folder, name, repo } = nextFolder()
  const { uid: byDate } = await rule(folder, { tags: ['v*'], keepDaysAfter: 10 })
  const { uid: byCount } = await rule(folder, { tags: ['nightly'], keepLast: 1 })
  let client = await pushing()
  const [old, other] = [await client.pushImage(name, 'v1'), await client.pushImage(name, 'free')]
  const [first, second] = [await client.pushImage(name, 'nightly'), await client.pushImage(name, 'nightly')]
  now += 1000
  const until = new Date(now + 10 * day).toISOString()
  const [fresh, free] = [await client.pushImage(name, 'v1'), await client.pushImage(name, 'free')]
  const early = await plan(folder)
  assert.deepEqual(sorted(await deletionsOf(early.uid)), [first.digest])
  now += 10 * day
  const ready = await plan(folder)
  assert.deepEqual([ready.state, ready.manifests, ready.deleted], ['READY', '2', '0'])
  const deletions = await deletionsOf(ready.uid)
  const known = new Map(deletions.map((one) => [one.digest, one]))
  assert.deepEqual([known.get(old.digest)?.why, known.get(old.digest)?.rule], ['EXPIRED', byDate])
  assert.equal(known.get(old.digest)?.until, until)
  assert.deepEqual([known.get(first.digest)?.why, known.get(first.digest)?.rule], ['NOT_LAST', byCount])
  client = await pushing()
  const { config, layers } = (await client.ok(200, 'GET', `${name}/manifests/${old.digest}`)).body
  assert.equal(Number(known.get(old.digest)?.bytes), old.size + layers[0].size, `${config.digest} is shared`)
  const before = await ledgerOf(registry, await repo())
  now += 1000
  const applied = await apply(ready.uid)
  assert.deepEqual([applied.state, applied.deleted, applied.left], ['APPLIED', '2', '0'])
  for (const { digest } of [old, first])
    assert.equal((await client.call('GET', `${name}/manifests/${digest}`)).status, 404)
  for (const { digest } of [other, second, fresh, free]) await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.deepEqual(await ledgerOf(registry, await repo()), before, 'no tag has moved')
  assert.deepEqual(new Set((await deletionsOf(ready.uid)).map(({ outcome }) => outcome)), new Set(['DELETED']))
  const { auditEntries } = ok(await owner.get(`/events/v2/audit?subject=${encodeURIComponent(ready.uid)}`))
  assert.deepEqual(
    auditEntries.map(({ type }: Json) => type.split('.').slice(-2, -1)[0]),
    ['deleted', 'planned'],
  )
  assertError(await owner.post(`/registry/v2/retentionPlans/${ready.uid}:apply`, {}), 400, 9, 'FAILED_PRECONDITION', {
    type: 'PreconditionFailure',
    violations: [
      { type: 'PLAN_STATE', subject: ready.uid, description: 'the plan was already applied; create a new plan' },
    ],
  })
})

test('keeps parts of a kept image, and deletes parts of a deleted image after it', async () => {
  const { folder, name } = nextFolder()
  await rule(folder, { tags: ['v*'], keepDaysAfter: 1, untaggedDays: 1 })
  let client = await pushing()
  const [shared, alone, stray] = [
    await client.pushImage(name),
    await client.pushImage(name),
    await client.pushImage(name),
  ]
  const gone = await client.pushManifest(name, indexOf([shared, alone]), 'v1')
  const kept = await client.pushManifest(name, indexOf([shared]), 'kept')
  const signatureOfGone = await client.pushImage(name, undefined, { subject: gone })
  const signatureOfChild = await client.pushImage(name, undefined, { subject: alone })
  const signatureOfKept = await client.pushImage(name, undefined, { subject: kept })
  now += 1000
  await client.pushImage(name, 'v1')
  now += 2 * day
  const { uid, manifests } = await plan(folder)
  const goes = [gone, alone, stray, signatureOfGone, signatureOfChild]
  assert.deepEqual(sorted(await deletionsOf(uid)), sorted(goes))
  assert.equal(manifests, '5')
  assert.equal((await apply(uid)).deleted, '5')
  client = await pushing()
  for (const { digest } of [shared, kept, signatureOfKept]) await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  for (const { digest } of goes) assert.equal((await client.call('GET', `${name}/manifests/${digest}`)).status, 404)
})

test('deletes a part without its own rule together with its manifest', async () => {
  const { folder, name } = nextFolder()
  await rule(folder, { tags: ['v*'], keepDaysAfter: 1 })
  const client = await pushing()
  const child = await client.pushImage(name)
  const stray = await client.pushImage(name)
  const index = await client.pushManifest(name, indexOf([child]), 'v1')
  now += 1000
  await client.pushImage(name, 'v1')
  now += 2 * day
  const { uid } = await plan(folder)
  const deletions = await deletionsOf(uid)
  assert.deepEqual(sorted(deletions), sorted([child, index]))
  const part = deletions.find(({ digest }) => digest === child.digest)!
  assert.deepEqual([part.why, part.partOf], ['PART', index.digest])
  assert.equal((await apply(uid)).deleted, '2')
  await (await pushing()).ok(200, 'GET', `${name}/manifests/${stray.digest}`)
})

test('a plan keeps manifests that were tagged, held, listed or protected after its creation', async () => {
  const { folder, name } = nextFolder()
  const { uid: ruleUid } = await rule(folder, { tags: ['v*'], keepDaysAfter: 1 })
  let client = await pushing()
  const images = []
  for (const tag of ['v1', 'v2', 'v3', 'v4']) images.push(await client.pushImage(name, tag))
  const [tagged, held, listed, free] = images
  now += 1000
  for (const tag of ['v1', 'v2', 'v3', 'v4']) await client.pushImage(name, tag)
  now += 2 * day
  const first = await plan(folder)
  assert.deepEqual(sorted(await deletionsOf(first.uid)), sorted(images))
  client = await pushing()
  const content = (await client.ok(200, 'GET', `${name}/manifests/${tagged!.digest}`)).bytes.toString()
  await client.pushManifest(name, content, 'again')
  const hold = ok(await owner.post(`/registry/v2/holds/${folder}`, { digest: held!.digest, reason: 'asked for' }))
  await client.pushManifest(name, indexOf([listed!]), 'index')
  const applied = await apply(first.uid)
  assert.deepEqual([applied.deleted, applied.left], ['1', '3'])
  for (const { digest } of [tagged!, held!, listed!]) await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.equal((await client.call('GET', `${name}/manifests/${free!.digest}`)).status, 404)
  ok(await owner.post(`/registry/v2/holds/${hold.uid}:release`, {}))
  const second = await plan(folder)
  ok(await owner.patch(`/registry/v2/retentionRules/${ruleUid}`, { keepDaysAfter: 100 }))
  assert.deepEqual(sorted(await deletionsOf(second.uid)), [held!.digest])
  assert.deepEqual((await apply(second.uid)).left, '1')
  await client.ok(200, 'GET', `${name}/manifests/${held!.digest}`)
})

test('a plan keeps manifests that were requested within the last hour, because a push can depend on them', async () => {
  const { folder, name } = nextFolder()
  await rule(folder, { untaggedDays: 1 })
  const client = await pushing()
  const [asked, other] = [await client.pushImage(name), await client.pushImage(name)]
  now += 2 * day
  const ready = await plan(folder)
  const later = await pushing()
  await later.ok(200, 'HEAD', `${name}/manifests/${asked.digest}`)
  await runJob(app, writeUsage)
  assert.deepEqual([(await apply(ready.uid)).deleted, sorted(await deletionsOf(ready.uid)).length], ['1', 2])
  await later.ok(200, 'GET', `${name}/manifests/${asked.digest}`)
  assert.equal((await later.call('GET', `${name}/manifests/${other.digest}`)).status, 404)
  now += 3_600_001
  assert.equal((await apply((await plan(folder)).uid)).deleted, '1')
})

test('keeps an image requested 59 minutes ago, also across midnight, and deletes one requested 61 minutes ago', async () => {
  const minute = 60_000
  for (const requestedAt of ['T12:00:00.000Z', 'T23:30:00.000Z']) {
    const { folder, name } = nextFolder()
    await rule(folder, { untaggedDays: 1 })
    const { digest } = await (await pushing()).pushImage(name)
    now = Date.parse(new Date(now + 3 * day).toISOString().slice(0, 10) + requestedAt)
    await (await pushing()).ok(200, 'HEAD', `${name}/manifests/${digest}`)
    await runJob(app, writeUsage)
    now += 59 * minute
    const kept = await apply((await plan(folder)).uid)
    assert.deepEqual([kept.deleted, kept.left], ['0', '1'], requestedAt)
    now += 2 * minute
    assert.equal((await apply((await plan(folder)).uid)).deleted, '1', requestedAt)
  }
})

test('DRY_RUN lists deletions without deleting; rules in OFF, and no rules, list and delete nothing', async () => {
  const { folder, name } = nextFolder()
  let client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  now += 1000
  await client.pushImage(name, 'v1')
  now += 2 * day
  const none = await plan(folder)
  assert.equal((await apply(none.uid)).deleted, '0')
  assert.deepEqual([none.state, none.manifests, none.dryRunManifests], ['READY', '0', '0'])
  const { uid: ruleUid } = await rule(folder, { keepDaysAfter: 1, mode: 'OFF' })
  assert.deepEqual(await deletionsOf((await plan(folder)).uid), [])
  ok(await owner.patch(`/registry/v2/retentionRules/${ruleUid}`, { mode: 'DRY_RUN' }))
  const dry = await plan(folder)
  assert.deepEqual([dry.manifests, dry.dryRunManifests], ['0', '1'])
  const [only] = await deletionsOf(dry.uid)
  assert.deepEqual([only!.digest, only!.dryRun, only!.bytes], [digest, true, dry.dryRunBytes])
  assert.equal((await apply(dry.uid)).deleted, '0')
  client = await pushing()
  await client.ok(200, 'GET', `${name}/manifests/${digest}`)
})

test('lists plans in pages, limits them per organization, and lets them expire', async () => {
  const post = (path: string) => operator.post(`/registry/v2/retentionPlans/${path}`, {})
  for (const folder of otherFolders) ok(await post(folder))
  const refused = await post(other)
  assertError(refused, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  assert.equal(refused.body.details[0].metadata.limit, '20')
  const page = ok(await operator.get(`/registry/v2/retentionPlans?scopeUid=${other}&pageSize=15`))
  const rest = ok(
    await operator.get(`/registry/v2/retentionPlans?scopeUid=${other}&pageSize=15&pageToken=${page.nextPageToken}`),
  )
  assert.deepEqual([page.retentionPlans.length, rest.retentionPlans.length, rest.nextPageToken], [15, 5, ''])
  const again = ok(await post(otherFolders[3]!))
  assert.equal((await post(other)).status, 429, 'a new plan replaces the last one of the same scope')
  const { uid } = again
  now += 7 * day
  const late = await operator.post(`/registry/v2/retentionPlans/${uid}:apply`, {})
  assert.equal(late.body.details[1].violations[0].type, 'PLAN_STATE')
  assert.equal((await work()).forgotten! >= 21, true)
  assert.equal((await operator.get(`/registry/v2/retentionPlans/${uid}`)).status, 404)
  ok(await post(other))
})

test('creates and applies a plan with many manifests in batches, and lists it in pages', async () => {
  const { folder, name, repo } = nextFolder()
  await rule(folder, { untaggedDays: 1 })
  const client = await pushing()
  const index = await client.pushManifest(name, indexOf([await client.pushImage(name)]))
  const uid = await repo()
  await app.db.tx(async (tx) => {
    for (let i = 0; i < 250; i++) {
      const digest = `sha256:${i.toString(16).padStart(64, '0')}`
      await tx.run(sql`
        INSERT INTO manifests
               (repo_id, digest, media_type, artifact_type, subject, size, annotations, create_time, content)
        SELECT id, ${digest}, 'application/json', '', ${index.digest}, 1, '{}', ${new Date(now).toISOString()},
               ${Buffer.from('1')}
          FROM repos WHERE uid = ${uid}`)
    }
  })
  now += 2 * day
  const ready = await plan(folder)
  assert.equal(ready.manifests, '252')
  const found: string[] = []
  for (let token = ''; ; ) {
    const path = `/registry/v2/retentionPlans/${ready.uid}/deletions?pageSize=100&pageToken=${token}`
    const { deletions, nextPageToken } = ok(await owner.get(path))
    found.push(...deletions.map(({ digest }: Json) => digest))
    if (nextPageToken === '') break
    token = nextPageToken
  }
  assert.equal(new Set(found).size, 252)
  assert.equal((await apply(ready.uid)).deleted, '252')
  const left = await app.db.all(sql`SELECT 1 FROM manifests m JOIN repos r ON r.id = m.repo_id WHERE r.uid = ${uid}`)
  assert.deepEqual(left, [])
})

test('a plan requires an existing scope, and permission to manage its rules', async () => {
  const { folder } = nextFolder()
  const nobody = callerOf(registry.pusher.uid)
  assert.equal((await nobody.post(`/registry/v2/retentionPlans/${folder}`, {})).body.code, 7)
  assert.equal((await owner.post(`/registry/v2/retentionPlans/${newUid(folder)}`, {})).body.code, 5)
  const { uid } = ok(await owner.post(`/registry/v2/retentionPlans/${folder}`, {}))
  assert.equal((await nobody.get(`/registry/v2/retentionPlans/${uid}`)).body.code, 7)
  assert.equal((await nobody.post(`/registry/v2/retentionPlans/${uid}:apply`, {})).body.code, 7)
  assert.equal((await owner.get(`/registry/v2/retentionPlans/${newUid(folder)}/deletions`)).body.code, 5)
})
