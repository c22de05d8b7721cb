// Every method of version 1 over both transports. Answers have no fields outside of their definition and, over REST, all fields
// of it. The methods come from the descriptors, so a new method without a case fails.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import {
  createRegistry,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
  type Message,
  toBinary,
} from '@bufbuild/protobuf'
import { buildEndpoints } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { http } from '#gen/google/api/annotations_pb.ts'
import { Identities as EventsIdentities } from '#gen/pinfold/events/v1/identities_pb.ts'
import { importSamples, sampleAdvisory } from '../support/advisories.ts'
import { answerOf, begin, clientId, finish } from '../support/answered-sign-in.ts'
import { openBrowser } from '../support/browser.ts'
import { searchOf } from '../support/exchange.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { pushSbom } from '../support/images.ts'
import { seedLibraries } from '../support/libraries.ts'
import { type Answer, type Json, roleUids } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'
import { openGrpc, type RawGrpc } from '../support/raw-grpc.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

const endpoints = buildEndpoints(services).filter(({ method }) => method.version === 'v1')
/** Two services have the same name. */
const nameOf = ({ parent, name }: DescMethod) =>
  `${parent.typeName === EventsIdentities.typeName ? 'events.' : ''}${parent.name}.${name}`

let registry: TestRegistry
let grpc: RawGrpc
let issuer: FakeIssuer
let org: string
let repo: string
let digest: string
/** An image with a data source for its packages, and with a pushed SBOM. */
let scanned: string
/** Name of the verified organization with the email domain of the people. */
let domain: string
let provider: string

before(async () => {
  issuer = await startIssuer()
  const termsDocuments = [{ id: 'one', label: 'one', url: 'https://example.com/one' }]
  registry = await startRegistry({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    termsDocuments,
    allowSelfRegistration: true,
    oidcProviders: [{ issuer: issuer.url, audience: clientId, label: 'Everybody', name: 'everybody' }],
  })
  grpc = openGrpc(registry.port)
  org = registry.org.uid
  digest = (await registry.registryOperator.pushImage('acme/app', '1.0')).digest
  repo = (await registry.operator.get('/registry/v2/repos?name=app')).body.repos[0].uid
  // The SCIM endpoint stays closed until the organization has two owners.
  for (let i = 0; i < 2; i++) await registry.seed.member(org, roleUids.owner)
  provider = (await registry.seed.provider(org, issuer.url)).uid
  await seedLibraries(registry, 'python', { flask: ['1.0'] })
  domain = (await registry.seed.group('', { name: 'asked.example', verified: true, kind: 'ORG_KIND_CUSTOMER' })).uid
  scanned = await pushAndScan(registry, 'acme/app', apkLayer('alpine', '3.19.1', ['openssl 3.1.4-r2']))
  await readSource(registry.app, 'Alpine:v3.19', [recordAbout('CVE-2026-7', 'Alpine:v3.19', 'openssl', '3.1.4-r5')])
  const { headers, bytes } = await registry.registryOperator.call('GET', `acme/app/manifests/${scanned}`)
  const subject = { mediaType: String(headers['content-type']), digest: scanned, size: bytes.length }
  await pushSbom(registry.registryOperator, 'acme/app', subject, JSON.stringify(spdx))
  await made('/control/v1/lifecycles:import', { products: [nodejs] })
  await importSamples(registry, org, [sampleAdvisory(randomFrom(1), 1)])
})
after(async () => {
  grpc[Symbol.dispose]()
  await registry[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const spdx = {
  spdxVersion: 'SPDX-2.3',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: 'app',
  creationInfo: { created: '2026-01-02T03:04:05Z', creators: ['Tool: maker-1.0'] },
  packages: [{ SPDXID: 'SPDXRef-a', name: 'openssl', versionInfo: '3.1.4-r2' }],
}
const release = { cycle: '24', releaseDate: '2025-05-06', eolDate: '2028-04-30', lts: true, ltsDate: '2025-10-28' }
const nodejs = { name: 'nodejs', label: 'Node.js', releases: [{ ...release, latest: '24.3.0' }] }

let count = 0
const unique = (word: string) => `${word}-${count++}`
const group = async (): Promise<string> => (await registry.seed.group(org)).uid
const uidOf = async (made: Promise<Json>): Promise<string> => (await made).uid
const identity = () => uidOf(registry.seed.identity(org))
const binding = async () => uidOf(registry.seed.binding(org, await identity(), roleUids.viewer))
const newRepo = () => uidOf(registry.seed.repo(org))
const charts = [{ repo: 'oci://charts.example.com/app', source: 'https://example.com' }]
const advisory = () => ({ artifactName: unique('package'), artifactType: 'apk', author: 'me', aliases: ['CVE-2026-1'] })
async function made(path: string, body: Json): Promise<Json> {
  const answer = await registry.operator.post(path, body)
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return answer.body
}
const newAdvisory = async () =>
  (await made('/vulnerabilities/v1/advisories', { parentId: org, advisory: advisory() })).id
const fixed = { author: 'me', fixed: { fixedVersion: '2' } }
const newTag = async () => (await made(`/registry/v1/tags/${repo}`, { name: unique('t'), digest })).id
const oidc = () => ({ issuer: issuer.url, clientId: 'c', clientSecret: 's' })
const association = async () => {
  const at = await group()
  await registry.seed.association(at)
  return at
}
const newProvider = () => uidOf(registry.seed.provider(org, issuer.url))
/** A provider with a SCIM token, and the version of its settings. */
async function scim(): Promise<{ identityProviderId: string; etag: string }> {
  const identityProviderId = await newProvider()
  const { etag } = await made(`/iam/v1/identityProviders/${identityProviderId}:generateScimToken`, {})
  return { identityProviderId, etag }
}
const mapping = () => uidOf(registry.seed.mapping(provider, roleUids.viewer))
const image = () => ({ repoId: repo, digest })

type Somebody = { uid: string; token: string }

/** A sign-in provider's token of a new person, which is exchanged for a token of this server. */
async function stranger(): Promise<Somebody> {
  const sub = unique('somebody')
  const claims = { sub, aud: clientId, name: 'Jo Doe', email: `${sub}@asked.example`, email_verified: true }
  return { uid: personUid(issuer.url, sub), token: await issuer.token(claims) }
}

async function registered(): Promise<Somebody> {
  const somebody = await stranger()
  const answer = await registry.withToken(somebody.token).post('/auth/v1/register', {})
  assert.equal(answer.status, 200, answer.text)
  return somebody
}

/** A person, with a token of ours. */
async function person(): Promise<Somebody> {
  const { uid, token } = await registered()
  const answer = await registry.withToken(token).call('POST', `/sts/exchange?${searchOf({ aud: registry.url })}`)
  return { uid, token: answer.body.token }
}

async function refreshToken(): Promise<string> {
  const wanted = { connection: 'everybody', create_refresh_token: 'true' }
  const begun = await begin(registry, { idp: '', issuer }, wanted)
  return answerOf(await finish(begun, { sub: unique('somebody') })).refresh_token
}

/** Code of a program that a person has approved in a browser. */
async function letIn(): Promise<string> {
  const code = String(generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x)
  const browser = openBrowser()
  const start = await browser.ask(`${registry.url}/ui/signin/start?idp=everybody`)
  const sent = new URL(start.headers.get('location')!).searchParams
  const [state, nonce, callback] = ['state', 'nonce', 'redirect_uri'].map((name) => sent.get(name)!)
  const begun = { browser, state: state!, nonce: nonce!, callback: callback!, issuer }
  await finish(begun, { sub: unique('somebody') })
  const page = await browser.submit(`${registry.url}/ui/headless`, { code })
  assert.equal(page.status, 200, page.text)
  return code
}

/** The request as JSON, and the token of the caller unless it is the operator. */
type Case = { request: JsonObject; token?: string }
type Make = () => Promise<JsonObject | Case> | JsonObject | Case

const cases: Record<string, Make> = {
  'Groups.Create': () => ({ parent: org, group: { name: unique('group') } }),
  'Groups.Update': async () => ({ id: await group(), name: unique('group') }),
  'Groups.List': () => ({ uidp: { descendantsOf: org } }),
  // These methods require a person whose address has the domain of an organization.
  'Groups.LookupGroup': async () => ({ request: {}, token: (await person()).token }),
  'Groups.RequestGroupAccess': async () => ({ request: { groupId: domain }, token: (await person()).token }),
  'Groups.CheckEligibility': () => ({}),
  'Groups.Delete': async () => ({ id: await group() }),
  'events.Identities.Create': async () => ({
    request: { issuer: 'https://i.example.com', subject: unique('s'), issuerKeys: JSON.stringify(issuer.jwks()) },
    token: (await registry.as((await registry.seed.member(org, roleUids.owner)).uid)).token!,
  }),
  'Identities.Create': () => ({
    parentId: org,
    identity: { name: 'one', claimMatch: { issuer: 'https://i.example.com', subject: unique('s') } },
  }),
  'Identities.Update': async () => ({
    id: await identity(),
    name: 'two',
    claimMatch: { issuer: 'https://i.example.com', subject: unique('s') },
  }),
  'Identities.List': () => ({ uidp: { descendantsOf: org } }),
  'Identities.Lookup': async () => {
    const named = { issuer: 'https://people.example.com', subject: unique('somebody') }
    const query = new URLSearchParams(named)
    const { uid } = (await registry.operator.get(`/iam/v2/identities:lookupIdentity?${query}`)).body
    await registry.seed.person({ uid })
    return named
  },
  'Identities.Delete': async () => ({ id: await identity() }),
  'Roles.Create': () => ({ parentId: org, role: { name: unique('role'), capabilities: ['repo.list'] } }),
  'Roles.Update': async () => ({
    id: await uidOf(registry.seed.role(org, ['CAP_REPO_LIST'])),
    name: unique('role'),
    capabilities: ['tag.list'],
  }),
  'Roles.List': () => ({ parent: '/' }),
  'Roles.Delete': async () => ({ id: await uidOf(registry.seed.role(org, ['CAP_REPO_LIST'])) }),
  'RoleBindings.Create': async () => ({
    parent: org,
    roleBinding: { identity: await identity(), role: roleUids.viewer },
  }),
  'RoleBindings.CreateBatch': async () => ({
    parent: org,
    roleBindings: [{ identity: await identity(), role: roleUids.viewer }],
  }),
  'RoleBindings.Update': async () => ({
    id: await binding(),
    identity: await identity(),
    role: roleUids.editor,
    group: org,
  }),
  'RoleBindings.List': async () => ({ id: await binding() }),
  'RoleBindings.Delete': async () => ({ id: await binding() }),
  'IdentityProviders.Create': () => ({ parentId: org, identityProvider: { name: unique('idp'), oidc: oidc() } }),
  'IdentityProviders.Update': () => ({ id: provider, name: 'changed', oidc: oidc() }),
  'IdentityProviders.List': () => ({ id: provider }),
  'IdentityProviders.Delete': async () => ({ id: await uidOf(registry.seed.provider(org, issuer.url)) }),
  'IdentityProviders.GenerateScimToken': async () => ({ identityProviderId: await newProvider() }),
  'IdentityProviders.RegenerateScimToken': async () => ({ ...(await scim()), overlap: '60s' }),
  'IdentityProviders.RevokeScimToken': async () => ({ identityProviderId: (await scim()).identityProviderId }),
  'IdentityProviders.SetScimEnabled': async () => ({ ...(await scim()), enabled: true }),
  'ExternalGroupRoleMappings.Create': () => ({
    parentId: provider,
    mapping: { externalGroupId: unique('devs'), roleUidp: roleUids.viewer, scope: org },
  }),
  'ExternalGroupRoleMappings.Get': async () => ({ uid: await mapping() }),
  'ExternalGroupRoleMappings.List': async () => {
    await mapping()
    return { identityProviderUidp: provider }
  },
  'ExternalGroupRoleMappings.Delete': async () => ({ id: await mapping() }),
  'ExternalGroupRoleMappings.BatchDelete': async () => ({ parentId: provider, ids: [await mapping()] }),
  'GroupInvites.Create': () => ({ group: org, ttl: '3600s', role: roleUids.viewer }),
  'GroupInvites.CreateWithGroup': () => ({ group: unique('made'), ttl: '3600s', role: roleUids.viewer }),
  'GroupInvites.List': async () => {
    await registry.seed.invite(org, roleUids.viewer)
    return { group: org }
  },
  'GroupInvites.Delete': async () => ({ id: await uidOf(registry.seed.invite(org, roleUids.viewer)) }),
  'GroupAccountAssociations.Create': async () => ({
    group: await group(),
    name: 'one',
    amazon: { account: '123456789012' },
  }),
  'GroupAccountAssociations.Update': async () => ({ group: await association(), name: 'two' }),
  'GroupAccountAssociations.List': async () => ({ group: await association() }),
  'GroupAccountAssociations.Delete': async () => ({ group: await association() }),
  'GroupAccountAssociations.Check': async () => ({ group: await association(), accountType: 'AMAZON' }),
  'Terms.AcceptTerms': () => ({ group: org, documentIds: ['one'] }),
  'Terms.ListAccepted': () => ({ group: org }),
  'Registry.CreateRepo': () => ({
    parentId: org,
    repo: { name: unique('r'), sync_config: { source: repo }, readme: '' },
  }),
  'Registry.UpdateRepo': async () => ({ id: await newRepo(), description: 'changed' }),
  'Registry.ListRepos': () => ({ id: repo }),
  'Registry.GetRepoCountBySource': () => ({ id: repo }),
  'Registry.DeleteRepo': async () => ({ id: await newRepo() }),
  'Registry.CreateTag': () => ({ repoId: repo, tag: { name: unique('t'), digest } }),
  'Registry.UpdateTag': async () => ({ id: await newTag(), deprecated: true }),
  'Registry.DeleteTag': async () => ({ id: await newTag() }),
  'Registry.ListTags': () => ({ uidp: { childrenOf: repo } }),
  'Registry.GetRepoTagsSummary': () => ({ repoId: repo }),
  'Registry.ListEolTags': () => ({ uidp: { childrenOf: repo } }),
  'Registry.ListTagHistory': async () => ({ parentId: await newTag() }),
  'Registry.GetSbom': () => ({ repoId: repo, digest: scanned }),
  'Registry.GetImageConfig': () => ({ ...image(), arch: 'amd64' }),
  'Registry.GetArchs': image,
  'Registry.GetSize': () => ({ ...image(), arch: 'amd64' }),
  'Registry.GetRawSbom': () => ({ repoId: repo, digest: scanned }),
  'Registry.GetVulnReport': () => ({ repoId: repo, digest: scanned }),
  'Registry.ListManifestMetadata': () => ({ repoId: repo }),
  'Registry.GetManifestDigestCount': () => ({ parentId: org }),
  'Registry.GetPackageVersionMetadata': () => ({ package: 'nodejs' }),
  'Registry.GetUpdateStatus': () => ({ repoId: repo }),
  'Registry.GetSyncStatus': async () => ({
    repoId: (await registry.seed.repo(org, { syncConfig: { source: repo } })).uid,
  }),
  'Registry.ListSyncStatuses': async () => {
    await registry.seed.repo(org, { syncConfig: { source: repo } })
    return { registryId: org }
  },
  'Registry.CreateDeployment': async () => ({ parentId: await newRepo(), charts }),
  'Registry.UpdateDeployment': async () => ({ repoId: await deployed(), charts }),
  'Registry.GetDeployment': async () => ({ repoId: await deployed() }),
  'Registry.GetRegistrySettings': () => ({ registryId: org }),
  'Registry.UpdateRegistrySettings': () => ({ registryId: org, uniqueTags: true, eolGracePeriod: true }),
  'Advisories.Create': () => ({ parentId: org, advisory: advisory() }),
  'Advisories.List': () => ({ uidp: { childrenOf: org } }),
  'Advisories.Update': async () => ({ id: await newAdvisory(), ...advisory() }),
  'Advisories.Delete': async () => ({ id: await newAdvisory() }),
  'Advisories.CreateAdvisoryEvent': async () => ({ parentId: await newAdvisory(), advisoryEvent: fixed }),
  'Advisories.ListAdvisoryEvents': async () => {
    const parentId = await newAdvisory()
    await made(`/vulnerabilities/v1/advisories/${parentId}/events`, { advisoryEvent: fixed })
    return { parentId }
  },
  'Advisories.UpdateAdvisoryEvent': async () => {
    const { id } = await made(`/vulnerabilities/v1/advisories/${await newAdvisory()}/events`, { advisoryEvent: fixed })
    return { id, author: 'me', fixed: { fixedVersion: '3' } }
  },
  'SecurityAdvisory.ListDocuments': () => ({}),
  'SecurityAdvisory.ListVulnerabilityMetadata': () => ({ ids: ['CVE-2026-1'] }),
  'SecurityAdvisory.ListResolvedVulnsReports': () => ({
    imageRefs: [{ repo: 'acme/app' }],
    from: '2026-01-01T00:00:00Z',
    to: '2026-01-02T00:00:00Z',
  }),
  'Vulnerabilities.ListVulnReports': () => ({ repoId: repo }),
  'Vulnerabilities.GetRawVulnReport': () => ({ digest: scanned }),
  'Vulnerabilities.ListVulnCountReports': () => ({ repo: 'app' }),
  'Vulnerabilities.ListCumulativeVulnCountReports': () => ({ repo: 'app' }),
  'Artifacts.List': () => ({ ecosystems: ['PYTHON'] }),
  'Artifacts.ListVersions': () => ({ id: 'python:flask' }),
  'Artifacts.GetArtifactCount': () => ({ ecosystems: ['PYTHON', 'GO'] }),
  'Subscriptions.Create': () => ({ parentId: org, subscription: { sink: 'https://hooks.example.com/' } }),
  'Subscriptions.List': async () => ({ id: await uidOf(registry.seed.subscription(org)) }),
  'Subscriptions.Delete': async () => ({ id: await uidOf(registry.seed.subscription(org)) }),
  'PingService.Ping': () => ({}),
  // These methods take a token of an outside issuer.
  'SecurityTokenService.Exchange': async () => ({
    request: { aud: [registry.url] },
    token: (await registered()).token,
  }),
  'SecurityTokenService.ExchangeRefreshToken': async () => ({
    request: { aud: [registry.url] },
    token: await refreshToken(),
  }),
  'Auth.Validate': () => ({}),
  'Auth.Register': async () => ({
    request: { code: (await registry.seed.invite(org, roleUids.viewer)).code },
    token: (await stranger()).token,
  }),
  'Auth.GetHeadlessSession': async () => ({ code: await letIn() }),
  'Auth.Delete': async () => {
    const { uid, token } = await person()
    return { request: { id: uid }, token }
  },
}

async function deployed(): Promise<string> {
  const uid = await newRepo()
  await made(`/registry/v1/repos/${uid}/deployment`, { charts })
  return uid
}

async function caseOf(desc: DescMethod): Promise<Case> {
  const make = cases[nameOf(desc)]
  assert.ok(make, `${nameOf(desc)} has no case here`)
  const one = await make()
  return 'request' in one ? (one as Case) : { request: one }
}

/** Places the request fields where the HTTP rule of the method expects them. */
async function overRest(desc: DescMethod, { request, token }: Case): Promise<Answer> {
  const client = token === undefined ? registry.operator : registry.withToken(token)
  const { pattern, body } = getOption(desc, http)
  const rest = { ...request } as Json
  const path = String(pattern.value).replace(/\{(\w+)=?(\**)\}/g, (_, name: string, stars: string) => {
    const { jsonName } = desc.input.fields.find((field) => field.name === name)!
    const value = String(rest[jsonName])
    delete rest[jsonName]
    return stars === '**' ? value : encodeURIComponent(value)
  })
  const verb = pattern.case!.toUpperCase()
  if (body === '*') return client.call(verb, path, rest)
  const named = desc.input.fields.find((field) => field.name === body)?.jsonName
  const sent = named === undefined ? undefined : rest[named]
  if (named !== undefined) delete rest[named]
  return client.call(verb, `${path}?${queryOf(rest)}`, sent)
}

function queryOf(value: Json, prefix = ''): string {
  return Object.entries(value)
    .flatMap(([name, member]): string[] => {
      const some = Array.isArray(member) ? member : [member]
      return some.map((one) => {
        // The only message that a query spells as text.
        if (name === 'imageRefs') return `${name}=${one.repo}`
        return one !== null && typeof one === 'object'
          ? queryOf(one, `${prefix}${name}.`)
          : `${prefix}${name}=${encodeURIComponent(one)}`
      })
    })
    .join('&')
}

/** Asserts that each declared field is present in all messages of the response. */
function assertComplete(desc: DescMessage, json: Json, at: string): void {
  if (desc.typeName.startsWith('google.protobuf.')) return
  for (const field of desc.fields) {
    const where = `${at}.${field.jsonName}`
    const value = json[field.jsonName]
    // Optional scalars and oneof fields that are not set are omitted.
    if (field.oneof || field.proto.proto3Optional) {
      if (value === undefined) continue
    } else assert.ok(value !== undefined, `${where} is missing in ${JSON.stringify(json).slice(0, 300)}`)
    const message = field.message
    if (!message || value === null || field.fieldKind === 'map') continue
    for (const [i, one] of (Array.isArray(value) ? value : [value]).entries())
      assertComplete(message, one, `${where}[${i}]`)
  }
}

function assertKnown(message: unknown, at: string): void {
  if (message === null || typeof message !== 'object' || message instanceof Uint8Array) return
  const unknown = (message as { $unknown?: unknown[] }).$unknown ?? []
  assert.equal(unknown.length, 0, `${at} has members that its definition does not have`)
  for (const [name, value] of Object.entries(message)) if (name !== '$unknown') assertKnown(value, `${at}.${name}`)
}

const emptyType = 'google.protobuf.Empty'
const types = createRegistry(...services.map(({ desc }) => desc))

test('each method of version 1 has a test case, and each case has a method', () => {
  const served = endpoints.filter(({ handler }) => handler).map(({ desc }) => nameOf(desc))
  assert.deepEqual(
    served.filter((name) => !(name in cases)),
    [],
  )
  const all = endpoints.map(({ desc }) => nameOf(desc))
  assert.deepEqual(
    Object.keys(cases).filter((name) => !all.includes(name)),
    [],
  )
  assert.ok(all.length > 95)
})

/** Calls every implemented method, and reports the faults of all. */
async function eachMethod(check: (desc: DescMethod, one: Case) => Promise<void>): Promise<void> {
  const problems: string[] = []
  for (const { desc, handler } of endpoints) {
    if (!handler) continue
    try {
      await check(desc, await caseOf(desc))
    } catch (error) {
      problems.push(`${nameOf(desc)}: ${error instanceof Error ? error.message : error}`)
    }
  }
  assert.deepEqual(problems, [])
}

test('gRPC: each method answers as defined', async () => {
  await eachMethod(async (desc, { request, token = registry.operator.token }) => {
    const message: Message = fromJson(desc.input, request)
    const answer = await grpc.call(desc, message, { token })
    assert.equal(answer.code, 0, answer.message)
    assertKnown(answer.response, nameOf(desc))
    if (desc.output.typeName === emptyType) assert.equal(toBinary(desc.output, answer.response!).length, 0)
  })
})

test('REST: each method answers with exactly the defined fields', async () => {
  await eachMethod(async (desc, one) => {
    if (!hasOption(desc, http)) return
    const answer = await overRest(desc, one)
    assert.equal(answer.status, 200, answer.text)
    if (desc.output.typeName === emptyType) return assert.equal(answer.text, '')
    fromJson(desc.output, answer.body as JsonObject, { registry: types, ignoreUnknownFields: false })
    assertComplete(desc.output, answer.body, nameOf(desc))
  })
})
