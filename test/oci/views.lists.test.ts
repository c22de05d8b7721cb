// Tag lists in a view agree with pulls in the view, also for signatures pushed later, and for a clock behind the tag history.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { ok } from '../support/expect.ts'
import { type Descriptor, type RegistryClient, startRegistry, types } from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
let now = start
const registry = await startRegistry({ clock: () => new Date(now) })
after(() => registry[Symbol.asyncDispose]())

async function on(days: number): Promise<{ pusher: RegistryClient; reader: RegistryClient }> {
  now = start + days * day
  return {
    pusher: await registry.registryAs(registry.pusher.uid),
    reader: await registry.registryAs(registry.puller.uid),
  }
}

const listed = async (client: RegistryClient, path: string): Promise<string[]> =>
  (await client.ok(200, 'GET', `${path}/tags/list`)).body.tags

const statusOf = async (client: RegistryClient, path: string, tag: string): Promise<number> =>
  (await client.call('GET', `${path}/manifests/${tag}`)).status

/** The manifest of a signature as cosign writes it, which is not a runnable image. */
async function pushSignature(client: RegistryClient, name: string, tag: string): Promise<Descriptor> {
  const config = await client.pushBlob(name, `{"of":"${tag}"}`, types.empty)
  const layer = await client.pushBlob(name, tag, 'application/vnd.dev.cosign.simplesigning.v1+json')
  const manifest = { schemaVersion: 2, mediaType: types.image, config, layers: [layer] }
  return client.pushManifest(name, manifest, tag)
}

test('lists signatures if the view serves them, for each time or age', async () => {
  const name = 'acme/signed'
  const first = await on(0)
  const image = await first.pusher.pushImage(name, 'stable')
  const later = await on(9)
  const ofImage = `${image.digest.replace(':', '-')}.sig`
  const bad = `sha256-${'a'.repeat(64)}.sig`
  const signature = await pushSignature(later.pusher, name, ofImage)
  await later.pusher.pushImage(name, bad)
  for (const view of ['at-20260602', 'min-7d', 'min-7d_at-20260609']) {
    const names = await listed(later.reader, `${view}/${name}`)
    for (const tag of ['stable', ofImage, bad]) {
      const status = await statusOf(later.reader, `${view}/${name}`, tag)
      assert.equal(names.includes(tag), status === 200, `${view} ${tag} ${status}`)
    }
    assert.ok(names.includes(ofImage), view)
  }
  assert.equal((await listed(later.reader, `min-7d/${name}`)).includes(bad), false, 'an image does not pass as one')
  const operator = await registry.as(operatorUid)
  const why = { digest: signature.digest, reason: 'it was forged' }
  const { uid } = ok(await operator.post(`/registry/v2/quarantined/${registry.org.uid}:quarantine`, why))
  assert.deepEqual(await listed(later.reader, `min-7d/${name}`), ['stable'])
  assert.equal(await statusOf(later.reader, `min-7d/${name}`, ofImage), 403)
  ok(await operator.post(`/registry/v2/quarantined/${uid}:release`, {}))
})

test('a tag update with a time in the future counts in views of the current time', async () => {
  const name = 'acme/fast'
  const first = await on(20)
  const before = await first.pusher.pushImage(name, 'stable')
  const { pusher, reader } = await on(30)
  // Three updates in one millisecond get increasing times.
  const images = []
  for (let i = 0; i < 3; i++) images.push(await pusher.pushImage(name, 'stable'))
  const reply = await reader.ok(200, 'GET', `min-7d/${name}/manifests/stable`)
  assert.equal(reply.headers['docker-content-digest'], before.digest)
  assert.ok(String(reply.headers.warning).includes(images[2]!.digest), String(reply.headers.warning))
  const { latest, skipped } = (await reader.ok(200, 'GET', `${name}/_svc/resolve/stable?min_age=7d`)).body
  assert.equal(latest.digest, images[2]!.digest)
  assert.deepEqual(
    skipped.map(({ digest }: { digest: string }) => digest),
    images.map(({ digest }) => digest).reverse(),
  )
  await (await registry.registryAs(operatorUid)).ok(202, 'DELETE', `${name}/manifests/stable`)
  assert.equal(await statusOf(reader, `min-7d/${name}`, 'stable'), 404)
  assert.deepEqual(await listed(reader, `min-7d/${name}`), [])
})
