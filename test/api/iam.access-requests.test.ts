// Access requests: a person finds the organization of their email domain and asks for access, and its owners answer.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { AccessRequestsService } from '#gen/pinfold/control/iam/v1/access_requests_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertDenied, assertError, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { noMinutePasses } from '../support/times.ts'

const audience = 'client of the settings'
const domain = 'asked.example'
const day = 24 * 60 * 60 * 1000

let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let idp: string
let owner: Client
let made = 0
let time = Date.now()

before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    clock: () => new Date(time),
    allowSelfRegistration: true,
    allowOrganizationCreation: true,
    oidcProviders: [{ issuer: issuer.url, audience, label: 'Everybody', name: 'everybody' }],
  })
  const body = { name: domain, verified: true, kind: 'ORG_KIND_CUSTOMER', description: 'for its people only' }
  org = (await pinfold.seed.group('', body)).uid
  idp = (await pinfold.seed.provider(org, issuer.url)).uid
  owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
})
beforeEach(() => {
  time = Math.max(time, Date.now())
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

type Somebody = { uid: string; sub: string; client: Client }

async function somebody(claims: Json = {}, query = ''): Promise<Somebody> {
  const sub = `asks-${made++}`
  const says = { sub, aud: audience, name: 'Jo Doe', email: `${sub}@${domain}`, email_verified: true }
  // The clock of the server may be ahead of that of the issuer.
  const iat = Math.floor(time / 1000)
  const token = await issuer.token({ ...says, iat, exp: iat + 300, ...claims })
  ok(await pinfold.withToken(token).post('/auth/v1/register', {}))
  const exchanged = ok(await pinfold.withToken(token).call('POST', `/sts/exchange?aud=${pinfold.url}${query}`))
  return { uid: personUid(issuer.url, sub), sub, client: pinfold.withToken(exchanged.token) }
}

const ask = (client: Client, group = org): Promise<Answer> =>
  client.post(`/iam/v2/groups/${group}:requestGroupAccess`, {})
const waiting = async (): Promise<Json[]> => ok(await owner.get(`/control/v1/accessRequests/${org}`)).accessRequests
const requestOf = async (uid: string): Promise<Json> => (await waiting()).find((one) => one.identityUid === uid)!

test('finds the verified organization of the email domain of a person, without its internal data', async () => {
  const { client } = await somebody()
  const { group } = ok(await client.get('/iam/v2/groups:lookupGroup'))
  assert.partialDeepStrictEqual(group, { uid: org, name: domain, verified: true, description: '', resourceLimits: {} })
  assert.deepEqual(ok(await client.get('/iam/v2/groups:checkEligibility')), { eligible: true })
  const first = ok(await client.get('/iam/v1/groups:lookupGroup'))
  assert.deepEqual([first.group.id, first.group.description], [org, ''])
  assert.deepEqual(ok(await client.get('/iam/v1/groups:checkEligibility')), { eligible: true })
  using grpc = grpcClientOf(pinfold, GroupsService, client.token!)
  assert.equal((await grpc.lookupGroup({})).group!.uid, org)
  assertDenied(await client.get(`/iam/v2/groups/${org}`))
})

test('returns the same answer for each reason of ineligibility', async () => {
  const other = (await pinfold.seed.group('', { name: 'plain.example' })).uid
  await pinfold.seed.group('', { name: 'gmail.com', verified: true, kind: 'ORG_KIND_CUSTOMER' })
  const none = await somebody({ email: 'a@nobody.example' })
  const answers = new Set<string>()
  const assertNone = async (client: Client, eligible: boolean, what: string) => {
    const { eligible: said } = ok(await client.get('/iam/v2/groups:checkEligibility'))
    assert.equal(said, eligible, what)
    const found = await client.get('/iam/v2/groups:lookupGroup')
    assertNotFound(found, 'iam.pinfold.dev/Group', '-')
    const asked = await ask(client)
    assertNotFound(asked, 'iam.pinfold.dev/Group', org)
    const text = (answer: Answer) => JSON.stringify(answer.body).replaceAll(/"requestId":"[^"]*"/g, '')
    answers.add(text(found) + text(asked))
  }
  await assertNone(none.client, true, 'no such organization')
  await assertNone((await somebody({ email: 'a@plain.example' })).client, true, 'not verified')
  await assertNone((await somebody({ email: `a@sub.${domain}` })).client, true, 'a domain below')
  await assertNone((await somebody({ email: 'a@gmail.com' })).client, false, 'anybody can have it')
  await assertNone((await somebody({ email_verified: false })).client, false, 'not verified')
  await assertNone((await somebody({ email: undefined })).client, false, 'no address')
  for (const email of [`a@b@${domain}`, `@${domain}`, domain, `a@${domain}.`, `a@${domain} `, `a@ASKED.exa\u212aple`]) {
    await assertNone((await somebody({ email })).client, false, email)
  }
  const narrowed = await somebody({}, '&cap=groups.list')
  await assertNone(narrowed.client, false, 'a narrowed token')
  await assertNone(owner, false, 'a workload')
  await assertNone(pinfold.operator, false, 'the operator')
  assert.equal(answers.size, 1)

  const { client } = await somebody()
  for (const group of [other, 'x', '0'.repeat(40), `${org}/${'0'.repeat(16)}`]) {
    assert.equal((await ask(client, group)).status, 404, group)
  }
  assertInvalid(await client.post('/iam/v2/groups:requestGroupAccess', {}), 'group_uid')
  assertInvalid(await client.post('/iam/v1/groups:requestGroupAccess', {}), 'group_id')
  assert.equal((await pinfold.anonymous.get('/iam/v2/groups:lookupGroup')).status, 401)

  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE groups SET status = 3 WHERE uid = ${org}`))
  await assertNone((await somebody()).client, true, 'suspended')
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE groups SET status = 2 WHERE uid = ${org}`))
  assert.deepEqual(await waiting(), [])
})

test("what an organization's provider says of an address finds nothing and nobody", async () => {
  const sub = `asks-${made++}`
  const token = await issuer.token({ sub, aud: 'pinfold', email: `ceo@${domain}`, email_verified: true })
  const path = `/sts/exchange?aud=${pinfold.url}&identity_provider=${idp}`
  // The person already has an account there, so only the session belongs to the organization.
  ok(await pinfold.withToken(await issuer.token({ sub, aud: audience })).post('/auth/v1/register', {}))
  const inside = pinfold.withToken(ok(await pinfold.withToken(token).call('POST', path)).token)
  assert.equal(claimsOf(inside.token!).org, org)
  assert.equal(claimsOf(inside.token!).email, `ceo@${domain}`)
  assert.deepEqual(ok(await inside.get('/iam/v2/groups:checkEligibility')), { eligible: false })
  assert.equal((await inside.get('/iam/v2/groups:lookupGroup')).status, 404)
  assert.equal((await ask(inside)).status, 404)
})

test('owners list requests, and approve them with a role that they hold', async () => {
  const { client, uid, sub } = await somebody()
  const events = await eventsOf(pinfold, async () => assert.deepEqual(ok(await ask(client)), {}))
  const email = `${sub}@${domain}`
  assert.deepEqual(
    events.map(({ type, group, actor, body }) => [type, group, actor, body.access_request.email]),
    [['dev.pinfold.control.iam.access_request.created.v1', org, uid, email]],
  )
  const request = await requestOf(uid)
  assert.partialDeepStrictEqual(request, { identityUid: uid, email, name: 'Jo Doe' })
  assertDenied(await client.get(`/iam/v2/groups/${org}`))

  const approve = (by: Client, roleUid: string) =>
    by.post(`/control/v1/accessRequests/${request.uid}:approve`, { roleUid })
  const viewer = await pinfold.as((await pinfold.seed.member(org, roleUids.viewer)).uid)
  assertDenied(await viewer.get(`/control/v1/accessRequests/${org}`))
  assertDenied(await approve(viewer, roleUids.viewer))
  const elsewhere = await pinfold.as((await pinfold.seed.member((await pinfold.seed.group()).uid, roleUids.owner)).uid)
  assertDenied(await approve(elsewhere, roleUids.viewer))
  const inviting = (await pinfold.seed.role(org, ['group_invites.create', 'role_bindings.create'])).uid
  const inviter = await pinfold.as((await pinfold.seed.member(org, inviting)).uid)
  assertDenied(await approve(inviter, roleUids.owner))
  assertInvalid(await approve(owner, ''), 'role_uid')
  assert.equal((await approve(owner, '0'.repeat(40))).status, 404)

  const answered = await eventsOf(pinfold, async () => {
    const { roleBindingUid } = ok(await approve(owner, roleUids.viewer))
    const binding = ok(await pinfold.operator.get(`/iam/v2/roleBindings/${roleBindingUid}`))
    assert.deepEqual([binding.identity.uid, binding.roleUid], [uid, roleUids.viewer])
  })
  assert.deepEqual(
    answered.map(({ type }) => type.replace(/^dev\.pinfold\.|\.v1$/g, '')),
    ['api.iam.rolebindings.created', 'control.iam.access_request.answered'],
  )
  assert.partialDeepStrictEqual(answered[1]!.body, { approved: true, role_uid: roleUids.viewer })
  const { token } = ok(
    await pinfold
      .withToken(await issuer.token({ sub, aud: audience }))
      .call('POST', `/sts/exchange?aud=${pinfold.url}`),
  )
  ok(await pinfold.withToken(token).get(`/iam/v2/groups/${org}`))
  assertNotFound(await approve(owner, roleUids.viewer), 'iam.pinfold.dev/AccessRequest', request.uid)
  assert.equal(await requestOf(uid), undefined)
})

test('approval activates pending bindings of the person, recorded with the approving member', async () => {
  const { client, uid } = await somebody()
  const bound = await pinfold.seed.member(org, roleUids.owner)
  const by = await pinfold.as(bound.uid)
  const { uid: waited } = ok(
    await by.post(`/iam/v2/roleBindings/${org}`, { identityUid: uid, roleUid: roleUids.editor }),
  )
  ok(await ask(client))
  const { uid: request } = await requestOf(uid)
  const events = await eventsOf(pinfold, async () => {
    ok(await by.post(`/control/v1/accessRequests/${request}:approve`, { roleUid: roleUids.viewer }))
  })
  const [updated] = events.filter(({ type }) => type.endsWith('rolebindings.updated.v1'))
  assert.deepEqual([updated?.subject, updated?.actor], [waited, bound.uid])
})

test('granting the owner role requires a sign-in within the last ten minutes', async () => {
  const { client, uid } = await somebody()
  ok(await ask(client))
  const { uid: bossUid, sub } = await somebody()
  await pinfold.seed.binding(org, bossUid, roleUids.owner)
  const signedIn = await issuer.token({ sub, aud: audience })
  const boss = ok(await pinfold.withToken(signedIn).call('POST', `/sts/exchange?aud=${pinfold.url}`))
  const { uid: request } = await requestOf(uid)
  const answer = await pinfold
    .withToken(boss.token)
    .post(`/control/v1/accessRequests/${request}:approve`, { roleUid: roleUids.owner })
  assertError(answer, 400, 9, 'REAUTHENTICATION_REQUIRED')
})

test('lists access requests in pages, over gRPC too, and deletes them with the account', async () => {
  const people = await Promise.all([somebody(), somebody(), somebody()])
  for (const { client } of people) ok(await ask(client))
  using grpc = grpcClientOf(pinfold, AccessRequestsService, owner.token!)
  const seen: string[] = []
  let pageToken = ''
  do {
    const page = await grpc.listAccessRequests({ organization: org, pageSize: 2, orderBy: 'uid desc', pageToken })
    seen.push(...page.accessRequests.map(({ identityUid }) => identityUid))
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  for (const { uid } of people) assert.ok(seen.includes(uid))
  ok(await pinfold.operator.delete(`/iam/v2/identities/${people[0]!.uid}`))
  assert.equal(await requestOf(people[0]!.uid), undefined)
})

test('limits how often a person can request access', async () => {
  await using few = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    ...noMinutePasses,
    exchangesPerIdentity: 3,
  })
  const client = await few.as((await few.seed.person()).uid)
  const statuses = await Promise.all(Array.from({ length: 6 }, () => client.get('/iam/v2/groups:lookupGroup')))
  assert.deepEqual(statuses.map(({ status }) => status).sort(), [404, 404, 404, 429, 429, 429])
})

test('only the person can set their own profile fields', async () => {
  const { client, uid } = await somebody()
  const path = '/iam/v2/identities:updateIdentityMetadata'
  const events = await eventsOf(pinfold, async () => {
    const body = { identityMetadata: { company: 'Acme', jobTitle: 'Engineer' } }
    const expected = { uid, name: 'Jo Doe', givenName: '', familyName: '', company: 'Acme', jobTitle: 'Engineer' }
    assert.deepEqual(ok(await client.patch(path, body)), expected)
    const masked = { identityMetadata: { company: 'Other', jobTitle: 'x' }, updateMask: 'company' }
    assert.deepEqual(ok(await client.patch(path, masked)), { ...expected, company: 'Other' })
  })
  assert.deepEqual(
    events.map(({ type, audience: whose }) => [type, whose]),
    Array(2).fill(['dev.pinfold.api.iam.identity.metadata.updated.v1', 'INTERNAL']),
  )
  assert.equal(ok(await pinfold.operator.get(`/iam/v2/identities/${uid}`)).company, 'Other')
  using grpc = grpcClientOf(pinfold, IdentitiesService, client.token!)
  const over = await grpc.updateIdentityMetadata({
    identityMetadata: { jobTitle: 'Head' },
    updateMask: { paths: ['*'] },
  })
  assert.deepEqual([over.company, over.jobTitle], ['', 'Head'])
  assertInvalid(
    await client.patch(path, { identityMetadata: { company: 'a\tb', jobTitle: 'c\nd' } }),
    'company',
    'job_title',
  )
  assertInvalid(await client.patch(path, { identityMetadata: {}, updateMask: 'nothing' }), 'update_mask')
  // The name from the sign-in provider does not change.
  const named = ok(await client.patch(path, { identityMetadata: { name: 'Somebody Else', jobTitle: 'y' } }))
  assert.deepEqual([named.name, named.jobTitle], ['Jo Doe', 'y'])
  assertDenied(await owner.patch(path, { identityMetadata: { company: 'x' } }))
  assertDenied(await pinfold.operator.patch(path, { identityMetadata: { company: 'x' } }))
  assert.equal((await pinfold.anonymous.patch(path, { identityMetadata: { company: 'x' } })).status, 401)
})

test("an organization's provider does not speak for a person whom others know", async () => {
  const { sub, client } = await somebody()
  const path = '/iam/v2/identities:updateIdentityMetadata'
  const inside = async (subject: string): Promise<Client> => {
    const token = await issuer.token({ sub: subject, aud: 'pinfold' })
    const exchanged = await pinfold
      .withToken(token)
      .call('POST', `/sts/exchange?aud=${pinfold.url}&identity_provider=${idp}`)
    return pinfold.withToken(ok(exchanged).token)
  }
  assertDenied(await (await inside(sub)).patch(path, { identityMetadata: { company: 'Mallory' } }))
  ok(await client.patch(path, { identityMetadata: { company: 'Own' } }))
})

test('a person can request again after a day, or a week if rejected, and a request expires after thirty days', async () => {
  const { client, uid, sub } = await somebody()
  const again = async (): Promise<Answer> => {
    const iat = Math.floor(time / 1000)
    const claims = { sub, aud: audience, iat, exp: iat + 300, email: `${sub}@${domain}`, email_verified: true }
    const token = await issuer.token(claims)
    return ask(
      pinfold.withToken(ok(await pinfold.withToken(token).call('POST', `/sts/exchange?aud=${pinfold.url}`)).token),
    )
  }
  ok(await ask(client))
  const soon = await ask(client)
  assert.deepEqual([soon.status, soon.body.code], [429, 8])
  assert.ok(Number(soon.body.details.find((one: Json) => one.retryDelay)!.retryDelay.replace('s', '')) > 86_000)
  const first = await requestOf(uid)
  time += day + 1000
  owner = await pinfold.as(claimsOf(owner.token!).sub)
  ok(await again())
  const second = await requestOf(uid)
  assert.deepEqual([second.uid, second.createTime], [first.uid, first.createTime])
  assert.notEqual(second.askTime, first.askTime)

  const events = await eventsOf(pinfold, async () =>
    ok(await owner.post(`/control/v1/accessRequests/${first.uid}:refuse`)),
  )
  assert.equal(events[0]!.body.approved, false)
  assert.equal(await requestOf(uid), undefined)
  assertNotFound(
    await owner.post(`/control/v1/accessRequests/${first.uid}:refuse`),
    'iam.pinfold.dev/AccessRequest',
    first.uid,
  )
  time += 2 * day
  assert.equal((await again()).status, 429)
  time += 5 * day + 1000
  ok(await again())
  time += 30 * day + 1000
  owner = await pinfold.as(claimsOf(owner.token!).sub)
  assert.equal(await requestOf(uid), undefined)
  ok(await again())
  assert.ok(await requestOf(uid))
})

test('deleting and recreating an account does not shorten the wait until the next request', async () => {
  const first = await somebody()
  const signedIn = async (token: string): Promise<Client> =>
    pinfold.withToken(ok(await pinfold.withToken(token).call('POST', `/sts/exchange?aud=${pinfold.url}`)).token)
  /** Deletes the account and registers it again. */
  const anew = async (): Promise<Client> => {
    const iat = Math.floor(time / 1000)
    const claims = { sub: first.sub, aud: audience, iat, exp: iat + 300, email_verified: true }
    const token = await issuer.token({ ...claims, email: `${first.sub}@${domain}` })
    ok(await (await signedIn(token)).delete(`/auth/v1/delete/${first.uid}`))
    ok(await pinfold.withToken(token).post('/auth/v1/register', {}))
    return signedIn(token)
  }
  ok(await ask(first.client))
  const { uid: request } = await requestOf(first.uid)
  // The pending request is deleted with the account, and nobody can answer it.
  const second = await anew()
  assert.equal(await requestOf(first.uid), undefined)
  assertNotFound(
    await owner.post(`/control/v1/accessRequests/${request}:approve`, { roleUid: roleUids.viewer }),
    'iam.pinfold.dev/AccessRequest',
    request,
  )
  assert.equal((await ask(second)).status, 429)
  const kept = await pinfold.app.db.get<Json>(sql`SELECT name, email FROM access_requests WHERE uid = ${request}`)
  assert.deepEqual({ ...kept }, { name: '', email: '' })
  time += day + 1000
  ok(await ask(await anew()))

  owner = await pinfold.as(claimsOf(owner.token!).sub)
  const asked = await requestOf(first.uid)
  assert.equal(asked.email, `${first.sub}@${domain}`)
  ok(await owner.post(`/control/v1/accessRequests/${asked.uid}:refuse`))
  const third = await anew()
  assert.equal((await ask(third)).status, 429)
  time += 6 * day
  assert.equal((await ask(await anew())).status, 429)
  time += day + 1000
  ok(await ask(await anew()))
})
