// Explanations of access through external groups: groups that the provider sends at the sign-in, and groups provisioned over SCIM.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { personUid } from '#domains/iam/identities/people.ts'
import { Capability } from '#gen/pinfold/capabilities/capabilities_pb.ts'
import { AccessService, ExplainedBinding_Effect } from '#gen/pinfold/control/iam/v1/access_pb.ts'
import { answerOf, begin, clientId, finish } from '../support/answered-sign-in.ts'
import { ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { run } from '../support/process.ts'
import { changed, created, groupSchema, scimClient, userSchema } from '../support/scim.ts'

let issuer: FakeIssuer
let pinfold: Pinfold
let org: string
let provider: string
let owner: Client
let scim: ReturnType<typeof scimClient>
before(async () => {
  issuer = await startIssuer()
  issuer.answerUserInfo({})
  pinfold = await startPinfold({ allowInsecureIssuers: true, issuersPrivate: ['127.0.0.1'], scimRequests: 100_000 })
  org = (await pinfold.seed.group('', { name: 'acme' })).uid
  owner = await pinfold.as((await pinfold.seed.member(org, roleUids.owner)).uid)
  await pinfold.seed.member(org, roleUids.owner)
  const oidc = { issuer: issuer.url, clientId, clientSecret: 's', groupsClaim: 'groups' }
  provider = (await pinfold.seed.provider(org, issuer.url, { oidc })).uid
  const path = `/iam/v2/identityProviders/${provider}`
  const { token, etag, endpointUrl } = ok(await owner.post(`${path}:generateScimToken`, {}))
  ok(await owner.post(`${path}:setScimEnabled`, { enabled: true, etag }))
  scim = scimClient(endpointUrl, token)
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

/** A provisioned person who signs in with these groups in the ID token. */
async function signIn(sub: string, groups: readonly string[]): Promise<{ uid: string; user: string; client: Client }> {
  const user = created(await scim.post('/Users', { schemas: [userSchema], userName: sub, externalId: sub }))
    .id as string
  issuer.answerUserInfo({ sub })
  const { token, error } = answerOf(await finish(await begin(pinfold, { idp: provider, issuer }), { sub, groups }))
  assert.equal(error, undefined)
  return { uid: personUid(issuer.url, sub), user, client: pinfold.withToken(token) }
}

async function explain(identityUid: string, capability = 'CAP_REPO_UPDATE', client = owner, at = org): Promise<Json> {
  return ok(await client.get(`/control/v1/access/${at}:explain?identityUid=${identityUid}&capability=${capability}`))
}

const role = (name: 'editor' | 'viewer') => ({ roleUid: roleUids[name], roleName: name })
const here = () => ({ groupUid: org, groupName: 'acme', inherited: false, identityProviderUid: provider })

test('shows roles of groups that the provider sent at the sign-in, until the session ends', async () => {
  await pinfold.seed.mapping(provider, roleUids.editor, 'developers')
  await pinfold.seed.mapping(provider, roleUids.viewer, 'readers')
  const { uid, client } = await signIn('sent', ['developers', 'readers', 'unmapped'])
  const { bindings, ...found } = await explain(uid)
  // The provider gives new people the role of viewers.
  assert.deepEqual(
    bindings.map(({ effect }: Json) => effect),
    ['EFFECT_ROLE_LACKS_IT'],
  )
  const sent = { ...here(), provisioned: false }
  assert.deepEqual(found, {
    allowed: true,
    sufficientRoles: [],
    grantors: [],
    groupRoles: [
      { ...sent, ...role('editor'), externalGroupId: 'developers', effect: 'EFFECT_GRANTS' },
      { ...sent, ...role('viewer'), externalGroupId: 'readers', effect: 'EFFECT_ROLE_LACKS_IT' },
    ],
  })
  // The explanation agrees with the result of real requests.
  const repo = await pinfold.seed.repo(org, { name: 'app' })
  ok(await client.patch(`/registry/v2/repos/${repo.uid}`, { description: 'x' }))
  assert.equal((await explain(uid, 'CAP_REPO_UPDATE', owner, repo.uid)).groupRoles[0].inherited, true)
  const denied = await explain(uid, 'CAP_IAM_ROLES_CREATE')
  assert.equal(denied.allowed, false)
  assert.ok(denied.sufficientRoles.length > 0)

  await pinfold.app.db.tx((tx) => tx.run(sql`UPDATE sessions SET end_time = '2000' WHERE identity_uid = ${uid}`))
  const ended = await explain(uid)
  assert.deepEqual([ended.allowed, ended.groupRoles], [false, []])
})

test('shows roles of provisioned groups while the person is a member and has a session', async () => {
  const { uid, user } = await signIn('provisioned', [])
  const members = [{ value: user }]
  const group = created(await scim.post('/Groups', { schemas: [groupSchema], displayName: 'Platform', members })).id
  await pinfold.seed.mapping(provider, roleUids.editor, 'Platform')
  const found = await explain(uid)
  const shown = { ...here(), ...role('editor'), externalGroupId: 'Platform', provisioned: true }
  assert.deepEqual([found.allowed, found.groupRoles], [true, [{ ...shown, effect: 'EFFECT_GRANTS' }]])
  // A token gets the role with the next sign-in. The second session changes nothing in the explanation.
  const { token } = answerOf(await finish(await begin(pinfold, { idp: provider, issuer }), { sub: 'provisioned' }))
  const repo = await pinfold.seed.repo(org, { name: 'provisioned' })
  ok(await pinfold.withToken(token).patch(`/registry/v2/repos/${repo.uid}`, { description: 'x' }))
  assert.equal((await explain(uid)).groupRoles.length, 1)

  changed(await scim.patch(`/Groups/${group}`, { op: 'remove', path: 'members' }))
  const left = await explain(uid)
  assert.deepEqual([left.allowed, left.groupRoles], [false, []])
})

test('shows a role that lost the capability after the sign-in as unnamed, since the session keeps the capability', async () => {
  const custom = await pinfold.seed.role(org, ['repo.update', 'repo.list'])
  await pinfold.seed.mapping(provider, custom.uid, 'former')
  const { uid } = await signIn('former', ['former'])
  ok(await owner.patch(`/iam/v2/roles/${custom.uid}?updateMask=capabilities`, { capabilities: ['CAP_REPO_LIST'] }))
  const { allowed, groupRoles } = await explain(uid)
  assert.equal(allowed, true)
  assert.deepEqual(
    groupRoles.map(({ externalGroupId, roleName, effect }: Json) => [externalGroupId, roleName, effect]),
    [
      ['', '', 'EFFECT_GRANTS'],
      ['former', custom.name, 'EFFECT_ROLE_LACKS_IT'],
    ],
  )
})

test('hides names of groups and roles from a caller who cannot list them in the organization', async () => {
  await pinfold.seed.mapping(provider, roleUids.editor, 'hidden')
  const { uid } = await signIn('hidden', ['hidden'])
  const team = (await pinfold.seed.group(org, { name: 'team' })).uid
  const below = await pinfold.as((await pinfold.seed.member(team, roleUids.owner)).uid)
  const { allowed, groupRoles } = await explain(uid, 'CAP_REPO_UPDATE', below, team)
  const empty = { externalGroupId: '', identityProviderUid: '', groupName: '', roleUid: '', roleName: '' }
  const rest = { provisioned: false, groupUid: org, inherited: true, effect: 'EFFECT_GRANTS' }
  assert.deepEqual([allowed, groupRoles], [true, [{ ...empty, ...rest }]])
})

test('gRPC and the command line show the external group of a role', async () => {
  await pinfold.seed.mapping(provider, roleUids.editor, 'command')
  const { uid } = await signIn('command', ['command'])
  using access = grpcClientOf(pinfold, AccessService, pinfold.operator.token)
  const asked = { uid: org, identityUid: uid, capability: Capability.CAP_REPO_UPDATE }
  const { groupRoles } = await access.explainAccess(asked)
  assert.deepEqual(
    groupRoles.map(({ externalGroupId, roleName, effect }) => [externalGroupId, roleName, effect]),
    [['command', 'editor', ExplainedBinding_Effect.GRANTS]],
  )
  const env = { PINFOLD_API: pinfold.url, PINFOLD_TOKEN: pinfold.operator.token! }
  const command = ['identities', 'explain', uid, 'repo.update', '--in', 'acme']
  const { code, stdout, stderr } = await run(command, { env })
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^yes: repo\.update in acme\n/)
  assert.match(stdout, /^editor +acme +grants the capability \(external group command, sent at the sign-in\)$/m)
})
