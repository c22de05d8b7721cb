import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { goProgram } from '../../../test/support/go-program.ts'
import { type LayerEntries, tarOf } from '../../../test/support/layers.ts'
import { zipOf } from '../../../test/support/zip.ts'
import { readFiles } from '../databases/files.ts'
import { scanLayers } from '../layers/layers.ts'
import { type ScanLimits, scanLimits } from '../layers/scan-limits.ts'

async function contentsOf(layers: readonly LayerEntries[], limits: Partial<ScanLimits> = {}, chunk = 65_536) {
  const archives = await Promise.all(layers.map(tarOf))
  const open = archives.map((bytes) => async () => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / chunk) }, (_, i) =>
      bytes.subarray(i * chunk, (i + 1) * chunk),
    )
    return Readable.from(pieces) as AsyncIterable<Uint8Array>
  })
  return readFiles(await scanLayers(open, { ...scanLimits, ...limits }, new AbortController().signal))
}
const shown = async (...layers: LayerEntries[]) =>
  ((await contentsOf(layers))?.packages ?? []).map(({ kind, name, version }) => `${kind} ${name} ${version}`)
const gapsOf = async (layer: LayerEntries, limits: Partial<ScanLimits> = {}) =>
  ((await contentsOf([layer], limits))?.gaps ?? []).map(({ path, reason }) => `${reason} ${path}`)

const site = 'usr/lib/python3.12/site-packages'
const pom = (group: string, artifact: string, version: string) => ({
  [`META-INF/maven/${group}/${artifact}/pom.properties`]: `#x\nversion=${version}\ngroupId=${group}\nartifactId=${artifact}\n`,
})

test('finds Python packages by their metadata, with normalized names', async () => {
  const files = {
    [`${site}/Django-4.2.1.dist-info/METADATA`]:
      'Metadata-Version: 2.1\r\nName: Django\r\nVersion: 4.2.1\r\n\r\nName: no\n',
    [`${site}/zope.interface-6.0.egg-info/PKG-INFO`]: 'Name: zope.interface\nVersion: 6.0\n',
    [`${site}/PyYAML-5.3.egg-info`]: 'Name: PyYAML\nVersion: 5.3\n',
    [`${site}/six.egg/EGG-INFO/PKG-INFO`]: 'Name: six\nVersion: 1.16.0\n',
    [`${site}/other/METADATA`]: 'Name: other\nVersion: 1\n',
  }
  assert.deepEqual(await shown(files), [
    'pypi django 4.2.1',
    'pypi pyyaml 5.3',
    'pypi six 1.16.0',
    'pypi zope-interface 6.0',
  ])
  const long = `Name: big\nVersion: 1\n\n${'x'.repeat(300_000)}`
  assert.deepEqual(await shown({ [`${site}/big-1.dist-info/METADATA`]: long }), ['pypi big 1'])
  assert.deepEqual(await gapsOf({ [`${site}/a-1.dist-info/METADATA`]: 'Name: a\n\nVersion: 1' }), [
    `UNIDENTIFIED ${site}/a-1.dist-info/METADATA`,
  ])
})

test('finds npm packages in node_modules, but not parts of a package', async () => {
  const json = (name: string, version: string) => JSON.stringify({ name, version })
  const files = {
    'app/package.json': json('app', '1.0.0'),
    'app/node_modules/lodash/package.json': json('lodash', '4.17.20'),
    'app/node_modules/@babel/core/package.json': json('@babel/core', '7.24.0'),
    'app/node_modules/a/node_modules/lodash/package.json': json('lodash', '4.17.20'),
    'app/node_modules/a/dist/esm/package.json': '{"type":"module"}',
    'app/node_modules/b/package.json': '{"type":"module"}',
    'app/node_modules/broken/package.json': '{"name":',
  }
  const found = await contentsOf([files])
  assert.deepEqual(
    found?.packages.map(({ name, version, locations }) => [name, version, locations]),
    [
      ['@babel/core', '7.24.0', ['app/node_modules/@babel/core/package.json']],
      [
        'lodash',
        '4.17.20',
        ['app/node_modules/a/node_modules/lodash/package.json', 'app/node_modules/lodash/package.json'],
      ],
    ],
  )
  assert.deepEqual(await gapsOf(files), ['DAMAGED app/node_modules/broken/package.json'])
  assert.deepEqual([found?.hasDatabase, found?.distribution], [false, { id: '', version: '' }])
})

test('finds gems by their specifications', async () => {
  const folder = 'usr/local/bundle/specifications'
  const files = {
    [`${folder}/rails-7.0.4.gemspec`]:
      '# -*- encoding: utf-8 -*-\nGem::Specification.new do |s|\n  s.name = "rails".freeze\n  s.version = "7.0.4"\nend\n',
    [`${folder}/default/bigdecimal-3.1.1.gemspec`]:
      "  spec.name = 'bigdecimal'\n  spec.version = Gem::Version.new('3.1.1')\n",
    [`${folder}/odd.gemspec`]: 's.name = NAME\ns.version = VERSION\n',
    'app/app.gemspec': 's.name = "app"\ns.version = "1"\n',
  }
  assert.deepEqual(await shown(files), ['gem bigdecimal 3.1.1', 'gem rails 7.0.4'])
  assert.deepEqual(await gapsOf(files), [`UNIDENTIFIED ${folder}/odd.gemspec`])
})

test('reads Java archives from Maven properties, also one level deep, or else from the manifest', async () => {
  const inner = zipOf(pom('org.apache.logging.log4j', 'log4j-core', '2.14.1'))
  const app = zipOf({ ...pom('com.acme', 'app', '1.0'), 'BOOT-INF/lib/log4j-core-2.14.1.jar': inner, 'x/Y.class': 'z' })
  const manifest =
    'Manifest-Version: 1.0\r\nBundle-SymbolicName: org.eclipse.jetty.uti\r\n l;singleton:=true\r\nBundle-Version: 9.4.1\r\n\r\nName: x\r\n'
  const files = {
    'opt/app.jar': app,
    'opt/jetty-util-9.4.43.v20210629.jar': zipOf({ 'META-INF/MANIFEST.MF': manifest }),
    'opt/own.war': zipOf({
      'META-INF/MANIFEST.MF': 'Implementation-Title: own\n',
      'WEB-INF/lib/a.jar': zipOf({ 'b.jar': inner }),
    }),
  }
  const found = await contentsOf([files])
  assert.deepEqual(
    found?.packages.map(({ name, version, locations }) => [name, version, locations]),
    [
      ['com.acme:app', '1.0', ['opt/app.jar']],
      ['org.apache.logging.log4j:log4j-core', '2.14.1', ['opt/app.jar!/BOOT-INF/lib/log4j-core-2.14.1.jar']],
      ['org.eclipse.jetty:jetty-util', '9.4.43.v20210629', ['opt/jetty-util-9.4.43.v20210629.jar']],
    ],
  )
  // The group of the package is a guess, and the coverage gap explains this.
  assert.deepEqual((await gapsOf(files)).sort(), [
    'UNIDENTIFIED opt/jetty-util-9.4.43.v20210629.jar',
    'UNIDENTIFIED opt/own.war',
    'UNIDENTIFIED opt/own.war!/WEB-INF/lib/a.jar',
    'UNSUPPORTED opt/own.war!/WEB-INF/lib/a.jar!/b.jar',
  ])
})

test('reports coverage gaps for damaged, forged and decompression-bomb archives, and reads the others', async () => {
  const good = zipOf(pom('com.acme', 'good', '1'))
  const files = {
    'a/torn.jar': good.subarray(0, good.length - 30),
    'a/none.jar': 'not an archive',
    'a/lie.jar': zipOf(pom('com.acme', 'lie', '1'), { 'META-INF/maven/com.acme/lie/pom.properties': 7 }),
    'a/bomb.jar': zipOf({ 'META-INF/MANIFEST.MF': Buffer.alloc(64 * 2 ** 20) }),
    'a/inner.jar': zipOf({ ...pom('com.acme', 'outer', '1'), 'lib/bomb.jar': Buffer.alloc(40 * 2 ** 20) }),
    'a/good.jar': good,
    'a/link.jar': { type: 'symlink', linkname: 'good.jar' } as const,
  }
  assert.deepEqual(await shown(files), ['maven com.acme:good 1', 'maven com.acme:outer 1'])
  assert.deepEqual((await gapsOf(files)).sort(), [
    'DAMAGED a/lie.jar',
    'DAMAGED a/none.jar',
    'DAMAGED a/torn.jar',
    'LIMIT_EXCEEDED a/bomb.jar',
    'LIMIT_EXCEEDED a/inner.jar!/lib/bomb.jar',
  ])
  assert.deepEqual(await gapsOf({ 'a/good.jar': good }, { archiveBytes: 50 }), ['LIMIT_EXCEEDED a/good.jar'])
  assert.deepEqual(await gapsOf({ 'a/good.jar': good }, { inflatedBytes: 5 }), ['LIMIT_EXCEEDED a/good.jar'])
  assert.deepEqual(await gapsOf({ 'a/good.jar': good }, { archiveEntries: 0 }), ['LIMIT_EXCEEDED a/good.jar'])
})

const modules = [
  'path\tgithub.com/acme/server',
  'mod\tgithub.com/acme/server\t(devel)\t',
  'dep\tgithub.com/gin-gonic/gin\tv1.9.0\th1:abc=',
  'dep\tgolang.org/x/net\tv0.7.0\th1:def=',
  '=>\tgithub.com/fork/net\tv0.8.0\th1:ghi=',
  'build\t-compiler=gc',
].join('\n')

test('reads the modules of Go programs, their replacements, and the Go release', async () => {
  const found = await contentsOf([{ 'usr/bin/server': goProgram('go1.21.3', modules) }])
  assert.deepEqual(
    found?.packages.map(({ kind, name, version, locations }) => [kind, name, version, locations]),
    [
      ['golang', 'github.com/acme/server', '(devel)', ['usr/bin/server']],
      ['golang', 'github.com/fork/net', 'v0.8.0', ['usr/bin/server']],
      ['golang', 'github.com/gin-gonic/gin', 'v1.9.0', ['usr/bin/server']],
      ['golang', 'stdlib', '1.21.3', ['usr/bin/server']],
    ],
  )
  for (const [go, version] of [
    ['go1.20', '1.20.0'],
    ['go1.22rc1', '1.22.0-rc.1'],
    ['go1.22.1 X:boringcrypto', '1.22.1'],
    ['go1.19.6-fips', '1.19.6'],
    ['devel go1.23-abc', 'devel go1.23-abc'],
  ]) {
    assert.deepEqual(await shown({ x: goProgram(go!, '') }), [`golang stdlib ${version}`], go)
  }
})

test('finds the build information of a Go program wherever its data is split into chunks', async () => {
  const program = { x: goProgram('go1.21.3', modules) }
  for (const chunk of [1, 7, 511, 4999]) {
    assert.equal((await contentsOf([program], {}, chunk))?.packages.length, 4, String(chunk))
  }
})

test('ignores files that only look like a Go program, and reports a coverage gap for programs before Go 1.18', async () => {
  const magic = Buffer.from('\xff Go buildinf:', 'latin1')
  const elf = Buffer.from('\x7fELF', 'latin1')
  assert.equal(await contentsOf([{ x: Buffer.concat([magic, goProgram('go1.21.3', modules)]) }]), undefined)
  assert.equal(await contentsOf([{ x: Buffer.concat([elf, Buffer.alloc(9999)]) }]), undefined)
  const debuggers = Buffer.concat([
    elf,
    magic,
    Buffer.from('is what a text says, and then'),
    goProgram('go1.21.3', modules),
  ])
  assert.equal((await shown({ x: debuggers })).length, 4)
  const old = Buffer.concat([elf, Buffer.alloc(100), magic, Buffer.from([8, 0]), Buffer.alloc(99)])
  assert.deepEqual(await gapsOf({ x: old }), ['UNSUPPORTED x'])
  const cut = goProgram('go1.21.3', modules).subarray(0, 5100)
  assert.equal(await contentsOf([{ x: cut }]), undefined)
  const often = Buffer.concat([elf, ...Array<Buffer>(200_000).fill(Buffer.concat([magic, Buffer.from([8, 2])]))])
  assert.deepEqual(await gapsOf({ x: often }), ['LIMIT_EXCEEDED x'])
})

test('upper layers delete and replace packages, including whole folders', async () => {
  const [a, b] = ['app/node_modules/a/package.json', 'app/node_modules/b/package.json']
  const lower = { [a]: '{"name":"a","version":"1.0.0"}', [b]: '{"name":"b","version":"1.0.0"}' }
  assert.deepEqual(await shown(lower, { 'app/node_modules/.wh.a': '' }), ['npm b 1.0.0'])
  assert.deepEqual(await shown(lower, { [a]: '{"name":"a","version":"2.0.0"}' }), ['npm a 2.0.0', 'npm b 1.0.0'])
  assert.deepEqual(await shown(lower, { '.wh.app': '' }), [])
  assert.deepEqual(await shown(lower, { [b]: lower[b], 'app/.wh..wh..opq': '' }), ['npm b 1.0.0'])
  assert.deepEqual(await shown(lower, { [b]: lower[b], 'app/.wh.node_modules': '' }), ['npm b 1.0.0'])
  assert.deepEqual(await shown(lower, { app: { type: 'symlink', linkname: 'x' } }), [])
  assert.deepEqual(await shown(lower, { [a]: { type: 'link', linkname: b } }), ['npm b 1.0.0'])
  assert.deepEqual(await shown({ 'bin/x': goProgram('go1.21.3', '') }, { 'bin/x': 'a script now' }), [])
})

test('the owner of a language package is the distribution package that installed it', async () => {
  const meta = (name: string) => `Name: ${name}\nVersion: 1.0\n`
  const apk = `P:py3-a\nV:3-r0\nF:usr/lib/python3\nR:x\nF:${site}/a-1.0.dist-info\nR:METADATA\n\nP:other\nV:1\nF:bin\nR:x\n`
  const alpine = await contentsOf([
    {
      'lib/apk/db/installed': apk,
      [`${site}/a-1.0.dist-info/METADATA`]: meta('a'),
      [`${site}/b-1.0.dist-info/METADATA`]: meta('b'),
    },
  ])
  const owners = (found: typeof alpine) =>
    Object.fromEntries(
      (found?.packages ?? []).filter(({ kind }) => kind === 'pypi').map(({ name, owner }) => [name, owner]),
    )
  assert.deepEqual(owners(alpine), { a: { name: 'py3-a', version: '3-r0' }, b: undefined })

  const status = 'Package: python3-a\nStatus: install ok installed\nVersion: 1.0-2\nArchitecture: all\n'
  const list = `/.\n/usr\n/usr/lib/python3/dist-packages/a-1.0.dist-info/METADATA\n`
  const path = 'usr/lib/python3/dist-packages/a-1.0.dist-info/METADATA'
  const debian = { 'var/lib/dpkg/status': status, 'var/lib/dpkg/info/python3-a.list': list, [path]: meta('a') }
  assert.deepEqual(owners(await contentsOf([debian])), { a: { name: 'python3-a', version: '1.0-2' } })
  const twice = { ...debian, [`${site}/a-1.0.dist-info/METADATA`]: meta('a') }
  assert.deepEqual(owners(await contentsOf([twice])), { a: undefined })
  const both = { ...debian, 'var/lib/dpkg/info/python3-b.list': list }
  assert.deepEqual(owners(await contentsOf([both])), { a: undefined })
  assert.deepEqual(owners(await contentsOf([debian], { ownedBytes: 10 })), { a: undefined })
  const gone = { ...debian, 'var/lib/dpkg/status': '' }
  assert.deepEqual(owners(await contentsOf([gone])), { a: undefined })
})

test('reports no coverage gap for an unidentified file of a distribution package', async () => {
  const jar = { 'usr/lib/jvm/lib/jrt-fs.jar': zipOf({ 'META-INF/MANIFEST.MF': 'Specification-Title: Java\n' }) }
  const apk = { 'lib/apk/db/installed': 'P:openjdk\nV:21-r0\nF:usr/lib/jvm/lib\nR:jrt-fs.jar\n' }
  assert.deepEqual(await gapsOf({ ...jar, ...apk }), [])
  assert.deepEqual(await gapsOf(jar), ['UNIDENTIFIED usr/lib/jvm/lib/jrt-fs.jar'])
})

test('reports a coverage gap for an rpm database in an unknown format', async () => {
  assert.deepEqual(await gapsOf({ 'var/lib/rpm/rpmdb.sqlite': 'SQLite format 3' }), [
    'UNSUPPORTED var/lib/rpm/rpmdb.sqlite',
  ])
})

test('cuts off more packages than any real image has, and reports a coverage gap', async () => {
  const file = (i: number) => ({ [`node_modules/p${i}/package.json`]: `{"name":"p${i}","version":"1.0.0"}` })
  const many = Object.assign({}, ...Array.from({ length: 12 }, (_, i) => file(i))) as LayerEntries
  const found = await contentsOf([many], { languageFiles: 10 })
  assert.deepEqual([found?.packages.length, found?.gaps.length, found?.gaps[0]?.reason], [10, 1, 'LIMIT_EXCEEDED'])
  const deep = { [`${'d/'.repeat(100)}node_modules/a/package.json`]: '{"name":"a","version":"1.0.0"}' }
  assert.equal((await gapsOf(deep)).length, 1)
  const long = { 'node_modules/a/package.json': `{"name":"${'a'.repeat(600)}","version":"1"}` }
  assert.deepEqual(await gapsOf(long), ['LIMIT_EXCEEDED node_modules/a/package.json'])
  const modulesOf = (count: number) =>
    Array.from({ length: count }, (_, i) => `dep\texample.com/m${i}\tv1.0.0`).join('\n')
  const large = await contentsOf([{ x: goProgram('go1.21.3', modulesOf(6000)) }])
  assert.deepEqual([large?.packages.length, large?.gaps[0]?.reason], [5000, 'LIMIT_EXCEEDED'])
})

test('a qualifier in an archive name belongs to the version, and a classifier does not', async () => {
  const jdbc = zipOf(pom('com.acme', 'jdbc', '12.10.2'))
  const found = await contentsOf([
    {
      'a/jdbc-12.10.2.jre11.jar': jdbc,
      'b/jdbc-12.10.2.jar': jdbc,
      'c/jdbc-12.10.21.jar': jdbc,
      'c/jdbc-12.10.2.patched.jar': jdbc,
      'd/app.war': zipOf({ ...pom('com.acme', 'app', '1'), 'WEB-INF/lib/jdbc-12.10.2.jre8.jar': jdbc }),
      'e/epoll-4.1.Final-linux-x86_64.jar': zipOf(pom('com.acme', 'epoll', '4.1.Final')),
    },
  ])
  assert.deepEqual(
    found?.packages.map(({ name, version, locations }) => [name, version, locations]),
    [
      ['com.acme:app', '1', ['d/app.war']],
      ['com.acme:epoll', '4.1.Final', ['e/epoll-4.1.Final-linux-x86_64.jar']],
      ['com.acme:jdbc', '12.10.2', ['b/jdbc-12.10.2.jar', 'c/jdbc-12.10.2.patched.jar', 'c/jdbc-12.10.21.jar']],
      ['com.acme:jdbc', '12.10.2.jre11', ['a/jdbc-12.10.2.jre11.jar']],
      ['com.acme:jdbc', '12.10.2.jre8', ['d/app.war!/WEB-INF/lib/jdbc-12.10.2.jre8.jar']],
    ],
  )
})
