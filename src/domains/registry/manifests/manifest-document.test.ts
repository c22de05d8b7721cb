import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatement, readManifest, readNewManifest } from './manifest-document.ts'

const mediaType = 'application/vnd.oci.image.manifest.v1+json'
const descriptorOf = (type: string, extra = {}) => {
  return { mediaType: type, digest: `sha256:${'a'.repeat(64)}`, size: 5, ...extra }
}
const contentOf = (config: object, layer: object, extra = {}) =>
  Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config, layers: [layer], ...extra }))

test('a manifest is no VEX or SBOM document if parsers disagree on its members, but stays readable if already stored', () => {
  const signature = 'application/vnd.dev.cosign.simplesigning.v1+json'
  const [config, layer] = [descriptorOf('application/vnd.oci.empty.v1+json'), descriptorOf(signature)]
  assert.ok(isStatement({ content: contentOf(config, layer), mediaType }))
  const odd = [
    contentOf(config, { ...layer, MediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' }),
    contentOf({ ...config, mediatype: 'application/vnd.oci.image.config.v1+json' }, layer),
    contentOf(config, layer, { LAYERS: [] }),
  ]
  for (const content of odd) {
    assert.ok(!isStatement({ content, mediaType }))
    assert.equal(readManifest(content, mediaType).kind, 'image')
    assert.throws(() => readNewManifest(content, mediaType), /must be spelled (?:mediaType|layers)/)
  }
  const named = contentOf(config, layer, { annotations: { Layers: 'as they are', SIZE: '5' } })
  assert.ok(isStatement({ content: named, mediaType }))
  readNewManifest(named, mediaType)
})

test('accepts each spelling of platform members outside of a descriptor', () => {
  const [config, layer] = [descriptorOf('application/vnd.oci.empty.v1+json'), descriptorOf('application/spdx+json')]
  const content = contentOf(config, layer, { platform: { OS: 'linux' } })
  assert.equal(readNewManifest(content, mediaType).kind, 'image')
  assert.ok(isStatement({ content, mediaType }))
  const listed = contentOf(config, { ...layer, platform: { OS: 'linux' } })
  assert.throws(() => readNewManifest(listed, mediaType), /must be spelled os/)
})
