// Manifests and indexes at the limits of the registry.
const types = {
  image: 'application/vnd.oci.image.manifest.v1+json',
  index: 'application/vnd.oci.image.index.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
}
const maxBytes = 4 * 1024 * 1024
const list = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
const digest = (at: number): string => `sha256:${at.toString(16).padStart(64, '0')}`
const annotations = (count: number, value = ''): Record<string, string> =>
  Object.fromEntries(list(count, (at) => [at.toString(36), value]))

/** Manifests within all limits, whose content exists. */
export const validManifests = [
  'allowed annotations',
  'annotations of layers',
  'allowed layers',
  'an index of one manifest',
  'many URLs',
]

/** Media type of a body, for the Content-Type header. */
export const typeOf = (shape: string): string => (/\bindex\b/.test(shape) ? types.index : types.image)

/** `known` is a stored manifest. `blob` is the digest of a stored blob of two bytes. */
export function manifests(known: { digest: string; size: number }, blob: string): Record<string, () => string> {
  const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: blob, size: 2 }
  const image = (more: object): string =>
    JSON.stringify({ schemaVersion: 2, mediaType: types.image, config, layers: [], ...more })
  const index = (more: object): string =>
    JSON.stringify({ schemaVersion: 2, mediaType: types.index, manifests: [], ...more })
  const descriptor = (at: number) => ({
    mediaType: types.image,
    digest: digest(at),
    size: 3,
    platform: { os: 'linux', architecture: 'amd64' },
    annotations: { a: 'b' },
  })
  return {
    annotations: () => image({ annotations: annotations(200_000) }),
    'allowed annotations': () => image({ annotations: annotations(1000, 'a'.repeat(4000)) }),
    'annotations of layers': () =>
      image({
        layers: list(1000, () => ({
          mediaType: types.layer,
          digest: blob,
          size: 2,
          annotations: annotations(14),
        })),
      }),
    layers: () => image({ layers: list(30_000, (at) => ({ mediaType: types.layer, digest: digest(at), size: 3 })) }),
    'allowed layers': () => {
      const urls = ['https://example.com/'.padEnd(3500, 'a')]
      return image({ layers: list(1000, () => ({ mediaType: types.layer, digest: blob, size: 2, urls })) })
    },
    'an index': () => index({ manifests: list(2000, descriptor) }),
    'a large index': () => index({ manifests: list(20_000, descriptor) }),
    'an index of one manifest': () => index({ manifests: list(2000, () => ({ ...descriptor(0), ...known })) }),
    'unknown members': () => image(annotations(200_000)),
    'nested members': () => `${image({}).slice(0, -1)},"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`,
    'a long annotation': () => image({ annotations: { a: 'a'.repeat(maxBytes - 1000) } }),
    'a long artifact type': () => image({ artifactType: `a/${'b'.repeat(maxBytes - 1000)}` }),
    'a long media type': () => image({ config: { ...config, mediaType: `a/${'b'.repeat(maxBytes - 1000)}` } }),
    'a long digest': () => image({ config: { ...config, digest: `sha256:${'a'.repeat(maxBytes - 1000)}` } }),
    'many URLs': () =>
      image({
        layers: [{ mediaType: types.layer, digest: blob, size: 2, urls: list(19_000, () => 'https://example.com/') }],
      }),
    'embedded data': () => image({ config: { ...config, data: 'A'.repeat(maxBytes - 1000) } }),
    'the same member': () => `{${'"schemaVersion":2,'.repeat(200_000)}"schemaVersion":2}`,
    escapes: () => image({}).replace('"layers":[]', `"layers":[],"annotations":{"a":"${'\\u0041'.repeat(690_000)}"}`),
  }
}
