// Check of the credential provider for the kubelet, run by hand. `chart/` beside this file decodes its answers and the
// configuration of its guide strictly into the types of the kubelet's API. Needs chart-types on the PATH, as chart.ts does:
//
//   bin/pinfold-node test/clients/kubelet.ts
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { cleanEnv, project, runProcess } from '../support/process.ts'
import { startRegistry } from '../support/registry.ts'

/** Fields of a document that the kubelet reads. */
function decoded(text: string): Json {
  const done = spawnSync('chart-types', { input: text, env: cleanEnv(), encoding: 'utf8' })
  if (done.error) throw done.error
  assert.equal(done.status, 0, done.stderr)
  const [object, ...more] = JSON.parse(done.stdout) as Json[]
  assert.equal(more.length, 0)
  return object!
}

const page = readFileSync(join(project, 'docs/guides/pull-from-kubernetes.md'), 'utf8')
const [, yaml] = /```yaml\n(.*?)```/s.exec(page)!
const [provider] = decoded(yaml!).providers as Json[]
const { serviceAccountTokenAudience, requiredServiceAccountAnnotationKeys } = provider!.tokenAttributes
const [annotation] = requiredServiceAccountAnnotationKeys as string[]

await using registry = await startRegistry()
await using cluster = await startIssuer('RS256')
using home = makeHome()
const { org, seed, url } = registry
const subject = 'system:serviceaccount:payments:ledger'
const staticKeys = { issuer: cluster.url, subject, issuerKeys: JSON.stringify(cluster.jwks()) }
const identity = await seed.identity(org.uid, { claimMatch: undefined, staticKeys })
await seed.binding(org.uid, identity.uid, roleUids.pull)
// Arguments and audience from the guide, with the address of this server.
const here = (text: string) => text.replace('https://registry.example.com', url)
const host = new URL(url).host
const request = decoded(
  JSON.stringify({
    kind: 'CredentialProviderRequest',
    apiVersion: provider!.apiVersion,
    image: `${host}/acme/app:v1`,
    serviceAccountToken: await cluster.token({ sub: subject, aud: here(serviceAccountTokenAudience) }),
    serviceAccountAnnotations: { [annotation!]: identity.uid },
  }),
)
const answer = await runProcess(provider!.args.map(here), { env: home.env, input: JSON.stringify(request) })
assert.equal(answer.code, 0, answer.stderr)
const response = decoded(answer.stdout)
assert.equal(response.apiVersion, request.apiVersion)
assert.equal(response.cacheKeyType, 'Registry')
assert.match(response.cacheDuration, /^5[0-4]m\d+s$|^55m0s$/)
assert.deepEqual(Object.keys(response.auth), [host])
const other = await runProcess(provider!.args.map(here), {
  env: home.env,
  input: JSON.stringify({ ...request, image: 'docker.io/library/nginx' }),
})
assert.equal(decoded(other.stdout).auth ?? null, null)
console.log('the kubelet reads the configuration, the request and both answers')
