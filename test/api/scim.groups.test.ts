// Groups from identity providers, in the request formats of Okta, Entra ID and Google Workspace.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventsOf } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { assertScimError, changed, created, groupSchema, openEndpoint, userSchema } from '../support/scim.ts'

const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  scimRequests: 100_000,
})
const owner = await member(roleUids.owner)
const org: string = scene.org.uid
const { provider, path, endpoint, scim } = await openEndpoint(pinfold, owner, org, issuer.url)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

let [ada, bob, eve] = ['', '', '']
let stranger = ''
before(async () => {
  const person = async (on: typeof scim, userName: string): Promise<string> => {
    return created(await on.post('/Users', { schemas: [userSchema], userName, externalId: userName })).id
  }
  ada = await person(scim, 'ada@acme.example')
  bob = await person(scim, 'bob@acme.example')
  eve = await person(scim, 'eve@acme.example')
  const other = await pinfold.seed.group()
  // SCIM can be turned on if two identities are owners.
  await pinfold.seed.member(other.uid, roleUids.owner)
  const foreign = await openEndpoint(pinfold, pinfold.operator, other.uid, issuer.url)
  stranger = await person(foreign.scim, 'stranger@other.example')
})

let count = 0
const named = (more: Json = {}): Json => ({ schemas: [groupSchema], displayName: `Group ${count++}`, ...more })
const group = async (more: Json = {}): Promise<string> =>
  `/Groups/${created(await scim.post('/Groups', named(more))).id}`
const value = (...ids: string[]): Json[] => ids.map((id) => ({ value: id }))
async function membersAt(at: string): Promise<string[]> {
  const { members } = changed(await scim.get(at))
  return members.map((one: Json) => one.display.split('@')[0]).sort()
}

test('a group can be created, read, renamed and deleted, each with an event', async () => {
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    const sent = named({ displayName: 'Builders', externalId: 'ext-b', members: value(ada) })
    const answer = await scim.post('/Groups', sent)
    const { id: made, meta, members, ...rest } = created(answer)
    id = made
    const { members: _, ...said } = sent
    assert.deepEqual(rest, said)
    assert.deepEqual(members, [{ value: ada, display: 'ada@acme.example', type: 'User' }])
    assert.equal(answer.headers.get('location'), `${endpoint}/Groups/${id}`)
    assert.equal(meta.version, answer.headers.get('etag'))
    assert.equal(meta.resourceType, 'Group')
    assert.equal((await scim.get(`/Groups/${id}`)).text, answer.text)
    const { groups } = changed(await scim.get(`/Users/${ada}`))
    assert.deepEqual(groups, [{ value: id, display: 'Builders', type: 'direct' }])
    assert.equal('groups' in changed(await scim.get(`/Users/${bob}`)), false)

    const renamed = changed(await scim.patch(`/Groups/${id}`, { op: 'replace', path: 'displayName', value: 'Makers' }))
    assert.equal(renamed.displayName, 'Makers')
    assert.notEqual(renamed.meta.version, meta.version)
    assert.equal((await scim.delete(`/Groups/${id}`)).status, 204)
  })
  assertScimError(await scim.get(`/Groups/${id}`), 404)
  assertScimError(await scim.delete(`/Groups/${id}`), 404)
  assert.equal('groups' in changed(await scim.get(`/Users/${ada}`)), false)

  const told = events.map(({ type, subject, group: groupUid, actor, body }) => {
    const { display_name, external_group_id, member_count, added_user_ids } = body.group
    return {
      what: type.split('.').at(-2),
      by: [subject, groupUid, actor],
      display_name,
      external_group_id,
      member_count,
      added_user_ids,
    }
  })
  const by = [provider, org, provider]
  const rest = { by, external_group_id: 'ext-b', member_count: 1 }
  assert.deepEqual(told, [
    { what: 'created', display_name: 'Builders', added_user_ids: [ada], ...rest },
    { what: 'updated', display_name: 'Makers', added_user_ids: [], ...rest },
    { what: 'deleted', display_name: 'Makers', added_user_ids: [], ...rest },
  ])
})

/** Operations on a group of ada and bob, and who is in it afterwards. */
const dialects: [who: string, operations: () => Json[], left: string][] = [
  [
    'Okta adds',
    () => [{ op: 'add', path: 'members', value: [{ value: eve, display: 'eve@acme.example' }] }],
    'ada bob eve',
  ],
  ['Okta removes', () => [{ op: 'remove', path: `members[value eq "${bob}"]` }], 'ada'],
  ['Okta replaces', () => [{ op: 'replace', path: 'members', value: value(eve) }], 'eve'],
  [
    'Okta removes and adds',
    () => [
      { op: 'remove', path: `members[value eq "${ada}"]` },
      { op: 'add', path: 'members', value: value(eve) },
    ],
    'bob eve',
  ],
  ['Entra adds', () => [{ op: 'Add', path: 'members', value: [{ $ref: null, value: eve }] }], 'ada bob eve'],
  ['Entra removes', () => [{ op: 'Remove', path: 'members', value: [{ $ref: null, value: ada }] }], 'bob'],
  ['Entra removes by a schema', () => [{ op: 'Remove', path: `${groupSchema}:members`, value: value(ada) }], 'bob'],
  ['Google adds', () => [{ op: 'add', value: { members: value(eve, ada) } }], 'ada bob eve'],
  ['Google replaces', () => [{ op: 'replace', value: { members: [] } }], ''],
  ['a client adds one', () => [{ op: 'add', path: 'members', value: { value: eve, type: 'User' } }], 'ada bob eve'],
  ['a client adds an id', () => [{ op: 'add', path: 'MEMBERS', value: eve }], 'ada bob eve'],
  ['a client removes all', () => [{ op: 'remove', path: 'members' }], ''],
  ['a client replaces by null', () => [{ op: 'replace', path: 'members', value: null }], ''],
  ['a client removes whom nobody knows', () => [{ op: 'remove', path: 'members[value eq "\\u0000"]' }], 'ada bob'],
  [
    'a client removes and adds the same',
    () => [
      { op: 'remove', path: 'members' },
      { op: 'add', path: 'members', value: value(bob, bob) },
    ],
    'bob',
  ],
  ['an object under the schema', () => [{ op: 'replace', value: { [groupSchema]: { members: value(eve) } } }], 'eve'],
]
for (const [who, operations, left] of dialects) {
  test(`PATCH changes the members: ${who}`, async () => {
    const at = await group({ members: value(ada, bob) })
    changed(await scim.patch(at, ...operations()))
    assert.equal((await membersAt(at)).join(' '), left)
  })
}

test('PATCH sets the name together with the id of the group, and refuses another id', async () => {
  const at = await group()
  const id = at.split('/').at(-1)
  const renamed = changed(await scim.patch(at, { op: 'replace', value: { id, displayName: 'Renamed by Okta' } }))
  assert.equal(renamed.displayName, 'Renamed by Okta')
  changed(await scim.patch(at, { op: 'replace', value: { id, members: value(ada) } }))
  assertScimError(await scim.patch(at, { op: 'replace', value: { id: ada, displayName: 'x' } }), 400, 'mutability')
  assertScimError(await scim.patch(at, { op: 'replace', value: { id: ada, members: [] } }), 400, 'mutability')
  assertScimError(await scim.patch(at, { op: 'replace', path: 'meta', value: {} }), 400, 'mutability')
  assert.deepEqual(await membersAt(at), ['ada'])
})

const refused: [operation: () => Json, scimType: string][] = [
  [() => ({ op: 'add', path: 'members', value: value('00000000-0000-4000-8000-000000000000') }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: value(stranger) }), 'invalidValue'],
  [() => ({ op: 'replace', path: 'members', value: value(ada, stranger) }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: value('\u0000') }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: [{ value: ada, type: 'Group' }] }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: [{ display: 'ada' }] }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: [[ada]] }), 'invalidValue'],
  [() => ({ op: 'add', path: 'members', value: null }), 'invalidValue'],
  [() => ({ op: 'remove', path: 'members', value: [] }), 'invalidValue'],
  [() => ({ op: 'remove', path: 'members[display eq "ada"]' }), 'invalidPath'],
  [() => ({ op: 'remove', path: 'members[value eq "a" or value eq "b"]' }), 'invalidPath'],
  [() => ({ op: 'replace', path: `members[value eq "${ada}"]`, value: value(bob) }), 'mutability'],
  [() => ({ op: 'replace', path: `members[value eq "${ada}"].value`, value: bob }), 'mutability'],
  [() => ({ op: 'add', path: 'members.value', value: bob }), 'mutability'],
  [() => ({ op: 'remove', path: 'displayName' }), 'invalidValue'],
  [() => ({ op: 'replace', value: { displayName: null } }), 'invalidValue'],
  [() => ({ op: 'replace', path: 'displayName', value: ' ' }), 'invalidValue'],
  [() => ({ op: 'replace', path: `${userSchema}:displayName`, value: 'x' }), 'invalidPath'],
  [() => ({ op: 'remove', path: groupSchema }), 'noTarget'],
]
for (const [i, [operation, scimType]] of refused.entries()) {
  test(`PATCH refuses operation ${i} with ${scimType} and changes nothing`, async () => {
    const at = await group({ members: value(ada) })
    const { text } = await scim.get(at)
    const valid = { op: 'add', path: 'members', value: value(bob) }
    assertScimError(await scim.patch(at, valid, operation()), 400, scimType)
    assert.equal((await scim.get(at)).text, text)
  })
}

test('returns the same answer for users of another organization and for missing users', async () => {
  const about = async (id: string) => {
    const { status, body } = await scim.post('/Groups', named({ displayName: 'Foreign', members: value(id) }))
    return [status, body.detail.replace(id, 'ID')]
  }
  const [status, detail] = await about(stranger)
  assert.equal(status, 400)
  assert.deepEqual(await about('00000000-0000-4000-8000-000000000000'), [status, detail])
  // A refused request changes nothing.
  created(await scim.post('/Groups', named({ displayName: 'Foreign' })))
})

test('PUT replaces the group: it removes members that the body omits, and keeps the external id', async () => {
  const at = await group({ externalId: 'put-1', members: value(ada, bob), costCenter: '7' })
  const replaced = changed(await scim.put(at, named({ displayName: 'Put', members: value(bob) })))
  assert.deepEqual(await membersAt(at), ['bob'])
  assert.equal(replaced.externalId, 'put-1')
  assert.equal('costCenter' in replaced, false)
  changed(await scim.put(at, named({ displayName: 'Put' })))
  assert.deepEqual(await membersAt(at), [])
  assertScimError(await scim.put(at, { schemas: [groupSchema], members: [] }), 400, 'invalidValue')
  assertScimError(await scim.put(at, named({ members: value(ada), Members: [] })), 400, 'invalidSyntax')
})

test('a display name is unique, ignoring case, and so is the name for role mappings', async () => {
  created(await scim.post('/Groups', named({ displayName: 'Ünique', externalId: 'uni-1' })))
  assertScimError(await scim.post('/Groups', named({ displayName: 'üNIQUE' })), 409, 'uniqueness')
  assertScimError(await scim.post('/Groups', named({ externalId: 'uni-1' })), 409, 'uniqueness')
  // Otherwise a group without an external ID could take the name of a group with one.
  assertScimError(await scim.post('/Groups', named({ displayName: 'uni-1' })), 409, 'uniqueness')
  const at = await group()
  assertScimError(await scim.patch(at, { op: 'replace', path: 'displayName', value: 'uni-1' }), 409, 'uniqueness')
  assertScimError(await scim.patch(at, { op: 'add', path: 'externalId', value: 'uni-1' }), 409, 'uniqueness')
})

test('filters and pages lists, and omits members for Entra', async () => {
  const at = await group({ displayName: 'Lists "1"', externalId: 'list-1', members: value(ada, bob) })
  const id = at.split('/').at(-1)!
  const find = async (filter: string, more = ''): Promise<string[]> => {
    const { body } = await scim.get(`/Groups?filter=${encodeURIComponent(filter)}${more}`)
    return body.Resources.map((one: Json) => one.id)
  }
  const finding = [
    'displayName eq "lists \\"1\\""',
    'DisplayName Eq "LISTS \\"1\\""',
    'displayName sw "Lists"',
    'externalId eq "list-1"',
    `id eq "${id}" and members eq "${ada}"`,
    `externalId eq "list-1" and members[value eq "${bob}"]`,
    `${groupSchema}:externalId eq "list-1" and members.value eq "${bob}"`,
    `externalId eq "list-1" and not (members eq "${eve}")`,
    'externalId eq "list-1" and members pr',
  ]
  for (const filter of finding) assert.deepEqual(await find(filter), [id], filter)
  assert.deepEqual(await find(`id eq "${id}" and members eq "${eve}"`), [])
  assert.deepEqual(await find('externalId eq "LIST-1"'), [])
  const refusing = [
    'userName eq "x"',
    'members co "a"',
    'members[not (value eq "a")]',
    'members.display eq "a"',
    'emails pr',
  ]
  for (const filter of refusing) {
    assertScimError(await scim.get(`/Groups?filter=${encodeURIComponent(filter)}`), 400, 'invalidFilter')
  }

  const without = changed(await scim.get(`/Groups?excludedAttributes=members&filter=id+eq+%22${id}%22`))
  assert.deepEqual(Object.keys(without.Resources[0]), ['schemas', 'displayName', 'externalId', 'id', 'meta'])
  const only = changed(await scim.get(`${at}?attributes=members.value,displayName`))
  assert.deepEqual(only, { schemas: [groupSchema], id, members: value(...[ada, bob].sort()), displayName: 'Lists "1"' })
  const searched = changed(
    await scim.post('/Groups/.search', { filter: `id eq "${id}"`, excludedAttributes: ['members', 'meta'] }),
  )
  assert.deepEqual(Object.keys(searched.Resources[0]), ['schemas', 'displayName', 'externalId', 'id'])
  const unshown = changed(await scim.get(`/Users/${ada}?excludedAttributes=groups`))
  assert.equal('groups' in unshown, false)
  assert.ok(changed(await scim.get(`/Users/${ada}?attributes=groups`)).groups.length > 0)

  const { totalResults } = changed(await scim.get('/Groups?count=0'))
  const seen: string[] = []
  for (let start = 1; start <= totalResults; start += 3) {
    const page = changed(await scim.get(`/Groups?startIndex=${start}&count=3&attributes=displayName`))
    assert.equal(page.totalResults, totalResults)
    seen.push(...page.Resources.map((one: Json) => one.id))
  }
  assert.equal(new Set(seen).size, totalResults)
})

test('a page ends before the members of its groups exceed the limit for one group', async () => {
  const { setMembers } = await import('../support/scim-members.ts')
  const big = created(await scim.post('/Groups', named({ displayName: 'Big 1' }))).id
  created(await scim.post('/Groups', named({ displayName: 'Big 2', members: value(ada) })))
  await setMembers(pinfold.app.db, provider, big, 10_000)
  const page = changed(await scim.get('/Groups?filter=displayName+sw+%22Big%22'))
  assert.deepEqual([page.totalResults, page.itemsPerPage, page.Resources[0].members.length], [2, 1, 10_000])
  const next = changed(await scim.get('/Groups?filter=displayName+sw+%22Big%22&startIndex=2'))
  assert.deepEqual([next.totalResults, next.itemsPerPage, next.Resources[0].displayName], [2, 1, 'Big 2'])
  const refusedAdd = await scim.patch(`/Groups/${big}`, { op: 'add', path: 'members', value: value(ada) })
  assertScimError(refusedAdd, 403)
  assert.equal((await scim.delete(`/Groups/${big}`)).status, 204)
})

test('a request accepts at most 1,000 members, and a limited body size', async () => {
  const at = await group()
  const unknown = Array.from({ length: 1001 }, (_, i) => ({ value: `${i}` }))
  assertScimError(await scim.patch(at, { op: 'add', path: 'members', value: unknown }), 400, 'tooMany')
  assertScimError(await scim.put(at, named({ members: unknown })), 400, 'tooMany')
  const most = { op: 'add', path: 'members', value: unknown.slice(0, 1000) }
  assertScimError(await scim.patch(at, most), 400, 'invalidValue')
  const wide = Array.from({ length: 12_000 }, () => 'x')
  assertScimError(await scim.patch(at, { op: 'add', path: 'members', value: wide }), 400, 'tooMany')
  const long = 'x'.repeat(17_000)
  assertScimError(await scim.post('/Groups', named({ note: long })), 413)
})

test('If-Match and If-None-Match use the version of a group, which changes with its members', async () => {
  const at = await group()
  const { headers } = await scim.get(at)
  const etag = headers.get('etag')!
  assert.equal((await scim.call('GET', at, undefined, { 'if-none-match': etag })).status, 304)
  const add = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: [{ op: 'add', path: 'members', value: value(ada) }],
  }
  const answer = await scim.call('PATCH', at, add, { 'if-match': etag })
  changed(answer)
  assert.notEqual(answer.headers.get('etag'), etag)
  assertScimError(await scim.call('PATCH', at, add, { 'if-match': etag }), 412)
  assertScimError(await scim.call('DELETE', at, undefined, { 'if-match': etag }), 412)
  // Without a change, the version stays the same.
  const again = await scim.call('PATCH', at, add)
  assert.equal(again.headers.get('etag'), answer.headers.get('etag'))
})

test('deleting a user removes the user from the groups, which get a new version and an event', async () => {
  const gone = created(await scim.post('/Users', { schemas: [userSchema], userName: 'gone' })).id
  const at = await group({ members: value(gone, ada) })
  const etag = (await scim.get(at)).headers.get('etag')
  const alone = await group({ members: value(gone) })
  const events = await eventsOf(pinfold, async () => {
    assert.equal((await scim.delete(`/Users/${gone}`)).status, 204)
  })
  assert.deepEqual(await membersAt(at), ['ada'])
  const told = events.filter(({ type }) => type.includes('.scim_group.updated.')).map(({ body }) => body.group)
  const removed = told.map(({ id, member_count, added_count, removed_user_ids }) => {
    return [`/Groups/${id}`, member_count, added_count, removed_user_ids]
  })
  const expected = [
    [at, 1, 0, [gone]],
    [alone, 0, 0, [gone]],
  ]
  assert.deepEqual(removed.sort(), expected.sort())
  assert.notEqual((await scim.get(at)).headers.get('etag'), etag)
})

test('ResourceTypes and Schemas describe groups', async () => {
  const types = changed(await scim.get('/ResourceTypes')).Resources
  assert.deepEqual(
    types.map((one: Json) => [one.id, one.endpoint, one.schema]),
    [
      ['User', '/Users', userSchema],
      ['Group', '/Groups', groupSchema],
    ],
  )
  const schema = changed(await scim.get(`/Schemas/${groupSchema}`))
  assert.deepEqual(
    schema.attributes.map((one: Json) => one.name),
    ['displayName', 'externalId', 'members'],
  )
  assertScimError(await scim.call('PUT', '/Groups', {}), 405)
})

test('deletes groups together with their provider', async () => {
  assert.equal((await owner.delete(path)).status, 200)
  const { sql } = await import('#db/sql.ts')
  const left = await pinfold.app.db.all(sql`SELECT id FROM scim_groups WHERE provider_uid = ${provider}`)
  assert.deepEqual(left, [])
})
