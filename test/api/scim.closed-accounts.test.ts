// No request reactivates an account by omitting a field, and no request succeeds without its effect.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { isActivePerson } from '#domains/iam/scim/scim-users.store.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { fixture } from '../support/fixtures.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { assertScimError, changed, created, openEndpoint, userSchema } from '../support/scim.ts'

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  scimRequests: 100_000,
})
const { provider, scim } = await openEndpoint(pinfold, await member(roleUids.owner), scene.org.uid, issuer.url)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const standing = (externalId: string) => isActivePerson(pinfold.app.db, provider, externalId)

let people = 0
async function account(active: boolean) {
  const name = `closed${people++}@example.com`
  const sent: Json = { schemas: [userSchema], userName: name, externalId: `ext-${name}`, active }
  const { id } = created(await scim.post('/Users', sent))
  return { sent, at: `/Users/${id}`, externalId: sent.externalId as string, id: id as string }
}

const replace = (value: unknown, path?: string): Json => ({ op: 'replace', value, ...(path && { path }) })

const silent: Json[][] = [
  [replace({ active: null })],
  [{ op: 'add', value: { active: null } }],
  [replace(null, 'active')],
  [replace(null, 'ACTIVE')],
  [{ op: 'remove', path: 'active' }],
  [{ op: 'Remove', path: 'Active', value: 'False' }],
  [{ op: 'remove', path: `${userSchema}:active` }],
  [{ op: 'remove', path: `${userSchema.toLowerCase()}:Active` }],
  [{ op: 'remove', path: userSchema }],
  [replace(null, userSchema)],
  [replace({ [userSchema]: { active: null } })],
  [replace({ [userSchema]: null })],
  [replace({ [`${userSchema}:active`]: null })],
  [{ op: 'remove', path: 'active.value' }],
  [{ op: 'remove', path: 'active[value eq "False"]' }],
  [replace('x', 'active[value eq "False"].value')],
  [replace(true, 'active.value')],
  [replace(false, 'active'), { op: 'remove', path: 'active' }],
  [replace([], 'active')],
  [replace([{}], 'active')],
  [replace('', 'active')],
  [replace({}, 'active')],
  [replace({ 'active.value': true })],
]

for (const operations of silent) {
  test(`refuses PATCH ${JSON.stringify(operations)}, and does not reactivate a closed account`, async () => {
    const { at, externalId } = await account(false)
    const answer = await scim.patch(at, ...operations)
    assertScimError(answer, 400, answer.body.scimType)
    assert.equal((await scim.get(at)).body.active, false)
    assert.equal(await standing(externalId), false)
  })
}

const closing: Json[][] = [
  [replace({ [userSchema]: { active: false } })],
  [replace({ [userSchema.toUpperCase()]: { ACTIVE: 'False' } })],
  [replace({ active: false }, userSchema)],
  [replace({ [`${userSchema}:active`]: false })],
  [replace('False', `${userSchema}:active`)],
  [replace([{ value: 'False' }], 'active')],
  [{ op: 'Add', path: 'active', value: 'false' }],
  [{ Op: 'Replace', Path: 'Active', Value: 'FALSE' }],
  [replace(true, 'active'), replace(false, 'active')],
  [replace({ title: 'T', active: false, id: undefined })],
  [replace(false, 'active'), { op: 'remove', path: 'groups' }],
  [replace('p', 'password'), replace('False', 'active')],
  [replace({ groups: [] }), replace({ meta: {} }), replace({ active: false })],
]

for (const operations of closing) {
  test(`PATCH ${JSON.stringify(operations)} deactivates an active account`, async () => {
    const { at, externalId } = await account(true)
    assert.equal(changed(await scim.patch(at, ...operations)).active, false)
    assert.equal(await standing(externalId), false)
  })
}

const cases = (JSON.parse(fixture('cases/cases.json').toString()) as Json).scim as Record<string, Json[][]>

for (const operations of cases['never opens the account (400, or 200 with active:false)']!) {
  test(`a shared case never reactivates an account: ${JSON.stringify(operations)}`, async () => {
    const { at, externalId } = await account(false)
    assert.equal((await scim.patch(at, ...operations)).status, 400)
    assert.equal(await standing(externalId), false)
  })
}

for (const operations of cases['closes an open account, or is refused with 400']!) {
  test(`a shared case deactivates an account: ${JSON.stringify(operations)}`, async () => {
    const { at, externalId } = await account(true)
    assert.equal(changed(await scim.patch(at, ...operations)).active, false)
    assert.equal(await standing(externalId), false)
  })
}

for (const operations of cases['sets the manager, or is refused with 400']!) {
  test(`a shared case sets the manager: ${JSON.stringify(operations)}`, async () => {
    const { at } = await account(true)
    assert.equal(changed(await scim.patch(at, ...operations))[enterprise].manager.value, '44')
  })
}

test('PATCH can deactivate an account together with its own id, and is refused with another id', async () => {
  const { at, externalId, id } = await account(true)
  assertScimError(await scim.patch(at, replace(false, 'active'), replace('another', 'id')), 400, 'mutability')
  assert.equal(await standing(externalId), true)
  assert.equal(changed(await scim.patch(at, replace(id, 'id'), replace(false, 'active'))).active, false)
  assert.equal(await standing(externalId), false)
})

test('an email address with an object as primary or type can be stored, found and changed', async () => {
  const odd = { toString: 1, valueOf: 1 }
  const { at, externalId, sent } = await account(true)
  const emails = [{ value: 'odd@example.com', type: odd, primary: odd }]
  changed(await scim.put(at, { ...sent, emails }))
  assert.equal((await scim.get('/Users?filter=emails%20eq%20%22odd@example.com%22')).body.totalResults, 1)
  const pick = replace('new@example.com', 'emails[type eq "work"].value')
  const primary = replace('new@example.com', 'emails[primary eq true].value')
  assert.equal(changed(await scim.patch(at, pick, primary, replace(false, 'active'))).emails.length, 3)
  assert.equal(await standing(externalId), false)
  const left = changed(await scim.patch(at, { op: 'remove', path: 'emails', value: [{ primary: odd }] }))
  assert.equal(left.emails.length, 2)
  for (const name of ['count', 'startIndex']) {
    assertScimError(await scim.post('/Users/.search', { [name]: odd }), 400, 'invalidValue')
  }
})

test('treats null for a schema object or an attribute of it as no value', async () => {
  const { at, sent } = await account(true)
  const nothing = { [enterprise]: null, [userSchema]: null, 'urn:acme:Thing': null, [`${enterprise}:manager`]: null }
  const names = Object.keys((await scim.get(at)).body).sort()
  assert.deepEqual(Object.keys(changed(await scim.put(at, { ...sent, ...nothing }))).sort(), names)
  const made = created(await scim.post('/Users', { ...sent, ...nothing, userName: 'nulls', externalId: 'nulls' }))
  assert.deepEqual(Object.keys(made).sort(), names)
})

test('PUT without active, or with null, does not reactivate an account', async () => {
  const { at, externalId, sent } = await account(false)
  const { active, ...rest } = sent
  for (const body of [rest, { ...rest, active: null }, { ...rest, [userSchema]: { title: 'T' } }]) {
    assert.equal(changed(await scim.put(at, body)).active, false)
    assert.equal(await standing(externalId), false)
  }
  for (const body of [
    { ...rest, active: false, Active: true },
    { ...rest, active: false, [`${userSchema}:active`]: true },
    { ...rest, 'active.value': true },
  ]) {
    assert.equal((await scim.put(at, body)).status, 400)
  }
  assert.equal(await standing(externalId), false)
})

test('PUT and POST accept attributes in schema objects and names with a schema prefix', async () => {
  const { at, externalId, sent } = await account(true)
  const { active, ...rest } = sent
  assert.equal(changed(await scim.put(at, { ...rest, [userSchema]: { active: 'False' } })).active, false)
  assert.equal(await standing(externalId), false)
  const body = { [userSchema]: { userName: 'by-schema', active: false }, [`${enterprise}:manager`]: { value: '44' } }
  const user = created(await scim.post('/Users', { schemas: [userSchema, enterprise], ...body }))
  assert.deepEqual([user.userName, user.active, user[enterprise]], ['by-schema', false, { manager: { value: '44' } }])
  assert.equal(user[userSchema], undefined)
})

test('PATCH sets the manager in each form that providers use', async () => {
  const ways: Json[] = [
    { op: 'add', value: { [`${enterprise}:manager`]: { value: '44' } } },
    { op: 'add', value: { [enterprise]: { manager: { value: '44' } } } },
    { op: 'Add', path: `${enterprise}:manager`, value: { value: '44' } },
    { op: 'Add', path: `${enterprise.toUpperCase()}:manager.value`, value: '44' },
    { op: 'replace', path: enterprise, value: { manager: { value: '44' } } },
  ]
  for (const way of ways) {
    const { at } = await account(true)
    const user = changed(await scim.patch(at, way))
    const key = Object.keys(user).find((one) => one.toLowerCase() === enterprise.toLowerCase())!
    assert.deepEqual(user[key], { manager: { value: '44' } }, JSON.stringify(way))
    assert.equal(changed(await scim.patch(at, { op: 'remove', path: `${enterprise}:manager` }))[key], undefined)
  }
})

test('stores extensions of other schemas under their schema', async () => {
  const custom = 'urn:okta:app_1:1.0:user:custom'
  const { at } = await account(true)
  changed(await scim.patch(at, { op: 'add', value: { [custom]: { team: 'a' } } }))
  changed(await scim.patch(at, replace('b', `${custom}:team`)))
  assert.deepEqual((await scim.get(at)).body[custom], { team: 'b' })
  assert.equal(changed(await scim.patch(at, { op: 'remove', path: custom }))[custom], undefined)
})

test('PATCH refuses unknown, read-only and misplaced attribute names', async () => {
  const { at, externalId, id } = await account(true)
  const refused: [Json, string][] = [
    [replace(false, 'urn:ietf:params:scim:schemas:core:2.0:Group:active'), 'invalidPath'],
    [replace(false, 'urn:ietf:params:scim:schemas:core:2.0:active'), 'invalidPath'],
    [replace(false, 'urn:ietf:params:scim:schemas:core:2.0:User.active'), 'invalidPath'],
    [replace({ 'urn:scim:schemas:core:1.0': { active: false } }), 'invalidPath'],
    [replace({ id: 'another' }), 'mutability'],
    [replace({ id: 'another', title: 'T' }), 'mutability'],
    [replace('p', 'password'), 'mutability'],
    [replace([], 'groups'), 'mutability'],
    [replace({ meta: {}, id }), 'mutability'],
    [replace({}), 'invalidValue'],
    [{ op: 'remove', path: 'schemas' }, 'invalidValue'],
    [replace('x', 'userName.value'), 'invalidPath'],
  ]
  for (const [operation, scimType] of refused) assertScimError(await scim.patch(at, operation), 400, scimType)
  assert.equal(await standing(externalId), true)
})

test('PATCH removes only the values that a remove operation lists, and replaces sub-attributes whose names differ in case', async () => {
  const { at } = await account(true)
  const emails = ['a', 'b'].map((value) => ({ value, type: 'work' }))
  changed(await scim.patch(at, { op: 'add', path: 'emails', value: emails }, replace({ givenName: 'A' }, 'name')))
  const left = changed(await scim.patch(at, { op: 'Remove', path: 'emails', value: [{ value: 'a' }] }))
  assert.deepEqual(left.emails, [emails[1]])
  const renamed = changed(await scim.patch(at, replace({ GIVENNAME: 'B', familyName: null }, 'name')))
  assert.deepEqual(renamed.name, { givenName: 'B' })
})

test('attributes that an earlier release stored under their literal names have no effect later', async () => {
  const { at, id, externalId, sent } = await account(false)
  const stored = JSON.stringify({ ...sent, [userSchema]: { active: true }, [`${userSchema}:active`]: true })
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE scim_users SET resource = ${stored} WHERE id = ${id}`))
  assert.equal(changed(await scim.patch(at, replace('T', 'title'))).active, false)
  assert.equal(await standing(externalId), false)
})
