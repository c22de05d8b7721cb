// Search for anything by a part of its name: matches, their order, pages, and what each caller can find.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { capabilityNumber } from '#domains/iam/access/capabilities.ts'
import { indexNames } from '#domains/search/index-names.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { apkLayer, pushAndScan, readSource, recordAbout } from '../support/scanning.ts'

let registry: TestRegistry
let [shop, team, app, worker, image] = ['', '', '', '', '']
let owner: Client
before(async () => {
  registry = await startRegistry()
  const { seed, org } = registry
  shop = (await seed.group(org.uid, { name: 'shop' })).uid
  team = (await seed.group(org.uid, { name: 'team' })).uid
  app = (await seed.repo(shop, { name: 'payments', description: 'Takes money' })).uid
  worker = (await seed.repo(team, { name: 'worker' })).uid
  owner = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  await readSource(registry.app, 'Alpine:v3.19', [
    recordAbout('CVE-2026-1234', 'Alpine:v3.19', 'openssl', '3.1.4-r5', { summary: 'A bug in OpenSSL' }),
    recordAbout('GHSA-jfh8-c2jp-5v3q', 'Alpine:v3.19', 'musl', '1.2.4-r3'),
  ])
  image = await push('acme/shop/payments', ['libssl3 3.1.4-r2 openssl', 'musl 1.2.4-r2'], '1.0-rc1')
  await push('acme/team/worker', ['curl 8-r0'], 'Nightly-build')
})
after(() => registry[Symbol.asyncDispose]())

const push = (repo: string, lines: string[], tag: string) =>
  pushAndScan(registry, repo, apkLayer('alpine', '3.19.1', lines), tag)

let indexing: Promise<unknown> = Promise.resolve()
/** Adds all changes to the index, as the background job does. One call runs at a time. */
const indexAll = () => (indexing = indexing.then(() => runJob(registry.app, indexNames)))

const ask = (query: Json, client = owner) =>
  client.get(`/registry/v2/search?${new URLSearchParams(query as Record<string, string>)}`)

/** Results on all pages. On a busy machine, a page can have fewer results than requested. */
async function found(query: string, more: Json = {}, client = owner): Promise<Json[]> {
  await indexAll()
  const results: Json[] = []
  for (let [pageToken, pages] = ['', 0]; pages === 0 || pageToken !== ''; pages++) {
    const page = ok(await ask({ query, ...more, pageToken }, client))
    results.push(...page.results)
    pageToken = page.nextPageToken
  }
  return results
}

const shown = async (query: string, more: Json = {}, client = owner): Promise<string[]> =>
  (await found(query, more, client)).map(({ kind, match, path, name }) => `${kind} ${match} ${path || name}`)

/** All results in pages of one size. */
async function allPages(query: string, pageSize: number, client = owner): Promise<string[]> {
  await indexAll()
  const names: string[] = []
  for (let [pageToken, pages] = ['', 0]; pages === 0 || pageToken !== ''; pages++) {
    assert.ok(pages < 1000, 'the pages never end')
    const page = ok(await ask({ query, pageSize: String(pageSize), pageToken }, client))
    assert.ok(page.results.length <= pageSize)
    names.push(...page.results.map(({ kind, match, path, name }: Json) => `${kind} ${match} ${path || name}`))
    pageToken = page.nextPageToken
  }
  return names
}

test('finds a resource of each kind, with what a client needs to link to it', async () => {
  const [folder] = await found('shop')
  const { updateTime: _, ...group } = folder!
  const none = { repoUid: '', digest: '', detail: '' }
  assert.deepEqual(group, {
    kind: 'folder',
    match: 'exact',
    name: 'shop',
    path: 'acme/shop',
    resourceUid: shop,
    ...none,
  })
  const [organization] = await found('acm', { kinds: 'organization' })
  assert.equal(organization!.resourceUid, registry.org.uid)
  const [repository] = await found('payments')
  assert.equal(repository!.kind, 'repository')
  assert.equal(repository!.path, 'acme/shop/payments')
  assert.equal(repository!.resourceUid, app)
  assert.equal(repository!.detail, 'Takes money')
  const [tag] = await found('1.0-rc1')
  assert.equal(tag!.kind, 'tag')
  assert.equal(tag!.path, 'acme/shop/payments:1.0-rc1')
  assert.equal(tag!.repoUid, app)
  assert.equal(tag!.digest, image)
  const [digest] = await found(image)
  assert.equal(digest!.path, `acme/shop/payments@${image}`)
  assert.equal(digest!.detail, '1.0-rc1')
  const [packaged] = await found('libssl3')
  assert.deepEqual(packaged, {
    ...{ kind: 'package', match: 'exact', name: 'libssl3', path: '', resourceUid: '', repoUid: app, digest: image },
    detail: 'Alpine:v3.19 3.1.4-r2',
  })
  const [vulnerability] = await found('cve-2026-1234')
  assert.equal(vulnerability!.kind, 'vulnerability')
  assert.equal(vulnerability!.name, 'CVE-2026-1234')
  assert.equal(vulnerability!.detail, 'A bug in OpenSSL')
})

test('finds a part of a name in any position, without regard to case', async () => {
  assert.deepEqual(await shown('AYMEN'), ['repository part acme/shop/payments'])
  assert.deepEqual(await shown('ssl'), ['package part libssl3'])
  assert.deepEqual(await shown('RC1'), ['tag word acme/shop/payments:1.0-rc1'])
  assert.deepEqual(await shown('ightly-B'), ['tag part acme/team/worker:Nightly-build'])
  assert.deepEqual(await shown('nightly'), ['tag prefix acme/team/worker:Nightly-build'])
  assert.deepEqual(await shown('2026-12'), ['vulnerability word CVE-2026-1234'])
  assert.deepEqual(await shown('1234'), ['vulnerability word CVE-2026-1234'])
  assert.deepEqual(await shown('ghsa-JFH8'), ['vulnerability prefix GHSA-jfh8-c2jp-5v3q'])
  assert.deepEqual(await shown(image.slice(7, 15)), [`digest prefix acme/shop/payments@${image}`])
  assert.deepEqual(await shown(image.slice(0, 15)), [`digest prefix acme/shop/payments@${image}`])
})

test('finds short texts too', async () => {
  assert.ok((await shown('p')).includes('repository prefix acme/shop/payments'))
  assert.ok((await shown('w', { kinds: 'repository' })).includes('repository prefix acme/team/worker'))
  assert.deepEqual(await shown('1', { kinds: 'tag' }), ['tag prefix acme/shop/payments:1.0-rc1'])
})

test('sorts results by match, then by kind, then by last update', async () => {
  const { seed } = registry
  const org = await seed.group('', { name: 'ranks' })
  const client = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  for (const name of ['my-zebra', 'subzebra', 'zebra', 'zebra-old', 'zebra-new']) await seed.repo(org.uid, { name })
  await seed.group(org.uid, { name: 'zebra' })
  await seed.group(org.uid, { name: 'the zebra' })
  const wanted = [
    'folder exact ranks/zebra',
    'repository exact ranks/zebra',
    'repository prefix ranks/zebra-new',
    'repository prefix ranks/zebra-old',
    'folder word ranks/the zebra',
    'repository word ranks/my-zebra',
    'repository part ranks/subzebra',
  ]
  assert.deepEqual(await shown('zebra', {}, client), wanted)
  for (const size of [1, 2, 3, 7]) assert.deepEqual(await allPages('zebra', size, client), wanted, `pages of ${size}`)
})

test('returns suggestions: a few results of each kind, and no next page', async () => {
  const { seed } = registry
  const org = await seed.group('', { name: 'hints' })
  const client = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  for (let i = 0; i < 5; i++) {
    await seed.repo(org.uid, { name: `hint-${i}` })
    await seed.group(org.uid, { name: `hint ${i}` })
  }
  await indexAll()
  let page: Json = { incomplete: true }
  // On a busy machine, the time can end before all kinds were searched.
  for (let tries = 0; page.incomplete && tries < 20; tries++) {
    page = ok(await ask({ query: 'hint', perKind: '2' }, client))
  }
  const kinds = page.results.map(({ kind }: Json) => kind)
  assert.deepEqual(kinds, ['organization', 'folder', 'folder', 'repository', 'repository'])
  assert.equal(page.nextPageToken, '')
  assert.equal(page.incomplete, false)
})

test('pages through many matches without a gap or a repetition', async () => {
  const { seed } = registry
  const org = await seed.group('', { name: 'many' })
  const client = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const names = Array.from({ length: 230 }, (_, i) => `lot-lot-${String(i).padStart(3, '0')}`)
  for (const name of names) await seed.repo(org.uid, { name })
  for (const size of [7, 200]) {
    const all = await allPages('lot', size, client)
    assert.deepEqual(
      all,
      names.map((name) => `repository prefix many/${name}`),
    )
  }
  assert.equal((await allPages('ot', 50, client)).length, names.length)
})

test('finds people by name and email, and identities by name', async () => {
  const { seed, org } = registry
  const person = await seed.person({ name: 'Zoé Ångström', email: 'zoe@people.example' })
  await seed.binding(org.uid, person.uid, roleUids.viewer)
  await seed.binding(shop, person.uid, roleUids.editor)
  await seed.identity(shop, { name: 'ci-deploy' })
  for (const query of ['ZOE\u0301', 'ångström', 'zoe@peo', 'people.example']) {
    const results = await found(query, { kinds: 'member' })
    assert.deepEqual(
      results.map(({ resourceUid }) => resourceUid),
      [person.uid],
      query,
    )
    assert.equal(results[0]!.detail, 'zoe@people.example')
    assert.equal(results[0]!.path, 'acme')
  }
  const [identity] = await found('deploy')
  assert.equal(identity!.kind, 'member')
  assert.equal(identity!.path, 'acme/shop')
})

test('does not find a person who has not accepted the role', async () => {
  const { seed, org } = registry
  const person = await seed.person({ name: 'Unasked Person', email: 'unasked@people.example' })
  ok(await owner.post(`/iam/v2/roleBindings/${org.uid}`, { identityUid: person.uid, roleUid: roleUids.viewer }))
  assert.deepEqual(await found('unasked'), [])
  const client = await registry.as(person.uid)
  const [pending] = ok(await client.get('/control/v1/pendingBindings')).pendingBindings
  ok(await client.post(`/control/v1/pendingBindings/${pending.uid}:accept`))
  assert.deepEqual(await shown('unasked'), ['member prefix acme'])
})

test('takes wildcards, quotes and emoji literally', async () => {
  const { seed } = registry
  const org = await seed.group('', { name: 'odd' })
  const client = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  await seed.repo(org.uid, { name: 'under_score' })
  await seed.repo(org.uid, { name: 'underscore' })
  const person = await seed.person({ name: `Rocket 🚀 100% "quoted" O'Neil` })
  await seed.binding(org.uid, person.uid, roleUids.viewer)
  assert.deepEqual(await shown('r_s', {}, client), ['repository part odd/under_score'])
  assert.deepEqual(await shown('%', {}, client), ['member part odd'])
  for (const query of ['🚀', '"quoted"', "o'neil", '100%']) {
    assert.equal((await found(query, {}, client)).length, 1, query)
  }
  for (const query of ['\\', '*', '__', "'; DROP TABLE repos; --", '\ud83d']) {
    assert.deepEqual(await found(query, {}, client), [], query)
  }
})

test('reads a path and a tag from the text', async () => {
  assert.deepEqual(await shown('acme/shop/pay'), ['repository prefix acme/shop/payments'])
  assert.deepEqual(await shown('acme/pay'), ['repository prefix acme/shop/payments'])
  assert.deepEqual(await shown('acme/team/pay'), [])
  assert.deepEqual(await shown('nowhere/pay'), [])
  assert.deepEqual(await shown('payments:1.'), ['tag prefix acme/shop/payments:1.0-rc1'])
  assert.deepEqual(await shown('acme/shop/payments:1.'), ['tag prefix acme/shop/payments:1.0-rc1'])
  assert.deepEqual(await shown('acme/team/payments:1.'), [])
  assert.deepEqual(await shown(`acme/shop/payments@${image}`), [`digest exact acme/shop/payments@${image}`])
})

test('finds only what the caller can list', async () => {
  const { seed, org } = registry
  const everything = ['shop', 'payments', '1.0-rc1', image, 'libssl3', 'cve-2026-1234', 'worker', 'curl', 'nightly']
  const findsAll = async (client: Client) => {
    const all = await Promise.all(everything.map((query) => found(query, {}, client)))
    return everything.filter((_, i) => all[i]!.length > 0)
  }
  const as = async (role: string, place: string) => registry.as((await seed.member(place, role)).uid)
  const holding = async (...capabilities: string[]) => as((await seed.role(org.uid, capabilities)).uid, org.uid)
  assert.deepEqual(await findsAll(await as(roleUids.viewer, org.uid)), everything)
  const inShop = ['shop', 'payments', '1.0-rc1', image, 'libssl3', 'cve-2026-1234']
  assert.deepEqual(await findsAll(await as(roleUids.viewer, shop)), inShop)
  assert.deepEqual(await findsAll(await as(roleUids.viewer, team)), ['cve-2026-1234', 'worker', 'curl', 'nightly'])
  assert.deepEqual(await findsAll(await registry.as((await seed.person()).uid)), [])
  assert.deepEqual(await findsAll(await as(roleUids.owner, (await seed.group()).uid)), ['cve-2026-1234'])
  assert.deepEqual(await findsAll(await holding('groups.list')), ['shop'])
  assert.deepEqual(await findsAll(await holding('repo.list')), ['payments', 'worker'])
  assert.deepEqual(await findsAll(await holding('role_bindings.list', 'identity.list')), [])
  assert.equal((await ask({ query: 'payments' }, registry.anonymous)).status, 401)
})

test('finds members only with permission to list them', async () => {
  const { seed, org } = registry
  const person = await seed.person({ name: 'Hidden Person', email: 'hidden@people.example' })
  await seed.binding(org.uid, person.uid, roleUids.viewer)
  await seed.identity(org.uid, { name: 'hidden-machine' })
  const holding = async (place: string, ...capabilities: string[]) =>
    registry.as((await seed.member(place, (await seed.role(org.uid, capabilities)).uid)).uid)
  const names = async (client: Client) => (await found('hidden', {}, client)).map(({ name }) => name)
  assert.deepEqual(await names(await holding(org.uid, 'role_bindings.list')), ['Hidden Person'])
  assert.deepEqual(await names(await holding(org.uid, 'identity.list')), ['hidden-machine'])
  assert.deepEqual(await names(await holding(shop, 'role_bindings.list', 'identity.list')), [])
})

test('a token for one repository finds this repository and its tags', async () => {
  const { seed, org } = registry
  const { uid } = await seed.member(org.uid, roleUids.viewer)
  const numbers = ['repo.list', 'tag.list'].map(capabilityNumber)
  const narrowed = await registry.as(uid, { cap: { [app]: numbers } })
  assert.deepEqual(await shown('payments', {}, narrowed), ['repository exact acme/shop/payments'])
  assert.deepEqual(await shown('1.0', {}, narrowed), ['tag prefix acme/shop/payments:1.0-rc1'])
  assert.deepEqual(await shown('worker', {}, narrowed), [])
})

test('limits the search to a group or a repository', async () => {
  assert.deepEqual(await shown('worker', { scopeUid: team }), ['repository exact acme/team/worker'])
  assert.deepEqual(await shown('worker', { scopeUid: shop }), [])
  assert.deepEqual(await shown('1.0', { scopeUid: app }), ['tag prefix acme/shop/payments:1.0-rc1'])
  assert.deepEqual(await shown('1.0', { scopeUid: worker }), [])
  const stranger = await registry.as((await registry.seed.person()).uid)
  assertDenied(await ask({ query: 'a', scopeUid: team }, stranger))
  assertDenied(await ask({ query: 'a', scopeUid: `${registry.org.uid}/${'0'.repeat(16)}` }, stranger))
  const missing = `${registry.org.uid}/${'0'.repeat(16)}`
  assertNotFound(await ask({ query: 'a', scopeUid: missing }), 'iam.pinfold.dev/Group', missing)
})

test('follows renames and deletions', async () => {
  const { seed } = registry
  const org = await seed.group('', { name: 'changing' })
  const client = await registry.as((await seed.member(org.uid, roleUids.owner)).uid)
  const folder = await seed.group(org.uid, { name: 'before-name' })
  const repo = await seed.repo(folder.uid, { name: 'shortlived' })
  ok(await client.patch(`/iam/v2/groups/${folder.uid}`, { name: 'after-name' }))
  assert.deepEqual(await shown('before-name', {}, client), [])
  assert.deepEqual(await shown('after', {}, client), ['folder prefix changing/after-name'])
  assert.deepEqual(await shown('shortlived', {}, client), ['repository exact changing/after-name/shortlived'])
  ok(await client.delete(`/registry/v2/repos/${repo.uid}`))
  assert.deepEqual(await shown('shortlived', {}, client), [])
  ok(await client.delete(`/iam/v2/groups/${folder.uid}`))
  assert.deepEqual(await shown('after', {}, client), [])
  const person = await seed.person({ name: 'Leaving Person' })
  const binding = await seed.binding(org.uid, person.uid, roleUids.viewer)
  assert.equal((await found('leaving', {}, client)).length, 1)
  ok(await registry.operator.patch(`/iam/v2/identities/${person.uid}`, { name: 'going person' }))
  assert.deepEqual(await shown('leaving', {}, client), [])
  assert.deepEqual(await shown('going', {}, client), ['member prefix changing'])
  ok(await client.delete(`/iam/v2/roleBindings/${binding.uid}`))
  assert.deepEqual(await found('going', {}, client), [])
})

test('does not find deleted tags, and packages of deleted images', async () => {
  const digest = await push('acme/team/worker', ['onlyhere 1-r0'], 'deleted-soon')
  assert.equal((await found('onlyhere')).length, 1)
  assert.equal((await found('soon')).length, 1)
  const pusher = await registry.registryAs((await registry.seed.member(registry.org.uid, roleUids.owner)).uid)
  await pusher.ok(202, 'DELETE', 'acme/team/worker/manifests/deleted-soon')
  assert.deepEqual(await found('soon'), [])
  await pusher.ok(202, 'DELETE', `acme/team/worker/manifests/${digest}`)
  assert.deepEqual(await found('onlyhere'), [])
  assert.deepEqual(await found(digest), [])
})

test('rejects invalid requests', async () => {
  assertInvalid(await ask({ query: '' }), 'query')
  assertInvalid(await ask({ query: '   ' }), 'query')
  assertInvalid(await ask({ query: 'a'.repeat(129) }), 'query')
  assertInvalid(await ask({ query: 'a\u0000b' }), 'query')
  assertInvalid(await ask({ query: 'a', kinds: 'tag,nothing' }), 'kinds')
  assertInvalid(await ask({ query: 'a', perKind: '21' }), 'per_kind')
  assertInvalid(await ask({ query: 'a', perKind: '2', skip: '1' }), 'per_kind')
  assertInvalid(await ask({ query: 'a', scopeUid: 'acme' }), 'scope_uid')
  assertInvalid(await ask({ query: 'a', orderBy: 'name' }), 'order_by')
  const { nextPageToken } = ok(await ask({ query: 'o', pageSize: '1' }))
  assertInvalid(await ask({ query: 'p', pageToken: nextPageToken }), 'page_token')
})
