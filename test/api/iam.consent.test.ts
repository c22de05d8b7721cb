// Consent of people: a binding created by others has effect, and shows who the person is, only after the person accepts it.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { PendingBindingsService } from '#gen/pinfold/control/iam/v1/pending_bindings_pb.ts'
import { signAccessToken } from '#issuer/access-token.ts'
import { checkLists } from '../support/check-lists.ts'
import {
  assertBlocked,
  assertDenied,
  assertError,
  assertNotFound,
  assertTimes,
  eventsOf,
  ok,
} from '../support/expect.ts'
import { grpcClientOf } from '../support/grpc.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'

const type = 'iam.pinfold.dev/RoleBinding'
const bindings = '/iam/v2/roleBindings'
const pending = '/control/v1/pendingBindings'
const { pinfold, operator, org, ...scene } = await startScene({ allowOrganizationCreation: true }, { name: 'acme' })
const owner = await scene.member(roleUids.owner)
after(() => pinfold[Symbol.asyncDispose]())

async function someone() {
  const { uid } = await pinfold.seed.person({ name: 'Jane Doe', email: 'jane@example.com' })
  return { uid, client: await pinfold.as(uid) }
}
/** Creates an organization with an owner of its own. */
async function elsewhere() {
  const group = await pinfold.seed.group()
  const ownerUid = (await pinfold.seed.member(group.uid, roleUids.owner)).uid as string
  return { group, ownerUid, owner: await pinfold.as(ownerUid) }
}
const bind = async (client: Client, group: string, identityUid: string, roleUid = roleUids.viewer) =>
  ok(await client.post(`${bindings}/${group}`, { identityUid, roleUid }))
const waiting = async (client: Client, query = '') => ok(await client.get(`${pending}?${query}`))
const accept = (client: Client, uid: string) => client.post(`${pending}/${uid}:accept`)
const refuse = (client: Client, uid: string) => client.post(`${pending}/${uid}:refuse`)
const only = (uid: string) => ({ uid, name: '', description: '', subject: '', issuer: '', email: '' })
const mentions = (value: unknown) => /jane/i.test(JSON.stringify(value))

test('a binding gives no rights until the person accepts it, and shows only the uid of the person', async () => {
  const { uid, client } = await someone()
  let made: Json = {}
  const events = await eventsOf(pinfold, async () => {
    made = await bind(owner, org.uid, uid)
    const request = { roleBinding: { identityUid: uid, roleUid: roleUids.editor } }
    const batch = ok(await owner.post(`${bindings}:batchCreate`, { parent: org.uid, requests: [request] }))
    assert.deepEqual(batch.roleBindings[0].identity, only(uid))
    ok(await owner.patch(`${bindings}/${batch.roleBindings[0].uid}`, { roleUid: roleUids.console_viewer }))
  })
  assert.deepEqual(made.identity, only(uid))
  assert.deepEqual(ok(await owner.get(`${bindings}/${made.uid}`)), made)
  const listed = ok(await owner.get(`${bindings}?identity=${uid}`)).roleBindings
  for (const binding of listed) assert.deepEqual(binding.identity, only(uid))
  assert.equal(events.length, 3)
  const audit = ok(await owner.get(`/events/v2/audit?uidp.children_of=${org.uid}`)).auditEntries
  for (const told of [events, audit, listed]) assert.ok(!mentions(told))

  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  assert.deepEqual(ok(await client.get('/auth/v1/ok')).capabilities, [])
})

test('a person lists pending bindings, accepts them, and becomes a member of the organization', async () => {
  const { group, ownerUid, owner: other } = await elsewhere()
  const folder = await pinfold.seed.group(group.uid, { name: 'payments' })
  const { uid, client } = await someone()
  const made = [await bind(other, group.uid, uid), await bind(other, folder.uid, uid, roleUids.editor)]
  const { pendingBindings, totalCount } = await waiting(client)
  assert.equal(totalCount, '2')
  for (const one of pendingBindings) assertTimes(one, 'createTime')
  const by = { organization: group.name, createdBy: ownerUid }
  assert.deepEqual(
    pendingBindings.map(({ createTime, createdByName, ...one }: Json) => one),
    made
      .map((one, i) => ({ uid: one.uid, ...by, group: [group.name, 'payments'][i], role: ['viewer', 'editor'][i] }))
      .sort((a, b) => (a.uid < b.uid ? -1 : 1)),
  )
  assert.match(pendingBindings[0].createdByName, /^identity-/)

  const events = await eventsOf(pinfold, async () => {
    const { acceptedUids } = ok(await accept(client, made[1]!.uid))
    assert.deepEqual(acceptedUids.sort(), made.map((one) => one.uid).sort())
  })
  assert.deepEqual(
    events.map((one) => [one.type, one.actor, one.body.identity.email, one.body.identity.name]),
    Array(2).fill(['dev.pinfold.api.iam.rolebindings.updated.v1', uid, 'jane@example.com', 'Jane Doe']),
  )
  const [entry] = ok(await other.get(`/events/v2/audit?subject=${made[1]!.uid}&actor=${uid}`)).auditEntries
  assert.equal(entry.type, 'dev.pinfold.api.iam.rolebindings.updated.v1')
  ok(await client.get(`/iam/v2/groups/${group.uid}`))
  ok(await client.post(`/registry/v2/repos/${folder.uid}`, { name: 'by-jane' }))
  assert.equal(ok(await other.get(`${bindings}/${made[0]!.uid}`)).identity.email, 'jane@example.com')
  assert.equal((await waiting(client)).totalCount, '0')

  // Accepts again, like a client that lost the first answer.
  assert.deepEqual(await eventsOf(pinfold, async () => ok(await accept(client, made[0]!.uid))), [])
  // A member is not asked again while at least one binding of the member exists there.
  const more = await bind(other, group.uid, uid, roleUids.console_viewer)
  assert.equal(more.identity.email, 'jane@example.com')
  for (const { uid: one } of [...made, more]) ok(await other.delete(`${bindings}/${one}`))
  assert.deepEqual((await bind(other, group.uid, uid)).identity, only(uid))
  assertDenied(await client.get(`/iam/v2/groups/${group.uid}`))
  await checkLists(pinfold)
})

test('accepting a binding in one organization has no effect in another one', async () => {
  const { uid, client } = await someone()
  ok(await accept(client, (await bind(owner, org.uid, uid)).uid))
  const { group, owner: other } = await elsewhere()
  const made = await bind(other, group.uid, uid)
  assert.deepEqual(made.identity, only(uid))
  assertDenied(await client.get(`/iam/v2/groups/${group.uid}`))
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
})

test('refusing deletes the binding, and reveals only the uid of the person', async () => {
  const { uid } = await someone()
  const made = await bind(owner, org.uid, uid)
  // A token with the sign-in method of the person.
  const { signAccessToken } = await import('#issuer/access-token.ts')
  const act = { iss: 'https://people.example.com', sub: 'jane' }
  const token = { issuer: pinfold.url, subject: uid, audience: pinfold.url, now: pinfold.app.clock(), claims: { act } }
  const client = pinfold.withToken(await signAccessToken(pinfold.app.keyring, token))
  const events = await eventsOf(pinfold, async () => assert.equal((await refuse(client, made.uid)).status, 200))
  assert.deepEqual(
    events.map((one) => [one.type, one.subject, one.actor]),
    [['dev.pinfold.api.iam.rolebindings.deleted.v1', made.uid, uid]],
  )
  const { auditEntries } = ok(await owner.get(`/events/v2/audit?subject=${made.uid}&actor=${uid}`))
  assert.partialDeepStrictEqual(auditEntries, [{ act: '', remoteAddress: '', userAgent: '' }])
  // The sentences of these and of earlier entries.
  const audit = ok(await owner.get(`/events/v2/audit?uidp.children_of=${org.uid}&page_size=100`)).auditEntries
  for (const { actor, sentenceParts, ...entry } of audit as Json[])
    if (entry.subject === made.uid) assert.ok(!mentions([entry, sentenceParts]))
  assertNotFound(await owner.get(`${bindings}/${made.uid}`), type, made.uid)
  for (const again of [await refuse(client, made.uid), await accept(client, made.uid)]) {
    assertNotFound(again, type, made.uid)
  }
  await checkLists(pinfold)
})

test('a person cannot accept or refuse bindings of others, and gets no information about them', async () => {
  const [{ uid, client }, { client: another }] = [await someone(), await someone()]
  const made = await bind(owner, org.uid, uid)
  for (const stranger of [another, owner, operator]) {
    for (const answer of [await accept(stranger, made.uid), await refuse(stranger, made.uid)]) {
      assertNotFound(answer, type, made.uid)
    }
    assert.equal((await waiting(stranger)).totalCount, '0')
  }
  assertError(await accept(pinfold.anonymous, made.uid), 401, 16, 'UNAUTHENTICATED')
  assertNotFound(await accept(client, `${org.uid}/0123456789abcdef`), type, `${org.uid}/0123456789abcdef`)
  ok(await accept(client, made.uid))
  // A person cannot leave an organization by refusing a binding.
  assertNotFound(await refuse(client, made.uid), type, made.uid)
})

test('a session of one organization cannot list, accept or refuse bindings of another one', async () => {
  const { uid, client } = await someone()
  const { group, owner: other } = await elsewhere()
  const [here, there] = [await bind(owner, org.uid, uid), await bind(other, group.uid, uid)]
  const made = { issuer: pinfold.url, audience: pinfold.url, subject: uid, now: new Date() }
  const session = { uid: '', organization: org.uid as string, authTime: 0 }
  const inside = pinfold.withToken(await signAccessToken(pinfold.app.keyring, { ...made, session }))
  assert.deepEqual(
    (await waiting(inside)).pendingBindings.map((one: Json) => one.uid),
    [here.uid],
  )
  assert.equal((await accept(inside, there.uid)).status, 404)
  assert.equal((await refuse(inside, there.uid)).status, 404)
  assert.equal((await waiting(client)).pendingBindings.length, 2)
  ok(await accept(inside, here.uid))
  ok(await refuse(client, there.uid))
})

test('a binding has effect at once if the operator creates it, or if it is for oneself or a workload', async () => {
  const { uid, client } = await someone()
  assert.equal((await pinfold.seed.binding(org.uid, uid, roleUids.viewer)).identity.email, 'jane@example.com')
  ok(await client.get(`/iam/v2/groups/${org.uid}`))

  const own = ok(await client.post('/iam/v2/groups/', { name: 'janes' }))
  const [first] = ok(await client.get(`${bindings}?group=${own.uid}`)).roleBindings
  assert.equal(first.identity.email, 'jane@example.com')
  assert.equal((await bind(client, own.uid, uid)).identity.email, 'jane@example.com')

  const job = await pinfold.seed.identity(org.uid)
  assert.equal((await bind(owner, org.uid, job.uid)).identity.name, job.name)
  ok(await (await pinfold.as(job.uid)).get(`/iam/v2/groups/${org.uid}`))
})

test('a binding whose identity is changed to a person is pending until the person accepts', async () => {
  const { uid, client } = await someone()
  const job = await pinfold.seed.identity(org.uid)
  const made = await bind(owner, org.uid, job.uid)
  const moved = ok(await owner.patch(`${bindings}/${made.uid}`, { identityUid: uid }))
  assert.deepEqual(moved.identity, only(uid))
  assertDenied(await client.get(`/iam/v2/groups/${org.uid}`))
  // Changing the role does not activate the binding.
  assert.deepEqual(ok(await owner.patch(`${bindings}/${made.uid}`, { roleUid: roleUids.editor })).identity, only(uid))
  const back = ok(await owner.patch(`${bindings}/${made.uid}`, { identityUid: job.uid }))
  assert.equal(back.identity.name, job.name)
})

test('a new owner has no rights before accepting', async () => {
  const { uid, client } = await someone()
  const { group, ownerUid, owner: first } = await elsewhere()
  const mine = ok(await first.get(`${bindings}?identity=${ownerUid}`)).roleBindings[0]
  const second = await bind(first, group.uid, uid, roleUids.owner)
  assertBlocked(await first.delete(`${bindings}/${mine.uid}`), group.uid, 'LAST_OWNER')
  assertBlocked(await first.patch(`${bindings}/${mine.uid}`, { identityUid: uid }), group.uid, 'LAST_OWNER')
  assert.equal((await refuse(client, second.uid)).status, 200)

  const third = await bind(first, group.uid, uid, roleUids.owner)
  ok(await accept(client, third.uid))
  assert.equal((await first.delete(`${bindings}/${mine.uid}`)).status, 200)
  assertBlocked(await client.delete(`${bindings}/${third.uid}`), group.uid, 'LAST_OWNER')

  // In a group without owners, the pending binding of an owner can be deleted.
  const unowned = await pinfold.seed.group()
  const administrator = await pinfold.as((await pinfold.seed.member(unowned.uid, roleUids.operator)).uid)
  const offered = await bind(administrator, unowned.uid, uid, roleUids.owner)
  assert.equal((await administrator.delete(`${bindings}/${offered.uid}`)).status, 200)
})

test('limits the pending bindings of a person in each organization, and lists them in pages', async () => {
  const { uid, client } = await someone()
  const { group, owner: other } = await elsewhere()
  const roles = await Promise.all(Array.from({ length: 21 }, () => pinfold.seed.role(group.uid, ['repo.list'])))
  for (const { uid: role } of roles.slice(1)) await bind(other, group.uid, uid, role)
  const create = () => other.post(`${bindings}/${group.uid}`, { identityUid: uid, roleUid: roles[0]!.uid })
  assertError(await create(), 429, 8, 'TOO_MANY_PENDING_BINDINGS')
  await bind(owner, org.uid, uid)

  const seen: string[] = []
  for (let token = '', pages = 0; pages === 0 || token !== ''; pages++) {
    assert.ok(pages < 5, 'the pages have an end')
    const page = await waiting(client, `page_size=8&order_by=uid desc&page_token=${token}`)
    assert.equal(page.totalCount, '21')
    seen.push(...page.pendingBindings.map((one: Json) => one.uid))
    token = page.nextPageToken
  }
  assert.equal(new Set(seen).size, 21)
  assert.deepEqual(seen, seen.toSorted().reverse())
  ok(await accept(client, seen.find((one) => one.startsWith(group.uid))!))
  ok(await create())
  assert.equal((await waiting(client)).totalCount, '1')
})

test('gRPC gives the same answers as REST', async () => {
  const { uid, client } = await someone()
  const made = await bind(owner, org.uid, uid)
  using grpc = grpcClientOf(pinfold, PendingBindingsService, client.token)
  const { pendingBindings } = await grpc.listPendingBindings({})
  assert.deepEqual(
    pendingBindings.map((one) => [one.uid, one.organization, one.role]),
    [[made.uid, 'acme', 'viewer']],
  )
  assert.deepEqual((await grpc.acceptPendingBinding({ uid: made.uid })).acceptedUids, [made.uid])
  ok(await client.get(`/iam/v2/groups/${org.uid}`))
})
