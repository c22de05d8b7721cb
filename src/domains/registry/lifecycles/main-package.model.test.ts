import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namesOf } from './lifecycles.model.ts'
import { compareNumbers, cycleOf, findInstalled, lookupNames, upstreamVersion } from './main-package.model.ts'

const installed = (name: string, version: string, origin = name, originVersion = version) => ({
  name,
  version,
  origin,
  originVersion,
})

test('shortens a version to the form of its product', () => {
  const cases = [
    ['22.4.1-r0', '22.4.1'],
    ['1:3.11.2-6+deb12u1', '3.11.2'],
    ['v1.27', '1.27'],
    ['8', '8'],
    ['1.1.1w-r1', '1.1.1'],
    ['20240101~git', '20240101'],
    ['unstable', ''],
    ['', ''],
  ] as const
  for (const [given, expected] of cases) assert.equal(upstreamVersion(given), expected, given)
  assert.ok(compareNumbers('3.9.1-r0', '3.12.0-r1') < 0)
  assert.ok(compareNumbers('3.12', '3.12.0') < 0)
  assert.equal(compareNumbers('1:3.12-1', '3.12-r9'), 0)
})

test('finds the longest release line that a version begins with, part by part', () => {
  const cycles = new Set(['3', '3.1', '3.12', '2024.1', '8.0-sp1'])
  const cases = [
    ['3.12.4-r2', '3.12'],
    ['3.1.9', '3.1'],
    ['3.120.0', '3'],
    ['3', '3'],
    ['30.1', ''],
    ['2024.1.5', '2024.1'],
    ['8.0.1', ''],
    ['', ''],
  ] as const
  for (const [version, expected] of cases) assert.equal(cycleOf(version, cycles), expected, version)
})

test('looks up a package without the version in its name, but not if the name has a second line', () => {
  assert.deepEqual(lookupNames('nodejs-22'), ['nodejs-22', 'nodejs'])
  assert.deepEqual(lookupNames('Python3.12'), ['python3.12', 'python'])
  assert.deepEqual(lookupNames('go'), ['go'])
  assert.deepEqual(lookupNames('2048'), ['2048'])
  assert.deepEqual(lookupNames('tomcat-11.0-openjdk-21'), [])
  assert.deepEqual(lookupNames(''), [])
})

test('finds the package installed under the best name, and the latest of several versions', () => {
  const packages = [
    installed('busybox', '1.36.1-r0'),
    installed('nodejs-20', '20.1.0-r0'),
    installed('nodejs-22', '22.4.1-r0'),
    installed('npm', '10.8.1-r0'),
    installed('libssl3', '3.3.0-r0', 'openssl'),
  ]
  assert.deepEqual(findInstalled(['node', 'nodejs'], packages), { name: 'nodejs-22', version: '22.4.1-r0' })
  assert.deepEqual(findInstalled(['npm', 'nodejs'], packages), { name: 'npm', version: '10.8.1-r0' })
  assert.deepEqual(findInstalled(['openssl'], packages), { name: 'openssl', version: '3.3.0-r0' })
  assert.equal(findInstalled(['node'], packages), undefined)
  assert.equal(findInstalled([], packages), undefined)
})

test('finds a product by its name, aliases and ends of package URLs', () => {
  const product = {
    name: 'nodejs',
    aliases: ['node'],
    purls: [
      'pkg:docker/library/node',
      'pkg:generic/node',
      'pkg:apk/alpine/nodejs-current',
      'pkg:github/nodejs/node-gyp',
      'pkg:oci/Node%20X?tag=1',
    ],
  }
  assert.deepEqual(namesOf(product), [
    { name: 'nodejs', rank: 0 },
    { name: 'node', rank: 1 },
    { name: 'nodejs-current', rank: 3 },
    { name: 'node x', rank: 4 },
  ])
})
