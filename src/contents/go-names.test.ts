import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goModulePath, goRelease } from '#versions/go-names.ts'
import { packageOf, readPackageUrl } from './package-url.ts'

for (const [text, release] of [
  ['go1.21rc2', '1.21.0-rc.2'],
  ['go1.26.5', '1.26.5'],
  ['1.26.5', '1.26.5'],
  ['v1.26.5', '1.26.5'],
  ['go1.26.5-X:nodwarf5', '1.26.5'],
  ['go1.26.5 X:boringcrypto', '1.26.5'],
  ['go1.21', '1.21.0'],
  ['1.21.0-rc.2', '1.21.0-rc.2'],
  ['devel go1.22-abcdef', 'devel go1.22-abcdef'],
  ['go1.21.x', 'go1.21.x'],
  ['go1.26-devel_6e676ab2b8', 'go1.26-devel_6e676ab2b8'],
  ['1.26.1-devel', '1.26.1-devel'],
] as const) {
  test(`${text} means Go release ${release}`, () => assert.equal(goRelease(text), release))
}

test('Go itself is the standard library by each of its names; no other module is', () => {
  const shown = (url: string) => {
    const one = packageOf(url)
    return `${one?.name} ${one?.version}`
  }
  assert.equal(shown('pkg:golang/std@1.21.0'), 'stdlib 1.21.0')
  assert.equal(shown('pkg:golang/stdlib@go1.21rc2'), 'stdlib 1.21.0-rc.2')
  assert.equal(shown('pkg:golang/std@1.21.0#net/http'), 'stdlib 1.21.0')
  assert.equal(shown('pkg:golang/toolchain@go1.21.0'), 'toolchain 1.21.0')
  assert.equal(shown('pkg:golang/github.com/acme/std@go1.21.0'), 'github.com/acme/std go1.21.0')
})

const jwt = 'github.com/golang-jwt/jwt'
for (const [given, path] of [
  [{ path: jwt, subpath: 'v5', version: 'v5.2.1', named: jwt }, `${jwt}/v5`],
  [{ path: jwt, subpath: 'v5', version: '5.2.1', named: '' }, `${jwt}/v5`],
  [{ path: jwt, subpath: 'v5', version: 'v3.2.1', named: '' }, jwt],
  [{ path: jwt, subpath: 'v5', version: 'v5.2.1', named: `${jwt}/v5` }, `${jwt}/v5`],
  [{ path: jwt, subpath: 'request', version: 'v3.2.1', named: jwt }, jwt],
  [
    {
      path: 'github.com/azure/sdk',
      subpath: 'sdk/azcore',
      version: 'v1.0.0',
      named: 'github.com/Azure/sdk/sdk/azcore',
    },
    'github.com/azure/sdk/sdk/azcore',
  ],
  [
    { path: 'github.com/azure/sdk', subpath: 'sdk/azcore/v2', version: 'v2.1.0', named: '' },
    'github.com/azure/sdk/sdk/azcore/v2',
  ],
] as const) {
  test(`path ${given.path}@${given.version}#${given.subpath} with name ${given.named || 'nothing'} means module ${path}`, () => {
    assert.equal(goModulePath(given), path)
  })
}

test('distinguishes a nested module from a folder of a module by the component name', () => {
  const url = 'pkg:golang/go.opentelemetry.io/otel/exporters@v1.2.0#otlp'
  const nested = readPackageUrl(url, { name: 'go.opentelemetry.io/otel/exporters/otlp' })
  assert.equal('package' in nested && nested.package.name, 'go.opentelemetry.io/otel/exporters/otlp')
  assert.equal(packageOf(url)?.name, 'go.opentelemetry.io/otel/exporters')
})
