// Behavior that existing clients rely on, over both versions, if no test of an area covers it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { create } from '@bufbuild/protobuf'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { claimsOf, type Scene, startExchange } from '../support/exchange.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { publicKeys } from '../support/public-keys.ts'
import { openGrpc } from '../support/raw-grpc.ts'

let scene: Scene
let owner: Client
let org: string
before(async () => {
  scene = await startExchange({ allowOrganizationCreation: true })
  org = scene.org.uid
  owner = await scene.pinfold.as((await scene.pinfold.seed.member(org, roleUids.owner)).uid)
})
after(() => scene[Symbol.asyncDispose]())

const inHours = (hours: number) => new Date(Math.floor(Date.now() / 1000 + hours * 3600) * 1000).toISOString()

test('tokens can be issued for the API, the registry, and host names below it', async () => {
  const { uid } = await scene.identity()
  const { url } = scene.pinfold
  const { host } = new URL(url)
  for (const aud of [url, host, `libraries.${host}`, `apk.${host}`]) {
    assert.equal(claimsOf(ok(await scene.exchange(await scene.token(), { identity: uid, aud })).token).aud, aud)
  }
  for (const aud of [`https://libraries.${host}`, `evil${host}`, `${host}.example.com`, `a.b.${host}/x`]) {
    assertInvalid(await scene.exchange(await scene.token(), { identity: uid, aud }), 'aud')
  }
})

test('reading or deleting a deleted resource returns NOT_FOUND, and lists omit it', async () => {
  const { operator } = scene.pinfold
  const group = (await scene.pinfold.seed.group(org)).uid
  const made: Record<string, [uid: string, older: string]> = {
    groups: [group, 'groups'],
    identities: [(await scene.pinfold.seed.identity(org)).uid, 'identities'],
    roles: [(await scene.pinfold.seed.role(org, ['repo.list'])).uid, 'roles'],
  }
  for (const [name, [uid, older]] of Object.entries(made)) {
    assert.equal(ok(await owner.get(`/iam/v1/${older}?id=${uid}`)).items.length, 1, name)
    ok(await owner.delete(`/iam/v2/${name}/${uid}`))
    const read = await operator.get(`/iam/v2/${name}/${uid}`)
    assert.deepEqual([read.status, read.body.code], [404, 5], name)
    // The only text that clients compare.
    assert.match(read.body.message, /not found/)
    assert.deepEqual(ok(await owner.get(`/iam/v1/${older}?id=${uid}`)), { items: [] }, name)
    for (const version of ['v1', 'v2']) {
      const again = await operator.delete(`/iam/${version}/${name}/${uid}`)
      assert.deepEqual([again.status, again.body.code], [404, 5], `${version} ${name}`)
    }
  }
})

test('finds exactly one built-in role by name, with a description', async () => {
  for (const name of ['viewer', 'editor', 'owner']) {
    for (const [version, member, id] of [
      ['v1', 'items', 'id'],
      ['v2', 'roles', 'uid'],
    ] as const) {
      const [role, ...more] = ok(await owner.get(`/iam/${version}/roles?name=${name}`))[member] as Json[]
      assert.deepEqual(more, [])
      assert.match(role![id], /^[0-9a-f]{40}$/)
      assert.notEqual(role!.description, '')
    }
  }
})

test('returns times as they were sent', async () => {
  const expirationTime = inHours(30)
  const keys = { issuer: 'i', subject: 's', issuerKeys: publicKeys }
  const newer = ok(
    await owner.post(`/iam/v2/identities/${org}`, { name: 'a', staticKeys: { ...keys, expirationTime } }),
  )
  assert.deepEqual([newer.staticKeys.expirationTime, newer.staticKeys.issuerKeys], [expirationTime, publicKeys])
  const older = await owner.post(`/iam/v1/identities/${org}`, {
    name: 'a',
    static: { ...keys, expiration: expirationTime },
  })
  assert.equal(ok(older).static.expiration, expirationTime)
  const invited = ok(await owner.post(`/iam/v2/groupInvites/${org}`, { roleUid: roleUids.viewer, ttl: '3600s' }))
  assert.equal(ok(await owner.get(`/iam/v2/groupInvites/${invited.uid}`)).expirationTime, invited.expirationTime)
  const [listed] = ok(await owner.get(`/iam/v1/group_invites?id=${invited.uid}`)).items as Json[]
  assert.equal(listed!.expiration, invited.expirationTime)
})

test('lists of version 1 are complete, also for clients that request pages', async () => {
  for (const kind of ['iam/v1/groups', 'iam/v1/roles', 'iam/v1/identities', 'registry/v1/repos']) {
    const whole = ok(await owner.get(`/${kind}`))
    assert.deepEqual(ok(await owner.get(`/${kind}?offset=1&limit=1&page=2`)), whole, kind)
  }
})

test('accepts update masks in snake case, and without a mask changes all set fields', async () => {
  const { uid } = ok(await owner.post(`/iam/v2/groups/${org}`, { name: 'masked', description: 'text' }))
  const masked = await owner.patch(`/iam/v2/groups/${uid}?update_mask=description`, { name: 'x', description: '' })
  assert.deepEqual([ok(masked).name, ok(masked).description ?? ''], ['masked', ''])
  const bare = await owner.patch(`/iam/v2/groups/${uid}`, { description: 'again' })
  assert.deepEqual([ok(bare).name, ok(bare).description], ['masked', 'again'])
})

test('pages have fifty items, and the last page has no token', async () => {
  const { uid } = await scene.pinfold.seed.group(org)
  for (let i = 0; i < 51; i++) await scene.pinfold.seed.repo(uid, { name: `r${i}` })
  const path = `/registry/v2/repos?uidp.children_of=${uid}`
  const first = ok(await owner.get(path))
  assert.equal(first.repos.length, 50)
  const rest = ok(await owner.get(`${path}&page_token=${encodeURIComponent(first.nextPageToken)}`))
  assert.deepEqual([rest.repos.length, rest.nextPageToken], [1, ''])
  assert.equal(ok(await owner.get(`/registry/v1/repos?uidp.childrenOf=${uid}`)).items.length, 51)
})

test('ignores metadata that clients send', async () => {
  const headers = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'x-client-id': 'a tool',
    'user-agent': 'terraform/1.9 tool/2.0 (+https://example.com)',
  }
  for (const version of ['v1', 'v2']) {
    ok(await owner.call('GET', `/iam/${version}/groups`, undefined, headers))
  }
  using grpc = openGrpc(scene.pinfold.port)
  const desc = GroupsService.method.getGroup
  const token = await scene.pinfold.tokenFor((await scene.pinfold.seed.member(org, roleUids.viewer)).uid)
  assert.equal((await grpc.call(desc, create(desc.input, { uid: org }), { token })).code, 0)
})

test('a person can create an organization and sees it with the next token; an identity of a group cannot', async () => {
  const { pinfold } = scene
  const { uid } = await pinfold.seed.person()
  const person = await pinfold.as(uid)
  for (const version of ['v1', 'v2']) {
    const made = ok(await person.post(`/iam/${version}/groups/`, { name: `own-${version}` }))
    const id = made.id ?? made.uid
    assert.equal(ok(await (await pinfold.as(uid)).get(`/iam/v1/groups?id=${id}`)).items.length, 1)
  }
  for (const group of [org, (await pinfold.seed.group(org)).uid]) {
    const job = await pinfold.as((await pinfold.seed.member(group, roleUids.owner)).uid)
    for (const version of ['v1', 'v2']) assertDenied(await job.post(`/iam/${version}/groups/`, { name: 'theirs' }))
  }
})

test('a lasting error is never PERMISSION_DENIED, because clients retry that', async () => {
  const missing = `${org}/0123456789abcdef`
  const wrong: [path: string, body: Json, field: string][] = [
    ['groups', { name: 'No/Slash' }, 'name'],
    ['roles', { name: 'x', capabilities: [] }, 'capabilities'],
    ['identities', { name: 'x' }, 'relationship'],
  ]
  for (const version of ['v1', 'v2']) {
    for (const [path, body, field] of wrong)
      assertInvalid(await owner.post(`/iam/${version}/${path}/${org}`, body), field)
    const answer = await owner.post(`/iam/${version}/groups/${missing}`, { name: 'below' })
    assertNotFound(answer, 'iam.pinfold.dev/Group', missing)
  }
})

test('a project number accepts any text, in both versions', async () => {
  for (const [version, path] of [
    ['v1', 'account_associations'],
    ['v2', 'accountAssociations'],
  ]) {
    const { uid } = await scene.pinfold.seed.group(org)
    const google = { projectId: 'example-project', projectNumber: 'qwertyuiop' }
    assert.deepEqual(ok(await owner.post(`/iam/${version}/${path}/${uid}`, { name: 'one', google })).google, google)
  }
})

test('lists in a repository and a tag keep their order, and the tier UNKNOWN means no tier', async () => {
  const { operator } = scene.pinfold
  const lists = { bundles: ['fips', 'application', 'base'], aliases: ['z:1', 'a:2'], activeTags: ['9', '10', '1'] }
  const made = ok(
    await operator.post(`/registry/v1/repos/${org}`, { name: 'ordered', catalogTier: 'UNKNOWN', ...lists }),
  )
  const { bundles, aliases, activeTags, catalogTier } = made
  assert.deepEqual({ bundles, aliases, activeTags, catalogTier }, { ...lists, catalogTier: 'UNKNOWN' })
  const newer = ok(await owner.get(`/registry/v2/repos/${made.id}`))
  assert.deepEqual([newer.bundles, newer.aliases, newer.activeTags], Object.values(lists))
  assert.equal(newer.catalogTier ?? 'CATALOG_TIER_UNSPECIFIED', 'CATALOG_TIER_UNSPECIFIED')
  const tag = ok(await operator.post(`/registry/v1/tags/${made.id}`, { name: 't', bundles: lists.bundles }))
  assert.deepEqual(tag.bundles, lists.bundles)
})
