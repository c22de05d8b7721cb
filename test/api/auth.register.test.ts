// Registration of people with the token of a trusted sign-in provider, with or without an invitation code.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { refusalOf } from '../support/answers.ts'
import { checkLists } from '../support/check-lists.ts'
import { assertError, assertInvalid, eventsOf, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { noMinutePasses } from '../support/times.ts'

const audience = 'client-id-of-pinfold'

let pinfold: Pinfold
let issuer: FakeIssuer
let org: string
let time = Date.now()
let made = 0

before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    oidcProviders: [{ issuer: issuer.url, audience }],
    allowSelfRegistration: true,
    clock: () => new Date(time),
  })
  org = (await pinfold.seed.group()).uid
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

type Somebody = { subject: string; uid: string; register(body?: Json, claims?: Json): Promise<Answer> }

function somebody(defaults: Json = {}): Somebody {
  const subject = `person-${made++}`
  return {
    subject,
    uid: personUid(issuer.url, subject),
    async register(body = {}, claims = {}) {
      const token = await issuer.token({ sub: subject, aud: audience, ...defaults, ...claims })
      return pinfold.withToken(token).post('/auth/v1/register', body)
    },
  }
}

const seenBy = async (uid: string) => ok(await pinfold.operator.get(`/iam/v2/identities/${uid}`))
const bindingsOf = async (uid: string) => {
  return ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`)).roleBindings as Json[]
}
const inviteOf = async (body: Json = {}) => pinfold.seed.invite(org, roleUids.viewer, body)

function assertRefused(answer: Answer, reason: string): void {
  assertError(answer, 403, 7, reason)
}

test('a server without the registration setting refuses each registration', async () => {
  await using closed = await startPinfold({ allowInsecureIssuers: true, allowPrivateAddresses: true })
  const asked = issuer.requests.length
  const good = await issuer.token({ sub: 'x', aud: closed.url, email_verified: true })
  for (const client of [closed.anonymous, closed.withToken('x'), closed.withToken(good), closed.operator]) {
    assertRefused(await client.post('/auth/v1/register', {}), 'REGISTRATION_CLOSED')
  }
  assert.equal(issuer.requests.length, asked)
})

test('a new person needs an invitation code, unless the settings open registration', async () => {
  pinfold.app.config.allowSelfRegistration = false
  try {
    const person = somebody()
    assertRefused(await person.register(), 'INVITE_REQUIRED')
    assert.equal((await pinfold.operator.get(`/iam/v2/identities/${person.uid}`)).status, 404)
    const { code } = await inviteOf()
    assert.equal(ok(await person.register({ code })).group, org)
    // A person with an account may register again.
    assert.deepEqual(ok(await person.register()), { identity: person.uid, group: '' })
  } finally {
    pinfold.app.config.allowSelfRegistration = true
  }
})

test('a person can register, gets the uid that the lookup had returned before, and can sign in', async () => {
  const jane = somebody({ name: 'Jane Doe', email: 'Jane@example.com', email_verified: true })
  const looked = ok(
    await pinfold.operator.get(`/iam/v2/identities:lookupIdentity?issuer=${issuer.url}&subject=${jane.subject}`),
  )
  assert.equal(looked.uid, jane.uid)
  const before = await exchange(jane)
  assert.equal(refusalOf(before).code, 5)

  await pinfold.seed.binding(org, jane.uid, roleUids.viewer)
  assert.deepEqual(ok(await jane.register()), { identity: jane.uid, group: '' })
  assert.partialDeepStrictEqual(await seenBy(jane.uid), {
    name: 'Jane Doe',
    email: 'Jane@example.com',
    emailUnverified: '',
    claimMatch: { issuer: issuer.url, subject: jane.subject },
  })
  const [binding] = await bindingsOf(jane.uid)
  assert.partialDeepStrictEqual(binding!.identity, {
    issuer: issuer.url,
    subject: jane.subject,
    email: 'Jane@example.com',
  })

  const { token } = ok(await exchange(jane))
  const me = ok(await pinfold.withToken(token).get('/auth/v1/ok'))
  assert.deepEqual([me.subject, me.email, me.capabilities.length], [jane.uid, 'Jane@example.com', 1])
})

async function exchange(person: Somebody, claims: Json = {}): Promise<Answer> {
  const token = await issuer.token({ sub: person.subject, aud: audience, ...claims })
  return pinfold.withToken(token).call('POST', `/sts/exchange?aud=${pinfold.url}`)
}

test("a person's token must be meant for the audience of the setting, at each sign-in", async () => {
  const person = somebody()
  ok(await person.register())
  ok(await exchange(person, { aud: ['other', audience] }))
  for (const aud of [pinfold.url, new URL(pinfold.url).host, 'other']) {
    assert.equal(refusalOf(await exchange(person, { aud })).code, 16)
    assert.equal(refusalOf(await somebody().register({}, { aud })).code, 16)
  }
})

test('an email address counts as verified only if the provider reports it as verified', async () => {
  for (const [email_verified, verified] of [
    [true, true],
    ['true', true],
    [false, false],
    ['false', false],
    [1, false],
    ['yes', false],
    [undefined, false],
  ] as const) {
    const person = somebody({ email: 'joe@example.com', email_verified })
    ok(await person.register())
    const { email, emailUnverified } = await seenBy(person.uid)
    assert.deepEqual([email, emailUnverified], verified ? ['joe@example.com', ''] : ['', 'joe@example.com'])
  }
  const odd = somebody({ name: 'a\u0000b', email: ['x@example.com'], email_verified: true })
  ok(await odd.register())
  assert.partialDeepStrictEqual(await seenBy(odd.uid), { name: odd.subject, email: '', emailUnverified: '' })
})

test('accepts only a valid token of a trusted issuer', async () => {
  await using stranger = await startIssuer()
  const person = somebody()
  const register = (token: string) => pinfold.withToken(token).post('/auth/v1/register', {})
  const claims = { sub: person.subject, aud: audience }
  const good = await issuer.token(claims)
  const now = Math.floor(Date.now() / 1000)
  for (const token of [
    'x',
    await stranger.token(claims),
    await stranger.token({ ...claims, iss: issuer.url }),
    `${good.slice(0, -8)}AAAAAAAA`,
    await issuer.token({ ...claims, exp: now - 3600 }),
    await issuer.token({ ...claims, nbf: now + 3600 }),
    await issuer.token({ ...claims, iss: `${issuer.url}/` }),
    pinfold.operator.token!,
  ]) {
    assertError(await register(token), 401, 16, 'UNAUTHENTICATED')
  }
  assert.equal(refusalOf(await pinfold.anonymous.post('/auth/v1/register', {})).code, 16)
  assert.deepEqual(stranger.requests, [])
  assert.equal((await pinfold.operator.get(`/iam/v2/identities/${person.uid}`)).status, 404)
})

test('refuses a request with the uid of another person', async () => {
  const [person, other] = [somebody(), somebody()]
  assertInvalid(await person.register({ identityId: 'x' }), 'identity_id')
  assertRefused(await person.register({ identityId: other.uid }), 'PERMISSION_DENIED')
  assert.equal(ok(await person.register({ identityId: person.uid })).identity, person.uid)
})

test('an invitation code creates the account and the role binding, with one event', async () => {
  const invite = await inviteOf()
  const person = somebody()
  const events = await eventsOf(pinfold, async () => {
    assert.deepEqual(ok(await person.register({ code: invite.code })), { identity: person.uid, group: org })
    assert.deepEqual(ok(await person.register({ code: invite.code })), { identity: person.uid, group: org })
    ok(await person.register())
  })
  assert.deepEqual(events, [
    {
      type: 'dev.pinfold.api.auth.registered.v1',
      subject: person.uid,
      group: org,
      audience: 'CUSTOMER',
      actor: person.uid,
      bodyType: 'pinfold.platform.auth.Session',
      body: { identity: person.uid, group: org },
    },
  ])
  const bindings = await bindingsOf(person.uid)
  assert.deepEqual(
    bindings.map((one) => [one.group.uid, one.roleUid]),
    [[org, roleUids.viewer]],
  )
  const member = await pinfold.as(person.uid)
  assert.equal((await member.get(`/iam/v2/groups/${org}`)).status, 200)
  // An invitation for several people, until it expires.
  assert.equal(ok(await somebody().register({ code: invite.code })).group, org)
  await checkLists(pinfold)
})

test('a person with an account can join more groups by invitation', async () => {
  const person = somebody()
  const alone = await eventsOf(pinfold, async () => ok(await person.register()))
  assert.deepEqual(
    alone.map((one) => [one.subject, one.group]),
    [[person.uid, '/']],
  )
  const folder = (await pinfold.seed.group(org)).uid
  const invite = await pinfold.seed.invite(folder, roleUids.editor)
  ok(await person.register({ code: invite.code }))
  ok(await person.register({ code: (await inviteOf()).code }))
  assert.deepEqual(new Set((await bindingsOf(person.uid)).map((one) => one.group.uid)), new Set([folder, org]))
})

test('redeeming an invitation accepts the pending bindings of the person in its organization, and uses up the invitation', async () => {
  const person = somebody({ name: 'Jane', email: 'jane@example.com', email_verified: true })
  const owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  const folder = (await pinfold.seed.group(org)).uid
  for (const [group, roleUid] of [
    [org, roleUids.viewer],
    [folder, roleUids.editor],
  ]) {
    ok(await owner.post(`/iam/v2/roleBindings/${group}`, { identityUid: person.uid, roleUid }))
  }
  ok(await person.register())
  assert.ok((await bindingsOf(person.uid)).every((one) => one.identity.name === ''))
  const member = await pinfold.as(person.uid)
  assertError(await member.get(`/iam/v2/groups/${folder}`), 403, 7, 'PERMISSION_DENIED')

  const invite = await inviteOf({ singleUse: true })
  ok(await person.register({ code: invite.code }))
  assert.deepEqual(
    (await bindingsOf(person.uid)).map((one) => one.identity.name),
    ['Jane', 'Jane'],
  )
  ok(await member.get(`/iam/v2/groups/${folder}`))
  assert.equal((await pinfold.operator.get(`/iam/v2/groupInvites/${invite.uid}`)).status, 404)
  await checkLists(pinfold)
})

test('an invitation becomes invalid when its creator loses the right to grant the role', async () => {
  const roleUid = (await pinfold.seed.role(org, ['repo.list'])).uid
  const inviting = ['group_invites.create', 'role_bindings.create']
  const makerRole = (await pinfold.seed.role(org, [...inviting, 'repo.list'])).uid
  const made = async () => {
    const { uid } = await pinfold.seed.identity(org)
    const binding = await pinfold.seed.binding(org, uid, makerRole)
    const body = { roleUid, ttl: '3600s' }
    const { code } = ok(await (await pinfold.as(uid)).post(`/iam/v2/groupInvites/${org}`, body))
    return { uid, binding, code }
  }
  const redeem = (code: string) => somebody().register({ code })
  const unknown = await redeem((await goneInvite()).code)
  const assertDead = async (code: string) => {
    const refused = await redeem(code)
    assertRefused(refused, 'INVITE_INVALID')
    assert.equal(refused.body.message, unknown.body.message)
  }

  const good = await made()
  assert.equal(ok(await redeem(good.code)).group, org)

  const deleted = await made()
  ok(await pinfold.operator.delete(`/iam/v2/identities/${deleted.uid}`))
  await assertDead(deleted.code)

  const unbound = await made()
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${unbound.binding.uid}`))
  await assertDead(unbound.code)

  const [first, second] = [await made(), await made()]
  for (const capabilities of [inviting, ['group_invites.create', 'repo.list'], ['role_bindings.create', 'repo.list']]) {
    ok(await pinfold.operator.patch(`/iam/v2/roles/${makerRole}`, { capabilities }))
    await assertDead(first.code)
  }
  // The invitation works again when its creator regains the right, and grants the current capabilities of the role.
  ok(await pinfold.operator.patch(`/iam/v2/roles/${makerRole}`, { capabilities: [...inviting, 'repo.list'] }))
  assert.equal(ok(await redeem(first.code)).group, org)
  ok(await pinfold.operator.patch(`/iam/v2/roles/${roleUid}`, { capabilities: ['repo.list', 'repo.delete'] }))
  await assertDead(second.code)
  const { code } = await pinfold.seed.invite(org, roleUid)
  assert.equal(ok(await redeem(code)).group, org)
  // An invitation from an earlier version, without a known creator.
  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE group_invites SET created_by = ''`))
  assert.equal(ok(await redeem(second.code)).group, org)
})

async function goneInvite(): Promise<Json> {
  const invite = await inviteOf()
  ok(await pinfold.operator.delete(`/iam/v2/groupInvites/${invite.uid}`))
  return invite
}

test('a single-use invitation admits one person, also if several people redeem it at the same time', async () => {
  const invite = await inviteOf({ singleUse: true })
  const people = Array.from({ length: 6 }, () => somebody())
  const answers = await Promise.all(people.map((person) => person.register({ code: invite.code })))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200)) assertRefused(answer, 'INVITE_INVALID')
  assert.equal((await pinfold.operator.get(`/iam/v2/groupInvites/${invite.uid}`)).status, 404)
  // Refused people get no account either.
  const accounts = await pinfold.app.db.all<Json>(sql`SELECT uid FROM identities WHERE parent_uid = '/'`)
  const known = new Set(accounts.map(({ uid }) => uid))
  assert.equal(people.filter(({ uid }) => known.has(uid)).length, 1)
})

test('a member who redeems a single-use code again does not use up the invitation', async () => {
  const member = somebody()
  ok(await member.register({ code: (await inviteOf()).code }))
  const invite = await inviteOf({ singleUse: true })
  assert.equal(ok(await member.register({ code: invite.code })).group, org)
  assert.equal((await bindingsOf(member.uid)).length, 1)
  ok(await somebody().register({ code: invite.code }))
})

test('an invitation for an email address requires this address, verified', async () => {
  const { code } = await inviteOf({ email: 'Jane@Example.com' })
  for (const claims of [
    {},
    { email: 'jane@example.com' },
    { email: 'jane@example.com', email_verified: false },
    { email: 'joe@example.com', email_verified: true },
    { email: 'jane@example.co\u212a', email_verified: true },
  ]) {
    assertRefused(await somebody(claims).register({ code }), 'INVITE_EMAIL_MISMATCH')
  }
  const jane = somebody({ email: 'jane@example.com', email_verified: true })
  assert.equal(ok(await jane.register({ code })).group, org)
})

test('refuses a changed, revoked or unknown invitation code, and reports a malformed code as invalid', async () => {
  const { code, uid } = await inviteOf()
  const says = JSON.parse(Buffer.from(code, 'base64').toString()) as Json
  const forged = (change: Json) => Buffer.from(JSON.stringify({ ...says, ...change })).toString('base64')
  const other = JSON.parse(Buffer.from((await inviteOf()).code, 'base64').toString()) as Json
  for (const change of [
    { role: roleUids.owner },
    { grp: (await pinfold.seed.group()).uid },
    { exp: says.exp + 1 },
    { sig: '' },
    { sig: other.sig },
    { kid: other.kid },
    { kid: 'x' },
    { jti: other.jti },
  ]) {
    assertRefused(await somebody().register({ code: forged(change) }), 'INVITE_INVALID')
  }
  for (const text of [
    'x',
    '!',
    'e30=',
    code.slice(0, 20),
    forged({ exp: 'x' }),
    'A'.repeat(5000),
    'bnVsbA==',
    forged({ kid: 1 }),
  ]) {
    assertInvalid(await somebody().register({ code: text }), 'code')
  }
  ok(await somebody().register({ code: code.replace(/=+$/, '') }))
  ok(await pinfold.operator.delete(`/iam/v2/groupInvites/${uid}`))
  assertRefused(await somebody().register({ code }), 'INVITE_INVALID')
})

test('limits registrations for each network address and each person, not for each issuer', async () => {
  await using limited = await startPinfold({
    allowInsecureIssuers: true,
    allowPrivateAddresses: true,
    oidcProviders: [{ issuer: issuer.url, audience }],
    allowSelfRegistration: true,
    ...noMinutePasses,
    exchangesPerSource: 5,
    exchangesPerIdentity: 1,
    exchangesPerIssuer: 1,
  })
  const register = async (sub: string) => {
    const token = await issuer.token({ sub, aud: audience })
    return (await limited.withToken(token).post('/auth/v1/register', {})).status
  }
  const person = `limited-${made++}`
  assert.deepEqual([await register(person), await register(person)], [200, 429])
  assert.deepEqual([await register(`limited-${made++}`), await register(`limited-${made++}`)], [200, 200])
  assert.equal((await limited.anonymous.post('/auth/v1/register', {})).status, 401)
  assert.equal((await limited.anonymous.post('/auth/v1/register', {})).status, 429)
})

test('an expired invitation admits nobody', async () => {
  const { code } = await inviteOf({ ttl: '60s' })
  time += 59_999
  ok(await somebody().register({ code }))
  time += 1
  assertRefused(await somebody().register({ code }), 'INVITE_EXPIRED')
})

test('people of an issuer can no longer sign in after the issuer is removed from the settings', async () => {
  const person = somebody()
  ok(await person.register())
  const trusted = pinfold.app.config.oidcProviders
  pinfold.app.config.oidcProviders = []
  try {
    for (const aud of [audience, pinfold.url]) assert.equal(refusalOf(await exchange(person, { aud })).code, 16)
  } finally {
    pinfold.app.config.oidcProviders = trusted
  }
  ok(await exchange(person))
})
