// Settings beside repos: registry settings of an organization, and the charts that deploy a repo.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { assertDenied, assertInvalid, assertNotFound, assertTaken, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const { pinfold, operator, member, org, ...scene } = await startScene()
const owner = await member(roleUids.owner)
const viewer = await member(roleUids.viewer)
const stranger = await scene.stranger()
after(() => pinfold[Symbol.asyncDispose]())

const deploymentType = 'registry.pinfold.dev/Deployment'
const settings = (scope: string) => `/registry/v1/settings/${scope}`
const deployment = (repo: string) => `/registry/v1/repos/${repo}/deployment`
const newRepo = async (): Promise<string> => (await pinfold.seed.repo(org.uid)).uid

test('settings are false by default, and a PUT replaces both', async () => {
  const none = { registryId: org.uid, uniqueTags: false, eolGracePeriod: false }
  assert.deepEqual(ok(await owner.get(settings(org.uid))), none)
  const set = { ...none, uniqueTags: true }
  assert.deepEqual(ok(await owner.call('PUT', settings(org.uid), { uniqueTags: true })), set)
  assert.deepEqual(ok(await owner.get(settings(org.uid))), set)
  const other = { ...none, eolGracePeriod: true }
  assert.deepEqual(ok(await owner.call('PUT', settings(org.uid), { eolGracePeriod: true })), other)
  assert.deepEqual(ok(await owner.get(settings(org.uid))), other)
})

test('settings require an existing organization, and are deleted with it', async () => {
  const folder = (await pinfold.seed.group(org.uid)).uid
  const nowhere = '0'.repeat(40)
  for (const call of [(at: string) => operator.get(at), (at: string) => operator.call('PUT', at, {})]) {
    assertInvalid(await call(settings(folder)), 'registry_id')
    assertNotFound(await call(settings(nowhere)), 'iam.pinfold.dev/Group', nowhere)
  }
  assertDenied(await stranger.get(settings(org.uid)))
  assertDenied(await viewer.call('PUT', settings(org.uid), {}))
  const { uid } = await pinfold.seed.group()
  ok(await operator.call('PUT', settings(uid), { uniqueTags: true }))
  ok(await operator.delete(`/iam/v2/groups/${uid}`))
  assert.deepEqual(await pinfold.app.db.all(sql`SELECT * FROM registry_settings WHERE org_uid = ${uid}`), [])
})

const charts = [
  { source: '', repo: 'https://charts.example.com', chart: 'app' },
  { repo: 'oci://charts.example.com/app' },
]

test('a deployment can be created once, replaced, and deleted by a request without charts', async () => {
  const repo = await newRepo()
  assertNotFound(await owner.get(deployment(repo)), deploymentType, repo)
  assertNotFound(await operator.call('PUT', deployment(repo), { charts }), deploymentType, repo)
  assert.deepEqual(ok(await owner.post(deployment(repo), { charts })), { id: repo, charts })
  assert.deepEqual(ok(await owner.get(deployment(repo))), { id: repo, charts })
  assertTaken(await owner.post(deployment(repo), { charts }), deploymentType, repo)

  const [first] = charts
  assert.deepEqual(ok(await operator.call('PUT', deployment(repo), { charts: [first] })), { id: repo, charts: [first] })
  assert.deepEqual(ok(await operator.call('PUT', deployment(repo), {})), { id: repo, charts: [] })
  assertNotFound(await owner.get(deployment(repo)), deploymentType, repo)
  ok(await owner.post(deployment(repo), { charts }))
  ok(await operator.delete(`/registry/v1/repos/${repo}`))
  assertNotFound(await operator.get(deployment(repo)), deploymentType, repo)
})

test('an error names the invalid field of a deployment', async () => {
  const repo = await newRepo()
  const post = (some: Json[]) => owner.post(deployment(repo), { charts: some })
  assertInvalid(await post([]), 'charts')
  assertInvalid(await post(Array.from({ length: 101 }, () => charts[0]!)), 'charts')
  for (const url of [
    '',
    'charts',
    'http://example.com',
    'https://me:pass@example.com',
    'file:///etc',
    'javascript:1',
  ]) {
    assertInvalid(await post([charts[0]!, { repo: url }]), 'charts[1].repo')
  }
  assertInvalid(await post([{ ...charts[0], chart: 'x'.repeat(2049) }]), 'charts[0].chart')
  for (const url of ['http://127.0.0.1:8080/charts', 'http://localhost', 'http://[::1]/']) {
    const another = await newRepo()
    ok(await owner.post(deployment(another), { charts: [{ repo: url }] }))
  }
  const nowhere = `${org.uid}/${'0'.repeat(16)}`
  assertNotFound(await owner.post(deployment(nowhere), { charts }), 'registry.pinfold.dev/Repo', nowhere)
  assertDenied(await viewer.post(deployment(repo), { charts }))
  // Only catalog administrators can replace a deployment.
  assertDenied(await owner.call('PUT', deployment(repo), { charts }))
})

test('gRPC gives the same answers, and distinguishes absent from empty', async () => {
  const repo = await newRepo()
  using grpc = grpcClientOf(pinfold, Registry, operator.token)
  await grpc.createDeployment({ parentId: repo, charts })
  const { id, charts: told } = await grpc.getDeployment({ repoId: repo })
  assert.deepEqual(
    [id, told.map(({ source, chart }) => [source, chart])],
    [
      repo,
      [
        ['', 'app'],
        [undefined, undefined],
      ],
    ],
  )
  assert.deepEqual((await grpc.updateDeployment({ repoId: repo, charts: [] })).charts, [])
  await assert.rejects(grpc.getDeployment({ repoId: repo }), { code: 5 })
  await grpc.updateRegistrySettings({ registryId: org.uid, uniqueTags: true, eolGracePeriod: true })
  const { uniqueTags, eolGracePeriod } = await grpc.getRegistrySettings({ registryId: org.uid })
  assert.deepEqual([uniqueTags, eolGracePeriod], [true, true])
})
