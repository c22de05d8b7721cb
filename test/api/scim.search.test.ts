// Lookup of users by providers: filters, pages, selected attributes, searches by POST, and versions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { insertUser } from '#domains/iam/scim/scim-users.store.ts'
import { startIssuer } from '../support/fake-issuer.ts'
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
const owner = await member(roleUids.owner)
const { scim } = await openEndpoint(pinfold, owner, scene.org.uid, issuer.url)
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const ids: Record<string, string> = {}
before(async () => {
  const people: Json[] = [
    {
      userName: 'Ada@Acme.example',
      externalId: 'E-ada',
      active: true,
      name: { givenName: 'Ada', familyName: 'King' },
      emails: [
        { value: 'Ada@Acme.example', type: 'work', primary: true },
        { value: 'ada@home.example', type: 'home' },
      ],
      [enterprise]: { department: 'sums', manager: { value: '44' } },
    },
    { userName: 'bob_1', externalId: 'e-ada', active: false, emails: [{ value: 'bob@home.example', type: 'work' }] },
    { userName: 'bobX1', active: true, emails: ['%@acme.example'] },
    { userName: 'dan', externalId: 'E-dan', active: true },
  ]
  for (const one of people) {
    const { id } = created(await scim.post('/Users', { schemas: [userSchema], ...one }))
    ids[one.userName.slice(0, 4).toLowerCase()] = id
  }
})

/** Users that a filter finds, by the beginning of their names. */
async function find(filter: string): Promise<string> {
  const { body, status, text } = await scim.get(`/Users?filter=${encodeURIComponent(filter)}`)
  assert.equal(status, 200, text)
  assert.equal(body.totalResults, body.Resources.length)
  return body.Resources.map((one: Json) => one.userName.slice(0, 4).toLowerCase()).join(' ')
}

const filters: [filter: string, found: string][] = [
  ['userName eq "ada@acme.EXAMPLE"', 'ada@'],
  ['USERNAME EQ "dan"', 'dan'],
  ['externalId eq "E-ada"', 'ada@'],
  ['externalId eq e-ada', 'bob_'],
  ['externalId ne "E-ada"', 'bob_ bobx dan'],
  ['not (externalId eq "E-ada")', 'bob_ bobx dan'],
  ['externalId pr', 'ada@ bob_ dan'],
  ['externalId sw "E-"', 'ada@ dan'],
  ['externalId co "-a"', 'ada@ bob_'],
  ['externalId ew "dan"', 'dan'],
  ['userName sw "bob_"', 'bob_'],
  ['userName co "%"', ''],
  ['userName ew ""', 'ada@ bob_ bobx dan'],
  ['active eq true', 'ada@ bobx dan'],
  ['active eq "False"', 'bob_'],
  ['active ne true', 'bob_'],
  [`${userSchema}:active eq false`, 'bob_'],
  ['emails eq "ada@acme.example"', 'ada@'],
  ['emails.value eq "ADA@home.example"', 'ada@'],
  ['EMAILS.value EQ "bob@home.example"', 'bob_'],
  [`${userSchema}:emails.value co "@acme."`, 'ada@ bobx'],
  ['emails[type eq "work" and value ew "@home.example"]', 'bob_'],
  ['emails.type eq "work" and emails.value ew "@home.example"', 'ada@ bob_'],
  ['emails[primary eq true]', 'ada@'],
  ['emails[type eq "work"].value eq "ADA@acme.example"', 'ada@'],
  ['emails[type eq "work"].value eq "ada@home.example"', ''],
  ['emails[type eq "work" and primary eq true].value sw "ada" and active eq true', 'ada@'],
  ['emails[value co "home"].TYPE eq "work" or emails[type eq "home"].primary eq false', 'ada@ bob_'],
  ['', 'ada@ bob_ bobx dan'],
  [' ', 'ada@ bob_ bobx dan'],
  ['emails pr', 'ada@ bob_ bobx'],
  ['not (emails pr)', 'dan'],
  ['emails.type pr', 'ada@ bob_'],
  ['active eq true and emails.value co "acme" or userName eq "dan"', 'ada@ bobx dan'],
  ['active eq true and (emails.value co "acme" or userName eq "bob_1")', 'ada@ bobx'],
  ['userName eq "dan" or userName eq "bobx1" or active eq false', 'bob_ bobx dan'],
  ['meta.lastModified gt "2020-01-01T00:00:00Z" and userName eq "dan"', 'dan'],
  ['meta.created lt "2020-01-01T00:00:00Z"', ''],
  ['userName eq "dan" and userName eq "bobx1"', ''],
  ['(((userName eq "a \\"quoted\\" (name) or not")))', ''],
]
for (const [filter, found] of filters) {
  test(`the filter ${filter} finds ${found || 'nobody'}`, async () => {
    assert.equal(await find(filter), found)
  })
}

test('finds email addresses that an earlier release wrote, also after a newer release', async () => {
  const { id } = created(
    await scim.post('/Users', { schemas: [userSchema], userName: 'older', emails: [{ value: 'old@a.example' }] }),
  )
  const resource = JSON.stringify({ userName: 'older', active: true, emails: [{ value: 'New@a.example' }] })
  await pinfold.app.db.tx((tx) =>
    tx.run(
      sql`UPDATE scim_users SET resource = ${resource}, update_time = '2030-01-01T00:00:00.000Z' WHERE id = ${id}`,
    ),
  )
  assert.equal(await find('emails eq "new@a.example"'), 'olde')
  assert.equal(await find('emails eq "old@a.example"'), '')
  assert.equal((await scim.delete(`/Users/${id}`)).status, 204)
  assert.equal(await find('emails eq "new@a.example"'), '')
})

test('attributes and excludedAttributes select the returned attributes', async () => {
  const at = `/Users/${ids['ada@']}`
  const shown = async (query: string) => {
    const { id, schemas, ...rest } = (await scim.get(`${at}?${query}`)).body
    assert.equal(id, ids['ada@'])
    assert.deepEqual(schemas, [userSchema])
    return rest
  }
  assert.deepEqual(await shown('attributes=userName'), { userName: 'Ada@Acme.example' })
  assert.deepEqual(await shown('attributes=USERNAME,%20active'), { userName: 'Ada@Acme.example', active: true })
  assert.deepEqual(await shown('attributes=name.givenName,name.familyname'), {
    name: { givenName: 'Ada', familyName: 'King' },
  })
  assert.deepEqual(await shown('attributes=emails.value'), {
    emails: [{ value: 'Ada@Acme.example' }, { value: 'ada@home.example' }],
  })
  assert.deepEqual(await shown(`attributes=${enterprise}:department,${userSchema}:active`), {
    [enterprise]: { department: 'sums' },
    active: true,
  })
  assert.deepEqual(await shown(`attributes=${enterprise}`), {
    [enterprise]: { department: 'sums', manager: { value: '44' } },
  })
  assert.deepEqual(await shown('attributes=unknown,toString,__proto__'), {})
  const without = await shown('excludedAttributes=id,emails,meta,name.givenName,schemas')
  assert.deepEqual(Object.keys(without).sort(), ['active', 'externalId', 'name', enterprise, 'userName'].sort())
  assert.deepEqual(without.name, { familyName: 'King' })
  const listed = (await scim.get('/Users?attributes=userName&filter=userName%20eq%20%22dan%22')).body.Resources
  assert.deepEqual(listed, [{ schemas: [userSchema], id: ids.dan, userName: 'dan' }])
  const patched = await scim.call('PATCH', `${at}?attributes=title`, {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: [{ op: 'replace', path: 'title', value: 'T' }],
  })
  assert.deepEqual(changed(patched), { schemas: [userSchema], id: ids['ada@'], title: 'T' })
  assertScimError(await scim.get(`${at}?attributes=${'a,'.repeat(40)}`), 400, 'tooMany')
})

test('a search by POST returns the same as the list', async () => {
  const body = { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'], filter: 'active eq true', count: 2 }
  for (const path of ['/Users/.search', '/.search']) {
    const { status, body: found } = await scim.post(path, { ...body, startIndex: 2, attributes: ['userName'] })
    assert.equal(status, 200)
    assert.deepEqual([found.totalResults, found.startIndex, found.itemsPerPage], [3, 2, 2])
    assert.deepEqual(
      found.Resources.map(({ schemas, id, ...rest }: Json) => rest),
      [{ userName: 'bobX1' }, { userName: 'dan' }],
    )
  }
  assert.equal((await scim.post('/Users/.search', {})).body.totalResults, 4)
  assert.equal((await scim.post('/Users/.search', { filter: '' })).body.totalResults, 4)
  for (const filter of ['x', 'emails[type eq "work"].display eq "x"', 'emails[type eq "work"].value']) {
    assertScimError(await scim.post('/Users/.search', { filter }), 400, 'invalidFilter')
  }
  assertScimError(await scim.post('/Users/.search', { filter: 7 }), 400, 'invalidValue')
  assertScimError(await scim.post('/Users/.search', { count: 'many' }), 400, 'invalidValue')
  assertScimError(await scim.post('/Users/.search', []), 400, 'invalidSyntax')
  assertScimError(await scim.get('/Users/.search'), 405)
})

test('refuses a change for another version with 412, and changes nothing', async () => {
  const at = `/Users/${ids.dan}`
  const first = await scim.get(at)
  const version = first.headers.get('etag')!
  assert.match(version, /^W\/"[\w-]{22}"$/)
  assert.equal(first.body.meta.version, version)
  const write = (title: string, ifMatch: string) =>
    scim.call('PUT', at, { ...first.body, title }, { 'if-match': ifMatch })
  const second = await write('one', version)
  assert.equal(changed(second).title, 'one')
  const now = second.headers.get('etag')!
  assert.notEqual(now, version)
  assertScimError(await write('two', version), 412)
  assertScimError(await write('two', '"x", "y"'), 412)
  const operations = { Operations: [{ op: 'replace', path: 'active', value: false }] }
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp']
  assertScimError(await scim.call('PATCH', at, { schemas, ...operations }, { 'if-match': version }), 412)
  assertScimError(await scim.call('DELETE', at, undefined, { 'if-match': version }), 412)
  assert.deepEqual((await scim.get(at)).body, second.body)

  const same = await scim.call('GET', at, undefined, { 'if-none-match': `"x", ${now}` })
  assert.deepEqual([same.status, same.text, same.headers.get('etag')], [304, '', now])
  assert.equal((await scim.call('GET', at, undefined, { 'if-none-match': version })).status, 200)
  changed(await write('three', `"x", ${now.replace('W/', '')}`))
  changed(await write('four', '*'))
})

test('adding users while a provider reads pages does not move users to other pages', async () => {
  const seen: string[] = []
  for (let start = 1; ; start += 2) {
    const { Resources, totalResults } = (await scim.get(`/Users?startIndex=${start}&count=2`)).body
    seen.push(...Resources.map((one: Json) => one.id))
    if (start + 2 > totalResults) break
    if (start < 6) created(await scim.post('/Users', { schemas: [userSchema], userName: `later ${start}` }))
  }
  assert.equal(new Set(seen).size, seen.length)
  for (const id of Object.values(ids)) assert.ok(seen.includes(id))
})

test('finds users by filter, in pages and in the order of creation', async () => {
  const many = await openEndpoint(pinfold, owner, scene.org.uid, issuer.url, 'many')
  const names = Array.from({ length: 1100 }, (_, i) => `many${String(i).padStart(4, '0')}`)
  await pinfold.app.db.tx(async (tx) => {
    for (const [i, userName] of names.entries()) {
      const createTime = new Date(Date.UTC(2026, 0, 1, 0, i >> 1)).toISOString()
      const emails = [{ value: i % 3 === 0 ? `${userName}@a.example` : `${userName}@b.example` }]
      const resource = { userName, active: i % 2 === 0, emails }
      const id = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`
      const more = { id, provider: many.provider, externalId: '', createTime, updateTime: createTime }
      await insertUser(tx, { userName, active: resource.active, resource, ...more })
    }
  })
  const expected: [filter: string, isFound: (i: number) => boolean][] = [
    ['emails.value ew "@a.example"', (i) => i % 3 === 0],
    ['not (emails.value co "@a.") and active eq true', (i) => i % 3 !== 0 && i % 2 === 0],
    ['active eq false', (i) => i % 2 === 1],
    ['userName eq "many0007" and emails.value co "@b."', (i) => i === 7],
    ['emails eq "nobody@a.example"', () => false],
  ]
  for (const [filter, isFound] of expected) {
    const wanted = names.filter((_, i) => isFound(i))
    for (const [start, count] of [
      [1, 200],
      [190, 150],
      [1, 0],
      [2000, 10],
    ] as const) {
      const query = `filter=${encodeURIComponent(filter)}&startIndex=${start}&count=${count}`
      const { body } = await many.scim.get(`/Users?${query}`)
      assert.equal(body.totalResults, wanted.length, query)
      assert.deepEqual(
        body.Resources.map((one: Json) => one.userName),
        wanted.slice(start - 1, start - 1 + count),
        query,
      )
    }
  }
})
