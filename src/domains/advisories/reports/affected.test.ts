import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Package } from '#contents/packages.ts'
import type { Advisory } from '../advisories/publication.service.ts'
import { affects } from './affected.ts'

const plain = '1:16.0-1.el8'
const modular = '1:16.0-1.module+el8'
const fixedIn = (fixedVersion: string) =>
  ({
    ...{ artifactName: 'nodejs', artifactType: 'rpm', artifactArchitecture: '' },
    events: [{ type: 'fixed', data: { fixedVersion } }],
  }) as unknown as Advisory
const installed = (version: string, module = ''): Package => ({
  ...{ kind: 'rpm', name: 'nodejs', version, origin: 'nodejs', originVersion: version, arch: 'x86_64' },
  ...(module === '' ? {} : { module }),
})

test('applies fixes for rpm modules only to module packages, and other fixes only to other packages', () => {
  assert.equal(affects(fixedIn('1:18.0-1.module+el8'), installed(modular, 'nodejs:16')), true)
  assert.equal(affects(fixedIn('1:18.0-1.module+el8'), installed(modular)), true)
  assert.equal(affects(fixedIn('1:18.0-1.module+el8'), installed(plain)), false)
  assert.equal(affects(fixedIn('1:18.0-1.el8'), installed(modular, 'nodejs:16')), false)
  assert.equal(affects(fixedIn('1:18.0-1.el8'), installed(plain)), true)
  assert.equal(affects(fixedIn('1:15.0-1.module+el8'), installed(modular, 'nodejs:16')), false)
})
