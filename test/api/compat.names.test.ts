// The compatibility profile: the server uses the names of another product instead of its own.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { create, createFileRegistry, type DescMethod, type MessageInitShape } from '@bufbuild/protobuf'
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { services } from '#api/services.ts'
import { readConfig } from '#config.ts'
import { AuditService } from '#gen/pinfold/control/events/v1/audit_pb.ts'
import { Subscriptions } from '#gen/pinfold/events/v1/subscriptions_pb.ts'
import { SubscriptionsService } from '#gen/pinfold/events/v2/subscriptions_pb.ts'
import { GroupAccountAssociations } from '#gen/pinfold/iam/v1/account_associations_pb.ts'
import { Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { AccountAssociationsService } from '#gen/pinfold/iam/v2/account_associations_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { SecurityTokenService } from '#gen/pinfold/oidc/v1/security_token_pb.ts'
import { ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { type GrpcAnswer, type GrpcOptions, openGrpc } from '../support/raw-grpc.ts'
import { localSinks, startReceiver } from '../support/receiver.ts'
import { reflectionOf } from '../support/reflection.ts'
import { startScene } from '../support/scene.ts'
import { plantTag } from '../support/tags.ts'

const documents = [{ id: 'terms.v1', label: 'Terms', url: 'https://example.com/terms' }]
const guarded = ['pinfold.platform.iam.v2.GroupsService/UpdateGroup', 'pinfold.platform.iam.Groups/Update']
const profile = { compatVendor: 'acme', compatVendorDomain: 'acme.example' }

const { pinfold, operator, ...scene } = await startScene({
  ...localSinks,
  ...profile,
  termsDocuments: documents,
  termsMethods: guarded,
})
const org: string = scene.org.uid
const grpc = openGrpc(pinfold.port)
after(async () => {
  grpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
})

type Names = (typeName: string) => string
const ours: Names = (typeName) => typeName
const preview: Names = (typeName) => typeName.replace('.v2.', '.v2beta1.')
const acme: Names = (typeName) => typeName.replace('pinfold.', 'acme.')
const acmePreview: Names = (typeName) => acme(preview(typeName))

/** Calls a method by one of its names. */
function call<S extends GenService<GenServiceMethods>, M extends keyof S['method']>(
  names: Names,
  service: S,
  method: M,
  init: MessageInitShape<S['method'][M]['input']>,
  options: GrpcOptions = {},
  at = grpc,
): Promise<GrpcAnswer> {
  const desc = service.method[method as string] as unknown as DescMethod
  const named = { ...desc, parent: { ...desc.parent, typeName: names(service.typeName) } } as DescMethod
  return at.call(named, create(desc.input, init as never), { token: operator.token, ...options })
}

test('each method can be called with the names of the vendor and with ours', async () => {
  const today = await call(ours, GroupsService, 'getGroup', { uid: org })
  assert.equal(today.code, 0)
  for (const names of [preview, acme, acmePreview]) {
    const answer = await call(names, GroupsService, 'getGroup', { uid: org })
    assert.deepEqual([answer.code, answer.response], [0, today.response], names(GroupsService.typeName))
  }
  const first = await call(ours, Groups, 'list', { id: org })
  assert.deepEqual((await call(acme, Groups, 'list', { id: org })).response, first.response)
  assert.equal(first.code, 0)
})

test('other names are not accepted, and packages without a counterpart have only our names', async () => {
  for (const typeName of [
    'other.platform.iam.v2.GroupsService',
    'acme.platform.iam.v3.GroupsService',
    'acme.iam.v2.GroupsService',
  ]) {
    assert.equal((await call(() => typeName, GroupsService, 'getGroup', { uid: org })).code, 12, typeName)
  }
  assert.equal((await call(ours, AuditService, 'listAuditEntries', {})).code, 0)
  assert.equal((await call(acme, AuditService, 'listAuditEntries', {})).code, 12)
  await using plain = await startPinfold()
  using there = openGrpc(plain.port)
  const { token } = plain.operator
  for (const names of [acme, acmePreview]) {
    assert.equal((await call(names, GroupsService, 'getGroup', { uid: org }, { token }, there)).code, 12)
  }
  const registryToken = await plain.tokenFor((await plain.seed.person()).uid, { audience: new URL(plain.url).host })
  assert.equal((await plain.withToken(registryToken).get('/v2/a/b/_acme/history/x')).status, 404)
})

test('an error uses the names with which the method was called', async () => {
  const missing = `${org}/${'0'.repeat(16)}`
  const seen = async (names: Names, options?: GrpcOptions) => {
    const { code, message, details } = await call(names, GroupsService, 'getGroup', { uid: missing }, options)
    assert.ok(message.startsWith(details[1]!.resourceType), message)
    return [code, details[0]!.domain, details[1]!.resourceType]
  }
  const theirs = [5, 'acme.example', 'iam.acme.example/Group']
  for (const names of [acme, acmePreview]) assert.deepEqual(await seen(names), theirs)
  for (const names of [ours, preview]) {
    // A client cannot set the vendor itself.
    for (const metadata of [{}, { 'x-pinfold-vendor': '1' }]) {
      assert.deepEqual(await seen(names, { metadata }), [5, 'pinfold.dev', 'iam.pinfold.dev/Group'])
    }
  }
})

test('an error about terms has the detail type of the version and the names of the call', async () => {
  const typeOf = async (answer: Promise<GrpcAnswer>) => {
    const { code, details } = await answer
    assert.equal(code, 9)
    return details[1]!['@type'].replace('type.googleapis.com/', '')
  }
  const update = (names: Names) => call(names, GroupsService, 'updateGroup', { group: { uid: org, description: 'x' } })
  const first = (names: Names) => call(names, Groups, 'update', { id: org, name: 'x' })
  const name = 'TermsNotAcceptedDetail'
  assert.equal(await typeOf(update(ours)), `pinfold.platform.iam.v2.${name}`)
  assert.equal(await typeOf(update(acme)), `acme.platform.iam.v2.${name}`)
  assert.equal(await typeOf(update(acmePreview)), `acme.platform.iam.v2.${name}`)
  assert.equal(await typeOf(first(ours)), `pinfold.platform.iam.${name}`)
  assert.equal(await typeOf(first(acme)), `acme.platform.iam.${name}`)
  const types = async (answer: Promise<Answer>) => ((await answer).body.details as Json[]).map((one) => one['@type'])
  assert.ok(
    (await types(operator.patch(`/iam/v2/groups/${org}`, { description: 'x' }))).includes(
      `type.googleapis.com/acme.platform.iam.v2.${name}`,
    ),
  )
  assert.ok(
    (await types(operator.call('PUT', `/iam/v1/groups/${org}`, { name: 'x' }))).includes(
      `type.googleapis.com/acme.platform.iam.${name}`,
    ),
  )
})

/** A group with a service identity, for a binding. */
async function bound(): Promise<{ group: string; serviceBindings: Json }> {
  const group = (await pinfold.seed.group(org)).uid
  const identity = await pinfold.seed.identity(group, {
    claimMatch: undefined,
    servicePrincipal: 'SERVICE_PRINCIPAL_INGESTER',
  })
  return { group, serviceBindings: { INGESTER: identity.uid } }
}

test('a field with our product name has the name of the vendor in JSON, and both names are accepted', async () => {
  const { group, serviceBindings } = await bound()
  const path = `/iam/v2/accountAssociations/${group}`
  const created = ok(await operator.post(path, { name: 'clouds', acme: { serviceBindings } }))
  assert.deepEqual(created.acme, { serviceBindings })
  assert.ok(!('pinfold' in created))
  const { accountAssociations } = ok(
    await operator.get(`/iam/v2/accountAssociations?uidp.childrenOf=${group}&name=clouds`),
  )
  const listed =
    accountAssociations.length > 0
      ? accountAssociations
      : ok(await operator.get('/iam/v2/accountAssociations')).accountAssociations
  assert.deepEqual(listed[0].acme, { serviceBindings })

  for (const mask of ['acme', 'acme.service_bindings', 'acme.serviceBindings', 'pinfold']) {
    assertSame(await operator.patch(`${path}?updateMask=${mask}`, { acme: { serviceBindings } }), serviceBindings)
  }
  assertSame(await operator.patch(path, { pinfold: { serviceBindings } }), serviceBindings)
  ok(await operator.patch(path, { acme: null, amazon: { account: '123456789012' } }))
  assert.ok(!('acme' in ok(await operator.get(path))))

  const both = await operator.patch(path, { acme: { serviceBindings }, pinfold: { serviceBindings } })
  assert.deepEqual([both.status, both.body.details[1].fieldViolations[0].field], [400, 'acme'])
  const refused = await operator.patch(path, { acme: { serviceBindings: { NOBODY: group } } })
  const [violation] = refused.body.details[1].fieldViolations
  assert.equal(violation.field, 'acme.service_bindings.NOBODY')
  assert.equal(refused.body.message, `Invalid argument: acme.serviceBindings.NOBODY: ${violation.description}`)
})

function assertSame(answer: Answer, serviceBindings: Json): void {
  assert.deepEqual(ok(answer).acme, { serviceBindings }, answer.text)
}

test('version 1 also has the field name of the vendor', async () => {
  const { group, serviceBindings } = await bound()
  const path = `/iam/v1/account_associations/${group}`
  const made = ok(await operator.post(path, { name: 'clouds', acme: { serviceBindings } }))
  assert.deepEqual(made.acme, { serviceBindings })
  const put = ok(await operator.call('PUT', path, { name: 'clouds', amazon: { account: '123456789012' } }))
  assert.equal(put.acme, null)
  const { items } = ok(await operator.get(`/iam/v1/account_associations?group=${group}`))
  assert.deepEqual(
    items.map((one: Json) => ['acme' in one, 'pinfold' in one]),
    [[true, false]],
  )
  assert.equal((await call(acme, GroupAccountAssociations, 'delete', { group })).code, 0)
})

test('gRPC field masks accept both names of a field', async () => {
  const { group, serviceBindings } = await bound()
  const accountAssociation = { uid: group, name: 'clouds', pinfold: { serviceBindings: serviceBindings as never } }
  assert.equal(
    (
      await call(acme, AccountAssociationsService, 'createAccountAssociation', {
        parent: group,
        accountAssociation,
      } as never)
    ).code,
    0,
  )
  for (const path of ['acme', 'acme.service_bindings', 'pinfold']) {
    const updateMask = { paths: [path] }
    const answer = await call(acme, AccountAssociationsService, 'updateAccountAssociation', {
      accountAssociation,
      updateMask,
    })
    assert.equal(answer.code, 0, answer.message)
  }
  const unknown = await call(acme, AccountAssociationsService, 'updateAccountAssociation', {
    accountAssociation,
    updateMask: { paths: ['other'] },
  })
  assert.equal(unknown.code, 3)
})

test('our own paths keep our names, and documents use the names of the vendor', async () => {
  const answer = await operator.get(`/events/v2/subscriptions/${org}/${'0'.repeat(16)}/settings`)
  const [info] = answer.body.details
  assert.deepEqual([answer.body.code, info.domain], [5, 'pinfold.dev'])
  for (const path of ['/openapi.json', '/openapi-v1.json']) {
    const { text } = await pinfold.anonymous.get(path)
    assert.ok(text.includes('"acme":') && !text.includes('"pinfold":'), path)
  }
})

test('gRPC reflection lists each name, with the files that describe it', async () => {
  const reflection = reflectionOf(pinfold.port)
  const names = await reflection.services()
  assert.equal(new Set(names).size, names.length)
  for (const { desc } of services) {
    const isOurs = desc.typeName.startsWith('pinfold.control.')
    const aliases = [ours, preview, acme, acmePreview].map((of) => of(desc.typeName))
    for (const name of isOurs ? [desc.typeName] : aliases) {
      assert.ok(names.includes(name), name)
      const file = await reflection.files(name)
      // The description contains all imports of the file, as clients need them.
      const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }))
      const found = registry.getService(name)
      assert.deepEqual(
        found?.methods.map((method) => [method.name, method.input.fields.length, method.output.fields.length]),
        desc.methods.map((method) => [method.name, method.input.fields.length, method.output.fields.length]),
      )
      const foreign = found!.methods.flatMap(({ input, output }) => [input.typeName, output.typeName])
      const token = name.split('.')[0]!
      assert.deepEqual(
        foreign.filter((type) => !type.startsWith(`${token}.`) && !type.startsWith('google.protobuf.')),
        [],
      )
    }
    if (isOurs) assert.ok(!names.includes(acme(desc.typeName)))
  }
  const associations = await reflection.files('acme.platform.iam.v2.AccountAssociation')
  const message = associations.at(-1)!.messageType.find(({ name }) => name === 'AccountAssociation')!
  const seventh = message.field.find(({ number }) => number === 7)!
  assert.deepEqual([seventh.name, seventh.jsonName], ['acme', 'acme'])
  for (const name of ['iam.TermsNotAcceptedDetail', 'iam.v2.TermsNotAcceptedDetail']) {
    for (const token of ['pinfold', 'acme']) assert.ok((await reflection.files(`${token}.platform.${name}`)).length > 0)
  }
  await using plain = await startPinfold()
  const known = await reflectionOf(plain.port).services()
  assert.ok(known.includes(preview(GroupsService.typeName)))
  assert.deepEqual(
    known.filter((name) => name.startsWith('acme')),
    [],
  )
})

test('a subscription gets events with the names with which it was created', async () => {
  await using receiver = await startReceiver()
  const { group, serviceBindings } = await bound()
  const sinkOf = (name: string) => `${receiver.url}?${name}`
  const byGrpc = async (name: string, names: Names) => {
    const made = await call(names, SubscriptionsService, 'createSubscription', {
      parent: group,
      subscription: { sink: sinkOf(name) },
    })
    assert.equal(made.code, 0, made.message)
  }
  await byGrpc('ours', ours)
  await byGrpc('vendor', acme)
  const first = await call(acme, Subscriptions, 'create', { parentId: group, subscription: { sink: sinkOf('first') } })
  assert.equal(first.code, 0, first.message)
  ok(await operator.post(`/events/v2/subscriptions/${group}`, { sink: sinkOf('rest') }))
  const body = { name: 'clouds', acme: { serviceBindings } }
  ok(await operator.post(`/iam/v2/accountAssociations/${group}`, body))
  ok(await operator.call('PUT', `/iam/v1/account_associations/${group}`, body))

  const suffix = 'api.iam.account_associations.'
  const of = (type: string) => receiver.got.filter((one) => one.type.endsWith(`${suffix}${type}.v1`))
  await receiver.until(() => of('created').length === 4 && of('updated').length === 4)
  const seen = (type: string) =>
    of(type)
      .map(({ type, headers, json }) => [type, headers['ce-bodytype'], json.body.acme, json.body.pinfold])
      .sort()
  const shown = { service_bindings: serviceBindings }
  const [created, updated] = [`${suffix}created.v1`, `${suffix}updated.v1`]
  const theirs = [`dev.acme.${created}`, 'acme.platform.iam.v2.AccountAssociation', shown, undefined]
  const wasOurs = [`dev.pinfold.${created}`, 'pinfold.platform.iam.v2.AccountAssociation', undefined, shown]
  assert.deepEqual(seen('created'), [theirs, theirs, theirs, wasOurs])
  const first2 = [`dev.acme.${updated}`, 'acme.platform.iam.AccountAssociations', shown, undefined]
  const wasOurs2 = [`dev.pinfold.${updated}`, 'pinfold.platform.iam.AccountAssociations', undefined, shown]
  assert.deepEqual(seen('updated'), [first2, first2, first2, wasOurs2])
})

test('a subscription accepts event types with both names', async () => {
  await using receiver = await startReceiver()
  const group = (await pinfold.seed.group(org)).uid
  const subscribed = async (names: Names, types: string[]) => {
    const made = await call(names, SubscriptionsService, 'createSubscription', {
      parent: group,
      subscription: { sink: receiver.url },
    })
    const { uid } = made.response as unknown as { uid: string }
    const settings = ok(await operator.patch(`/events/v2/subscriptions/${uid}/settings`, { types }))
    assert.deepEqual(settings.types, types)
  }
  for (const names of [ours, acme]) {
    await subscribed(names, ['dev.acme.api.platform.*'])
    await subscribed(names, ['dev.pinfold.api.platform.*'])
    await subscribed(names, ['dev.other.api.platform.*'])
  }
  await pinfold.seed.repo(group)
  const last = `${receiver.url}?last`
  ok(await operator.post(`/events/v2/subscriptions/${group}`, { sink: last }))
  const { uid } = await pinfold.seed.repo(group)
  const about = (first: boolean) =>
    receiver.got.filter(({ subject, type }) => type.includes('.repo.') && (subject !== uid) === first)
  await receiver.until(() => about(true).length >= 4 && about(false).length >= 5)
  const names = about(true).map(({ type }) => type.split('.')[1])
  assert.deepEqual(names.sort(), ['acme', 'acme', 'pinfold', 'pinfold'])
})

test('the tag history is also available at the path of the vendor', async () => {
  const named = (await pinfold.seed.group('', { name: 'shop' })).uid
  const repo = await pinfold.seed.repo(named, { name: 'web' })
  const { digest } = await plantTag(pinfold, repo.uid, 'stable', 'one')
  const { uid } = await pinfold.seed.member(named, roleUids.pull)
  const reader = await pinfold.as(uid, { audience: new URL(pinfold.url).host })
  const theirs = await reader.get('/v2/shop/web/_acme/history/stable')
  assert.deepEqual(
    ok(theirs).history.map((one: Json) => one.digest),
    [digest],
  )
  assert.deepEqual(theirs.body, (await reader.get('/v2/shop/web/_svc/history/stable')).body)
  assert.equal((await reader.get('/v2/shop/web/_other/history/stable')).status, 404)
})

test('overlay keys that begin with our name or the name of the vendor are reserved', async () => {
  const repo = await pinfold.seed.repo(org)
  const patch = (customOverlay: Json) => operator.patch(`/registry/v2/repos/${repo.uid}`, { customOverlay })
  const fieldsOf = ({ body }: Answer): string[] =>
    body.details.flatMap((detail: Json) => detail.fieldViolations ?? []).map(({ field }: Json) => field)
  for (const key of ['PINFOLD_X', 'ACME_X']) {
    assert.deepEqual(fieldsOf(await patch({ environment: { [key]: 'x' } })), ['custom_overlay.environment'])
  }
  for (const key of ['dev.pinfold.x', 'dev.acme.x']) {
    assert.deepEqual(fieldsOf(await patch({ annotations: { [key]: 'x' } })), ['custom_overlay.annotations'])
  }
  // Keys with other prefixes are valid. The request is still refused, because no repo assembles images.
  const faultless = await patch({ environment: { OTHER_X: 'x' } })
  assert.deepEqual([faultless.body.code, fieldsOf(faultless)], [9, []])
})

test('the issuer URL is the API host, and the token exchange has the path of the vendor', async () => {
  const { issuer } = ok(await pinfold.anonymous.get('/.well-known/openid-configuration'))
  assert.equal(issuer, pinfold.url)
  const answers = [acme, ours].map((names) => call(names, SecurityTokenService, 'exchange', { aud: [issuer] }))
  for (const { code } of await Promise.all(answers)) assert.equal(code, 16)
  for (const names of [acme, ours]) assert.equal((await call(names, SecurityTokenService, 'exchange', {})).code, 3)
})

test('ignores headers in which clients describe themselves, and refuses requests that are too large', async () => {
  const headers = {
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    'x-acme-client': 'sdk/1.2',
    'user-agent': 'acme-sdk',
  }
  ok(await operator.call('GET', '/iam/v2/groups', undefined, headers))
  const description = 'x'.repeat(4 * 1024 * 1024)
  const { code } = await call(acme, GroupsService, 'createGroup', {
    parent: org,
    group: { name: 'large', description },
  })
  assert.ok([3, 8].includes(code), String(code))
})

test('a registration sends an event with the name of the vendor, caused by the person who registered', async () => {
  await using issuer = await startIssuer()
  await using receiver = await startReceiver()
  await using open = await startPinfold({
    ...localSinks,
    ...profile,
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    oidcProviders: [{ issuer: issuer.url, audience: 'people', label: 'Everybody', name: 'everybody' }],
  })
  const group = await open.seed.group()
  ok(await open.operator.post(`/events/v2/subscriptions/${group.uid}`, { sink: receiver.url }))
  const { code } = await open.seed.invite(group.uid, roleUids.viewer)
  const token = await issuer.token({ sub: 'jo', aud: 'people' })
  const { identity } = ok(await open.withToken(token).post('/auth/v1/register', { code }))
  await receiver.until(() => receiver.got.some(({ type }) => type === 'dev.acme.api.auth.registered.v1'))
  const told = receiver.got.find(({ type }) => type === 'dev.acme.api.auth.registered.v1')!
  assert.equal(told.headers['ce-subject'], identity)
  assert.equal(told.headers['ce-bodytype'], 'acme.platform.auth.Session')
})

test('refuses vendor names that are reserved, malformed, or equal to a field of the contract', async () => {
  const read = (PINFOLD_COMPAT_VENDOR: string, more: Record<string, string> = {}) =>
    readConfig({ PINFOLD_COMPAT_VENDOR, ...more })
  for (const taken of ['svc', 'oci', 'google', 'grpc', 'pinfold']) {
    assert.throws(() => read(taken), /PINFOLD_COMPAT_VENDOR must not be one of svc, oci, google, grpc, pinfold/)
  }
  for (const wrong of ['Acme', '9acme', 'ac-me', 'ac.me', 'ac_me', 'ac me', '../x', 'a'.repeat(64), 'ä']) {
    assert.throws(() => read(wrong), /PINFOLD_COMPAT_VENDOR must be/, wrong)
  }
  assert.equal(read('acme').compatVendor, 'acme')
  assert.throws(
    () => read('acme', { PINFOLD_COMPAT_VENDOR_DOMAIN: 'not a host' }),
    /PINFOLD_COMPAT_VENDOR_DOMAIN must be/,
  )
  assert.throws(() => readConfig({ PINFOLD_COMPAT_VENDOR_DOMAIN: 'acme.example' }), /needs PINFOLD_COMPAT_VENDOR/)
  await assert.rejects(
    startPinfold({ compatVendor: 'amazon' }),
    /must not be amazon, because \S+ has a field of this name/,
  )
})

test('a vendor without a domain gets a domain from its name', async () => {
  await using other = await startPinfold({ compatVendor: 'acme' })
  const uid = '0'.repeat(40)
  const { details } = (await other.operator.get(`/iam/v2/groups/${uid}`)).body
  assert.deepEqual([details[0].domain, details[1].resourceType], ['acme.dev', 'iam.acme.dev/Group'])
})
