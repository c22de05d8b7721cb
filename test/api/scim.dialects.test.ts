// Requests that caused errors or no effect on other SCIM servers, with the expected result.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isActivePerson } from '#domains/iam/scim/scim-users.store.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { assertScimError, changed, created, openEndpoint, patchSchema, userSchema } from '../support/scim.ts'

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

let people = 0
async function account(more: Json = {}) {
  const name = `dialect${people++}@example.com`
  const user = created(await scim.post('/Users', { schemas: [userSchema], userName: name, externalId: name, ...more }))
  return { at: `/Users/${user.id}`, externalId: name, user }
}

test('a filter in an extension path selects values of its list', async () => {
  const custom = 'urn:acme:cloud:scim:schemas:extension:custom:2.0:pets:User'
  const { at } = await account({ [custom]: { groups: [{ value: 'a:b]' }, { value: 'c' }] } })
  const left = changed(await scim.patch(at, { op: 'remove', path: `${custom}:groups[value eq "a:b]"]` }))
  assert.deepEqual(left[custom], { groups: [{ value: 'c' }] })
  assert.equal(
    changed(await scim.patch(at, { op: 'remove', path: `${custom}:groups[value eq "c"]` }))[custom],
    undefined,
  )
})

test('applies a deactivation of Entra ID together with the other operations of the request', async () => {
  const { at, externalId } = await account()
  const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
  const user = changed(
    await scim.patch(
      at,
      { op: 'Replace', path: 'phoneNumbers[type eq "work"].value', value: '1' },
      { op: 'Add', path: `${enterprise}:manager`, value: [{ $ref: '../Users/44', value: '44' }] },
      { op: 'Replace', path: 'active', value: 'False' },
      { op: 'Replace', path: 'name.formatted', value: 'A' },
      { op: 'Remove', path: 'addresses[type eq "work"].formatted' },
    ),
  )
  assert.deepEqual(
    [user.active, user.name, user.phoneNumbers, user.addresses],
    [false, { formatted: 'A' }, [{ type: 'work', value: '1' }], undefined],
  )
  assert.equal(await isActivePerson(pinfold.app.db, provider, externalId), false)
})

test('a replacement of all attributes by active alone keeps the user name', async () => {
  const { at, user } = await account()
  const after = changed(await scim.patch(at, { op: 'replace', value: { active: false } }))
  assert.deepEqual([after.userName, after.active], [user.userName, false])
})

test('adding the current value of active changes nothing and sends no event', async () => {
  const { at } = await account({ active: false })
  const first = await scim.get(at)
  const same = await scim.patch(at, { op: 'Add', path: 'active', value: false })
  assert.deepEqual(changed(same), first.body)
  assert.equal(same.headers.get('etag'), first.headers.get('etag'))
})

test('accepts complex attributes with null members, and null changes no account state', async () => {
  const { at, user } = await account({ active: false, name: null, emails: null, title: null })
  assert.equal(user.active, false)
  const after = changed(
    await scim.put(at, { schemas: [userSchema], userName: user.userName, active: null, name: { givenName: null } }),
  )
  assert.deepEqual([after.active, after.externalId], [false, user.externalId])
})

test('accepts lists of operations and media types in other spellings', async () => {
  const { at } = await account()
  const operations = [{ op: 'REPLACE', path: 'title', value: 'T' }]
  for (const [body, type] of [
    [{ schemas: [patchSchema], operations }, 'application/json'],
    [{ schemas: [patchSchema.toLowerCase()], Operations: operations }, 'application/scim+json; charset=utf-8'],
    [{ Schemas: [patchSchema, 'urn:x'], OPERATIONS: operations }, 'APPLICATION/SCIM+JSON;charset=UTF-8'],
  ] as const) {
    changed(await scim.call('PATCH', at, body, { 'content-type': type }))
  }
})

test('returns 404 for a second deletion, and for a change after a deletion', async () => {
  const { at } = await account()
  assert.equal((await scim.delete(at)).status, 204)
  assertScimError(await scim.delete(at), 404)
  assertScimError(await scim.patch(at, { op: 'replace', path: 'active', value: true }), 404)
  assertScimError(await scim.put(at, { schemas: [userSchema], userName: 'x' }), 404)
})

test('accepts an unknown query parameter, and a count above the limit', async () => {
  for (const query of [
    'aadOptscim062020',
    'count=1000',
    'startIndex=0&count=',
    'sortBy=userName&sortOrder=ascending',
  ]) {
    assert.equal((await scim.get(`/Users?${query}`)).status, 200, query)
  }
})
