// The SCIM token controls membership in mapped groups. So callers who get a token must hold the roles of these groups.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertDenied, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const issuer = await startIssuer()
const { pinfold, member, holding, org } = await startScene({ allowInsecureIssuers: true, allowPrivateAddresses: true })
const owner = await member(roleUids.owner)
await member(roleUids.owner)
const manager = await holding('identity_providers.list', 'identity_providers.scim.manage')
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

async function provider() {
  const { uid } = await pinfold.seed.provider(org.uid, issuer.url)
  const path = `/iam/v2/identityProviders/${uid}`
  return { uid: uid as string, path, etag: async () => ok(await owner.get(path)).scim.etag as string }
}

test('only callers with the roles of mapped groups can create or replace a SCIM token, and turn SCIM on', async () => {
  const { uid, path, etag } = await provider()
  await pinfold.seed.mapping(uid, roleUids.owner, 'admins')
  assertDenied(await manager.post(`${path}:generateScimToken`, {}))
  ok(await owner.post(`${path}:generateScimToken`, {}))
  assertDenied(await manager.post(`${path}:regenerateScimToken`, { etag: await etag() }))
  assertDenied(await manager.post(`${path}:setScimEnabled`, { enabled: true, etag: await etag() }))
  ok(await owner.post(`${path}:setScimEnabled`, { enabled: true, etag: await etag() }))
  ok(await owner.post(`${path}:regenerateScimToken`, { etag: await etag() }))
  // Switching SCIM off and revoking a token only remove rights.
  ok(await manager.post(`${path}:setScimEnabled`, { enabled: false, etag: await etag() }))
  ok(await manager.post(`${path}:revokeScimToken`, {}))
})

test('managing SCIM needs no other role if no group is mapped, or only to roles of the caller', async () => {
  const { uid, path, etag } = await provider()
  ok(await manager.post(`${path}:generateScimToken`, {}))
  const held = await pinfold.seed.role(org.uid, ['identity_providers.list'])
  await pinfold.seed.mapping(uid, held.uid, 'readers')
  ok(await manager.post(`${path}:regenerateScimToken`, { etag: await etag() }))
  ok(await manager.post(`${path}:setScimEnabled`, { enabled: true, etag: await etag() }))
  assert.equal(ok(await owner.get(path)).scim.enabled, true)
})
