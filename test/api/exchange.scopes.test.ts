// Rights of a token: the bindings of its identity, narrowed to the scopes and capabilities that were requested.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { capabilities, maskOf } from '#domains/iam/access/capabilities.ts'
import { decodeBits } from '#lib/capability-set.ts'
import { claimsOf, type Scene, startExchange } from '../support/exchange.ts'
import { assertDenied, assertError, assertInvalid, ok } from '../support/expect.ts'
import type { Client, Json } from '../support/pinfold.ts'

let scene: Scene
let token: string
/** Identity with one binding on `foo` and another on `foo/bar`. `foo/qux` has no binding. */
let uid: string
let [foo, bar, baz, qux, other]: string[] = []

before(async () => {
  scene = await startExchange()
  const { seed } = scene.pinfold
  foo = scene.org.uid as string
  bar = (await seed.group(foo)).uid as string
  baz = (await seed.group(bar)).uid as string
  qux = (await seed.group(foo)).uid as string
  other = (await seed.group()).uid as string
  uid = (await scene.identity()).uid
  await bind(uid, foo, ['groups.list', 'repo.list'])
  await bind(uid, bar, ['tag.list', 'repo.list'])
  token = await scene.token()
})

after(() => scene[Symbol.asyncDispose]())

async function bind(identity: string, group: string, names: string[]): Promise<Json> {
  const { seed } = scene.pinfold
  const enumNames = [...capabilities.values()].filter(({ name }) => names.includes(name)).map((one) => one.enumName)
  return seed.binding(group, identity, (await seed.role(foo!, enumNames)).uid)
}

/** The `cap` claim with capability names instead of bits. */
function capOf(issued: string): Json {
  const named = (mask: bigint) =>
    [...capabilities.values()].filter((one) => (one.mask & mask) !== 0n).map((c) => c.name)
  return Object.fromEntries(
    Object.entries(claimsOf(issued).cap as Json).map(([scope, bits]) => [scope, named(decodeBits(bits)!).sort()]),
  )
}

const exchanged = async (parameters: Json, identity = uid) =>
  capOf(ok(await scene.exchange(token, { identity, ...parameters })).token)

test('without scopes, the token has the capabilities of each binding for the group of the binding', async () => {
  assert.deepEqual(await exchanged({}), { [foo!]: ['groups.list', 'repo.list'], [bar!]: ['repo.list', 'tag.list'] })
})

test('a token can be limited to a capability that a capability of the identity includes', async () => {
  const changer = (await scene.identity()).uid
  await bind(changer, foo!, ['registry.settings.update'])
  const cap = ['registry.rules.list', 'audit.list']
  assert.deepEqual(await exchanged({ cap }, changer), { [foo!]: ['registry.rules.list'] })
})

test('with both groups as scopes, the token has the capabilities of each binding for its group', async () => {
  const both = { [foo!]: ['groups.list', 'repo.list'], [bar!]: ['repo.list', 'tag.list'] }
  assert.deepEqual(await exchanged({ scopes: [foo, bar] }), both)
  assert.deepEqual(await exchanged({ scopes: [bar, foo, bar] }), both)
})

test('with the lower group as the scope, the token has the capabilities of both bindings for this group', async () => {
  const merged = ['groups.list', 'repo.list', 'tag.list']
  assert.deepEqual(await exchanged({ scopes: bar }), { [bar!]: merged })
  assert.deepEqual(await exchanged({ scopes: baz }), { [baz!]: merged })
  assert.deepEqual(await exchanged({ scopes: [baz, qux] }), { [baz!]: merged, [qux!]: ['groups.list', 'repo.list'] })
})

test('adds the parameter scope to the list scopes, without duplicates', async () => {
  const merged = ['groups.list', 'repo.list', 'tag.list']
  assert.deepEqual(await exchanged({ scope: bar }), { [bar!]: merged })
  assert.deepEqual(await exchanged({ scope: bar, scopes: [bar] }), { [bar!]: merged })
  assert.deepEqual(await exchanged({ scope: qux, scopes: [bar] }), {
    [bar!]: merged,
    [qux!]: ['groups.list', 'repo.list'],
  })
})

test('a token with a scope has access only to this scope', async () => {
  const { pinfold } = scene
  const narrow = ok(await scene.exchange(token, { identity: uid, scopes: bar })).token
  const client = pinfold.withToken(narrow)
  ok(await client.get(`/iam/v2/groups/${bar}`))
  ok(await client.get(`/iam/v2/groups/${baz}`))
  assertDenied(await client.get(`/iam/v2/groups/${foo}`))
  assertDenied(await client.get(`/iam/v2/groups/${qux}`))
})

test('refuses a scope without access, existing or not, also beside a scope with access', async () => {
  for (const scopes of [other, [foo, other], '0'.repeat(40), [bar, `${other}/0123456789abcdef`]]) {
    assertDenied(await scene.exchange(token, { identity: uid, scopes }))
  }
  // The identity has no binding on the group above, but on a sibling group.
  const low = (await scene.identity()).uid
  await bind(low, bar!, ['repo.list'])
  assert.deepEqual(await exchanged({ scopes: foo }, low), { [bar!]: ['repo.list'] })
  assertDenied(await scene.exchange(token, { identity: low, scopes: qux }))
  assertDenied(await scene.exchange(token, { identity: low, scopes: [foo, qux] }))
})

test('refuses a scope that is not a uid as an invalid argument', async () => {
  for (const scopes of ['x', '/', `${foo}/`, foo!.toUpperCase(), [foo, ''], '*']) {
    assertInvalid(await scene.exchange(token, { identity: uid, scopes }), 'scopes')
  }
})

test('an identity in a folder has no access to the groups above, whatever its bindings are', async () => {
  const { pinfold } = scene
  const claimMatch = { issuer: scene.issuer.url, subject: 'repo:acme/web:ref:refs/heads/main' }
  const inside = (await pinfold.seed.identity(bar!, { claimMatch })).uid
  await bind(inside, baz!, ['repo.list'])
  assert.deepEqual(await exchanged({}, inside), { [baz!]: ['repo.list'] })
  assert.deepEqual(await exchanged({ scopes: foo }, inside), { [baz!]: ['repo.list'] })
})

test('leaves out capabilities that the identity does not hold, and refuses unknown capabilities', async () => {
  assert.deepEqual(await exchanged({ cap: ['repo.list', 'repo.delete'] }), {
    [foo!]: ['repo.list'],
    [bar!]: ['repo.list'],
  })
  assert.deepEqual(await exchanged({ cap: 'tag.list' }), { [bar!]: ['tag.list'] })
  assert.deepEqual(await exchanged({ cap: 'groups.delete' }), {})
  for (const cap of ['', 'repo.fly', 'CAP_REPO_LIST', '__proto__', ['repo.list', 'x'.repeat(1000)]]) {
    const answer = await scene.exchange(token, { identity: uid, cap })
    assertInvalid(answer, 'cap')
    assert.ok(answer.body.message.length < 200)
  }
})

test('a token for an empty list of capabilities allows nothing, also after its identity gets more', async () => {
  const { pinfold } = scene
  const bare = (await scene.identity()).uid
  const issued = ok(await scene.exchange(token, { identity: bare })).token
  assert.deepEqual(claimsOf(issued).cap, {})
  await bind(bare, foo!, ['groups.list'])
  assertDenied(await pinfold.withToken(issued).get(`/iam/v2/groups/${foo}`))
  const later = ok(await scene.exchange(token, { identity: bare })).token
  ok(await pinfold.withToken(later).get(`/iam/v2/groups/${foo}`))
})

test('a token has no access from the moment when its identity is deleted or its role loses the capability', async () => {
  const { pinfold } = scene
  const bound = (await scene.identity()).uid
  const binding = await bind(bound, foo!, ['groups.list'])
  const client = pinfold.withToken(ok(await scene.exchange(token, { identity: bound })).token)
  ok(await client.get(`/iam/v2/groups/${foo}`))
  ok(await pinfold.operator.patch(`/iam/v2/roles/${binding.role.uid}`, { capabilities: ['CAP_REPO_LIST'] }))
  assertDenied(await client.get(`/iam/v2/groups/${foo}`))
  ok(await pinfold.operator.patch(`/iam/v2/roles/${binding.role.uid}`, { capabilities: ['CAP_IAM_GROUPS_LIST'] }))
  ok(await client.get(`/iam/v2/groups/${foo}`))
  ok(await pinfold.operator.delete(`/iam/v2/identities/${bound}`))
  for (const path of [`/iam/v2/groups/${foo}`, '/auth/v1/ok', '/control/v1/pendingBindings']) {
    assertError(await client.get(path), 401, 16, 'UNAUTHENTICATED')
  }
  assertDenied(await scene.exchange(token, { identity: bound }))
})

test('the bit masks in the claim encode the capabilities', async () => {
  const { cap } = claimsOf(ok(await scene.exchange(token, { identity: uid })).token)
  const groupsAndRepos = [...capabilities.values()].filter(({ name }) => ['groups.list', 'repo.list'].includes(name))
  assert.equal(decodeBits(cap[foo!]), maskOf(groupsAndRepos.map(({ number }) => number)))
})

test('an identity in too many groups gets a token with a summary instead of the list of groups', async () => {
  const { seed, withToken } = scene.pinfold
  const wide = (await scene.identity()).uid
  const role = (await seed.role(foo!, ['CAP_REPO_LIST'])).uid
  for (let left = 100; left > 0; left--) await seed.binding((await seed.group(qux!)).uid, wide, role)
  const issued = async (parameters: Json) => ok(await scene.exchange(token, { identity: wide, ...parameters })).token
  const listed = async (client: Client) => (await client.get(`/registry/v2/repos?uidp.children_of=${some}`)).status
  const some = (await seed.group(qux!)).uid
  await seed.binding(some, wide, role)

  // The server reads the rights for each request, so a token without capabilities allows no more than its identity has.
  const everything = await issued({})
  assert.equal(claimsOf(everything).cap, undefined)
  assert.ok(everything.length < 12 * 1024)
  assert.equal(await listed(withToken(everything)), 200)
  assertDenied(await withToken(everything).get(`/iam/v2/groups/${some}`))
  assert.deepEqual(await exchanged({ cap: ['repo.list', 'tag.list'] }, wide), { '/': ['repo.list', 'tag.list'] })
  assert.equal(await listed(withToken(await issued({ cap: 'repo.list' }))), 200)
  assert.equal(await listed(withToken(await issued({ cap: 'tag.list' }))), 403)
  assert.deepEqual(await exchanged({ scopes: qux }, wide), { [qux!]: ['repo.list'] })
  assert.equal(await listed(withToken(await issued({ scopes: qux }))), 200)
  await seed.binding(bar!, wide, role)
  assert.deepEqual(await exchanged({ scopes: [qux, bar] }, wide), { [qux!]: ['repo.list'], [bar!]: ['repo.list'] })
  assert.deepEqual(await exchanged({ scopes: [qux, bar], cap: 'tag.list' }, wide), {})

  const [first] = Object.values(
    ok(await scene.pinfold.operator.get(`/iam/v2/groups?uidp.children_of=${qux}&page_size=1`)).groups as Json[],
  )
  assert.deepEqual(await exchanged({ scopes: first!.uid }, wide), { [first!.uid]: ['repo.list'] })
})
