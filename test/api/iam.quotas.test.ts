import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { QuotasService } from '#gen/pinfold/control/quotas/v1/quotas_pb.ts'
import { RepoSchema, ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { checkLists } from '../support/check-lists.ts'
import { assertDenied, assertError, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
let org: string
before(async () => {
  pinfold = await startPinfold({ quotaRepositories: 7 })
})
after(() => pinfold[Symbol.asyncDispose]())

const fresh = async (): Promise<string> => {
  org = (await pinfold.seed.group()).uid
  return org
}
const set = (organization: string, ...limits: Json[]) =>
  pinfold.operator.post('/control/v1/quotas:set', { organization, limits })
const get = async (organization: string): Promise<Record<string, Json>> => {
  const { quotas } = ok(await pinfold.operator.get(`/iam/v2/quotas/${organization}`)) as { quotas: Json[] }
  return Object.fromEntries(quotas.map(({ name, ...quota }) => [name, quota]))
}

/** The complete error, with the details of the ErrorInfo. */
function assertExceeded(answer: Answer, quota: string, used: number, limit: number): void {
  assertError(answer, 429, 8, 'RESOURCE_LIMIT_EXCEEDED')
  const { requestId, ...metadata } = answer.body.details[0].metadata
  assert.ok(requestId)
  assert.deepEqual(metadata, { quota, used: String(used), limit: String(limit) })
  assert.equal(answer.headers.get('retry-after'), null, 'waiting does not help')
}

test('limits come from the settings, or from the operator for one organization until removed', async () => {
  await fresh()
  const folder = (await pinfold.seed.group(org)).uid
  await pinfold.seed.repo(folder)
  assert.deepEqual(await get(org), {
    bytes: { used: '0', own: false },
    repositories: { limit: '7', used: '1', own: false },
    groups: { used: '1', own: false },
    uploads: { limit: '1000', used: '0', own: false },
    upload_pieces: { limit: '10000', own: false },
    subscriptions: { limit: '1000', used: '0', own: false },
    sink_subscriptions: { limit: '100', own: false },
    pending_deliveries: { limit: '10000', used: '0', own: false },
  })
  const most = String(Number.MAX_SAFE_INTEGER)
  const answer = await set(
    org,
    { name: 'bytes', limit: most },
    { name: 'groups', limit: 3 },
    { name: 'uploads', limit: 0 },
  )
  assert.equal(ok(answer).organization, org)
  assert.deepEqual(ok(answer).quotas[0], { name: 'bytes', limit: most, own: true })
  ok(await set(org, { name: 'repositories', limit: 2 }))
  const { bytes, repositories, groups, uploads } = await get(org)
  assert.deepEqual(
    { bytes, repositories, groups, uploads },
    {
      bytes: { limit: most, used: '0', own: true },
      repositories: { limit: '2', used: '1', own: true },
      groups: { limit: '3', used: '1', own: true },
      uploads: { used: '0', own: true },
    },
  )
  const group = ok(await pinfold.operator.get(`/iam/v2/groups/${org}`))
  assert.deepEqual(group.resourceLimits, { groups: 3, repositories: 2 })
  const [older] = ok(await pinfold.operator.get(`/iam/v1/groups?id=${org}`)).items
  assert.deepEqual(older.resourceLimits, { groups: 3, repositories: 2 })
  ok(await set(org, { name: 'repositories' }, { name: 'uploads' }))
  assert.deepEqual((await get(org)).repositories, { limit: '7', used: '1', own: false })
  assert.deepEqual((await get(org)).uploads, { limit: '1000', used: '0', own: false })
  await checkLists(pinfold)
})

test('refuses folders and repositories above the quota at each entry point, counting all levels', async () => {
  await fresh()
  ok(await set(org, { name: 'repositories', limit: 2 }, { name: 'groups', limit: 2 }))
  const folder = (await pinfold.seed.group(org)).uid
  const { operator } = pinfold
  const groups = await Promise.all(
    [org, folder, org, folder].map((parent, i) => operator.post(`/iam/v2/groups/${parent}`, { name: `g${i}` })),
  )
  assert.deepEqual(groups.map(({ status }) => status).sort(), [200, 429, 429, 429])
  for (const answer of groups.filter(({ status }) => status !== 200)) assertExceeded(answer, 'groups', 2, 2)
  const repos = await Promise.all(
    [org, folder, org, folder].map((parent, i) => operator.post(`/registry/v2/repos/${parent}`, { name: `r${i}` })),
  )
  assert.deepEqual(repos.map(({ status }) => status).sort(), [200, 200, 429, 429])
  for (const answer of repos.filter(({ status }) => status !== 200)) assertExceeded(answer, 'repositories', 2, 2)
  using client = grpcClientOf(pinfold, ReposService, operator.token)
  await assert.rejects(client.createRepo({ parent: org, repo: create(RepoSchema, { name: 'over-grpc' }) }), {
    code: 8,
    reason: 'RESOURCE_LIMIT_EXCEEDED',
  })
  assertExceeded(
    await operator.post(`/registry/v1/repos/${org}`, { name: 'over-v1', description: '' }),
    'repositories',
    2,
    2,
  )
  // Other organizations are not affected, and a deletion frees quota.
  await pinfold.seed.repo((await pinfold.seed.group()).uid)
  ok(await operator.delete(`/registry/v2/repos/${repos.find(({ status }) => status === 200)!.body.uid}`))
  await pinfold.seed.repo(org)
})

test('refuses more subscriptions to one sink than the quota of the organization', async () => {
  await fresh()
  ok(await set(org, { name: 'sink_subscriptions', limit: 2 }))
  const folder = (await pinfold.seed.group(org)).uid
  const sink = `https://hooks.example.com/${'long/'.repeat(100)}`
  const subscribe = (parent: string, to = sink) =>
    pinfold.operator.post(`/events/v2/subscriptions/${parent}`, { sink: to })
  const answers = await Promise.all([org, folder, org, folder].map((parent) => subscribe(parent)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 429, 429])
  for (const answer of answers.filter(({ status }) => status !== 200))
    assertExceeded(answer, 'sink_subscriptions', 2, 2)
  ok(await subscribe(org, `${sink}other`))
  ok(await subscribe((await pinfold.seed.group()).uid))
  ok(await pinfold.operator.delete(`/events/v2/subscriptions/${answers.find((one) => one.status === 200)!.body.uid}`))
  ok(await subscribe(folder))
  assertExceeded(await subscribe(folder), 'sink_subscriptions', 2, 2)
})

test('refuses more subscriptions than the quota of the organization, to all sinks together', async () => {
  await fresh()
  ok(await set(org, { name: 'subscriptions', limit: 2 }))
  const folder = (await pinfold.seed.group(org)).uid
  let sinks = 0
  const subscribe = (parent: string) =>
    pinfold.operator.post(`/events/v2/subscriptions/${parent}`, { sink: `https://${++sinks}.example.com/` })
  const answers = await Promise.all([org, folder, org, folder].map((parent) => subscribe(parent)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 429, 429])
  for (const answer of answers.filter(({ status }) => status !== 200)) assertExceeded(answer, 'subscriptions', 2, 2)
  assert.deepEqual((await get(org)).subscriptions, { limit: '2', used: '2', own: true })
  ok(await subscribe((await pinfold.seed.group()).uid))
  ok(await pinfold.operator.delete(`/events/v2/subscriptions/${answers.find((one) => one.status === 200)!.body.uid}`))
  ok(await subscribe(folder))
  ok(await set(org, { name: 'subscriptions', limit: 1 }))
  assertExceeded(await subscribe(folder), 'subscriptions', 2, 1)
})

test('members with a role on the organization read its quotas, and only the operator sets them', async () => {
  await fresh()
  const folder = (await pinfold.seed.group(org)).uid
  const viewer = await pinfold.as((await pinfold.seed.member(org, roleUids.viewer)).uid)
  const owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  const below = await pinfold.as((await pinfold.seed.member(folder, roleUids.owner)).uid)
  const stranger = await pinfold.as((await pinfold.seed.member((await pinfold.seed.group()).uid, roleUids.owner)).uid)
  for (const one of [viewer, owner]) assert.equal(ok(await one.get(`/iam/v2/quotas/${org}`)).quotas.length, 8)
  for (const one of [below, stranger]) assertDenied(await one.get(`/iam/v2/quotas/${org}`))
  const limits = [{ name: 'bytes', limit: '1' }]
  assertDenied(await owner.post('/control/v1/quotas:set', { organization: org, limits }))
  using client = grpcClientOf(pinfold, QuotasService, viewer.token)
  const { quotas } = await client.getQuotas({ organization: org })
  assert.deepEqual(quotas.find(({ name }) => name === 'repositories')!.limit, 7n)
  await assert.rejects(client.setQuotas({ organization: org, limits: [{ name: 'bytes', limit: 1n }] }), { code: 7 })
})

test('refuses unknown quotas, limits out of range, and groups that are not organizations', async () => {
  await fresh()
  const folder = (await pinfold.seed.group(org)).uid
  assertInvalid(await set(org), 'limits')
  assertInvalid(
    await set(org, { name: 'clusters', limit: 1 }, { name: '__proto__', limit: 1 }),
    'limits[0].name',
    'limits[1].name',
  )
  assertInvalid(await set(org, { name: 'bytes', limit: 1 }, { name: 'bytes', limit: 2 }), 'limits[1].name')
  const wrong = [
    { name: 'bytes', limit: '9007199254740992' },
    { name: 'groups', limit: '2147483648' },
    { name: 'uploads', limit: -1 },
  ]
  assertInvalid(await set(org, ...wrong), 'limits[0].limit', 'limits[1].limit', 'limits[2].limit')
  for (const uid of [folder, 'f'.repeat(40)]) {
    assertNotFound(await set(uid, { name: 'bytes', limit: 1 }), 'iam.pinfold.dev/Group', uid)
    assertNotFound(await pinfold.operator.get(`/iam/v2/quotas/${uid}`), 'iam.pinfold.dev/Group', uid)
  }
  assert.equal((await get(org)).bytes!.own, false)
})

test('new limits write an event and an audit log entry of the organization', async () => {
  await fresh()
  ok(await set(org, { name: 'bytes', limit: 5 }))
  assert.equal((await pinfold.events()).at(-1), 'dev.pinfold.control.quotas.set.v1')
  const owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  const { auditEntries } = ok(await owner.get(`/events/v2/audit?subject=${org}&type=dev.pinfold.control.quotas.set.v1`))
  const [entry] = auditEntries as Json[]
  assert.equal(auditEntries.length, 1)
  assert.deepEqual(JSON.parse(entry!.body as string).quotas[0], { name: 'bytes', limit: '5', own: true })
  const events = await pinfold.events()
  await set(org, { name: 'bytes', limit: -5 })
  assert.deepEqual(await pinfold.events(), events)
})
