// Limits of one request for summaries: findings, time, and content that is read to determine sizes and configurations.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertBlocked, ok } from '../support/expect.ts'
import type { Json } from '../support/pinfold.ts'
import { type Descriptor, imageOf, indexOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'

let registry: TestRegistry
let shop: string
before(async () => {
  registry = await startRegistry()
  shop = (await registry.seed.group(registry.org.uid, { name: 'shop' })).uid
})
after(() => registry[Symbol.asyncDispose]())

const seedRepo = async (name: string, group = shop): Promise<string> => (await registry.seed.repo(group, { name })).uid
const get = async (path: string): Promise<Json> => ok(await registry.operator.get(`/registry/v2/${path}`))

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

test('leaves out sizes once one request has read 32 MiB to determine them', async () => {
  const client = await registry.registryAs(registry.pusher.uid)
  const large = JSON.stringify({ architecture: 'amd64', os: 'linux', author: 'a'.repeat(4_000_000) })
  const digests: string[] = []
  const repos: string[] = []
  for (let i = 0; i < 10; i++) {
    repos.push(await seedRepo(`sized${i}`))
    for (const name of i === 0 ? Array.from({ length: 10 }, () => 'sized0') : [`sized${i}`]) {
      const config = await client.pushBlob(`acme/shop/${name}`, large, types.config)
      const layer = await client.pushBlob(`acme/shop/${name}`, `layer ${digests.length}`)
      const tag = `v${digests.length}`
      digests.push((await client.pushManifest(`acme/shop/${name}`, imageOf(config, [layer]), tag)).digest)
    }
  }
  const sized = (images: Json[]) => images.map(({ size }) => size !== undefined)
  const some = [...Array.from({ length: 8 }, () => true), false, false]
  const { images } = await get(`repos/${repos[0]}/imageSummaries?digests=${digests.slice(0, 10).join(',')}`)
  assert.deepEqual(sized(images), some)
  const { scopes } = ok(await registry.operator.post('/registry/v2/scopeSummaries:get', { uids: repos }))
  assert.deepEqual(sized(scopes.map(({ newestImage }: Json) => newestImage)), some)
})
