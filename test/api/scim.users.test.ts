import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isActivePerson } from '#domains/iam/scim/scim-users.store.ts'
import { eventsOf, ok } from '../support/expect.ts'
import { startIssuer } from '../support/fake-issuer.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import {
  assertScimError,
  changed,
  created,
  openEndpoint,
  patchSchema,
  type ScimAnswer,
  scimClient,
  userSchema,
} from '../support/scim.ts'
import { noMinutePasses } from '../support/times.ts'

const issuer = await startIssuer()
const { pinfold, member, ...scene } = await startScene({
  allowInsecureIssuers: true,
  allowPrivateAddresses: true,
  scimRequests: 100_000,
})
const owner = await member(roleUids.owner)
const org: string = scene.org.uid
const { provider, path, endpoint, token, scim } = await openEndpoint(pinfold, owner, org, issuer.url)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const standing = (externalId: string) => isActivePerson(pinfold.app.db, provider, externalId)

let people = 0
const person = (change: Json = {}): Json => {
  const name = `person${people++}@example.com`
  return { schemas: [userSchema], userName: name, externalId: `ext-${name}`, active: true, ...change }
}

test('creates, reads, finds, replaces and deletes a user with all attributes', async () => {
  const sent = person({
    name: { givenName: 'Ada', familyName: 'King' },
    emails: [{ value: 'ada@example.com', type: 'work', primary: true }],
    password: 'never kept',
    groups: [{ value: 'g' }],
  })
  const answer = await scim.post('/Users', sent)
  const user = created(answer)
  const { password, groups, ...said } = sent
  const { id, meta, ...rest } = user
  assert.deepEqual(rest, said)
  assert.match(id, /^[0-9a-f-]{36}$/)
  assert.deepEqual(meta, {
    resourceType: 'User',
    created: meta.created,
    lastModified: meta.created,
    location: `${endpoint}/Users/${id}`,
    version: answer.headers.get('etag'),
  })
  assert.equal(answer.headers.get('location'), meta.location)
  assert.match(answer.headers.get('content-type')!, /^application\/scim\+json/)

  assert.deepEqual((await scim.get(`/Users/${id}`)).body, user)
  const filter = encodeURIComponent(`userName eq "${sent.userName.toUpperCase()}"`)
  const found = (await scim.get(`/Users?filter=${filter}&startIndex=1&count=100`)).body
  assert.deepEqual(found, {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: 1,
    startIndex: 1,
    itemsPerPage: 1,
    Resources: [user],
  })

  const replaced = changed(await scim.put(`/Users/${id}`, { ...said, displayName: 'Countess', emails: [] }))
  assert.equal(replaced.displayName, 'Countess')
  assert.deepEqual(replaced.emails, [])
  assert.equal((await scim.delete(`/Users/${id}`)).status, 204)
  assertScimError(await scim.get(`/Users/${id}`), 404)
  assertScimError(await scim.delete(`/Users/${id}`), 404)
})

test('deactivation by PUT ends the access of a user, and PUT without `active` does not restore it', async () => {
  const sent = person()
  const { id } = created(await scim.post('/Users', sent))
  assert.equal(await standing(sent.externalId), true)
  assert.equal(changed(await scim.put(`/Users/${id}`, { ...sent, active: false })).active, false)
  assert.equal(await standing(sent.externalId), false)
  const { active, ...silent } = sent
  assert.equal(changed(await scim.put(`/Users/${id}`, silent)).active, false)
  assert.equal(await standing(sent.externalId), false)
  assert.equal(changed(await scim.put(`/Users/${id}`, sent)).active, true)
  assert.equal(await standing(sent.externalId), true)
  assert.equal(await standing('never provisioned'), undefined)
})

test('a deleted user has no access until provisioned again', async () => {
  const sent = person()
  const { id } = created(await scim.post('/Users', sent))
  await scim.delete(`/Users/${id}`)
  assert.equal(await standing(sent.externalId), false)
  const again = created(await scim.post('/Users', sent))
  assert.notEqual(again.id, id)
  assert.equal(await standing(sent.externalId), true)
})

test('PATCH accepts the request forms of common providers', async () => {
  const sent = person()
  const { id } = created(await scim.post('/Users', sent))
  const at = `/Users/${id}`
  // Okta sends no path.
  assert.equal(changed(await scim.patch(at, { op: 'replace', value: { active: false } })).active, false)
  // Entra sends a path, and text instead of a boolean.
  assert.equal(changed(await scim.patch(at, { op: 'Replace', path: 'active', value: 'True' })).active, true)
  assert.equal(changed(await scim.patch(at, { op: 'Replace', path: 'Active', value: 'False' })).active, false)
  assert.equal(await standing(sent.externalId), false)
  // Value filters of Entra ID create the values that they name.
  const mailed = changed(
    await scim.patch(
      at,
      { op: 'Add', path: 'emails[type eq "work"].value', value: 'a@example.com' },
      { op: 'Add', path: 'name.givenName', value: 'Ada' },
      { op: 'Add', path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department', value: 'sums' },
      { op: 'Replace', path: 'emails[type eq "work"].value', value: 'b@example.com' },
    ),
  )
  assert.deepEqual(mailed.emails, [{ type: 'work', value: 'b@example.com' }])
  assert.deepEqual(mailed.name, { givenName: 'Ada' })
  assert.deepEqual(mailed['urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'], { department: 'sums' })
  // Entra with aadOptscim062020 sends paths as attribute names.
  const dotted = await scim.call('PATCH', `${at}?aadOptscim062020`, {
    schemas: [patchSchema],
    Operations: [
      {
        op: 'replace',
        value: { displayName: 'A', 'name.familyName': 'K', active: true, 'emails[type eq "work"].primary': true },
      },
    ],
  })
  assert.deepEqual(changed(dotted).name, { givenName: 'Ada', familyName: 'K' })
  assert.equal(dotted.body.emails[0].primary, true)
  assert.equal(dotted.body.active, true)
  // Removal of attributes.
  const bare = changed(
    await scim.patch(at, { op: 'remove', path: 'emails[type eq "work"]' }, { op: 'Remove', path: 'name.givenName' }),
  )
  assert.equal(bare.emails, undefined)
  assert.deepEqual(bare.name, { familyName: 'K' })
  // The server ignores its own read-only attributes in a request, and never stores passwords.
  const kept = changed(await scim.patch(at, { op: 'replace', value: { id, password: 'p', meta: {}, title: 'T' } }))
  assert.equal(kept.id, id)
  assert.equal(kept.title, 'T')
  assert.ok(!('password' in kept))
})

test('a PATCH with one invalid part changes nothing', async () => {
  const sent = person()
  const { id } = created(await scim.post('/Users', sent))
  const at = `/Users/${id}`
  const before = (await scim.get(at)).body
  const first = { op: 'replace', path: 'displayName', value: 'changed' }
  const wrong: [Json, string][] = [
    [{ op: 'replace', path: 'emails[value ew ".com"].value', value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: '[', value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: 'emails[type eq "wo\trk"].value', value: 'x' }, 'invalidPath'],
    [{ op: 'replace', path: 'emails[type eq "\\x"].value', value: 'x' }, 'invalidPath'],
    [{ op: 'move', path: 'displayName', value: 'x' }, 'invalidSyntax'],
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'replace', value: 'x' }, 'invalidValue'],
    [{ op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
    [{ op: 'remove', path: 'userName' }, 'invalidValue'],
    [{ op: 'replace', path: 'userName', value: 7 }, 'invalidValue'],
    [{ op: 'add', path: 'displayName' }, 'invalidValue'],
  ]
  for (const [operation, scimType] of wrong) assertScimError(await scim.patch(at, first, operation), 400, scimType)
  assertScimError(await scim.call('PATCH', at, { Operations: [first] }), 400, 'invalidSyntax')
  assertScimError(await scim.call('PATCH', at, { schemas: [patchSchema], Operations: [] }), 400, 'invalidSyntax')
  assertScimError(await scim.patch(at, ...Array.from({ length: 101 }, () => first)), 400, 'tooMany')
  assert.deepEqual((await scim.get(at)).body, before)
})

test('accepts attribute names with a meaning in JavaScript as ordinary names', async () => {
  const sent = `{"schemas":["${userSchema}"],"userName":"proto${people++}","__proto__":{"admin":true},"constructor":{"a":1}}`
  const { id } = created(await scim.call('POST', '/Users', sent))
  const { text } = await scim.get(`/Users/${id}`)
  assert.ok(text.includes('"constructor":{"a":1}'), text)
  changed(
    await scim.call(
      'PATCH',
      `/Users/${id}`,
      `{"schemas":["${patchSchema}"],"Operations":[{"op":"add","path":"emails[type eq \\"work\\"]","value":{"__proto__":{"x":1},"value":"v"}}]}`,
    ),
  )
  assert.equal(({} as Json).admin, undefined)
  assert.equal(({} as Json).x, undefined)
})

test('user names and external IDs are unique, ignoring case', async () => {
  const sent = person()
  const { id } = created(await scim.post('/Users', sent))
  assertScimError(await scim.post('/Users', { ...person(), userName: sent.userName.toUpperCase() }), 409, 'uniqueness')
  assertScimError(await scim.post('/Users', { ...person(), externalId: sent.externalId }), 409, 'uniqueness')
  const other = created(await scim.post('/Users', person()))
  assertScimError(await scim.put(`/Users/${other.id}`, person({ userName: sent.userName })), 409, 'uniqueness')
  assertScimError(
    await scim.patch(`/Users/${other.id}`, { op: 'replace', path: 'externalId', value: sent.externalId }),
    409,
    'uniqueness',
  )
  changed(await scim.put(`/Users/${id}`, sent))
})

test('lists users in pages that do not overlap', async () => {
  const opened = await openEndpoint(pinfold, owner, org, issuer.url, 'pages')
  assert.deepEqual((await opened.scim.get('/Users')).body.Resources, [])
  for (let i = 0; i < 5; i++) created(await opened.scim.post('/Users', person()))
  const ids: string[] = []
  for (const start of [1, 3, 5, 7]) {
    const { totalResults, startIndex, itemsPerPage, Resources } = (
      await opened.scim.get(`/Users?startIndex=${start}&count=2`)
    ).body
    assert.deepEqual([totalResults, startIndex, itemsPerPage], [5, start, Resources.length])
    ids.push(...Resources.map((one: Json) => one.id))
  }
  assert.equal(new Set(ids).size, 5)
  assert.equal((await opened.scim.get('/Users?count=0')).body.totalResults, 5)
  assert.equal((await opened.scim.get('/Users?startIndex=-3&count=-1')).body.itemsPerPage, 0)
  assertScimError(await opened.scim.get('/Users?count=many'), 400, 'invalidValue')
  // The list contains no users of other providers.
  assert.equal((await scim.get(`/Users/${ids[0]}`)).status, 404)
})

test('filters without an index are refused', async () => {
  const sent = person({ externalId: 'quote "and" eq' })
  const { id } = created(await scim.post('/Users', sent))
  const find = (filter: string) => scim.get(`/Users?filter=${encodeURIComponent(filter)}`)
  const by = `externalId eq ${JSON.stringify(sent.externalId)}`
  for (const filter of [
    by,
    `id eq "${id}"`,
    `${by} AND USERNAME EQ "${sent.userName}"`,
    `${userSchema}:userName eq "${sent.userName}"`,
  ]) {
    assert.deepEqual(
      (await find(filter)).body.Resources?.map((one: Json) => one.id),
      [id],
      filter,
    )
  }
  assert.equal((await find(`${by} and userName eq "nobody"`)).body.totalResults, 0)
  assert.equal((await find('id eq "a" and id eq "b"')).body.totalResults, 0)
  const wrong = [
    'userName',
    'userName eq',
    'userName zz "a"',
    'name.givenName eq "a"',
    'emails[userName eq "a"]',
    'emails[emails[value eq "a"]]',
    'active co "a"',
    'active eq "maybe"',
    'meta.created gt "yesterday"',
    'userName eq "a" and',
    'userName eq "a" userName eq "b"',
    '(userName eq "a"',
    'userName eq "a")',
    'userName eq "a',
    'userName eq "\\x"',
    'userName eq "\\u0000"',
    'not userName eq "a"',
    `${'('.repeat(20)}id pr${')'.repeat(20)}`,
    Array(6).fill('id pr').join(' or '),
    `userName eq "${'a'.repeat(3000)}"`,
  ]
  for (const filter of wrong) assertScimError(await find(filter), 400, 'invalidFilter')
  assert.match((await find('name.givenName eq "a"')).body.detail, /^name\.givenName: cannot be used in a filter/)
  assert.match((await find('userName HAS "a"')).body.detail, /^HAS is not a filter operator/)
})

test('the SCIM endpoint accepts only the token of its provider', async () => {
  const other = await openEndpoint(pinfold, owner, org, issuer.url, 'other')
  const knock = async (at: string, shown: string | undefined) => {
    const answer = await scimClient(at, shown).get('/Users')
    if (answer.status === 401) {
      assertScimError(answer, 401)
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer')
    }
    return answer.status
  }
  const nowhere = `${pinfold.url}/scim/v2/${'0'.repeat(40)}/${'0'.repeat(16)}`
  assert.equal(await knock(endpoint, token), 200)
  assert.equal(await knock(endpoint, undefined), 401)
  assert.equal(await knock(endpoint, other.token), 401)
  assert.equal(await knock(endpoint, pinfold.operator.token), 401)
  assert.equal(await knock(nowhere, token), 401)
  assert.equal(await knock(`${pinfold.url}/scim/v2`, token), 401)
  // The token has no other use.
  assert.equal((await pinfold.withToken(token).get('/iam/v2/groups')).status, 401)
})

test('returns an error for unsupported requests, and limits bodies', async () => {
  assertScimError(await scim.get('/Devices'), 404)
  assertScimError(await scim.get('/Users/a/b'), 404)
  assertScimError(await scim.get('/constructor'), 404)
  assertScimError(await scim.get('/Users/%E0%A4%A'), 404)
  const refused = await scim.call('DELETE', '/Users')
  assertScimError(refused, 405)
  assert.equal(refused.headers.get('allow'), 'GET, POST')
  assertScimError(await scim.call('POST', '/Users', '{"userName":'), 400, 'invalidSyntax')
  assertScimError(await scim.call('POST', '/Users', '[]'), 400, 'invalidSyntax')
  const repeated = JSON.stringify(person()).replace('"active":true', '"active":false,"active":true')
  assertScimError(await scim.call('POST', '/Users', repeated), 400, 'invalidSyntax')
  assertScimError(await scim.call('POST', '/Users', '{}', { 'content-type': 'text/plain' }), 415)
  assertScimError(await scim.post('/Users', {}), 400, 'invalidValue')
  assertScimError(await scim.post('/Users', person({ userName: 'a\u0000b' })), 400, 'invalidValue')
  assertScimError(await scim.post('/Users', person({ title: 'x'.repeat(70_000) })), 413)
  assertScimError(await scim.post('/Users', person({ title: 'x'.repeat(300_000) })), 413)
  let deep: Json = {}
  for (let i = 0; i < 20; i++) deep = { deep }
  assertScimError(await scim.post('/Users', person({ deep })), 400, 'invalidValue')
})

test('limits the work for a request, whatever it contains', async () => {
  const { id } = created(await scim.post('/Users', person({ list: Array.from({ length: 900 }, () => ({ type: 0 })) })))
  const at = `/Users/${id}`
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, 1]))
  assertScimError(await scim.patch(at, { op: 'replace', value: many }), 400, 'tooMany')
  assertScimError(await scim.post('/Users', person(many)), 400, 'tooMany')
  const some = Object.fromEntries(Object.entries(many).slice(0, 201))
  assertScimError(await scim.patch(at, { op: 'replace', value: some }), 400, 'tooMany')
  assertScimError(await scim.post('/Users', person({ x: Array.from({ length: 15_000 }, () => 1) })), 400, 'tooMany')
  assertScimError(
    await scim.post('/Users', person({ x: Array.from({ length: 120_000 }, () => 1) })),
    400,
    'invalidValue',
  )
  const long = { op: 'add', path: 'list[type eq "0"].v', value: 'v'.repeat(200_000) }
  assertScimError(await scim.patch(at, long), 413)
  // The list would be empty at the end, and each operation searches all of it.
  const values = Array.from({ length: 900 }, (_, i) => `${i}`.padEnd(200, 'v'))
  const additions = [values, 'one more'].map((value) => ({ op: 'add', path: 'more', value }))
  assertScimError(await scim.patch(at, ...additions, { op: 'remove', path: 'more' }), 413)
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
  const text = `{"schemas":["${patchSchema}"],"Operations":[{"op":"add","path":"list","value":${deep}}]}`
  assertScimError(await scim.call('PATCH', at, text), 400, 'invalidValue')
})

test('removing or changing an external ID does not restore access', async () => {
  const sent = person({ active: false })
  const { id } = created(await scim.post('/Users', sent))
  const { externalId, ...silent } = sent
  assert.equal(changed(await scim.put(`/Users/${id}`, silent)).externalId, externalId)
  changed(await scim.patch(`/Users/${id}`, { op: 'replace', path: 'externalId', value: `${externalId}-2` }))
  assert.equal(await standing(externalId), false)
  assert.equal(await standing(`${externalId}-2`), false)
  changed(await scim.patch(`/Users/${id}`, { op: 'remove', path: 'externalId' }))
  assert.equal(await standing(`${externalId}-2`), false)
})

test('the endpoint describes its own features', async () => {
  const config = (await scim.get('/ServiceProviderConfig')).body
  assert.deepEqual([config.patch.supported, config.bulk.supported, config.filter.maxResults], [true, false, 200])
  const types = (await scim.get('/ResourceTypes')).body
  assert.deepEqual(
    types.Resources.map((one: Json) => [one.name, one.endpoint]),
    [
      ['User', '/Users'],
      ['Group', '/Groups'],
    ],
  )
  assert.equal((await scim.get('/ResourceTypes/User')).body.schema, userSchema)
  const schemas = (await scim.get('/Schemas')).body
  assert.deepEqual(
    schemas.Resources.map((one: Json) => one.id),
    [userSchema, 'urn:ietf:params:scim:schemas:core:2.0:Group'],
  )
  assert.equal((await scim.get(`/Schemas/${userSchema}`)).body.attributes[0].name, 'userName')
  assertScimError(await scim.get('/Schemas/none'), 404)
})

test('each change sends an event and writes an audit log entry, with the provider as actor', async () => {
  const sent = person()
  let id = ''
  const events = await eventsOf(pinfold, async () => {
    id = created(await scim.post('/Users', sent)).id
    changed(await scim.patch(`/Users/${id}`, { op: 'replace', value: { active: false } }))
    changed(await scim.patch(`/Users/${id}`, { op: 'replace', value: { active: false } }))
    await scim.delete(`/Users/${id}`)
  })
  const user = { id, identity_provider_uid: provider, user_name: sent.userName, external_id: sent.externalId }
  assert.deepEqual(
    events.map(({ type, subject, group, actor, body }) => ({ type, subject, group, actor, body })),
    [
      ['created', true],
      ['updated', false],
      ['deleted', false],
    ].map(([what, active]) => ({
      type: `dev.pinfold.control.iam.scim_user.${what}.v1`,
      subject: provider,
      group: org,
      actor: provider,
      body: { user: { ...user, active } },
    })),
  )
  const audit = ok(await owner.get(`/events/v2/audit?uidp.childrenOf=${org}&subject=${provider}&pageSize=200`))
  const types = audit.auditEntries?.map((one: Json) => one.type) ?? JSON.stringify(audit)
  assert.ok(types.includes('dev.pinfold.control.iam.scim_user.deleted.v1'), String(types))
})

test('deleting a provider deletes its users, and its token has no access', async () => {
  const gone = await openEndpoint(pinfold, owner, org, issuer.url, 'gone')
  created(await gone.scim.post('/Users', person()))
  ok(await owner.delete(gone.path))
  assertScimError(await gone.scim.get('/Users'), 401)
})

test('counts SCIM requests per organization', async () => {
  await using scene = await startBusy()
  const statuses: number[] = []
  let last: ScimAnswer | undefined
  for (let i = 0; i < 4; i++) {
    last = await scene.scim.post('/Users', person())
    statuses.push(last.status)
  }
  assert.deepEqual(statuses, [201, 201, 201, 429])
  assert.ok(Number(last!.headers.get('retry-after')) > 0)
})

test('a network address can send ten times the requests of one organization, over all organizations', async () => {
  await using busy = await startBusy()
  const statuses: number[] = []
  for (let i = 0; i < 11; i++) {
    const { org, owner } = await busy.organization()
    const { scim } = await openEndpoint(busy.pinfold, owner, org, issuer.url)
    for (let sent = 0; sent < 3; sent++) statuses.push((await scim.get('/Users?count=1')).status)
  }
  assert.deepEqual(statuses, [...Array(30).fill(200), 429, 429, 429])
})

test('adding an existing value, alone or with others, does not duplicate it', async () => {
  const emails = [
    { type: 'work', value: 'a@example.com' },
    { type: 'home', value: 'b@example.com' },
  ]
  const at = `/Users/${created(await scim.post('/Users', person({ emails }))).id}`
  const add = async (value: unknown) => changed(await scim.patch(at, { op: 'add', path: 'emails', value })).emails
  assert.deepEqual(await add([emails[0]]), emails)
  assert.deepEqual(await add(emails[1]), emails)
  const more = { type: 'other', value: 'c@example.com' }
  assert.deepEqual(await add([emails[1], more, emails[0]]), [...emails, more])
  assert.deepEqual(changed(await scim.patch(at, { op: 'add', value: { emails: [more] } })).emails, [...emails, more])
})

async function startBusy() {
  const { pinfold, org, member } = await startScene({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    ...noMinutePasses,
    scimRequests: 3,
  })
  const opened = await openEndpoint(pinfold, await member(roleUids.owner), org.uid, issuer.url)
  const organization = async () => {
    const { uid } = await pinfold.seed.group()
    return { org: uid as string, owner: await member(roleUids.owner, uid) }
  }
  return { ...opened, pinfold, organization, [Symbol.asyncDispose]: () => pinfold[Symbol.asyncDispose]() }
}

test('the provider shows that its SCIM endpoint is turned on', async () => {
  assert.equal(ok(await owner.get(path)).scim.enabled, true)
})
