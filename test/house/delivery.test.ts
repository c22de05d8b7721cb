import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { readConfig, settings } from '#config.ts'
import { project } from '../support/process.ts'

const compose = readFileSync(join(project, 'examples/compose.yaml'), 'utf8')

test('the compose file has only settings that there are, with values that they take', () => {
  const { environment } = parse(compose).services.pinfold as { environment: Record<string, string> }
  const known = Object.values(settings).map(({ env }) => env)
  for (const name of Object.keys(environment)) assert.ok(known.includes(name), `${name} is not a setting`)
  const config = readConfig({ ...environment, PINFOLD_URL: 'https://registry.example.com' })
  assert.equal(config.listen.port, 8443)
  const documented = readFileSync(join(project, 'docs/config.md'), 'utf8')
  for (const name of Object.keys(environment))
    assert.ok(documented.includes(`\`${name}\``), `${name} is not in config.md`)
})

test('the compose file waits longer than the server takes to end', () => {
  const { environment, stop_grace_period: grace } = parse(compose).services.pinfold
  assert.ok(Number.parseInt(grace, 10) * 1000 > Number(environment.PINFOLD_DRAIN_MS))
})

test('the compose file runs the server without rights, as the image does', () => {
  const { user, read_only: readOnly, cap_drop: dropped } = parse(compose).services.pinfold
  assert.deepEqual([user, readOnly, dropped], ['65532:65532', true, ['ALL']])
})
