// Images of the demo. They are small enough to be made here: they have the database of a package manager, one file of filler, and
// no programs. Users can pull and compare them, and see their vulnerabilities.
import { hash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import type { DemoPackage } from './packages.ts'

export const manifestType = 'application/vnd.oci.image.manifest.v1+json'
const sbomType = 'application/spdx+json'

/** Content of an image: its blobs by digest, and its manifest. */
export type DemoImage = {
  blobs: ReadonlyMap<string, Buffer>
  manifest: string
  digest: string
}

/** Properties of an image. `libraries` are Python packages, each with its version. */
export type ImageInput = {
  title: string
  version: string
  packages: readonly DemoPackage[]
  libraries?: Readonly<Record<string, string>>
  fillerBytes: number
  created: Date
}

/** Makes an image. The result for the same input is always identical. */
export async function demoImage(input: ImageInput): Promise<DemoImage> {
  const { title, version, packages, libraries = {}, fillerBytes, created } = input
  const system = await layerOf({
    'etc/os-release': 'ID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME="Alpine Linux v3.20"\n',
    'lib/apk/db/installed': packages.map(databaseEntry).join('\n'),
  })
  const files = Object.entries(libraries).map(([name, of]) => [
    `usr/lib/python3.12/site-packages/${name}-${of}.dist-info/METADATA`,
    `Metadata-Version: 2.1\nName: ${name}\nVersion: ${of}\n`,
  ])
  const app = await appLayer(`${title} ${fillerBytes}`, () =>
    layerOf({ ...Object.fromEntries(files), [`opt/${title}/data`]: filler(title, fillerBytes) }),
  )
  const layers = [system, app]
  const config = Buffer.from(
    JSON.stringify({
      created: created.toISOString(),
      architecture: 'amd64',
      os: 'linux',
      config: {
        Env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
        Entrypoint: [`/usr/bin/${title}`],
        User: '65532',
        Labels: { 'org.opencontainers.image.title': title, 'org.opencontainers.image.version': version },
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ tar }) => digestOf(tar)) },
      history: [
        { created: created.toISOString(), created_by: 'packages of Alpine 3.20' },
        { created: created.toISOString(), created_by: `COPY ${title} /opt/${title}` },
      ],
    }),
  )
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    config: descriptor('application/vnd.oci.image.config.v1+json', config),
    layers: layers.map(({ zipped }) => descriptor('application/vnd.oci.image.layer.v1.tar+gzip', zipped)),
    annotations: { 'org.opencontainers.image.version': version },
  })
  const blobs = [config, ...layers.map(({ zipped }) => zipped)]
  return toImage(blobs, manifest)
}

/** SBOM of an image in SPDX 2.3, as an artifact that refers to the image. */
export function demoSbom(image: DemoImage, { title, version, packages, created }: ImageInput): DemoImage {
  const document = Buffer.from(
    JSON.stringify({
      spdxVersion: 'SPDX-2.3',
      dataLicense: 'CC0-1.0',
      SPDXID: 'SPDXRef-DOCUMENT',
      name: `${title}-${version}`,
      documentNamespace: `https://example.com/sboms/${image.digest}`,
      creationInfo: { created: created.toISOString(), creators: ['Tool: pinfold-demo'] },
      packages: packages.map(({ name, version: of, origin }) => ({
        SPDXID: `SPDXRef-${name}`,
        name,
        versionInfo: of,
        downloadLocation: 'NOASSERTION',
        externalRefs: [
          {
            referenceCategory: 'PACKAGE-MANAGER',
            referenceType: 'purl',
            referenceLocator: `pkg:apk/alpine/${name}@${of}?arch=x86_64&distro=alpine-3.20.3${origin ? `&upstream=${origin}` : ''}`,
          },
        ],
      })),
    }),
  )
  const empty = Buffer.from('{}')
  const manifest = JSON.stringify({
    schemaVersion: 2,
    mediaType: manifestType,
    artifactType: sbomType,
    config: descriptor('application/vnd.oci.empty.v1+json', empty),
    layers: [descriptor(sbomType, document)],
    subject: { mediaType: manifestType, digest: image.digest, size: Buffer.byteLength(image.manifest) },
  })
  return toImage([empty, document], manifest)
}

type Layer = { tar: Buffer; zipped: Buffer }
/** Layers by key. All builds of a repository have the same one. */
const appLayers = new Map<string, Promise<Layer>>()

function appLayer(key: string, make: () => Promise<Layer>): Promise<Layer> {
  const known = appLayers.get(key) ?? make()
  appLayers.set(key, known)
  return known
}

function toImage(blobs: readonly Buffer[], manifest: string): DemoImage {
  return { blobs: new Map(blobs.map((content) => [digestOf(content), content])), manifest, digest: digestOf(manifest) }
}

const databaseEntry = ({ name, version, origin = name }: DemoPackage): string =>
  `P:${name}\nV:${version}\nA:x86_64\nL:unknown\no:${origin}\n`

async function layerOf(files: Readonly<Record<string, string | Buffer>>): Promise<Layer> {
  const archive = pack()
  const mtime = new Date(0)
  for (const [name, content] of Object.entries(files)) archive.entry({ name, mtime }, content)
  archive.finalize()
  const tar = await buffer(archive as AsyncIterable<Uint8Array>)
  return { tar, zipped: gzipSync(tar, { level: 1 }) }
}

/** Bytes that do not compress, and are the same for the same name. They give the image a size. */
function filler(name: string, bytes: number): Buffer {
  const parts = Array.from({ length: Math.ceil(bytes / 64) }, (_, i) => hash('sha512', `${name} ${i}`, 'buffer'))
  return Buffer.concat(parts).subarray(0, bytes)
}

const descriptor = (mediaType: string, content: Buffer) => ({
  mediaType,
  digest: digestOf(content),
  size: content.length,
})

const digestOf = (content: Buffer | string): string => `sha256:${hash('sha256', content)}`
