import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertDenied, assertNotFound, ok } from '../support/expect.ts'
import { roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, types } from '../support/registry.ts'
import { plantManifest } from '../support/tags.ts'

const repoType = 'registry.pinfold.dev/Repo'

test('the usage of a repository counts each blob once, also if other repositories share it', async () => {
  await using registry = await startRegistry()
  const { operator, org, pusher, seed } = registry
  const repo = (await seed.repo(org.uid, { name: 'app' })).uid
  const usage = async () => ok(await operator.get(`/registry/v2/repos/${repo}/usage`))
  assert.deepEqual(await usage(), { repoUid: repo, manifests: '0', blobs: '0', bytes: '0' })

  const config = await pusher.pushBlob('acme/app', '{"architecture":"amd64"}', types.config)
  const layers = await Promise.all(['x'.repeat(1000), 'y'.repeat(500)].map((text) => pusher.pushBlob('acme/app', text)))
  await pusher.pushBlob('acme/other', 'x'.repeat(1000))
  const manifests = [
    await pusher.pushManifest('acme/app', imageOf(config, [layers[0]!]), 'one'),
    await pusher.pushManifest('acme/app', imageOf(config, layers), 'two'),
  ]
  await pusher.pushManifest('acme/app', imageOf(config, layers), 'three')
  const bytes = [config, ...layers, ...manifests].reduce((sum, { size }) => sum + size, 0)
  assert.deepEqual(await usage(), { repoUid: repo, manifests: '2', blobs: '3', bytes: String(bytes) })
})

test('the usage of a repository continues on the next page', async () => {
  await using registry = await startRegistry()
  const { operator, org, seed } = registry
  const repo = (await seed.repo(org.uid, { name: 'app' })).uid
  for (let i = 0; i < 1001; i++) await plantManifest(registry, repo, String(1000 + i))
  const { manifests, bytes } = ok(await operator.get(`/registry/v2/repos/${repo}/usage`))
  assert.deepEqual([manifests, bytes], ['1001', '4004'])
})

test('reading the usage of a repository requires permission to delete it', async () => {
  await using registry = await startRegistry()
  const { as, operator, org, seed } = registry
  const repo = (await seed.repo(org.uid, { name: 'app' })).uid
  const asRole = async (role: string) => as((await seed.member(org.uid, role)).uid)
  const path = `/registry/v2/repos/${repo}/usage`
  assert.equal((await (await asRole(roleUids.owner)).get(path)).status, 200)
  assertDenied(await (await asRole(roleUids.viewer)).get(path))
  const absent = `${org.uid}/${'0'.repeat(16)}`
  assertNotFound(await operator.get(`/registry/v2/repos/${absent}/usage`), repoType, absent)
})
