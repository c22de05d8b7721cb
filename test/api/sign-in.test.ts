// Sign-in of people: with the provider of an organization or one of the settings, in a browser and for a program.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { claimsOf } from '../support/exchange.ts'
import { assertError, eventsOf, ok } from '../support/expect.ts'
import { clientId } from '../support/people-provider.ts'
import { type Json, roleUids, startPinfold } from '../support/pinfold.ts'
import { loopback, type SignInScene, startSignInScene } from '../support/sign-in.ts'

let scene: SignInScene
before(async () => {
  scene = await startSignInScene()
})
after(() => scene[Symbol.asyncDispose]())

const rolesOf = async (uid: string): Promise<string[]> => {
  const { roleBindings } = ok(await scene.pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`))
  return (roleBindings as Json[]).map((one) => one.role.name).sort()
}
const seenBy = async (uid: string) => ok(await scene.pinfold.operator.get(`/iam/v2/identities/${uid}`))

test('a new person signs in with the provider of the organization and gets its default role', async () => {
  const { pinfold, org, idp, company } = scene
  const { uid, sub, email } = scene.somebody()
  let token = ''
  const events = await eventsOf(pinfold, async () => {
    const answer = await scene.open()
    token = answer.get('token')!
    assert.deepEqual([...answer.keys()], ['token'])
  })
  assert.deepEqual(
    events.map(({ type, group, actor }) => [type.replace(/^dev\.pinfold\.|\.v1$/g, ''), group, actor]),
    [
      ['api.iam.rolebindings.created', org.uid, uid],
      ['api.auth.registered', org.uid, uid],
      ['control.iam.session.started', org.uid, uid],
    ],
  )
  assert.partialDeepStrictEqual(events[2]!.body, { session: { provider: idp.uid, organization: org.uid, email } })
  assert.partialDeepStrictEqual(claimsOf(token), {
    sub: uid,
    email,
    email_verified: true,
    act: { iss: company.url, sub, aud: clientId, email },
    upstream: { email, name: `Person ${sub}`, picture: '' },
    org: org.uid,
  })
  const me = ok(await pinfold.withToken(token).get('/auth/v1/ok'))
  assert.deepEqual([me.subject, me.profile.name, me.capabilities[0].role.name], [uid, `Person ${sub}`, 'viewer'])
  assert.deepEqual(await rolesOf(uid), ['viewer'])
  // Other organizations do not have to trust the email address.
  assert.partialDeepStrictEqual(await seenBy(uid), { email: '', emailUnverified: email })
})

test('grants the default role once: not to a member, and not again after its removal', async () => {
  const { pinfold, org } = scene
  const { uid } = scene.somebody()
  await scene.open()
  const [binding] = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`)).roleBindings as Json[]
  ok(await pinfold.operator.delete(`/iam/v2/roleBindings/${binding!.uid}`))
  await scene.open()
  assert.deepEqual(await rolesOf(uid), [])

  const member = scene.somebody()
  await pinfold.seed.binding(org.uid, member.uid, roleUids.pull)
  await scene.open()
  assert.deepEqual(await rolesOf(member.uid), ['registry.pull'])
})

test('signing in with an organization’s provider accepts the pending bindings in this organization', async () => {
  const { pinfold, org } = scene
  const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const { uid } = scene.somebody()
  ok(await owner.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: uid, roleUid: roleUids.push }))
  const client = await scene.client()
  const me = ok(await client.get('/auth/v1/ok'))
  assert.equal(me.capabilities.length, 1)
  assert.deepEqual(await rolesOf(uid), ['registry.push', 'viewer'])
  assert.deepEqual(ok(await client.get('/control/v1/pendingBindings')).pendingBindings, [])
})

test('a server-wide provider signs in people with an account or an invitation, and refuses others', async () => {
  const { pinfold, org } = scene
  const { uid, email } = scene.somebody()
  const refused = await scene.open({ connection: 'company' })
  assert.deepEqual([...refused.keys()], ['error', 'status_code'])
  assert.deepEqual([refused.get('status_code'), /no account on this server/.test(refused.get('error')!)], ['404', true])
  assert.equal((await pinfold.operator.get(`/iam/v2/identities/${uid}`)).status, 404)

  const { code } = await pinfold.seed.invite(org.uid, roleUids.editor, { email, singleUse: true })
  const skipped = await scene.open({ connection: 'company', invite: code, skip_registration: 'true' })
  assert.equal(skipped.get('status_code'), '404')
  const { token } = Object.fromEntries(await scene.open({ connection: 'company', invite: code }))
  assert.equal(claimsOf(token!).org, undefined)
  assert.deepEqual(await rolesOf(uid), ['editor'])
  assert.partialDeepStrictEqual(await seenBy(uid), { email, emailUnverified: '' })
  const again = await scene.open({ connection: 'company', invite: code })
  assert.equal(again.get('status_code'), '403')
  assert.equal((await scene.open({ connection: 'company' })).get('error'), null)
})

test('a sign-in for one organization does not redeem an invitation of another', async () => {
  const { pinfold, org } = scene
  const other = await pinfold.seed.group()
  const folder = await pinfold.seed.group(org.uid)
  const { uid } = scene.somebody()
  const foreign = await pinfold.seed.invite(other.uid, roleUids.editor)
  const refused = await scene.open({ invite: foreign.code })
  assert.equal(refused.get('token'), null)
  assert.equal(refused.get('status_code'), '403')
  const own = await pinfold.seed.invite(folder.uid, roleUids.editor)
  assert.equal((await scene.open({ invite: own.code })).get('error'), null)
  assert.ok((await rolesOf(uid)).includes('editor'))
  const bound = ok(await pinfold.operator.get(`/iam/v2/roleBindings?identity=${uid}`)).roleBindings as Json[]
  assert.deepEqual(
    bound.filter((one) => one.uid.startsWith(other.uid)),
    [],
  )
})

test('a person of an organization’s provider can use a server-wide provider only after redeeming an invitation there', async () => {
  const { pinfold } = scene
  const other = await pinfold.seed.group()
  const { uid } = scene.somebody()
  await scene.open()
  assert.equal((await scene.open({ connection: 'company' })).get('status_code'), '404')
  const { code } = await pinfold.seed.invite(other.uid, roleUids.viewer)
  const client = await scene.client({ connection: 'company', invite: code })
  assert.equal(ok(await client.get('/auth/v1/ok')).capabilities.length, 2)
  assert.equal(ok(await client.get('/auth/v1/ok')).subject, uid)
  await scene.open({ connection: 'company' })
})

test('a setting lets everybody register whom the server-wide providers know', async () => {
  await using open = await startSignInScene({ allowSelfRegistration: true })
  const { uid } = open.somebody()
  assert.equal((await open.open({ connection: 'company', skip_registration: 'true' })).get('status_code'), '404')
  const client = await open.client({ connection: 'company' })
  assert.deepEqual(ok(await client.get('/auth/v1/ok')).subject, uid)
})

test('finds a verified organization by its name and by orgcheck', async () => {
  const { pinfold } = scene
  scene.somebody()
  assert.equal((await scene.open({ idp_id: 'acme.example' })).get('error'), null)
  const plain = await pinfold.seed.group()
  for (const [name, expected] of [
    ['acme.example', 'true'],
    [plain.name, 'false'],
    ['nobody.example', 'false'],
    ['', 'false'],
    ['a'.repeat(5000), 'false'],
  ]) {
    const answer = await pinfold.anonymous.get(`/orgcheck?name=${name}`)
    assert.deepEqual(
      [answer.status, answer.text, answer.headers.get('content-type')],
      [200, expected, 'application/json'],
    )
  }
  assert.equal((await pinfold.anonymous.get('/orgcheck')).text, 'false')
})

test('a token is limited to the requested audiences and scopes', async () => {
  const { pinfold, org } = scene
  const folder = await pinfold.seed.group(org.uid)
  scene.somebody()
  const { host } = new URL(pinfold.url)
  const scope = encodeURIComponent(folder.uid)
  const { token } = Object.fromEntries(await scene.open({ audience: `${pinfold.url},${host}`, scope }))
  assert.deepEqual(claimsOf(token!).aud, [pinfold.url, host])
  assert.deepEqual(Object.keys(claimsOf(token!).cap), [folder.uid])
  const other = await pinfold.seed.group()
  assert.equal((await scene.open({ scope: other.uid })).get('status_code'), '403')

  for (const [parameters, field] of [
    [{ audience: 'https://elsewhere.example' }, 'aud'],
    [{ scope: 'x' }, 'scopes'],
    [{ identity: 'x' }, 'identity'],
    [{ exit: 'popup' }, 'exit'],
    [{ idp_id: 'nobody.example' }, 'idp_id'],
    [{ connection: 'nobody' }, 'connection'],
  ] as [Json, string][]) {
    const query = new URLSearchParams({ exit: 'redirect', redirect: loopback, ...parameters })
    const shown = await openBrowser().ask(`${pinfold.url}/oauth?${query}`)
    assert.deepEqual([shown.status, shown.headers.get('location')], [400, null], field)
    assert.match(shown.text, new RegExp(field))
  }
})

test('exchanges a provider’s token for an identity of the organization like a workload token', async () => {
  const { pinfold, org, company } = scene
  const { sub } = scene.somebody()
  const claimMatch = { issuer: company.url, subject: sub, audience: clientId }
  const identity = await pinfold.seed.identity(org.uid, { claimMatch })
  await pinfold.seed.binding(org.uid, identity.uid, roleUids.push)
  const answer = await scene.open({ identity: identity.uid, create_refresh_token: 'true' })
  assert.deepEqual([...answer.keys()], ['token'])
  assert.equal(claimsOf(answer.get('token')!).sub, identity.uid)

  const other = await pinfold.seed.group()
  const elsewhere = await pinfold.seed.identity(other.uid, { claimMatch })
  assert.equal((await scene.open({ identity: elsewhere.uid })).get('status_code'), '403')
  assert.equal((await scene.open({ identity: elsewhere.uid, connection: 'company' })).get('error'), null)
})

test('external groups grant their roles for one session, at most an hour, with an audit log entry', async () => {
  const { pinfold, org, idp } = scene
  const mapping = await pinfold.seed.mapping(idp.uid, roleUids.editor, 'builders')
  const { uid } = scene.somebody({ groups: ['builders', 'others', 7] })
  const events = await eventsOf(pinfold, async () => {
    const answer = await scene.open({ create_refresh_token: 'true' })
    assert.deepEqual([...answer.keys()], ['token'])
    const client = pinfold.withToken(answer.get('token')!)
    ok(await client.post(`/registry/v2/repos/${org.uid}`, { name: 'by-group' }))
    const [session] = ok(await client.get('/control/v1/sessions')).sessions
    assert.equal(session.hasGroupRoles, true)
    assert.equal(Date.parse(session.expireTime) - Date.parse(session.createTime), 3_600_000)
  })
  const { body } = events.find(({ type }) => type.includes('session.started'))!
  assert.deepEqual(body.group_roles, [{ scope: org.uid, role_uid: roleUids.editor, external_group_id: 'builders' }])
  assert.deepEqual(await rolesOf(uid), ['viewer'])
  const path = `/events/v2/audit?uidp.descendantsOf=${org.uid}&actor=${uid}`
  const { auditEntries } = ok(await pinfold.operator.get(path))
  assert.ok(auditEntries.some(({ type }: Json) => type === 'dev.pinfold.control.iam.session.started.v1'))
  ok(await pinfold.operator.delete(`/iam/v2/externalGroupRoleMappings/${mapping.uid}`))
  const client = await scene.client()
  assertError(await client.post(`/registry/v2/repos/${org.uid}`, { name: 'no-more' }), 403, 7, 'PERMISSION_DENIED')
})

test('a server without providers reports that it has no sign-in', async () => {
  await using pinfold = await startPinfold()
  const query = new URLSearchParams({ exit: 'redirect', redirect: loopback })
  const shown = await openBrowser().ask(`${pinfold.url}/oauth?${query}`)
  assert.equal(shown.status, 400)
  assert.match(shown.text, /no identity provider for all users/)
  const page = await openBrowser().go(`${pinfold.url}/ui/`)
  assert.deepEqual([page.status, page.url], [200, `${pinfold.url}/ui/signin`])
})
