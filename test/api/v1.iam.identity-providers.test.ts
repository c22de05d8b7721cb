// Version 1 of identity providers and of the group mappings below them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ExternalGroupRoleMappings } from '#gen/pinfold/iam/v1/external_group_role_mappings_pb.ts'
import { IdentityProviders } from '#gen/pinfold/iam/v1/identity_providers_pb.ts'
import { assertDenied, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const path = '/iam/v1/identityProviders'
const mappings = '/iam/v1/externalGroupRoleMappings'
const issuer = await startIssuer()
const { pinfold, org, ...scene } = await startScene({ allowInsecureIssuers: true, allowPrivateAddresses: true })
const owner = await scene.member(roleUids.owner)
const stranger = await scene.stranger()
const grpc = grpcClientOf(pinfold, IdentityProviders, owner.token)
const mappingsGrpc = grpcClientOf(pinfold, ExternalGroupRoleMappings, owner.token)
after(async () => {
  grpc[Symbol.dispose]()
  mappingsGrpc[Symbol.dispose]()
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

let made = 0
const oidc = { issuer: issuer.url, clientId: 'c', clientSecret: 'hidden words' }
const create = (body: Json = {}, parent: string = org.uid) =>
  owner.post(`${path}/${parent}`, { name: `provider ${made++}`, oidc, ...body })
const put = (id: string, body: Json) => owner.call('PUT', `${path}/${id}`, body)
const list = async (at: string, query: string, client: Client = owner): Promise<Json[]> =>
  ok(await client.get(`${at}?${query}`)).items

test('a provider created in either version is the same in the other, and its secret is never shown', async () => {
  const one = ok(await create({ description: 'text', defaultRole: roleUids.viewer }))
  const newer = ok(await owner.get(`/iam/v2/identityProviders/${one.id}`))
  assert.deepEqual([newer.name, newer.defaultRole, newer.oidc], [one.name, roleUids.viewer, one.oidc])
  assert.deepEqual([one.oidc.issuer, one.oidc.clientSecret], [issuer.url, ''])

  const { uid } = await pinfold.seed.provider(org.uid, issuer.url, { name: 'newer' })
  const [listed] = (await grpc.list({ id: uid })).items
  assert.deepEqual([listed!.name, listed!.defaultRole, listed!.scim?.credentialState], ['newer', roleUids.viewer, 1])
  const [named] = await list(path, 'name=newer')
  assert.deepEqual([named!.id, named!.oidc.clientSecret], [uid, ''])
  assert.ok(!named!.scim.credentialState || named!.scim.credentialState === 'CREDENTIAL_STATE_UNSPECIFIED')
})

test('only version 2 requires a default role, and an update without one keeps it', async () => {
  const { id } = ok(await create())
  const { uid, ...rest } = ok(await owner.patch(`/iam/v2/identityProviders/${id}`, { description: 'new' }))
  assert.deepEqual([uid, rest.defaultRole, rest.description], [id, '', 'new'])
  const withRole = ok(await create({ defaultRole: roleUids.viewer }))
  assertInvalid(await owner.patch(`/iam/v2/identityProviders/${withRole.id}`, { defaultRole: '' }), 'default_role')
  assert.equal(ok(await put(withRole.id, { name: withRole.name, oidc })).defaultRole, '')
  const body = { name: 'roleless', oidc }
  assertInvalid(await owner.post(`/iam/v2/identityProviders/${org.uid}`, body), 'default_role')
  assertInvalid(await create({ defaultRole: 'x' }), 'default_role')
})

test('a PUT without a secret keeps the stored secret, and errors name their field', async () => {
  const { id, name } = ok(await create({ description: 'text' }))
  const { clientSecret: _, ...bare } = oidc
  const after = ok(await put(id, { name, oidc: { ...bare, groupsClaim: 'groups' } }))
  assert.deepEqual([after.description, after.oidc.groupsClaim], ['', 'groups'])
  assertInvalid(await put(id, { name }), 'oidc')
  assertInvalid(await put(id, { name, oidc: { ...bare, correlationRule: 2 } }), 'oidc.correlation_rule')
  assertInvalid(await create({ oidc: bare }), 'oidc.client_secret')
  const folder = await pinfold.seed.group(org.uid)
  assertInvalid(await create({}, folder.uid), 'parent_id')
})

test('returns an empty list for a missing and for an invisible provider', async () => {
  const { id } = ok(await create())
  const missing = `${org.uid}/0123456789abcdef`
  for (const query of [`id=${missing}`, 'id=x', 'name=none']) assert.deepEqual(await list(path, query), [], query)
  for (const query of [`id=${id}`, `uidp.childrenOf=${org.uid}`])
    assert.deepEqual(await list(path, query, stranger), [])
})

test('a mapping created in either version is the same in the other', async () => {
  const { id: parent } = ok(await create())
  const mapping = { externalGroupId: 'devs', roleUidp: roleUids.viewer, scope: org.uid }
  const one = ok(await owner.post(`${mappings}/${parent}`, mapping))
  assert.deepEqual(one, { ...mapping, id: one.id, identityProviderUidp: parent, createdAt: one.createdAt })
  assert.equal(ok(await owner.get(`/iam/v2/externalGroupRoleMappings/${one.id}`)).roleUid, roleUids.viewer)
  assert.deepEqual(ok(await owner.get(`${mappings}/${one.id}`)), one)
  const { uid } = await pinfold.seed.mapping(parent, roleUids.editor, 'ops')
  const { items } = await mappingsGrpc.list({ identityProviderUidp: parent })
  assert.deepEqual(
    items.map(({ id }) => id),
    [one.id, uid].sort(),
  )
  assert.deepEqual(await list(mappings, `uidp.childrenOf=${parent}`, stranger), [])
  assert.deepEqual(await list(mappings, `identityProviderUidp=${org.uid}/0123456789abcdef`), [])

  assertInvalid(await owner.post(`${mappings}/${parent}`, { ...mapping, roleUidp: '' }), 'role_uidp')
  assertInvalid(await owner.get(`${mappings}?identityProviderUidp=x`), 'identity_provider_uidp')
  assertDenied(await stranger.post(`${mappings}/${parent}`, mapping))
  await assert.rejects(mappingsGrpc.batchDelete({ parentId: parent }), { code: 3, fields: ['ids'] })
})

test('events have the format of the called version, and events of deleted mappings are empty', async () => {
  let [id, one, two] = ['', '', '']
  const mapping = { roleUidp: roleUids.viewer, scope: org.uid }
  const events = await eventsOf(pinfold, async () => {
    id = ok(await create({ name: 'told' })).id
    await put(id, { name: 'told', oidc })
    one = (await mappingsGrpc.create({ parentId: id, mapping: { ...mapping, externalGroupId: 'a' } })).id
    two = (await mappingsGrpc.create({ parentId: id, mapping: { ...mapping, externalGroupId: 'b' } })).id
    assert.equal((await owner.delete(`${mappings}/${one}`)).text, '')
    const gone = ok(await owner.post(`${mappings}:batchDelete`, { parentId: id, ids: [one, two] }))
    assert.deepEqual([gone.parentId, gone.items.map((item: Json) => item.id)], [id, [two]])
    assert.equal((await owner.delete(`${path}/${id}`)).text, '')
  })
  const of = 'pinfold.platform.iam'
  assert.deepEqual(
    events.map(({ type, subject, bodyType }) => [type.replace(/^dev\.pinfold\.api\.iam\./, ''), subject, bodyType]),
    [
      ['identity_providers.created.v1', id, `${of}.IdentityProvider`],
      ['identity_providers.updated.v1', id, `${of}.IdentityProvider`],
      ['external_group_role_mappings.created.v1', one, `${of}.ExternalGroupRoleMapping`],
      ['external_group_role_mappings.created.v1', two, `${of}.ExternalGroupRoleMapping`],
      ['external_group_role_mappings.deleted.v1', one, `${of}.DeleteExternalGroupRoleMappingRequest`],
      ['external_group_role_mappings.deleted.batch.v1', id, `${of}.BatchDeleteExternalGroupRoleMappingsResponse`],
      ['identity_providers.deleted.v1', id, `${of}.DeleteIdentityProviderRequest`],
    ],
  )
  assert.equal(events[0]!.body.oidc.client_secret, '')
  assert.equal(events[4]!.body, null)
  assert.deepEqual(events[6]!.body, { id })
  await assert.rejects(grpc.delete({ id }), { code: 5 })
  await assert.rejects(mappingsGrpc.get({ uid: two }), { code: 5 })
})
