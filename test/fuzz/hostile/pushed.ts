// Content that a hostile tenant pushes: wide and deep indexes, wrong sizes, archives and SBOMs made to fill memory, and thousands
// of images in the queue for reading.
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { oneOf, type Random } from '../../support/random.ts'
import { type Descriptor, digestOf, imageOf, indexOf, types } from '../../support/registry.ts'
import type { Kinds } from './kinds.ts'
import type { World } from './world.ts'

const mostEntries = 1000
const sbomType = 'application/spdx+json'
const mib = 1024 ** 2

export async function pushedKinds(world: World): Promise<Kinds> {
  const { evil } = world
  const { owner } = evil
  const name = 'evil/deep'

  async function blob(content: Buffer | string, mediaType: string): Promise<Descriptor> {
    const digest = digestOf(content)
    const { status, bytes } = await owner.oci('POST', `${name}/blobs/uploads/?digest=${digest}`, content)
    if (status !== 201) throw new Error(`a blob was answered with ${status}: ${bytes}`)
    return { mediaType, digest, size: Buffer.byteLength(content) }
  }
  async function manifest(document: object): Promise<Descriptor & { status: number }> {
    const body = JSON.stringify(document)
    const { mediaType } = document as { mediaType: string }
    const digest = digestOf(body)
    const { status } = await owner.oci('PUT', `${name}/manifests/${digest}`, body, { 'content-type': mediaType })
    return { mediaType, digest, size: Buffer.byteLength(body), status }
  }

  const config = await blob('{"architecture":"amd64","os":"linux"}', types.config)
  const empty = await blob('{}', types.empty)
  const plain = await blob('a layer', types.layer)
  const bombs = await Promise.all(bombLayers().map((content) => blob(content, types.layer)))
  const sboms = await Promise.all(bombSboms().map((content) => blob(content, sbomType)))
  const nonce = (value: number) => ({ annotations: { nonce: String(value) } })
  const plainDescriptor = ({ mediaType, digest, size }: Descriptor): Descriptor => ({ mediaType, digest, size })

  const images: Descriptor[] = []
  const wide: Descriptor[] = []
  for (let i = 0; i < 40; i++) images.push(plainDescriptor(await manifest(imageOf(config, [plain], nonce(i)))))
  /** Pushes at most sixty different contents and then the same ones again, so that little is stored. */
  const wideIndex = async (i: number) => {
    const entries = Array.from({ length: mostEntries }, (_, n) => images[n % images.length]!)
    const { status, ...one } = await manifest(indexOf(entries, nonce(i % 60)))
    if (status === 201 && wide.length < 60) wide.push(one)
    return status
  }
  await wideIndex(0)
  const nest = () => manifest(indexOf(Array.from({ length: mostEntries }, (_, n) => wide[n % wide.length]!)))
  let nested = await nest()
  const found = await owner.call('GET', `/registry/v2/repos?uidp.descendants_of=${evil.uid}&name=deep`)
  const { uid } = found.json.repos[0]

  const about = async (random: Random, digest: string) => {
    const what = oneOf(random, ['architectures', 'size'])
    return (await owner.call('GET', `/registry/v2/repos/${uid}/digests/${digest}/${what}`)).status
  }
  return {
    'wide indexes': { every: 3000, attack: (random) => wideIndex(random.below(60)) },
    'nested indexes': {
      every: 5000,
      async attack() {
        nested = await nest()
        // An index one level deeper than the server accepts.
        return [nested.status, (await manifest(indexOf([plainDescriptor(nested)]))).status]
      },
    },
    'questions about indexes': {
      every: 150,
      attack: (random) => about(random, random.below(2) === 0 ? nested.digest : oneOf(random, wide).digest),
    },
    'lying sizes': {
      every: 200,
      async attack(random) {
        const lying = { ...oneOf(random, [plain, ...bombs]), size: oneOf(random, [0, 1, 2 ** 31, 2 ** 53 - 1]) }
        const document =
          random.below(2) === 0 ? imageOf(config, [lying], nonce(random.below(1e9))) : imageOf(lying, [plain])
        return (await manifest(document)).status
      },
    },
    'images to read': {
      every: 250,
      attack: async (random) =>
        (await manifest(imageOf(config, [oneOf(random, bombs)], nonce(random.below(1e9))))).status,
    },
    'SBOMs to read': {
      every: 2000,
      async attack(random) {
        const subject = oneOf(random, images)
        const layer = oneOf(random, sboms)
        return (
          await manifest(imageOf(empty, [layer], { artifactType: sbomType, subject, ...nonce(random.below(200)) }))
        ).status
      },
    },
    referrers: {
      every: 200,
      async attack(random) {
        const filter = oneOf(random, ['', `?artifactType=${sbomType}`, `?artifactType=${'x'.repeat(4000)}`])
        return (await owner.oci('GET', `${name}/referrers/${oneOf(random, images).digest}${filter}`)).status
      },
    },
  }
}

/** Archive header of a file with this size. The content comes from elsewhere. */
function tarHead(path: string, size: number): Buffer {
  const head = Buffer.alloc(512)
  head.write(path, 0)
  head.write('0000644\0', 100)
  head.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  head.write('        0ustar\x0000', 148)
  const sum = head.reduce((all, byte) => all + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return head
}

/** Layers that are small when they are pushed, but have gigabytes or millions of entries. */
function bombLayers(): Buffer[] {
  const database = 'lib/apk/db/installed'
  const zeros = Buffer.alloc(64 * mib)
  const packages = Buffer.from(Array.from({ length: 200_000 }, (_, i) => `P:p${i}\nV:1-r0\nA:x86_64\n\n`).join(''))
  const entries = Buffer.concat(Array.from({ length: 50_000 }, (_, i) => tarHead(`f${i}`, 0)))
  const many = <T>(times: number, one: T): T[] => Array.from({ length: times }, () => one)
  return [
    // In both formats, parts that are compressed one by one form one valid stream.
    Buffer.concat([gzipSync(tarHead(database, 4096 * mib)), ...many(64, gzipSync(zeros))]),
    Buffer.concat([zstdCompressSync(tarHead(database, 4096 * mib)), ...many(64, zstdCompressSync(zeros))]),
    Buffer.concat([gzipSync(tarHead('var/lib/data', 8191 * mib)), ...many(128, gzipSync(zeros))]),
    Buffer.concat(many(40, gzipSync(entries))),
    Buffer.concat([gzipSync(tarHead(database, packages.length)), gzipSync(packages)]),
    Buffer.concat([gzipSync(tarHead(database, 1 * mib)), gzipSync(Buffer.alloc(1 * mib, 'P:'))]),
  ]
}

/** SBOMs of up to 32 MiB, the limit for reading: deep, wide, and with more packages than the server stores. */
function bombSboms(): string[] {
  const packages = Array.from({ length: 150_000 }, (_, i) => `{"name":"p${i}","versionInfo":"1"}`).join(',')
  return [
    '['.repeat(10 * mib),
    `{"spdxVersion":"SPDX-2.3","packages":[${'{},'.repeat(9 * mib)}{}]}`,
    `{"spdxVersion":"SPDX-2.3","packages":[${packages}]}`,
    `{"spdxVersion":"SPDX-2.3","packages":[{"name":"${'x'.repeat(20 * mib)}"}]}`,
    `{"${Array.from({ length: mib }, (_, i) => `k${i}":0,"`).join('')}":0}`,
  ]
}
