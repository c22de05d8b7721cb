// Version 1 of libraries: pages without an order, versions in full, and ecosystems that nothing is offered for.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Artifacts, Ecosystem, SourceType } from '#gen/pinfold/libraries/v1/artifacts_pb.ts'
import { assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { seedLibraries } from '../support/libraries.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/libraries/v1/artifacts'
const { pinfold, ...scene } = await startScene()
const viewer = await scene.member(roleUids.viewer)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, Artifacts, viewer.token)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})
const releaseTime = '2026-01-02T00:00:00.000Z'
await seedLibraries(pinfold, 'python', {
  flask: [
    { version: '1.0', releaseTime, description: 'web', sizeBytes: '42' },
    { version: '2.0', releaseTime },
  ],
  patched: [{ version: '1.0', releaseTime, remediated: true }],
  many: Array.from({ length: 1205 }, (_, i) => ({ version: `1.${i}`, releaseTime })),
})
await seedLibraries(pinfold, 'java', { 'com.example:lib': [{ version: '1.0', releaseTime }] })

const list = async (query: string, client: Client = viewer): Promise<Json> => ok(await client.get(`${path}?${query}`))
const namesOf = ({ items }: Json) => items.map(({ name }: Json) => name)

test('lists libraries by name in pages, with the same total on each page', async () => {
  const all = await list('ecosystems=JAVA,PYTHON')
  assert.deepEqual(namesOf(all), ['com.example:lib', 'flask', 'many', 'patched'])
  assert.deepEqual([all.totalArtifacts, all.skipped, all.nextPageToken], [4, 0, ''])
  const [, flask] = all.items
  assert.deepEqual(flask, {
    id: 'python:flask',
    name: 'flask',
    description: flask.description,
    ecosystem: 'PYTHON',
    latestVersion: '2.0',
    versionCount: 2,
    createdAt: releaseTime,
    updatedAt: releaseTime,
  })
  const first = await list('ecosystems=PYTHON&page_size=1&skip=1')
  assert.deepEqual([namesOf(first), first.totalArtifacts, first.skipped], [['many'], 3, 1])
  const next = await list(`ecosystems=PYTHON&page_size=1&page_token=${first.nextPageToken}`)
  assert.deepEqual([namesOf(next), next.totalArtifacts, next.skipped, next.nextPageToken], [['patched'], 3, 0, ''])
  assertInvalid(await viewer.get(`${path}?ecosystems=JAVA&page_token=${first.nextPageToken}`), 'page_token')
  assertInvalid(await viewer.get(`${path}?ecosystems=JAVA&skip=-1`), 'skip')
  assert.deepEqual(namesOf(await list('ecosystems=PYTHON&remediated=true')), ['patched'])
  assert.deepEqual(namesOf(await list('ecosystems=PYTHON&query=FLA')), ['flask'])
  assert.deepEqual(await list('ecosystems=PYTHON', stranger), {
    items: [],
    nextPageToken: '',
    totalArtifacts: 0,
    skipped: 0,
  })
})

test('returns an empty list for an ecosystem without artifacts, and refuses an unknown ecosystem', async () => {
  assert.deepEqual(await list('ecosystems=GO'), { items: [], nextPageToken: '', totalArtifacts: 0, skipped: 0 })
  assert.deepEqual(namesOf(await list('ecosystems=GO,JAVA')), ['com.example:lib'])
  for (const bad of ['', 'ecosystems=UNKNOWN', 'ecosystems=99']) {
    assertInvalid(await viewer.get(`${path}?${bad}`), 'ecosystems')
    assertInvalid(await viewer.get(`${path}/count?${bad}`), 'ecosystems')
  }
  const counts = ok(await viewer.get(`${path}/count?ecosystems=DOTNET,PYTHON&ecosystems=PYTHON`))
  assert.deepEqual(counts, {
    counts: [
      { ecosystem: 'DOTNET', totalArtifacts: 0 },
      { ecosystem: 'PYTHON', totalArtifacts: 3 },
    ],
  })
  assert.deepEqual(
    (await grpc.getArtifactCount({ ecosystems: [Ecosystem.GO] })).counts.map((one) => one.totalArtifacts),
    [0],
  )
})

test('lists all versions, newest first, each with its source', async () => {
  const { items } = ok(await viewer.get(`${path}/python%3Aflask/versions`))
  assert.deepEqual(items[1], {
    id: 'python:flask:1.0:internal',
    name: 'flask',
    version: '1.0',
    description: 'web',
    createdAt: releaseTime,
    updatedAt: releaseTime,
    sizeBytes: '42',
    sourceType: 'SOURCE_TYPE_INTERNAL',
    malwareScanned: false,
    malwareMalicious: false,
    upstreamPublishedDate: null,
  })
  const patched = await grpc.listVersions({ id: 'python:patched' })
  assert.equal(patched.items[0]!.sourceType, SourceType.INTERNAL_REMEDIATED)
  const many = ok(await viewer.get(`${path}/python%3Amany/versions`)).items as Json[]
  assert.deepEqual(
    many.map(({ version }) => version),
    Array.from({ length: 1205 }, (_, i) => `1.${1204 - i}`),
  )
  assertNotFound(await viewer.get(`${path}/python%3Anone/versions`), 'libraries.pinfold.dev/Artifact', 'python:none')
  assertNotFound(
    await stranger.get(`${path}/python%3Aflask/versions`),
    'libraries.pinfold.dev/Artifact',
    'python:flask',
  )
})
