// Mutated archives, package databases and SBOMs, for the fuzzer.
import { Readable } from 'node:stream'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { readFiles } from '#contents/databases/files.ts'
import { readRpmDatabase } from '#contents/databases/rpm/rpm-database.ts'
import { schemeOfKind } from '#contents/ecosystems.ts'
import { readGoProgram } from '#contents/languages/go-program.ts'
import { readJavaArchive } from '#contents/languages/java.ts'
import { readLanguageFile } from '#contents/languages/languages.ts'
import { scanLayers } from '#contents/layers/layers.ts'
import { scanLimits } from '#contents/layers/scan-limits.ts'
import { readSbom } from '#contents/sbom.ts'
import { compareVersions } from '#versions/order.ts'
import { fixture } from '../support/fixtures.ts'
import { goProgram } from '../support/go-program.ts'
import { type LayerEntries, tarOf } from '../support/layers.ts'
import { oneOf, type Random } from '../support/random.ts'
import { berkeleyDatabase, ndbDatabase, rpmHeader } from '../support/rpm.ts'
import { zipOf } from '../support/zip.ts'
import { mutate } from './mutate.ts'

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
const programs = { 'usr/bin/a': goProgram('go1.21.3', 'mod\tx\tv1\t\ndep\ty\tv2\n=>\tz\tv3', 900) }
const pom = {
  'META-INF/maven/g/a/pom.properties': 'groupId=g\nartifactId=a\nversion=1',
  'x.jar': zipOf({ 'META-INF/MANIFEST.MF': 'Bundle-Version: 1' }),
}
const languages: LayerEntries[] = [
  {
    ...programs,
    'a/b.jar': zipOf(pom),
    'p/x-1.dist-info/METADATA': 'Name: x\nVersion: 1\n\n',
    'node_modules/@a/b/package.json': '{"name":"@a/b","version":"1.0.0"}',
    'specifications/r-1.gemspec': 's.name = "r"\ns.version = "1"\n',
    'var/lib/dpkg/info/d.list': '/a/b.jar\n',
  },
  { 'node_modules/.wh.@a': '', 'a/.wh..wh..opq': '', 'p/x-1.dist-info': { type: 'symlink', linkname: 'y' } },
]
const archives = await Promise.all([...layers, ...languages].map(tarOf))
const statement = JSON.stringify({
  _type: 'https://in-toto.io/Statement/v1',
  predicateType: 'https://spdx.dev/Document',
  predicate: JSON.parse(sboms[0]!) as unknown,
})
const envelope = { payloadType: 'application/vnd.in-toto+json', payload: Buffer.from(statement).toString('base64') }
sboms.push(statement, JSON.stringify(envelope))
const limits = { ...scanLimits, bytes: 2 ** 22, ms: 500 }

/** Changes some bytes. Half of them are in headers, which have size, type and checksum. */
function damage(random: Random, bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes)
  for (let left = random.below(6); left > 0; left--) {
    const inHeader = 512 * random.below(Math.ceil(changed.length / 512)) + 120 + random.below(40)
    const at = random.below(2) === 0 ? random.below(changed.length) : Math.min(inHeader, changed.length - 1)
    changed[at] = random.below(3) === 0 ? random.below(256) : changed[random.below(changed.length)]!
  }
  return random.below(4) === 0 ? changed.subarray(0, random.below(changed.length)) : changed
}

/** Corrects the checksum in the header of a changed entry, so that the entry is read and not refused. */
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

const archiveLimits = { archiveBytes: 2 ** 20, rpmBytes: scanLimits.rpmBytes, innerArchiveBytes: 2 ** 20 }

const rpmPackages = [
  rpmHeader({ name: 'a', version: '1', release: '1', epoch: 1, files: ['/usr/bin/a'] }),
  rpmHeader({ name: 'b', version: '2', release: '1', module: 'b:1:2:3', source: 'b-2-1.src.rpm' }),
]
const rpmDatabases = [
  fixture('contents/rpm/rpmdb.sqlite.gz'),
  fixture('contents/rpm/Packages.gz'),
  ndbDatabase(rpmPackages),
  berkeleyDatabase(rpmPackages),
]

export const contentsTargets = {
  async languages(random: Random) {
    const budget = { inflatedBytes: 2 ** 22, archiveEntries: 10_000 }
    await readJavaArchive('a.jar', damage(random, zipOf(pom)), archiveLimits, budget)
    const program = damage(random, programs['usr/bin/a'])
    const at = random.below(program.length)
    await readGoProgram('a', Readable.from([program.subarray(0, at), program.subarray(at)]))
    await readRpmDatabase('var/lib/rpm/Packages', damage(random, oneOf(random, rpmDatabases)))
    const texts = [
      { path: 'x-1.dist-info/METADATA', watch: 'python', text: 'Name: x\nVersion: 1\n\nx' },
      { path: 'node_modules/a/package.json', watch: 'npm', text: '{"name":"a","version":"1.0.0"}' },
      { path: 'specifications/a.gemspec', watch: 'gem', text: '  s.name = "a"\n  s.version = Gem::Version.new("1")\n' },
    ] as const
    for (const { path, watch, text } of texts) {
      const content = Readable.from([Buffer.from(mutate(random, text))])
      await readLanguageFile({ path, watch, size: text.length, content }, archiveLimits, budget)
    }
  },
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
