import assert from 'node:assert/strict'
import { after, test } from 'node:test'
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
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/ExternalGroupRoleMapping'
const base = '/iam/v2/externalGroupRoleMappings'
const batch = `${base}:batchDelete`
const event = (name: string) => `dev.pinfold.api.iam.external_group_role_mappings.${name}.v1`

let made = 0
const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({ allowInsecureIssuers: true, allowPrivateAddresses: true })
const org: string = scene.org.uid
const provider: string = (await pinfold.seed.provider(org, issuer.url)).uid
const owner = await member(roleUids.owner)
const viewer = await member(roleUids.viewer)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const create = (change: Json = {}, client = owner, parent = provider) => {
  const body = { externalGroupId: `group ${made++}`, roleUid: roleUids.viewer, scope: org, ...change }
  return client.post(`${base}/${parent}`, body)
}
const remove = (names: string[], client = owner, parent = provider) => client.post(batch, { parent, names })

test('a group mapping can be created, read and listed, but not changed', async () => {
  const created = ok(await create({ externalGroupId: 'Admins, EU' }))
  assertTimes(created, 'createTime', 'updateTime')
  assert.deepEqual(created, {
    uid: created.uid,
    identityProviderUid: provider,
    externalGroupId: 'Admins, EU',
    roleUid: roleUids.viewer,
    scope: org,
    createTime: created.createTime,
    updateTime: created.createTime,
  })
  assert.match(created.uid, new RegExp(`^${provider}/[0-9a-f]{16}$`))
  assert.deepEqual(ok(await viewer.get(`${base}/${created.uid}`)), created)
  assert.equal((await owner.patch(`${base}/${created.uid}`, {})).status, 405)

  const other = (await pinfold.seed.provider(org, issuer.url)).uid
  await pinfold.seed.mapping(other, roleUids.viewer)
  for (const query of [`identity_provider_uid=${provider}`, `uidp.children_of=${provider}`]) {
    assert.deepEqual(ok(await viewer.get(`${base}?${query}`)).externalGroupRoleMappings, [created], query)
  }
  assert.equal(ok(await viewer.get(`${base}?uidp.descendants_of=${org}`)).totalCount, '2')
  assertInvalid(await viewer.get(`${base}?identity_provider_uid=x`), 'identity_provider_uid')
})

test('requires all three fields, and an organization as the scope', async () => {
  assertInvalid(await owner.post(`${base}/${provider}`, {}), 'external_group_id', 'role_uid', 'scope')
  assertInvalid(await create({ roleUid: 'x' }), 'role_uid')
  assertInvalid(await create({ externalGroupId: 'x'.repeat(513) }), 'external_group_id')
  const folder = (await pinfold.seed.group(org)).uid
  for (const scope of [folder, 'x', provider, 'f'.repeat(40)]) assertInvalid(await create({ scope }), 'scope')
})

test('requires an identity provider as the parent, and a role available in the organization', async () => {
  for (const parent of [org, `${org}/${'0'.repeat(16)}`]) {
    assertNotFound(await create({}, owner, parent), 'iam.pinfold.dev/IdentityProvider', parent)
  }
  const elsewhere = (await pinfold.seed.role((await pinfold.seed.group()).uid, ['repo.list'])).uid
  assertNotFound(await create({ roleUid: elsewhere }), 'iam.pinfold.dev/Role', elsewhere)
  const folder = (await pinfold.seed.group(org)).uid
  const below = (await pinfold.seed.role(folder, ['repo.list'])).uid
  assertNotFound(await create({ roleUid: below }), 'iam.pinfold.dev/Role', below)
})

test('the same mapping can exist only once, also after concurrent requests', async () => {
  const answers = await Promise.all(Array.from({ length: 6 }, () => create({ externalGroupId: 'same' })))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200)) assertTaken(answer, type, 'same')
  ok(await create({ externalGroupId: 'same', roleUid: roleUids.editor }))
  ok(await create({ externalGroupId: 'Same' }))
})

test('refuses a mapping to a role with capabilities that the caller does not hold', async () => {
  const role = await pinfold.seed.role(org, ['identity_providers.create', 'role_bindings.create'])
  const manager = await pinfold.as((await pinfold.seed.member(org, role.uid)).uid)
  assertDenied(await create({}, manager))
  ok(await create({ roleUid: role.uid }, manager))
  assertDenied(await create({ roleUid: roleUids.operator }, owner))
  assertDenied(await create({}, viewer))
  const half = await pinfold.seed.role(org, ['identity_providers.create', ...['repo.list']])
  assertDenied(await create({ roleUid: half.uid }, await pinfold.as((await pinfold.seed.member(org, half.uid)).uid)))
})

test('a role cannot be deleted while a mapping uses it', async () => {
  const role = (await pinfold.seed.role(org, ['repo.list'])).uid
  const mapping = ok(await create({ roleUid: role }))
  assertBlocked(await owner.delete(`/iam/v2/roles/${role}`), role, 'RESOURCE_IN_USE')
  assertDenied(await viewer.delete(`${base}/${mapping.uid}`))
  const gone = await owner.delete(`${base}/${mapping.uid}`)
  assert.deepEqual([gone.status, gone.text], [200, ''])
  assertNotFound(await owner.delete(`${base}/${mapping.uid}`), type, mapping.uid)
  assertNotFound(await owner.get(`${base}/${mapping.uid}`), type, mapping.uid)
  assert.equal((await owner.delete(`/iam/v2/roles/${role}`)).status, 200)
})

test('a batch deletion deletes existing mappings and returns them', async () => {
  const [first, second, third] = [ok(await create()), ok(await create()), ok(await create())]
  const unknown = `${provider}/${'0'.repeat(16)}`
  const deleted = ok(await remove([second.uid, unknown, first.uid, second.uid]))
  const expected = [first, second].sort((a, b) => (a.uid < b.uid ? -1 : 1))
  assert.deepEqual(deleted, { parent: provider, externalGroupRoleMappings: expected })
  assert.deepEqual(ok(await remove([first.uid, second.uid])), { parent: provider, externalGroupRoleMappings: [] })
  assert.equal((await owner.get(`${base}/${third.uid}`)).status, 200)
})

test('a batch with a mapping of another provider deletes nothing', async () => {
  const mine = ok(await create())
  const other = (await pinfold.seed.provider(org, issuer.url)).uid
  const foreign = await pinfold.seed.mapping(other, roleUids.viewer)
  for (const names of [[mine.uid, foreign.uid], [mine.uid, 'x'], [mine.uid, provider], [], Array(101).fill(mine.uid)]) {
    assertInvalid(await remove(names), 'names')
  }
  assert.equal((await owner.get(`${base}/${mine.uid}`)).status, 200)
  assertDenied(await remove([mine.uid], viewer))
  assertInvalid(await owner.post(batch, { names: [mine.uid] }), 'parent')
  const missing = `${org}/${'1'.repeat(16)}`
  assertNotFound(
    await remove([`${missing}/${'2'.repeat(16)}`], owner, missing),
    'iam.pinfold.dev/IdentityProvider',
    missing,
  )
  assertDenied(await remove([mine.uid], owner, `${'f'.repeat(40)}/${'1'.repeat(16)}`))
})

test('events name the mapping, or the provider of a batch, and belong to the organization', async () => {
  let [one, two]: Json[] = [{}, {}]
  const events = await eventsOf(pinfold, async () => {
    ;[one, two] = [ok(await create()), ok(await create())]
    await create({ externalGroupId: one!.externalGroupId })
    await owner.delete(`${base}/${one!.uid}`)
    await remove([two!.uid])
    await remove([two!.uid])
  })
  assert.deepEqual(
    events.map((entry) => [entry.type, entry.subject, entry.group, entry.body]),
    [
      [event('created'), one!.uid, org, snake(one)],
      [event('created'), two!.uid, org, snake(two)],
      [event('deleted'), one!.uid, org, { uid: one!.uid }],
      [event('deleted.batch'), provider, org, { parent: provider, external_group_role_mappings: [snake(two)] }],
    ],
  )
  await checkLists(pinfold)
})
