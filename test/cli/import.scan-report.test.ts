// Importing a scanner report with the command, into a running server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { clientOf } from '../support/pinfold.ts'
import { createStorage, run, startInProcess, tokenOf } from '../support/process.ts'
import { registryClient } from '../support/registry.ts'

const file = (name: string) => fileURLToPath(new URL(`../data/scan-reports/${name}.json`, import.meta.url))

test('imports a report for a tag or a digest, and prints its result', async () => {
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const client = clientOf(server.url, await tokenOf(storage))
  await client.post('/iam/v2/groups/', { name: 'acme' })
  const registry = registryClient(server.url, await tokenOf(storage, ['--audience', 'registry']))
  const { digest } = await registry.pushImage('acme/app', 'latest')
  const handIn = (name: string, ...args: string[]) =>
    run(['images', 'import-scan', ...storage.args, file(name), ...args], {
      env: { ...storage.env, PINFOLD_API: server.url },
    })

  assert.deepEqual(await handIn('trivy-alpine-39', '--image', 'acme/app'), {
    code: 0,
    stdout: 'imported 3 vulnerabilities from trivy\n',
    stderr: '',
  })
  const second = await handIn('grype-rhel8-excerpt', '--image', `acme/app@${digest}`, '-o', 'json')
  assert.equal(second.code, 0)
  const { state, tool, toolVersion } = JSON.parse(second.stdout)
  assert.deepEqual([state, tool, toolVersion], ['read', 'grype', '0.96.0'])
  const { body } = await client.get(`/registry/v1/vuln_reports?digest=${digest}`)
  assert.deepEqual(
    body.items.map(({ scanner }: { scanner: { name: string } }) => scanner.name),
    ['GRYPE', 'TRIVY'],
  )

  const refused = await handIn('trivy-no-vulnerabilities.cdx', '--image', 'acme/app:latest')
  assert.equal(refused.code, 1)
  assert.match(refused.stdout, /^the report was ignored: .* \(UNSUPPORTED\)$/m)
  assert.equal((await handIn('missing', '--image', 'acme/app')).code, 64)
  assert.match((await handIn('trivy-alpine-39', '--image', 'acme/app:none')).stderr, /acme\/app has no tag none/)
  assert.match((await handIn('trivy-alpine-39')).stderr, /give the image with --image/)
})
