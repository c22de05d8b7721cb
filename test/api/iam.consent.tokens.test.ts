// Tokens that can accept or refuse for a person: only tokens with all rights of the person, and no narrowed tokens.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { personUid } from '#domains/iam/identities/people.ts'
import { PendingBindingsService } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { type Scene, startExchange } from '../support/exchange.ts'
import { assertDenied, assertError, ok } from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'

const pending = '/control/v1/pendingBindings'
const bindings = '/iam/v2/roleBindings'
const audience = 'client-id-of-pinfold'
const oidcProviders: { issuer: string; audience: string }[] = []
let scene: Scene
let made = 0

before(async () => {
  scene = await startExchange({ oidcProviders, allowSelfRegistration: true, allowOrganizationCreation: true })
  oidcProviders.push({ issuer: scene.issuer.url, audience })
})
after(() => scene[Symbol.asyncDispose]())

/** Creates a person who belongs to one organization and is invited to another one, with a function that narrows their tokens. */
async function asked() {
  const { issuer, pinfold } = scene
  const sub = `jane-${made++}`
  const signIn = await issuer.token({ sub, aud: audience })
  ok(await pinfold.withToken(signIn).post('/auth/v1/register', {}))
  const uid = personUid(issuer.url, sub)
  const home = await pinfold.seed.group()
  await pinfold.seed.binding(home.uid, uid, roleUids.viewer)
  const elsewhere = await pinfold.seed.group()
  const owner = await pinfold.as((await pinfold.seed.member(elsewhere.uid, roleUids.owner)).uid)
  const binding = ok(await owner.post(`${bindings}/${elsewhere.uid}`, { identityUid: uid, roleUid: roleUids.owner }))
  const exchanged = async (narrowing: Json) => pinfold.withToken(ok(await scene.exchange(signIn, narrowing)).token)
  return { home, elsewhere, binding: binding.uid as string, exchanged }
}
const accept = (client: Client, uid: string) => client.post(`${pending}/${uid}:accept`)
const refuse = (client: Client, uid: string) => client.post(`${pending}/${uid}:refuse`)
function assertNarrowed(answer: Parameters<typeof assertError>[0]): void {
  assertError(answer, 403, 7, 'NARROWED_TOKEN')
  assert.match(answer.body.message, /limited to some groups or capabilities/)
}

test('an exchanged token with scopes or capabilities cannot list, accept or refuse bindings', async () => {
  const { home, elsewhere, binding, exchanged } = await asked()
  for (const narrowing of [{ scopes: home.uid }, { cap: 'repo.list' }, { scopes: home.uid, cap: 'groups.list' }]) {
    const client = await exchanged(narrowing)
    assertNarrowed(await client.get(pending))
    assertNarrowed(await accept(client, binding))
    assertNarrowed(await refuse(client, binding))
    // The token gets no information about existing bindings either.
    assertNarrowed(await accept(client, `${elsewhere.uid}/0123456789abcdef`))
    using grpc = grpcClientOf(scene.pinfold, PendingBindingsService, client.token)
    await assert.rejects(grpc.acceptPendingBinding({ uid: binding }), /limited to some groups or capabilities/)
  }
  const whole = await exchanged({})
  assertDenied(await whole.get(`/iam/v2/groups/${elsewhere.uid}`))
  assert.equal(ok(await whole.get(pending)).totalCount, '1')
})

test('an exchanged token with scopes or capabilities cannot create an organization', async () => {
  const { home, exchanged } = await asked()
  const create = (client: Client) => client.post('/iam/v2/groups/', { name: `organization-${made++}` })
  for (const narrowing of [{ scopes: home.uid }, { cap: 'groups.create' }]) {
    assertNarrowed(await create(await exchanged(narrowing)))
    using grpc = grpcClientOf(scene.pinfold, GroupsService, (await exchanged(narrowing)).token)
    await assert.rejects(grpc.createGroup({ group: { name: 'narrow' } }), /limited to some groups or capabilities/)
  }
  const { uid } = ok(await create(await exchanged({})))
  ok(await (await exchanged({})).get(`/iam/v2/groups/${uid}`))
})

test('an exchanged token without scopes and capabilities can accept and refuse, also for a person without bindings', async () => {
  const { elsewhere, binding, exchanged } = await asked()
  assert.deepEqual(ok(await accept(await exchanged({}), binding)).acceptedUids, [binding])
  ok(await (await exchanged({})).get(`/iam/v2/groups/${elsewhere.uid}`))

  const other = await asked()
  const { roleBindings } = ok(await scene.pinfold.operator.get(`${bindings}?group=${other.home.uid}`))
  for (const { uid } of roleBindings) await scene.pinfold.operator.delete(`${bindings}/${uid}`)
  const bare = await other.exchanged({})
  assertNarrowed(await refuse(await other.exchanged({ cap: 'repo.list' }), other.binding))
  assert.equal((await refuse(bare, other.binding)).status, 200)
})

test('a token with fewer rights than its subject counts as narrowed, unless it is marked as complete', async () => {
  const { pinfold } = scene
  const { uid } = await pinfold.seed.person()
  const group = await pinfold.seed.group()
  const owner = await pinfold.as((await pinfold.seed.member(group.uid, roleUids.owner)).uid)
  const made = ok(await owner.post(`${bindings}/${group.uid}`, { identityUid: uid, roleUid: roleUids.viewer }))
  assertNarrowed(await accept(await pinfold.as(uid, { cap: { '/': [] } }), made.uid))
  ok(await accept(await pinfold.as(uid), made.uid))
})
