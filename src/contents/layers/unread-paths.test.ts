import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { type LayerEntries, tarOf } from '../../../test/support/layers.ts'
import { readFiles } from '../databases/files.ts'
import { scanLayers } from './layers.ts'
import { scanLimits } from './scan-limits.ts'

const gapsOf = async (...layers: LayerEntries[]): Promise<string[]> => {
  const archives = await Promise.all(layers.map(tarOf))
  const opened = archives.map((bytes) => async () => Readable.from([bytes]) as AsyncIterable<Uint8Array>)
  const contents = readFiles(await scanLayers(opened, scanLimits, new AbortController().signal))
  return contents?.gaps.map(({ path, reason, message }) => `${path} ${reason} ${message}`) ?? []
}
const symlink = (linkname: string) => ({ type: 'symlink' as const, linkname })
const python = { 'usr/lib/python3/a-1.dist-info/METADATA': 'Name: a\nVersion: 1\n' }
const apk = 'P:a\nV:1\n'

test('reports one coverage gap for each unsupported package database, with the number of packages', async () => {
  const unread: [database: string, manager: string, paths: string[]][] = [
    ['var/lib/pacman/local', 'pacman', ['var/lib/pacman/local/a-1/desc', 'var/lib/pacman/local/b-1/desc']],
    ['opt/conda/conda-meta', 'conda', ['opt/conda/conda-meta/a-1.json', 'opt/conda/conda-meta/b-1.json']],
    ['conda-meta', 'conda', ['conda-meta/a-1.json', 'conda-meta/b-1.json']],
    ['nix/store', 'Nix', ['nix/store/abc-a-1/bin/a', 'nix/store/abc-a-1/bin/x', 'nix/store/def-b/b']],
    ['gnu/store', 'Guix', ['gnu/store/abc-a-1/bin/a', 'gnu/store/def-b/b']],
    ['var/lib/opkg', 'opkg', ['var/lib/opkg/info/a.control', 'var/lib/opkg/info/b.control']],
    ['var/db/pkg', 'Portage', ['var/db/pkg/app/a-1/PF', 'var/db/pkg/app/b-1/PF']],
  ]
  for (const [database, manager, paths] of unread) {
    const layer = Object.fromEntries(paths.map((path) => [path, 'x']))
    const gap = `${database} UNSUPPORTED packages of ${manager} are not supported: 2`
    assert.deepEqual(await gapsOf({ ...layer, ...python }), [gap])
    const folder = paths[0]!.split('/')[0]!
    assert.deepEqual(await gapsOf(layer, { [`.wh.${folder}`]: '' }), [], 'a later layer deletes it')
  }
})

test('reports one coverage gap for each package manager with databases in folders that are too deep', async () => {
  const deep = (parts: number) => 'a/'.repeat(parts)
  assert.deepEqual(
    await gapsOf({
      [`${deep(100)}conda-meta/a.json`]: 'x',
      [`${deep(10_000)}conda-meta/b.json`]: 'x',
      [`${'b'.repeat(600)}/conda-meta/b.json`]: 'x',
      [`${deep(100)}Cellar/a/1/INSTALL_RECEIPT.json`]: 'x',
      ...python,
    }),
    ['conda', 'Homebrew'].map(
      (name) => ` UNSUPPORTED packages of ${name} are not supported: some in deeply nested folders`,
    ),
  )
})

test('reports a coverage gap for a database behind a link to a file that is not read', async () => {
  for (const [path, target] of [
    ['lib/apk/db/installed', '/opt/installed'],
    ['lib/apk', '/opt/apk'],
    ['var/lib/dpkg', '../../data/dpkg'],
    ['var/lib/rpm', '../../../opt/rpm'],
    ['usr/share/rpm', '/var/lib/nothing'],
  ] as const) {
    const shown = target.replace(/^(?:\.\.)?(?:\/\.\.)*\//, '')
    const gap = `${path} UNSUPPORTED the file is a link to ${shown}, which was not read`
    assert.deepEqual(await gapsOf({ [path]: symlink(target) }), [gap])
    assert.deepEqual(await gapsOf({ [path]: symlink(target) }, { [path]: undefined }), [], 'a folder replaces it')
  }
  const hard = { type: 'link' as const, linkname: 'sysroot/ostree/repo/objects/ab/c.file' }
  assert.equal((await gapsOf({ 'usr/share/rpm/rpmdb.sqlite': hard })).length, 1)
})

test('reports no coverage gap for links to databases that are read, nor for links to other paths', async () => {
  const database = { 'usr/lib/apk/db/installed': apk }
  for (const links of [
    { lib: symlink('usr/lib') },
    { 'lib/apk': symlink('../usr/lib/apk') },
    { 'lib/apk': symlink('/usr/lib/apk'), 'lib/apk/db': symlink('/usr/lib/apk/db') },
    { 'lib/apk/db/installed': { type: 'link' as const, linkname: './usr/lib/apk/db/installed' } },
    { 'etc/os-release': symlink('../usr/lib/os-release'), 'usr/lib/os-release': 'ID=alpine\n' },
    { 'bin/sh': symlink('/bin/busybox'), 'usr/share/rpms': symlink('/x') },
  ]) {
    assert.deepEqual(await gapsOf({ ...links, ...database }), [])
  }
  const release = await gapsOf({ ...database, 'etc/os-release': symlink('/opt/os-release') })
  assert.deepEqual(release, ['etc/os-release UNSUPPORTED the file is a link to opt/os-release, which was not read'])
})

test('reads databases of images that other scanners reported as empty, or reports a coverage gap', async () => {
  const object = 'sysroot/ostree/repo/objects/ab/cdef.file'
  const link = { type: 'link' as const, linkname: object }
  const bootc = await gapsOf({ [object]: 'SQLite format 3\0', 'usr/share/rpm/rpmdb.sqlite': link })
  assert.deepEqual(bootc, [
    `usr/share/rpm/rpmdb.sqlite UNSUPPORTED the file is a link to ${object}, which was not read`,
  ])
  const wolfi = { lib: symlink('usr/lib'), 'usr/lib/apk/db/installed': apk, 'etc/os-release': 'ID=wolfi\n' }
  assert.deepEqual(await gapsOf(wolfi), [])
  const lower = { 'lib/apk/db/installed': apk, 'etc/os-release': 'ID=alpine\n' }
  const merged = { 'lib/.wh.apk': '', ...wolfi, 'etc/os-release': 'ID=alpine\n' }
  assert.deepEqual(await gapsOf(lower, merged), [])
  const release = 'PRETTY_NAME="Distroless"\nID="debian"\nVERSION_ID="12"\n'
  const distroless = {
    'etc/os-release': symlink('../usr/lib/os-release'),
    'usr/lib/os-release': release,
    'var/lib/dpkg/status.d/base': 'Package: base-files\nVersion: 12.4\n',
    'var/lib/dpkg/status.d/base.md5sums': 'abc  usr/x\n',
  }
  assert.deepEqual(await gapsOf(distroless), [])
})
