// Limits of one request for summaries: findings, time, and content that is read to determine sizes and configurations.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertBlocked } from '../support/expect.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
let shop: string
before(async () => {
  registry = await startRegistry()
  shop = (await registry.seed.group(registry.org.uid, { name: 'shop' })).uid
})
after(() => registry[Symbol.asyncDispose]())

const seedRepo = async (name: string, group = shop): Promise<string> => (await registry.seed.repo(group, { name })).uid

test('refuses the layers of an image whose configuration has too many members', async () => {
  const repo = await seedRepo('large')
  const client = await registry.registryAs(registry.pusher.uid)
  const config = { architecture: 'amd64', os: 'linux', config: { Env: Array.from({ length: 20_001 }, () => '') } }
  const pushed = await client.pushBlob('acme/shop/large', JSON.stringify(config), types.config)
  const image = await client.pushManifest('acme/shop/large', imageOf(pushed, []))
  const platform = { architecture: 'amd64', os: 'linux' }
  const index = await client.pushManifest('acme/shop/large', indexOf([{ ...image, platform } as Descriptor]))
  const path = `/registry/v2/repos/${repo}/digests/${index.digest}/layers`
  assertBlocked(await registry.operator.get(path), index.digest, 'IMAGE_TOO_LARGE')
})
