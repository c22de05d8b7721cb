import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { refusalOf } from '../support/answers.ts'
import {
  assertBlocked,
  assertDenied,
  assertInvalid,
  assertNotFound,
  assertTaken,
  assertTimes,
  eventsOf,
  ok,
  snake,
} from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/IdentityProvider'
const base = '/iam/v2/identityProviders'
/** SCIM fields of a provider before its first token. */
const scim = { enabled: false, endpointUrl: '', etag: '' }
const event = (name: string) => `dev.pinfold.api.iam.identity_providers.${name}.v1`

let made = 0
let shift = 0
const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  clock: () => new Date(Date.now() + shift),
})
const org: string = scene.org.uid
const owner = await member(roleUids.owner)
const viewer = await member(roleUids.viewer)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const oidc = (change: Json = {}) => ({ issuer: issuer.url, clientId: 'c', clientSecret: 'first secret', ...change })
const body = (change: Json = {}) => ({
  name: `provider ${made++}`,
  defaultRole: roleUids.viewer,
  oidc: oidc(),
  ...change,
})
const create = (change: Json = {}, client = owner, parent = org) => client.post(`${base}/${parent}`, body(change))
const pathOf = ({ uid }: Json) => `${base}/${uid}`

/** Stored client secret, unsealed with the key of the server. Undefined if none is stored. */
async function storedSecret(uid: string): Promise<string | undefined> {
  const row = await pinfold.app.db.get<{ secret: Uint8Array }>(
    sql`SELECT client_secret AS secret FROM identity_providers WHERE uid = ${uid}`,
  )
  if (row!.secret.length === 0) return undefined
  return pinfold.app.cipher.decrypt('identity-provider-secret', row!.secret)!.toString()
}

/** Runs `work` while the discovery document has other content. */
async function publishing<T>(metadata: Json, work: () => Promise<T>): Promise<T> {
  Object.assign(issuer.metadata, metadata)
  try {
    return await work()
  } finally {
    for (const name of Object.keys(metadata)) delete issuer.metadata[name]
  }
}

test('a provider is created, read and listed without its secret', async () => {
  const created = ok(
    await create({
      name: 'okta',
      description: 'sign in',
      oidc: oidc({ additionalScopes: ['email', 'profile'], groupsClaim: 'groups' }),
    }),
  )
  assertTimes(created, 'createTime', 'updateTime')
  assert.match(created.uid, new RegExp(`^${org}/[0-9a-f]{16}$`))
  assert.deepEqual(created.scim, scim)
  assert.deepEqual(created.oidc, {
    issuer: issuer.url,
    clientId: 'c',
    clientSecret: '',
    additionalScopes: ['email', 'profile'],
    groupsClaim: 'groups',
    correlationRule: 'CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID',
    pkceEnabled: false,
  })
  const read = ok(await viewer.get(pathOf(created)))
  assert.deepEqual(read, { ...created, scim: { ...scim, credentialState: 'CREDENTIAL_STATE_NOT_ISSUED' } })
  const listed = ok(await viewer.get(`${base}?name=okta`))
  assert.deepEqual([listed.identityProviders, listed.totalCount], [[created], '1'])
  assert.equal(await storedSecret(created.uid), 'first secret')
})

test('the secret is in no answer and no event, and is stored encrypted', async () => {
  const secret = 'a very hidden secret'
  const answers: Json[] = []
  const events = await eventsOf(pinfold, async () => {
    const created = await create({ oidc: oidc({ clientSecret: secret }) })
    const path = pathOf(created.body)
    answers.push(created, await owner.patch(path, { description: 'x' }), await owner.get(path), await owner.get(base))
    const other = { oidc: { clientSecret: `${secret} again` } }
    answers.push(await owner.patch(`${path}?updateMask=oidc.client_secret`, other))
    assert.equal(await storedSecret(created.body.uid), `${secret} again`)
  })
  for (const answer of answers) {
    assert.equal(answer.status, 200, answer.text)
    assert.doesNotMatch(answer.text, /hidden|clientSecret":"[^"]/)
  }
  assert.deepEqual(
    events.map((one) => one.type),
    ['created', 'updated', 'updated'].map(event),
  )
  assert.doesNotMatch(JSON.stringify(events), /hidden|client_secret":"[^"]/)
  const rows = await pinfold.app.db.all<{ secret: Uint8Array }>(
    sql`SELECT client_secret AS secret FROM identity_providers`,
  )
  for (const row of rows) assert.ok(!Buffer.from(row.secret).includes('secret'))
})

test('an empty secret keeps the stored one, unless the update mask names it', async () => {
  const provider = ok(await create())
  const path = pathOf(provider)
  const rest = { issuer: issuer.url, clientId: 'other' }
  for (const [query, sent] of [
    ['', { oidc: rest }],
    ['', { oidc: { ...rest, clientSecret: '' } }],
    ['?updateMask=oidc', { oidc: rest }],
    ['?updateMask=*', { name: 'starred', defaultRole: roleUids.viewer, oidc: rest }],
    ['?updateMask=oidc.client_id', { oidc: rest }],
    ['?updateMask=description', { oidc: { clientSecret: 'not named' } }],
  ] as const) {
    ok(await owner.patch(path + query, sent))
    assert.equal(await storedSecret(provider.uid), 'first secret', query)
  }
  assert.equal(ok(await owner.get(path)).oidc.clientId, 'other')

  assertInvalid(await owner.patch(`${path}?updateMask=oidc.client_secret`, {}), 'oidc.client_secret')
  assert.equal(await storedSecret(provider.uid), 'first secret')
  ok(await owner.patch(`${path}?updateMask=oidc.pkce_enabled`, { oidc: { pkceEnabled: true } }))
  ok(await owner.patch(`${path}?updateMask=oidc.client_secret`, {}))
  assert.equal(await storedSecret(provider.uid), undefined)
  assertInvalid(await owner.patch(`${path}?updateMask=oidc.pkce_enabled`, {}), 'oidc.client_secret')
  ok(await owner.patch(`${path}?updateMask=oidc.client_secret`, { oidc: { clientSecret: 'second' } }))
  assert.equal(await storedSecret(provider.uid), 'second')
})

test('clears a field that the update mask names and the body omits', async () => {
  const full = { additionalScopes: ['email'], groupsClaim: 'groups', pkceEnabled: true }
  const provider = ok(await create({ oidc: oidc(full) }))
  const path = pathOf(provider)
  for (const [member, empty] of [
    ['groups_claim', { groupsClaim: '' }],
    ['additional_scopes', { additionalScopes: [] }],
    ['pkce_enabled', { pkceEnabled: false }],
    ['correlation_rule', {}],
  ] as const) {
    const changed = ok(await owner.patch(`${path}?updateMask=oidc.${member}`, {}))
    assert.partialDeepStrictEqual(changed.oidc, empty)
    assert.deepEqual(ok(await owner.get(path)).oidc, changed.oidc)
  }
  assertInvalid(await owner.patch(`${path}?updateMask=oidc.issuer`, {}), 'oidc.issuer')
  assertInvalid(await owner.patch(`${path}?updateMask=oidc.client_id`, {}), 'oidc.client_id')
  assert.equal(await storedSecret(provider.uid), 'first secret')
})

test('refuses a change of the issuer without a new secret, so that the stored one is not sent to it', async () => {
  await using other = await startIssuer()
  const provider = ok(await create())
  const moved = { issuer: other.url, clientId: 'c' }
  assertInvalid(await owner.patch(pathOf(provider), { oidc: moved }), 'oidc.client_secret')
  const mask = '?updateMask=oidc.issuer'
  assertInvalid(await owner.patch(pathOf(provider) + mask, { oidc: { issuer: other.url } }), 'oidc.client_secret')
  const restated = ok(await owner.patch(pathOf(provider), { oidc: { ...moved, clientSecret: 'new' } }))
  assert.equal(restated.oidc.issuer, other.url)
  assert.deepEqual(other.requests, ['/.well-known/openid-configuration'])
})

test('requires a secret or PKCE, and PKCE only for a provider that supports S256', async () => {
  assertInvalid(await create({ oidc: oidc({ clientSecret: '' }) }), 'oidc.client_secret')
  const publicClient = { oidc: oidc({ clientSecret: '', pkceEnabled: true }) }
  ok(await create(publicClient))
  await publishing({ code_challenge_methods_supported: ['plain', 'S256'] }, async () => ok(await create(publicClient)))
  const without = ok(await create())
  await publishing({ code_challenge_methods_supported: ['plain'] }, async () => {
    assertInvalid(await create(publicClient), 'oidc.pkce_enabled')
    ok(await create())
    const on = { oidc: { pkceEnabled: true } }
    assertInvalid(await owner.patch(`${pathOf(without)}?updateMask=oidc.pkce_enabled`, on), 'oidc.pkce_enabled')
  })
})

test('the correlation rule cannot be changed, but can be repeated in an update', async () => {
  const byOid = 'CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID'
  const provider = ok(await create({ oidc: oidc({ correlationRule: byOid }) }))
  assert.equal(provider.oidc.correlationRule, byOid)
  const path = pathOf(provider)
  for (const correlationRule of [byOid, 2, 'CORRELATION_RULE_UNSPECIFIED', undefined]) {
    assert.equal(ok(await owner.patch(path, { oidc: oidc({ correlationRule }) })).oidc.correlationRule, byOid)
  }
  const bySub = oidc({ correlationRule: 'CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID' })
  for (const query of ['', '?updateMask=oidc.correlation_rule', '?updateMask=oidc']) {
    assertInvalid(await owner.patch(path + query, { oidc: bySub }), 'oidc.correlation_rule')
  }
  assertInvalid(await create({ oidc: oidc({ correlationRule: 3 }) }), 'oidc.correlation_rule')
})

test('ignores SCIM fields in requests', async () => {
  const sent = { enabled: true, etag: 'x', endpointUrl: 'https://example.com' }
  const provider = ok(await create({ scim: sent }))
  assert.deepEqual(provider.scim, scim)
  assert.deepEqual(ok(await owner.patch(pathOf(provider), { scim: sent })).scim, scim)
})

test('an error names each invalid field', async () => {
  assertInvalid(
    await create({ name: '', oidc: oidc({ clientId: '', issuer: '' }) }),
    'name',
    'oidc.issuer',
    'oidc.client_id',
  )
  assertInvalid(
    await create({ name: 'Upper', description: 'a\nb', defaultRole: '' }),
    'name',
    'description',
    'default_role',
  )
  assertInvalid(await create({ defaultRole: 'x' }), 'default_role')
  assertInvalid(await create({ oidc: undefined }), 'oidc')
  assertInvalid(await owner.post(`${base}/${org}`, {}), 'oidc')
  for (const url of [
    'x',
    'ftp://example.com',
    'http://example.com',
    'https://u@example.com',
    'https://example.com?a=b',
  ]) {
    assertInvalid(await create({ oidc: oidc({ issuer: url }) }), 'oidc.issuer')
  }
  for (const additionalScopes of [['a b'], [''], ['"'], Array(51).fill('a'), ['x'.repeat(256)]]) {
    assertInvalid(await create({ oidc: oidc({ additionalScopes }) }), 'oidc.additional_scopes')
  }
  assertInvalid(await create({ oidc: oidc({ clientSecret: 'x'.repeat(4097) }) }), 'oidc.client_secret')
  assertInvalid(await create({ oidc: oidc({ groupsClaim: 'x'.repeat(256) }) }), 'oidc.groups_claim')
  const provider = ok(await create())
  assertInvalid(await owner.patch(pathOf(provider), { oidc: null }), 'oidc')
  assertInvalid(await owner.patch(`${pathOf(provider)}?updateMask=default_role`, {}), 'default_role')
  assertInvalid(await owner.patch(`${pathOf(provider)}?updateMask=oidc.secret`, {}), 'update_mask')
})

test('only organizations have identity providers, each with a unique name', async () => {
  const folder = (await pinfold.seed.group(org)).uid
  assertInvalid(await create({}, owner, folder), 'parent')
  const nowhere = 'e'.repeat(40)
  assertNotFound(await create({}, pinfold.operator, nowhere), 'iam.pinfold.dev/Group', nowhere)
  const [first, second] = [ok(await create({ name: 'one' })), ok(await create({ name: 'two' }))]
  assertTaken(await create({ name: 'one' }), type, 'one')
  assertTaken(await owner.patch(pathOf(second), { name: 'one' }), type, 'one')
  assert.equal(ok(await owner.patch(pathOf(first), { name: 'one', description: 'same' })).description, 'same')
})

test('fetches the discovery document of the provider, which must match', async () => {
  const asked = issuer.requests.length
  const provider = ok(await create())
  ok(await owner.patch(pathOf(provider), { description: 'not asked' }))
  ok(await owner.patch(`${pathOf(provider)}?updateMask=oidc.client_id`, { oidc: { clientId: 'not asked' } }))
  assert.equal(issuer.requests.length, asked + 1)

  for (const metadata of [
    { issuer: 'https://other.example.com' },
    { authorization_endpoint: undefined },
    { grant_types_supported: ['implicit'] },
    { response_types_supported: ['id_token'] },
  ]) {
    await publishing(metadata, async () => assertInvalid(await create(), 'oidc.issuer'))
  }
  const gone = await startIssuer()
  await gone[Symbol.asyncDispose]()
  for (const url of [gone.url, `${issuer.url}/nothing/here`]) {
    const made = ok(await create({ oidc: oidc({ issuer: url }) }))
    const state = ok(await owner.get(`${pathOf(made)}/discovery`))
    assert.deepEqual([state.uid, state.state, state.checkTime], [made.uid, 'STATE_UNREADABLE', made.createTime])
    assert.match(state.problem, /^the discovery document cannot be read: /)
  }
})

test('fetches the discovery document again at the next change or read if it failed before', async () => {
  const discoveryOf = async (provider: Json) => ok(await owner.get(`${pathOf(provider)}/discovery`))
  const readable = ok(await create())
  assert.deepEqual(await discoveryOf(readable), { uid: readable.uid, state: 'STATE_READABLE', problem: '' })

  const gone = await startIssuer()
  await gone[Symbol.asyncDispose]()
  const away = oidc({ issuer: gone.url })
  const [one, two] = [ok(await create({ oidc: away })), ok(await create({ oidc: away }))]
  ok(await owner.patch(pathOf(one), { description: 'still away' }))
  assert.equal((await discoveryOf(one)).state, 'STATE_UNREADABLE')
  await using _back = await startIssuer('RS256', '', Number(new URL(gone.url).port))
  ok(await owner.patch(pathOf(one), { description: 'there' }))
  assert.equal((await discoveryOf(one)).state, 'STATE_READABLE')
  assert.equal((await discoveryOf(two)).state, 'STATE_UNREADABLE', 'nobody asks all the time')
  shift += 11_000
  assert.equal((await discoveryOf(two)).state, 'STATE_READABLE')
})

test('the error names the setting if the server refuses private addresses', async () => {
  await using guarded = await startPinfold()
  const group = (await guarded.seed.group()).uid
  assertInvalid(await guarded.operator.post(`${base}/${group}`, body()), 'oidc.issuer')
  const local = await guarded.operator.post(`${base}/${group}`, body({ oidc: oidc({ issuer: 'https://127.0.0.1:1' }) }))
  assertInvalid(local, 'oidc.issuer')
  assert.match(local.body.message, /private address/)
})

test('refuses a default role with capabilities that the caller does not hold', async () => {
  const role = await pinfold.seed.role(org, [
    'identity_providers.create',
    'identity_providers.update',
    'role_bindings.create',
  ])
  const manager = await pinfold.as((await pinfold.seed.member(org, role.uid)).uid)
  assertDenied(await create({}, manager))
  assertDenied(await create({ defaultRole: roleUids.operator }, owner))
  const elsewhere = (await pinfold.seed.role((await pinfold.seed.group()).uid, ['repo.list'])).uid
  assertNotFound(await create({ defaultRole: elsewhere }), 'iam.pinfold.dev/Role', elsewhere)
  const own = ok(await create({ defaultRole: role.uid }, manager))
  assertDenied(await manager.patch(pathOf(own), { defaultRole: roleUids.viewer }))
  ok(await manager.patch(pathOf(own), { oidc: oidc({ clientId: 'x' }) }))

  // A member who controls the sign-in can become any person, so they also need the rights of the default role.
  const others = ok(await create({ defaultRole: roleUids.owner }))
  assertDenied(await manager.patch(pathOf(others), { oidc: oidc({ clientId: 'mine' }) }))
  assertDenied(
    await manager.patch(`${pathOf(others)}?updateMask=oidc.client_secret`, { oidc: { clientSecret: 'mine' } }),
  )
  ok(await manager.patch(pathOf(others), { description: 'harmless' }))
  await pinfold.seed.mapping(own.uid, roleUids.editor)
  assertDenied(await manager.patch(pathOf(own), { oidc: oidc({ groupsClaim: 'mine' }) }))
  ok(await owner.patch(pathOf(own), { oidc: oidc({ groupsClaim: 'fine' }) }))
})

test('callers without access get no information', async () => {
  const stranger = await pinfold.as((await pinfold.seed.identity(org)).uid)
  const provider = ok(await create())
  const missing = { uid: `${org}/${'0'.repeat(16)}` }
  for (const one of [provider, missing]) {
    assertDenied(await stranger.get(pathOf(one)))
    assertDenied(await viewer.patch(pathOf(one), {}))
    assertDenied(await viewer.delete(pathOf(one)))
  }
  assertNotFound(await owner.get(pathOf(missing)), type, missing.uid)
  assertNotFound(await owner.patch(pathOf(missing), {}), type, missing.uid)
  assertNotFound(await owner.delete(pathOf(missing)), type, missing.uid)
  assertDenied(await create({}, viewer))
})

test('an organization has no more identity providers than its limit', async () => {
  const root = (await pinfold.seed.group()).uid
  const limits = JSON.stringify({ idps: 1 })
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE groups SET resource_limits = ${limits} WHERE uid = ${root}`))
  const answers = await Promise.all([1, 2, 3].map(() => create({}, pinfold.operator, root)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  const refused = answers.find(({ status }) => status !== 200)!
  assert.deepEqual(refusalOf(refused), { http: 429, code: 8, reason: 'RESOURCE_LIMIT_EXCEEDED', fields: [] })
})

test('a default role, and an organization with a provider, cannot be deleted; deleting a provider deletes its mappings', async () => {
  const root = (await pinfold.seed.group()).uid
  const role = (await pinfold.seed.role(root, ['repo.list'])).uid
  const provider = await pinfold.seed.provider(root, issuer.url, { defaultRole: role })
  const mapping = await pinfold.seed.mapping(provider.uid, roleUids.viewer)
  assertBlocked(await pinfold.operator.delete(`/iam/v2/roles/${role}`), role, 'RESOURCE_IN_USE')
  const blocked = await pinfold.operator.delete(`/iam/v2/groups/${root}`)
  assertBlocked(blocked, root, 'RESOURCE_NOT_EMPTY', 'RESOURCE_NOT_EMPTY')
  assert.match(blocked.body.message, /identity providers/)

  const events = await eventsOf(pinfold, async () => {
    const res = await pinfold.operator.delete(pathOf(provider))
    assert.deepEqual([res.status, res.text], [200, ''])
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.group, one.body]),
    [[event('deleted'), provider.uid, root, { uid: provider.uid }]],
  )
  assert.equal((await pinfold.operator.get(`/iam/v2/externalGroupRoleMappings/${mapping.uid}`)).status, 404)
  assert.equal((await pinfold.operator.delete(`/iam/v2/roles/${role}`)).status, 200)
  assert.equal((await pinfold.operator.delete(`/iam/v2/groups/${root}`)).status, 200)
})

test('a change writes one event with the returned resource, and a failed request writes none', async () => {
  let created: Json = {}
  let updated: Json = {}
  const events = await eventsOf(pinfold, async () => {
    created = ok(await create({ oidc: oidc({ pkceEnabled: true, correlationRule: 2 }) }))
    updated = ok(await owner.patch(pathOf(created), { description: 'new' }))
    await create({ name: created.name })
    await create({ oidc: oidc({ clientId: '' }) })
    await owner.patch(pathOf(created), { description: '\n' })
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.group, one.audience]),
    [
      [event('created'), created.uid, org, 'CUSTOMER'],
      [event('updated'), created.uid, org, 'CUSTOMER'],
    ],
  )
  assert.partialDeepStrictEqual(events[0]!.body, snake(created))
  assert.partialDeepStrictEqual(events[1]!.body, snake(updated))
})
