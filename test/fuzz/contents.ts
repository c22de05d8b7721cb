// Mutated archives, package databases and SBOMs.
import { Readable } from 'node:stream'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { schemeOfKind } from '#contents/ecosystems.ts'
import { readFiles } from '#contents/files.ts'
import { scanLayers, scanLimits } from '#contents/layers.ts'
import { readSbom } from '#contents/sbom.ts'
import { compareVersions } from '#versions/order.ts'
import { fixture } from '../support/fixtures.ts'
import { type LayerEntries, tarOf } from '../support/layers.ts'
import type { Random } from '../support/random.ts'
import { mutate, oneOf } from './mutate.ts'

const apk = 'lib/apk/db/installed'
const dpkg = 'var/lib/dpkg/status'
const databases = [
  { path: apk, text: fixture('contents/alpine-2-packages/installed').toString() },
  { path: dpkg, text: fixture('contents/debian-dpkg/status').toString() },
  { path: `${dpkg}.d/many`, text: fixture('contents/dpkg-status-d/multiple').toString() },
  { path: 'etc/os-release', text: fixture('contents/os-release/syft-ubuntu.os-release').toString() },
]
const sboms = ['alpine-3.10.syft.spdx.json', 'bom-alpine-app.cdx.json', 'identify-spdx-3.0.json'].map((name) =>
  fixture(`contents/sboms/${name}`).toString(),
)
const layers: LayerEntries[] = [
  { 'etc/os-release': 'ID=a', [apk]: databases[0]!.text, [`${'x/'.repeat(200)}y`]: 'z' },
  { 'lib/apk/.wh.db': '', lib: { type: 'symlink', linkname: 'usr/lib' }, [dpkg]: databases[1]!.text },
  { 'var/lib/.wh..wh..opq': '', [apk]: { type: 'link', linkname: dpkg }, [`usr/${apk}`]: 'P:a\nV:1\n' },
]
const archives = await Promise.all(layers.map(tarOf))
const limits = { ...scanLimits, bytes: 2 ** 22, ms: 500 }

/** Some bytes changed, half of them where headers have size, type and checksum. */
function damage(random: Random, bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes)
  for (let left = random.below(6); left > 0; left--) {
    const inHeader = 512 * random.below(Math.ceil(changed.length / 512)) + 120 + random.below(40)
    const at = random.below(2) === 0 ? random.below(changed.length) : Math.min(inHeader, changed.length - 1)
    changed[at] = random.below(3) === 0 ? random.below(256) : changed[random.below(changed.length)]!
  }
  return random.below(4) === 0 ? changed.subarray(0, random.below(changed.length)) : changed
}

/** The sum in the header of a changed entry, so that it is read and not refused. */
function resum(archive: Buffer): Buffer {
  const changed = Buffer.from(archive)
  for (let at = 0; at + 512 <= changed.length; at += 512) {
    if (changed.toString('latin1', at + 257, at + 262) !== 'ustar') continue
    changed.fill(' ', at + 148, at + 156)
    const sum = changed.subarray(at, at + 512).reduce((total, byte) => total + byte, 0)
    changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148)
  }
  return changed
}

export const contentsTargets = {
  async layers(random: Random) {
    const chosen = Array.from({ length: 1 + random.below(3) }, () => {
      const archive = resum(damage(random, oneOf(random, archives)))
      const packed = oneOf(random, [(bytes: Buffer) => bytes, (bytes: Buffer) => bytes, gzipSync, zstdCompressSync])(
        archive,
      )
      return random.below(4) === 0 ? damage(random, packed) : packed
    })
    const open = chosen.map((bytes) => async () => Readable.from([bytes]) as AsyncIterable<Uint8Array>)
    return readFiles(await scanLayers(open, limits, new AbortController().signal))
  },
  databases(random: Random) {
    const files = databases.map(({ path, text }) => ({ path, bytes: Buffer.from(mutate(random, text)) }))
    for (const { kind, version } of readFiles(files)?.packages ?? [])
      compareVersions(schemeOfKind(kind), version, '1.0-r0')
  },
  sbom: (random: Random) => readSbom(Buffer.from(mutate(random, oneOf(random, sboms)))),
  versions(random: Random) {
    const [one, other] = ['1.2.3_rc1-r4', '1:2.3~rc1-4+deb1'].map((version) => mutate(random, version))
    for (const scheme of ['apk', 'deb', 'gem', 'maven', 'pep440', 'semver'] as const)
      compareVersions(scheme, one!, other!)
  },
}
