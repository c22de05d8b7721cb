import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verdictOf } from '#contents/match.ts'
import type { Advisory } from '#domains/advisories/advisories/publication.service.ts'
import { compareInstalled } from '#versions/order.ts'
import { recordOf } from './own-advisories.service.ts'

const fixedIn = (fixedVersion: string) =>
  ({
    ...{ uid: 'a', advisoryId: 'OWN-1', aliases: [], createTime: '', updateTime: '' },
    ...{ artifactName: 'nodejs', artifactType: 'rpm', artifactArchitecture: '' },
    events: [{ type: 'fixed', data: { fixedVersion } }],
  }) as unknown as Advisory
const verdict = (fixed: string, version: string, module = '') => {
  const arch = module === '' ? 'x86_64' : `x86_64 ${module}`
  const installed = { name: 'nodejs', version, origin: 'nodejs', originVersion: version, arch }
  const order = (one: string, other: string) => compareInstalled('rpm', one, other)
  return verdictOf(installed, recordOf(fixedIn(fixed), undefined)!.affected[0]!, order)
}

test('returns unknown for rpm module packages, because advisories of an organization contain no module stream', () => {
  const fixed = '1:20.16.0-1.module+el8.10.0+2'
  assert.equal(verdict(fixed, '1:20.9.0-1.module+el8.9.0+1', 'nodejs:20'), 'unknown')
  assert.equal(verdict(fixed, fixed, 'nodejs:20'), 'clear')
  assert.equal(verdict(fixed, '1:20.9.0-1.el9'), 'clear')
  assert.equal(verdict('1:20.16.0-1.el9', '1:20.9.0-1.el9'), 'vulnerable')
})
