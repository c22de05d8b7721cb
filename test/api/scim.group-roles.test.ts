// Roles of SCIM groups: they apply only to members, only in the organization of the provider, and end with the membership.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { answerOf, begin, clientId, finish } from '../support/answered-sign-in.ts'
import { assertBlocked, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { changed, created, groupSchema, scimClient, userSchema } from '../support/scim.ts'

type Provider = { org: string; uid: string; path: string; scim: ReturnType<typeof scimClient>; owner: Client }

let issuer: FakeIssuer
let pinfold: Pinfold
let acme: Provider
before(async () => {
  issuer = await startIssuer()
  issuer.answerUserInfo({})
  pinfold = await startPinfold({
    allowInsecureIssuers: true,
    issuersPrivate: ['127.0.0.1'],
    scimRequests: 100_000,
  })
  acme = await provider()
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

/** An organization with a provider whose SCIM endpoint is open. New people get no role. */
async function provider(): Promise<Provider> {
  const org = (await pinfold.seed.group()).uid
  const owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  await pinfold.seed.member(org, roleUids.owner)
  const oidc = { issuer: issuer.url, clientId, clientSecret: 's' }
  const { uid } = await pinfold.seed.provider(org, issuer.url, { oidc })
  const path = `/iam/v2/identityProviders/${uid}`
  const { token, etag, endpointUrl } = ok(await owner.post(`${path}:generateScimToken`, {}))
  ok(await owner.post(`${path}:setScimEnabled`, { enabled: true, etag }))
  return { org, uid, path, scim: scimClient(endpointUrl, token), owner }
}

let count = 0
/** A provisioned person in a pushed group, which is mapped to the role of owners. */
async function memberOfOwners(at = acme, more: Json = {}) {
  const sub = `member-${count++}`
  const user = created(await at.scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub })).id
  const displayName = `Owners ${count}`
  const group = created(
    await at.scim.post('/Groups', { schemas: [groupSchema], displayName, members: [{ value: user }], ...more }),
  )
  const mapping = await pinfold.seed.mapping(at.uid, roleUids.owner, (more.externalId as string) ?? displayName)
  return { sub, user, group: `/Groups/${group.id}`, displayName, mapping: mapping.uid as string }
}

/** Client of a new session. Its token has the rights of the person at that time. */
async function signIn(sub: string, at = acme): Promise<Client> {
  issuer.answerUserInfo({ sub })
  const { token, error } = answerOf(await finish(await begin(pinfold, { idp: at.uid, issuer }), { sub }))
  assert.equal(error, undefined)
  return pinfold.withToken(token)
}

const act = (client: Client, org = acme.org): Promise<Answer> => {
  return client.post(`/iam/v2/groups/${org}`, { name: `made-${count++}` })
}
async function assertMay(client: Client): Promise<void> {
  ok(await act(client))
}
async function assertMayNot(client: Client, status = 403): Promise<void> {
  const answer = await act(client)
  assert.equal(answer.status, status, answer.text)
}

test('a member has the role mapped to the display name or the external id of the group', async () => {
  await assertMay(await signIn((await memberOfOwners()).sub))
  await assertMay(await signIn((await memberOfOwners(acme, { externalId: 'object-id-1' })).sub))
})

test('a role mapping does not match the display name of a group with an external id', async () => {
  const sub = 'by-name'
  const { id } = created(await acme.scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub }))
  const group = { schemas: [groupSchema], displayName: 'Admins', externalId: 'object-id-2', members: [{ value: id }] }
  created(await acme.scim.post('/Groups', group))
  await pinfold.seed.mapping(acme.uid, roleUids.owner, 'Admins')
  await assertMayNot(await signIn(sub))
})

/** Changes that end the role at once, also for tokens that were issued before. */
type Member = Awaited<ReturnType<typeof memberOfOwners>>
const ends: Record<string, (one: Member) => Promise<unknown>> = {
  'the person is removed from the group': ({ group, user }) =>
    acme.scim.patch(group, { op: 'remove', path: `members[value eq "${user}"]` }),
  'all members are removed': ({ group }) => acme.scim.patch(group, { op: 'Remove', path: 'members' }),
  'the group is replaced by one without members': ({ group, displayName }) =>
    acme.scim.put(group, { schemas: [groupSchema], displayName }),
  'the group is deleted': ({ group }) => acme.scim.delete(group),
  'the group is renamed': ({ group }) => acme.scim.patch(group, { op: 'replace', value: { displayName: 'Other' } }),
  'the mapping is deleted': ({ mapping }) => pinfold.operator.delete(`/iam/v2/externalGroupRoleMappings/${mapping}`),
}
for (const [what, end] of Object.entries(ends)) {
  test(`the role ends at once after ${what}`, async () => {
    const member = await memberOfOwners()
    const client = await signIn(member.sub)
    await assertMay(client)
    const answer = (await end(member)) as { status: number; text: string }
    assert.ok(answer.status < 300, answer.text)
    await assertMayNot(client)
    await assertMayNot(await signIn(member.sub))
  })
}

test('a deactivated account has no roles, and gets them back when it is reactivated', async () => {
  const { sub, user, group } = await memberOfOwners()
  const client = await signIn(sub)
  await assertMay(client)
  changed(await acme.scim.patch(`/Users/${user}`, { op: 'replace', value: { active: false } }))
  await assertMayNot(client, 401)
  changed(await acme.scim.patch(`/Users/${user}`, { op: 'replace', value: { active: true } }))
  await assertMay(await signIn(sub))
  // A deleted person loses the membership, also if they are created again.
  assert.equal((await acme.scim.delete(`/Users/${user}`)).status, 204)
  created(await acme.scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub }))
  assert.deepEqual(changed(await acme.scim.get(group)).members, [])
  await assertMayNot(await signIn(sub))
})

test('a new membership has effect from the next sign-in, and does not allow push tokens', async () => {
  const { group, sub: other } = await memberOfOwners()
  const sub = `late-${count++}`
  const { id } = created(await acme.scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub }))
  await assertMayNot(await signIn(sub))
  changed(await acme.scim.patch(group, { op: 'add', path: 'members', value: [{ value: id }] }))
  const client = await signIn(sub)
  await assertMay(client)
  // A push token lasts longer than a session, so it needs a binding.
  const path = `/control/v1/pushTokens/${acme.org}`
  const make = (by: Client) => by.post(path, { name: 'laptop', push: true })
  assertBlocked(await make(client), acme.org, 'SESSION_RIGHTS')
  // Missing rights are refused without a reason, because it would reveal external groups.
  const none = `none-${count++}`
  created(await acme.scim.post('/Users', { schemas: [userSchema], userName: none, externalId: none }))
  assert.equal((await make(await signIn(none))).status, 403)
  await assertMay(await signIn(other))
})

test('a group of one organization grants nothing in another organization', async () => {
  const globex = await provider()
  const { sub, displayName } = await memberOfOwners()
  // The other provider has groups with the same names, without the person.
  created(await globex.scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub }))
  created(await globex.scim.post('/Groups', { schemas: [groupSchema], displayName }))
  await pinfold.seed.mapping(globex.uid, roleUids.owner, displayName)
  const there = await signIn(sub, globex)
  assert.equal((await act(there, globex.org)).status, 403)
  assert.equal((await act(there, acme.org)).status, 403)
  const here = await signIn(sub)
  await assertMay(here)
  assert.equal((await act(here, globex.org)).status, 403)
})

test('users who are not provisioned, and users with another external ID, get no role', async () => {
  await memberOfOwners()
  await assertMayNot(await signIn(`nobody-${count++}`))
  const member = await memberOfOwners()
  const client = await signIn(member.sub)
  await assertMay(client)
  changed(await acme.scim.patch(`/Users/${member.user}`, { op: 'replace', value: { externalId: `new-${member.sub}` } }))
  await assertMayNot(client, 401)
  await assertMayNot(await signIn(member.sub))
  await assertMay(await signIn(`new-${member.sub}`))
})

test('suspends roles of SCIM groups while SCIM is turned off', async () => {
  const at = await provider()
  const { sub } = await memberOfOwners(at)
  const client = await signIn(sub, at)
  ok(await act(client, at.org))
  const switchTo = async (enabled: boolean) => {
    const { etag } = ok(await at.owner.get(at.path)).scim
    ok(await at.owner.post(`${at.path}:setScimEnabled`, { enabled, etag }))
  }
  await switchTo(false)
  assert.equal((await act(client, at.org)).status, 403)
  await switchTo(true)
  ok(await act(client, at.org))
})
