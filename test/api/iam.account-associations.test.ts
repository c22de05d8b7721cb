import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ServicePrincipalSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { checkLists } from '../support/check-lists.ts'
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
import { startClouds } from '../support/fake-clouds.ts'
import { type Answer, type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/AccountAssociation'
const base = '/iam/v2/accountAssociations'
const event = (name: string) => `dev.pinfold.api.iam.account_associations.${name}.v1`
const amazon = { account: '123456789012' }
const google = { projectId: 'example-project', projectNumber: '987654321' }
const azure = {
  tenantId: '7f5a6e3c-0000-4000-8000-000000000001',
  clientIds: { canary: 'a1b2c3d4-0000-4000-8000-000000000002' },
}

const clouds = await startClouds()
const { url } = clouds
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  googleStsUrl: url,
  googleIamUrl: url,
  awsStsUrl: url,
  azureLoginUrl: url,
})
const org: string = scene.org.uid
const owner = await member(roleUids.owner)
const viewer = await member(roleUids.viewer)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await clouds[Symbol.asyncDispose]()
})

const folder = async () => (await pinfold.seed.group(org)).uid
const create = (group: string, body: Json, client = owner) =>
  client.post(`${base}/${group}`, { name: 'clouds', ...body })
const check = (group: string, providerType: unknown, client = viewer): Promise<Answer> => {
  return client.post(`${base}/${group}:checkAccountAssociation`, { providerType })
}

test('a group has one account association, with the uid of the group', async () => {
  const group = await folder()
  const github = {
    appInstallations: { '42': { installations: [{ installationId: '9007199254740993', name: 'acme' }] } },
  }
  const created = ok(await create(group, { description: 'all', amazon, google, azure, github }))
  assertTimes(created, 'createTime', 'updateTime')
  assert.partialDeepStrictEqual(created, { uid: group, name: 'clouds', amazon, google, azure, github })
  assert.equal(created.pinfold, undefined)
  assert.deepEqual(ok(await viewer.get(`${base}/${group}`)), created)
  assertTaken(await create(group, {}), type, group)
  const missing = await folder()
  assertNotFound(await viewer.get(`${base}/${missing}`), type, missing)
  assertNotFound(await owner.patch(`${base}/${missing}`, {}), type, missing)
  const nowhere = `${org}/${'0'.repeat(16)}`
  assertNotFound(await create(nowhere, {}), 'iam.pinfold.dev/Group', nowhere)
})

test('the settings of each cloud can be set, changed and cleared separately', async () => {
  const group = await folder()
  const path = `${base}/${group}`
  ok(await create(group, { amazon, google }))
  const changed = ok(await owner.patch(path, { amazon: { account: '210987654321' } }))
  assert.deepEqual([changed.amazon.account, changed.google], ['210987654321', google])
  const cleared = ok(await owner.patch(path, { amazon: null }))
  assert.deepEqual([cleared.amazon, cleared.google], [undefined, google])
  const member = ok(
    await owner.patch(`${path}?updateMask=google.project_id`, { google: { projectId: 'other-project' } }),
  )
  assert.deepEqual(member.google, { ...google, projectId: 'other-project' })
  assertInvalid(await owner.patch(`${path}?updateMask=azure.tenant_id`, { azure }), 'azure.client_ids')
  assertInvalid(await owner.patch(`${path}?updateMask=google.project_id`, {}), 'google.project_id')
  const apps = ok(await owner.patch(`${path}?updateMask=github.app_installations`, {}))
  assert.deepEqual(apps.github, { appInstallations: {} })
  const replaced = ok(await owner.patch(`${path}?updateMask=*`, { name: 'new', azure }))
  assert.deepEqual([replaced.name, replaced.google, replaced.azure], ['new', undefined, azure])
})

test('an error names each invalid field', async () => {
  const group = await folder()
  assertInvalid(await owner.post(`${base}/${group}`, {}), 'name')
  assertInvalid(await create(group, { name: 'Upper', description: 'a\nb' }), 'name', 'description')
  for (const account of ['', '12345678901', '1234567890123', '12345678901x']) {
    assertInvalid(await create(group, { amazon: { account } }), 'amazon.account')
  }
  assertInvalid(await create(group, { google: {} }), 'google.project_id', 'google.project_number')
  for (const projectId of ['a/b', 'A', 'a b', '../x', 'x@y']) {
    assertInvalid(await create(group, { google: { ...google, projectId } }), 'google.project_id')
  }
  assertInvalid(await create(group, { azure: {} }), 'azure.tenant_id', 'azure.client_ids')
  for (const tenantId of ['a/b', '..', 'a?b'])
    assertInvalid(await create(group, { azure: { ...azure, tenantId } }), 'azure.tenant_id')
  for (const clientIds of [{ 'a:b': 'x' }, { canary: '' }, { canary: 'a b' }]) {
    assertInvalid(await create(group, { azure: { ...azure, clientIds } }), 'azure.client_ids')
  }
  for (const installations of [[{}], [{ installationId: '-1' }], [{ installationId: 1, name: 'x'.repeat(256) }]]) {
    const github = { appInstallations: { '1': { installations } } }
    assertInvalid(await create(group, { github }), 'github.app_installations')
  }
  assertInvalid(
    await create(group, { github: { appInstallations: { '-1': { installations: [] } } } }),
    'github.app_installations',
  )
  assertInvalid(await create(group, { pinfold: {} }), 'pinfold.service_bindings')
})

test('a cloud service can be bound only to its own identity in the same group', async () => {
  const group = await folder()
  const made = (parent: string, servicePrincipal: string) =>
    pinfold.seed.identity(parent, { claimMatch: undefined, servicePrincipal: `SERVICE_PRINCIPAL_${servicePrincipal}` })
  const [ingester, other, above] = [
    await made(group, 'INGESTER'),
    await made(group, 'CATALOG_SYNCER'),
    await made(org, 'INGESTER'),
  ]
  const plain = await pinfold.seed.identity(group)
  const bind = (serviceBindings: Json) => create(group, { pinfold: { serviceBindings } })
  for (const uid of [other.uid, above.uid, plain.uid, `${group}/${'0'.repeat(16)}`, 'x', '']) {
    assertInvalid(await bind({ INGESTER: uid }), 'pinfold.service_bindings.INGESTER')
  }
  for (const name of ['ingester', 'UNSPECIFIED', 'NOBODY', '']) {
    assertInvalid(await bind({ [name]: ingester.uid }), `pinfold.service_bindings.${name}`)
  }
  const serviceBindings = { INGESTER: ingester.uid, SERVICE_PRINCIPAL_CATALOG_SYNCER: other.uid }
  assert.deepEqual(ok(await bind(serviceBindings)).pinfold, { serviceBindings })
})

test('each service that clients know can be bound, by the name of its principal', async () => {
  const group = await folder()
  const names = ServicePrincipalSchema.values.slice(1).map(({ name }) => name.replace('SERVICE_PRINCIPAL_', ''))
  assert.equal(names.length, 13)
  const made = names.map(async (name) => {
    const servicePrincipal = `SERVICE_PRINCIPAL_${name}`
    return [name, (await pinfold.seed.identity(group, { claimMatch: undefined, servicePrincipal })).uid as string]
  })
  const serviceBindings = Object.fromEntries(await Promise.all(made)) as Json
  assert.deepEqual(ok(await create(group, { pinfold: { serviceBindings } })).pinfold, { serviceBindings })
})

test('lists associations with their groups', async () => {
  const root = (await pinfold.seed.group()).uid
  const groups = [root]
  for (const name of ['b', 'a', 'c']) {
    const group = (await pinfold.seed.group(root)).uid
    groups.push(group)
    ok(await create(group, { name }, pinfold.operator))
  }
  ok(await create(root, { name: 'root' }, pinfold.operator))
  const member = await pinfold.as((await pinfold.seed.member(root, roleUids.viewer)).uid)
  const listed = async (query: string) => {
    const answer = ok(await member.get(`${base}?${query}`))
    assert.equal(answer.totalCount, String(answer.accountAssociations.length), query)
    return (answer.accountAssociations as Json[]).map(({ uid }) => uid)
  }
  const byUid = groups.toSorted()
  const byName = [groups[2], groups[1], groups[3], root]
  for (const query of ['', 'order_by=group', 'order_by=uid asc']) assert.deepEqual(await listed(query), byUid, query)
  assert.deepEqual(await listed('order_by=group desc'), byUid.toReversed())
  assert.deepEqual(await listed('order_by=name'), byName)
  assert.deepEqual(await listed('name=a'), [groups[2]])
  assert.deepEqual(await listed(`uidp.children_of=${root}`), groups.slice(1).toSorted())
  assert.deepEqual(await listed(`uidp.ids=${root}`), [root])
  const first = ok(await member.get(`${base}?page_size=3`))
  const second = ok(await member.get(`${base}?page_size=3&page_token=${first.nextPageToken}`))
  const walked = [...first.accountAssociations, ...second.accountAssociations].map(({ uid }: Json) => uid)
  assert.deepEqual(walked, byUid)
  assertInvalid(await member.get(`${base}?order_by=amazon`), 'order_by')
})

test('deleting an association twice succeeds, and a group with an association cannot be deleted', async () => {
  const group = await folder()
  ok(await create(group, { amazon }))
  assertBlocked(await owner.delete(`/iam/v2/groups/${group}`), group, 'RESOURCE_NOT_EMPTY')
  assertDenied(await viewer.delete(`${base}/${group}`))
  const events = await eventsOf(pinfold, async () => {
    for (let i = 0; i < 2; i++) {
      const gone = await owner.delete(`${base}/${group}`)
      assert.deepEqual([gone.status, gone.text], [200, ''])
    }
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.group, one.body]),
    [[event('deleted'), group, group, null]],
  )
  assert.equal((await owner.delete(`/iam/v2/groups/${group}`)).status, 200)
})

test('a change writes one event with the resource that was returned to the caller', async () => {
  const group = await folder()
  let [created, updated]: Json[] = [{}, {}]
  const events = await eventsOf(pinfold, async () => {
    created = ok(await create(group, { amazon, azure }))
    updated = ok(await owner.patch(`${base}/${group}`, { google }))
    await create(group, { amazon })
    await owner.patch(`${base}/${group}`, { google: {} })
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.group]),
    [
      [event('created'), group, group],
      [event('updated'), group, group],
    ],
  )
  assert.partialDeepStrictEqual(events[0]!.body, snake(created))
  assert.partialDeepStrictEqual(events[1]!.body, snake(updated))
  await checkLists(pinfold)
})

test('callers without access get no information', async () => {
  const group = await folder()
  const stranger = await pinfold.as((await pinfold.seed.identity(org)).uid)
  for (const where of [group, `${org}/${'0'.repeat(16)}`]) {
    assertDenied(await stranger.get(`${base}/${where}`))
    assertDenied(await check(where, 'ACCOUNT_PROVIDER_TYPE_AMAZON', stranger))
    assertDenied(await create(where, {}, viewer))
    assertDenied(await viewer.patch(`${base}/${where}`, {}))
  }
})

const ready = { status: 'CHECK_STATUS_READY', reason: '', message: '' }
const provider = `//iam.googleapis.com/projects/${google.projectNumber}/locations/global/workloadIdentityPools/pinfold-pool/providers/pinfold-provider`
const account = `pinfold-canary@${google.projectId}.iam.gserviceaccount.com`

/** Sets up every cloud as the documentation describes. */
function trustGroup(group: string): void {
  const trust = { issuer: pinfold.url, subject: `canary:${group}` }
  clouds.trust(`arn:aws:iam::${amazon.account}:role/pinfold-canary`, { ...trust, audience: 'sts.amazonaws.com' })
  clouds.trust(provider, { ...trust, audience: `https:${provider}` })
  clouds.trust(account, { ...trust, audience: '' })
  clouds.trust(`${azure.tenantId} ${azure.clientIds.canary}`, { ...trust, audience: 'api://AzureADTokenExchange' })
}

test('a cloud that trusts the group returns credentials for a token of this server', async () => {
  const group = await folder()
  ok(await create(group, { amazon, google, azure }))
  trustGroup(group)
  const before = clouds.seen.length
  for (const cloud of ['AMAZON', 'GOOGLE', 'AZURE']) {
    assert.deepEqual(ok(await check(group, `ACCOUNT_PROVIDER_TYPE_${cloud}`)), ready, cloud)
  }
  const tokens = clouds.seen.slice(before).map(({ payload }) => payload)
  assert.equal(tokens.length, 3)
  for (const { iss, sub, exp, iat } of tokens) {
    assert.deepEqual([iss, sub], [pinfold.url, `canary:${group}`])
    assert.ok(exp! - iat! <= 300)
  }
})

test('the check reports NOT_READY for a cloud that trusts another group or none', async () => {
  const [trusted, other] = [await folder(), await folder()]
  for (const group of [trusted, other]) ok(await create(group, { amazon, google, azure }))
  trustGroup(trusted)
  const expected: Record<string, RegExp> = {
    AMAZON: /^AWS responded with HTTP 403: AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity$/,
    GOOGLE: /^Google Cloud responded with HTTP 400: invalid_grant: The attribute condition/,
    AZURE: /^Azure \(component canary\) responded with HTTP 401: invalid_client: AADSTS700213: .*found\. Trace ID: 0$/,
  }
  for (const [cloud, words] of Object.entries(expected)) {
    const answer = ok(await check(other, `ACCOUNT_PROVIDER_TYPE_${cloud}`))
    assert.deepEqual([answer.status, answer.reason], ['CHECK_STATUS_NOT_READY', 'REFUSED'], cloud)
    assert.match(answer.message, words)
  }
  clouds.trust(account, { issuer: pinfold.url, subject: 'another pool', audience: '' })
  const impersonation = ok(await check(trusted, 'ACCOUNT_PROVIDER_TYPE_GOOGLE'))
  assert.match(impersonation.message, /^Google Cloud responded with HTTP 403: PERMISSION_DENIED: Permission/)
})

test('tries each application of an Azure tenant', async () => {
  const group = await folder()
  const clientIds = { ...azure.clientIds, zebra: 'ffffffff-0000-4000-8000-000000000003' }
  ok(await create(group, { azure: { ...azure, clientIds } }))
  trustGroup(group)
  assert.match(ok(await check(group, 3)).message, /^Azure \(component zebra\) responded with HTTP 401/)
  clouds.trust(`${azure.tenantId} ${clientIds.zebra}`, {
    issuer: pinfold.url,
    subject: `zebra:${group}`,
    audience: 'api://AzureADTokenExchange',
  })
  assert.deepEqual(ok(await check(group, 3)), ready)
})

test('the check reports a malformed or missing answer of a cloud as its result', async () => {
  const group = await folder()
  ok(await create(group, { amazon, google, azure }))
  const types = ['AMAZON', 'GOOGLE', 'AZURE'].map((cloud) => `ACCOUNT_PROVIDER_TYPE_${cloud}`)
  for (const [broken, reason] of [
    [{ status: 200, body: '' }, 'REFUSED'],
    [{ status: 200, body: '{"access_token":7,"accessToken":""}<AccessKeyId></AccessKeyId>' }, 'REFUSED'],
    [{ status: 302, body: 'elsewhere' }, 'REFUSED'],
    [{ status: 403, body: '\u0000<html>' }, 'REFUSED'],
    [{ status: 500, body: 'x'.repeat(100_000) }, 'UNREACHABLE'],
    [{ status: 200, body: 'x'.repeat(600_000) }, 'UNREACHABLE'],
  ] as const) {
    clouds.broken = broken
    for (const one of types) {
      const answer = ok(await check(group, one))
      assert.deepEqual([answer.status, answer.reason], ['CHECK_STATUS_NOT_READY', reason], `${one} ${broken.status}`)
      assert.ok(answer.message.length < 700)
    }
  }
  clouds.broken = undefined
  await using guarded = await startPinfold({
    googleStsUrl: clouds.url,
    awsStsUrl: clouds.url,
    azureLoginUrl: clouds.url,
  })
  const scope = (await guarded.seed.group()).uid
  await guarded.operator.post(`${base}/${scope}`, { name: 'x', amazon })
  const refused = ok(await guarded.operator.post(`${base}/${scope}:checkAccountAssociation`, { providerType: 2 }))
  assert.deepEqual(
    [refused.reason, refused.message],
    ['UNREACHABLE', 'no response from AWS: the URL does not use https'],
  )
})

test('the check reports NOT_READY for a cloud without settings, and refuses a request without a cloud', async () => {
  const group = await folder()
  assertNotFound(await check(group, 'ACCOUNT_PROVIDER_TYPE_AZURE'), type, group)
  ok(await create(group, { amazon }))
  const answer = ok(await check(group, 'ACCOUNT_PROVIDER_TYPE_AZURE'))
  assert.deepEqual([answer.status, answer.reason], ['CHECK_STATUS_NOT_READY', 'NOT_CONFIGURED'])
  for (const wrong of [undefined, 0, 'ACCOUNT_PROVIDER_TYPE_UNSPECIFIED', 4, 'x'])
    assertInvalid(await check(group, wrong), 'provider_type')
})
