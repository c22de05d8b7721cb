// Two builds of an image of the example company. They are small enough to be created here: they contain the files of a package
// manager, and no programs. Users can pull and compare them, and see their vulnerabilities.
import { hash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'

/** Packages by name. Each has a version, and a source package if its name differs. */
type Packages = Readonly<Record<string, readonly [version: string, origin?: string]>>

const first: Packages = {
  busybox: ['1.36.1-r28'],
  libcrypto3: ['3.3.1-r0', 'openssl'],
  libcurl: ['8.9.0-r0', 'curl'],
  libexpat: ['2.6.2-r0', 'expat'],
  libssl3: ['3.3.1-r0', 'openssl'],
  musl: ['1.2.5-r0'],
  nginx: ['1.26.2-r0'],
  zlib: ['1.3.1-r1'],
}
const second: Packages = {
  ...first,
  libcurl: ['8.9.1-r0', 'curl'],
  libexpat: ['2.6.3-r0', 'expat'],
  pcre2: ['10.43-r0'],
}

/** Builds in the order in which they are pushed. Each has its folder, its repository and its tags. */
export const demoBuilds = {
  folder: 'edge',
  repo: 'nginx',
  builds: [
    { tags: ['1.26.2-r1', 'candidate'], packages: first },
    { tags: ['1.26.2-r2', 'candidate'], packages: second },
  ],
} as const

const high = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H'
const worst = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
const medium = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:H'
const local = 'CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:H'

const known = [
  {
    id: 'CVE-2024-45490',
    about: 'libexpat accepts a negative length',
    name: 'expat',
    fixed: '2.6.3-r0',
    vector: worst,
    score: 9.8,
  },
  {
    id: 'CVE-2024-7264',
    about: 'curl reads past the end of an ASN.1 time',
    name: 'curl',
    fixed: '8.9.1-r0',
    vector: medium,
    score: 6.5,
  },
  {
    id: 'CVE-2024-6119',
    about: 'OpenSSL reads an invalid address when it checks the name of a certificate',
    name: 'openssl',
    fixed: '3.3.2-r0',
    vector: high,
    score: 7.5,
  },
  {
    id: 'CVE-2023-42364',
    about: 'awk of BusyBox uses memory after it was freed',
    name: 'busybox',
    fixed: '1.36.1-r29',
    vector: local,
    score: 5.5,
  },
]

/**
 * Example data source with four vulnerabilities. It covers no ecosystem, so it does not report other packages as free of
 * vulnerabilities. `records` have the form of `vulnerabilitySources:put`.
 */
export const demoSource = {
  source: { name: 'example', url: 'https://example.com/', licence: 'unknown', ecosystems: [] },
  records: known.map(({ id, about, name, fixed, vector, score }) => ({
    id: `EXAMPLE-${id}`,
    aliases: [id],
    summary: about,
    severities: [{ type: 'CVSS_V3', vector, score }],
    affected: [
      {
        ecosystem: 'Alpine:v3.20',
        name,
        state: 'affected',
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
      },
    ],
  })),
}

/** Contents of an image by digest, and its manifest. The result for the same packages is always identical. */
export async function demoImage(packages: Packages): Promise<{ blobs: ReadonlyMap<string, Buffer>; manifest: string }> {
  const tar = await layerOf(packages)
  const layer = gzipSync(tar)
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    }),
  )
  const describe = (mediaType: string, content: Buffer) => ({
    mediaType: `application/vnd.oci.image.${mediaType}`,
    digest: digestOf(content),
    size: content.length,
  })
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestType,
    config: describe('config.v1+json', config),
    layers: [describe('layer.v1.tar+gzip', layer)],
  }
  return {
    blobs: new Map([layer, config].map((content) => [digestOf(content), content])),
    manifest: JSON.stringify(manifest),
  }
}

export const manifestType = 'application/vnd.oci.image.manifest.v1+json'

async function layerOf(packages: Packages): Promise<Buffer> {
  const installed = Object.entries(packages).map(
    ([name, [version, origin = name]]) => `P:${name}\nV:${version}\nA:x86_64\nL:unknown\no:${origin}\n`,
  )
  const archive = pack()
  const mtime = new Date(0)
  const release = 'ID=alpine\nVERSION_ID=3.20.3\nPRETTY_NAME="Alpine Linux v3.20"\n'
  archive.entry({ name: 'etc/os-release', mtime }, release)
  archive.entry({ name: 'lib/apk/db/installed', mtime }, installed.join('\n'))
  archive.finalize()
  return buffer(archive as AsyncIterable<Uint8Array>)
}

const digestOf = (content: Buffer): string => `sha256:${hash('sha256', content)}`
