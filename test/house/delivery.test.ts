import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { formerOnes, readConfig, settings } from '#config.ts'
import { project } from '../support/process.ts'

const compose = readFileSync(join(project, 'examples/compose.yaml'), 'utf8')

test('the compose file has only existing settings, with valid values', () => {
  const { environment } = parse(compose).services.pinfold as { environment: Record<string, string> }
  const known = Object.values(settings).map(({ env }) => env)
  for (const name of Object.keys(environment)) assert.ok(known.includes(name), `${name} is not a setting`)
  const config = readConfig({ ...environment, PINFOLD_URL: 'https://registry.example.com' })
  assert.equal(config.listen.port, 8443)
  const documented = readFileSync(join(project, 'docs/config.md'), 'utf8')
  for (const name of Object.keys(environment))
    assert.ok(documented.includes(`\`${name}\``), `${name} is not in config.md`)
})

test('the compose file and the chart values for sign-in have a provider and a schedule of vulnerability data', () => {
  const example = (name: string) => readFileSync(join(project, 'examples', name), 'utf8')
  const filled = example('compose.sign-in.yaml')
    .replace(/\$\{OIDC_ISSUER:[^}]*\}/, 'https://login.example.com')
    .replace(/\$\{OIDC_CLIENT_ID:[^}]*\}/, 'pinfold')
    .replace(/\$\{OIDC_LABEL:-([^}]*)\}/, '$1')
  const { pinfold } = parse(filled).services
  const { settings: ofValues, extraVolumes, extraVolumeMounts } = parse(example('chart-sign-in.yaml'))
  const mounts = [pinfold.volumes[0].split(':')[1], `${extraVolumeMounts[0].mountPath}/client-secret`]
  assert.equal(extraVolumes[0].name, extraVolumeMounts[0].name)
  for (const [i, values] of [pinfold.environment, ofValues].entries()) {
    const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
    const known = Object.values(settings).map(({ env }) => env)
    for (const name of Object.keys(texts)) assert.ok(known.includes(name), `${name} is not a setting`)
    const config = readConfig(texts)
    assert.deepEqual(
      config.oidcProviders.map(({ issuer, name, secretFile }) => [issuer, name, secretFile]),
      [['https://login.example.com', 'company', mounts[i]]],
    )
    assert.equal(config.vulnerabilitySyncHours, 24)
  }
})

test('the compose file gives the server more time to stop than the server needs', () => {
  const { environment, stop_grace_period: grace } = parse(compose).services.pinfold
  assert.ok(Number.parseInt(grace, 10) * 1000 > Number(environment.PINFOLD_DRAIN_MS))
})

test('the compose file runs the server without privileges, as the image does', () => {
  const { user, read_only: readOnly, cap_drop: dropped } = parse(compose).services.pinfold
  assert.deepEqual([user, readOnly, dropped], ['65532:65532', true, ['ALL']])
})

const ofChart = (name: string) => readFileSync(join(project, 'examples/chart', name), 'utf8')

/** Settings that the templates of the chart set by themselves. */
function ownSettings(): string[] {
  const templates = globSync('templates/*', { cwd: join(project, 'examples/chart') }).map(ofChart)
  return [
    ...new Set(templates.flatMap((text) => [...text.matchAll(/- name: (PINFOLD_\w+)/g)].map(([, name]) => name!))),
  ]
}

test('the chart schema has each setting once under its current and its former name, and no other setting', () => {
  const { properties } = JSON.parse(ofChart('values.schema.json'))
  const fromValues = new Set([
    ...Object.keys(properties.settings.properties),
    ...Object.keys(properties.secretSettings.properties),
  ])
  const known = Object.values(settings).map(({ env }) => env)
  assert.deepEqual([...ownSettings(), ...fromValues].sort(), [...known, ...formerOnes()].sort())
  const documented = readFileSync(join(project, 'docs/config.md'), 'utf8')
  for (const name of known) assert.ok(documented.includes(`\`${name}\``), `${name} is not in config.md`)
})

test('the chart reads only existing settings, and shows none of its secrets', () => {
  const known = [...Object.values(settings).map(({ env }) => env), ...formerOnes()]
  for (const name of globSync('**/*', { cwd: join(project, 'examples/chart'), withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap(
      (entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').match(/PINFOLD_[A-Z0-9_]*[A-Z0-9]/g) ?? [],
    ))
    assert.ok(known.includes(name), `${name} is not a setting`)
  const { properties } = JSON.parse(ofChart('values.schema.json'))
  for (const name of ['PINFOLD_METRICS_TOKEN', 'PINFOLD_MASTER_KEY_NEW', 'PINFOLD_MASTER_KEY', 'PINFOLD_DATABASE'])
    assert.ok(!(name in properties.settings.properties), `${name} could be set in plain sight`)
})

test('the values of the chart match its schema, and the server accepts the resulting settings', () => {
  const values = parse(ofChart('values.yaml'))
  const { properties } = JSON.parse(ofChart('values.schema.json'))
  const fields = ({ properties: of = {} }: { properties?: object }) => Object.keys(of).sort()
  const { global: _, ...own } = properties
  assert.deepEqual(Object.keys(values).sort(), Object.keys(own).sort())
  for (const [name, schema] of Object.entries<{ properties?: object }>(own))
    if (schema.properties && !name.toLowerCase().endsWith('settings'))
      assert.deepEqual(Object.keys(values[name]).sort(), fields(schema), name)
  readConfig(Object.fromEntries(Object.entries(values.settings).map(([name, value]) => [name, String(value)])))
})

test('the chart has the version of the server in it', () => {
  const { version, appVersion } = parse(ofChart('Chart.yaml'))
  const { version: ours } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  assert.deepEqual([version, appVersion], [ours, ours])
})

test('the chart gives its pods no variables that the server would refuse', () => {
  const pod = ofChart('templates/_pod.tpl')
  assert.match(pod, /^enableServiceLinks: false$/m)
  for (const line of ['readOnlyRootFilesystem: true', 'runAsUser: 65532', 'capabilities: { drop: [ALL] }'])
    assert.ok(pod.includes(line), line)
  assert.throws(() => readConfig({ PINFOLD_PORT: 'tcp://10.0.0.1:80' }), /PINFOLD_PORT is not a setting/)
})
