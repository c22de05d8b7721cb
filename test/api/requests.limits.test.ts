// Limits on the number of items in one request: accepts the largest number, and refuses one more.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { maxTagsAtOnce } from '#domains/registry/manifests/manifests.model.ts'
import { maxListed } from '#domains/registry/repos/repos.model.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, type TestRegistry, types } from '../support/registry.ts'
import { openEndpoint } from '../support/scim.ts'

let registry: TestRegistry
let issuer: FakeIssuer
let scim: Awaited<ReturnType<typeof openEndpoint>>
let repo: string
before(async () => {
  issuer = await startIssuer()
  registry = await startRegistry({ allowInsecureIssuers: true, allowPrivateAddresses: true })
  const { org, seed } = registry
  repo = (await seed.repo(org.uid, { name: 'app' })).uid
  const owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  scim = await openEndpoint(registry, owner, org.uid, issuer.url)
})
after(async () => {
  await registry[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const many = (count: number, make: (i: number) => string): string[] => Array.from({ length: count }, (_, i) => make(i))
const queryOf = (name: string, values: readonly string[]): string =>
  values.map((value) => `${name}=${encodeURIComponent(value)}`).join('&')

/** Body and target of the response to a request for a code. */
async function askCode(more: Record<string, string>): Promise<string> {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'pinfold',
    redirect_uri: 'http://localhost:4711/callback',
    code_challenge: 'a'.repeat(43),
    code_challenge_method: 'S256',
    idp_id: scim.provider,
    ...more,
  })
  const answer = await fetch(`${registry.url}/oauth?${query}`, { redirect: 'manual' })
  return decodeURIComponent((answer.headers.get('location') ?? '').replaceAll('+', ' ')) + (await answer.text())
}

const exchange = (name: string) => async (count: number) => {
  const query = queryOf(
    name,
    many(count, (i) => (name === 'aud' ? `${registry.url}/${i}` : 'groups.list')),
  )
  const token = await issuer.token({ sub: 'x', aud: registry.url })
  return (await registry.withToken(token).call('POST', `/sts/exchange?${query}`)).text
}
const listed =
  (name: string, entry: (i: number) => string = (i) => `entry${i}`) =>
  async (count: number) =>
    (await registry.operator.patch(`/registry/v2/repos/${repo}`, { [name]: many(count, entry) })).text

type Limit = [what: string, most: number, refusal: RegExp, ask: (count: number) => Promise<string>]
const limits: Limit[] = [
  [
    'scopes of a registry token',
    32,
    /at most 32 are allowed/,
    async (count) => {
      const query = queryOf(
        'scope',
        many(count, (i) => `repository:acme/app${i}:pull`),
      )
      return JSON.stringify((await registry.pusher.call('GET', `/token?${query}`)).body)
    },
  ],
  [
    'tags of a push',
    maxTagsAtOnce,
    /the push sets \d+ tags/,
    async (count) => {
      const client = registry.pusher
      const config = await client.pushBlob('acme/app', '{}', types.config)
      const body = JSON.stringify(imageOf(config, []))
      const { digest } = await client.pushManifest('acme/app', imageOf(config, []))
      const path = `acme/app/manifests/${digest}?${queryOf(
        'tag',
        many(count, (i) => `v${i}`),
      )}`
      const headers = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
      return JSON.stringify((await client.call('PUT', path, { body, headers })).body)
    },
  ],
  ['audiences of an exchange', 100, /must have at most 100 values/, exchange('aud')],
  ['capabilities of an exchange', 100, /must have at most 100 values/, exchange('cap')],
  [
    'characters of a state',
    1024,
    /must have at most 1024 characters/,
    (count) => askCode({ state: 's'.repeat(count) }),
  ],
  ['characters of a nonce', 512, /nonce is too long/, (count) => askCode({ nonce: 'n'.repeat(count) })],
  ['aliases of a repository', maxListed, /must have at most/, listed('aliases', (i) => `acme/app:v${i}`)],
  ['bundles of a repository', maxListed, /must have at most/, listed('bundles', () => 'base')],
  ['active tags of a repository', maxListed, /must have at most/, listed('activeTags')],
  [
    'attributes of a SCIM answer',
    30,
    /must name at most 30 attributes/,
    async (count) => (await scim.scim.get(`/Users?attributes=${many(count, (i) => `a${i}`).join()}`)).text,
  ],
  [
    'conditions of a SCIM filter',
    5,
    /at most 5 conditions/,
    async (count) => {
      const filter = many(count, (i) => `userName eq "u${i}"`).join(' and ')
      return (await scim.scim.get(`/Users?filter=${encodeURIComponent(filter)}`)).text
    },
  ],
]
for (const [what, most, refusal, ask] of limits) {
  test(`a request accepts up to ${most} ${what}`, async () => {
    assert.doesNotMatch(await ask(most), refusal)
    assert.match(await ask(most + 1), refusal)
  })
}
