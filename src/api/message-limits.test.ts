import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limitsOf } from './message-limits.ts'
import { buildEndpoints } from './methods.ts'
import { services } from './services.ts'

test('only imports of the operator accept more members than other requests', () => {
  const larger = buildEndpoints(services).filter(({ method }) => limitsOf(method, 4096).members > 20_000)
  assert.ok(larger.every(({ method }) => method.access.mode === 'everywhere'))
  assert.deepEqual(larger.map(({ desc }) => desc.name).sort(), [
    'ImportAdvisories',
    'ImportArtifacts',
    'ImportLifecycles',
    'ImportTagHistory',
    'ImportVulnerabilities',
    'PutVulnerabilityRanks',
    'PutVulnerabilityRecords',
  ])
})
