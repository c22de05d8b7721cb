// Permissions for a registry path, for each kind of token.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roleUids } from '../support/pinfold.ts'
import {
  codeOf,
  imageOf,
  indexOf,
  type RegistryClient,
  type Reply,
  registryClient,
  startRegistry,
  type TestRegistry,
  types,
} from '../support/registry.ts'

/** Status and code of a refusal, or only the status of a success. */
const told = (reply: Reply) => (reply.status < 400 ? [reply.status] : [reply.status, codeOf(reply)])

const messageOf = (reply: Reply): string => reply.body.errors[0].message

/** Client with the token that the token endpoint issues for a scope, anonymous if there are no credentials. */
async function withScope(registry: TestRegistry, scope: string, token?: string) {
  const reply = await registryClient(registry.nobody.origin, token).ok(200, 'GET', `/token?scope=${scope}`)
  return registryClient(registry.nobody.origin, reply.body.token)
}

test('public content of a deleted repository is not public in a new repository with the same name', async () => {
  await using registry = await startRegistry()
  const org = (await registry.seed.group('', { name: 'public' })).uid
  const owner = registry.registryOperator
  const name = 'public/withdrawn'
  const push = async (tag: string) => {
    const layer = await owner.pushBlob(name, 'a layer')
    const config = await owner.pushBlob(name, '{"architecture":"amd64"}', types.config)
    const pushed = await owner.pushManifest(name, imageOf(config, [layer]), tag)
    return { layer, digest: pushed.digest }
  }
  const statuses = async ({ layer, digest }: Awaited<ReturnType<typeof push>>) => {
    const nobody = await withScope(registry, `repository:${name}:pull`)
    const replies = [
      await nobody.call('GET', `${name}/manifests/${digest}`),
      await nobody.call('GET', `${name}/blobs/${layer.digest}`),
    ]
    return replies.map(({ status }) => status)
  }
  assert.deepEqual(await statuses(await push('latest')), [200, 200])

  const { repos } = (await registry.operator.get(`/registry/v2/repos?uidp.children_of=${org}`)).body
  assert.equal((await registry.operator.delete(`/registry/v2/repos/${repos[0].uid}`)).status, 200)
  assert.deepEqual(await statuses(await push('v2')), [401, 401])
  assert.deepEqual(await statuses(await push('latest')), [200, 200])
})

test('anonymous clients can pull current and former digests of the free tags of a public image, and nothing else', async () => {
  await using registry = await startRegistry()
  await registry.seed.group('', { name: 'public' })
  const owner = registry.registryOperator
  const name = 'public/web'
  const image = async (text: string) => {
    const layer = await owner.pushBlob(name, text)
    const config = await owner.pushBlob(name, JSON.stringify({ architecture: 'amd64', text }), types.config)
    return { layer, config, ...(await owner.pushManifest(name, imageOf(config, [layer]))) }
  }
  const plain = ({ mediaType, digest, size }: Awaited<ReturnType<typeof image>>) => ({ mediaType, digest, size })
  const [old, child, next, secret] = [
    await image('old'),
    await image('child'),
    await image('next'),
    await image('secret'),
  ]
  const put = (reference: string, of: { mediaType: string }, body: string) =>
    owner.ok(201, 'PUT', `${name}/manifests/${reference}`, { body, headers: { 'content-type': of.mediaType } })
  const content = async (digest: string) => (await owner.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.toString()
  const index = JSON.stringify(indexOf([plain(child)]))
  await put('latest', old, await content(old.digest))
  await put('latest', { mediaType: types.index }, index)
  await put('latest-dev', next, await content(next.digest))
  await put('v1', secret, await content(secret.digest))

  const nobody = await withScope(registry, `repository:${name}:pull`)
  for (const reference of ['latest', 'latest-dev', old.digest, child.digest, next.digest]) {
    await nobody.ok(200, 'GET', `${name}/manifests/${reference}`)
  }
  for (const { layer, config } of [old, child, next]) {
    await nobody.ok(200, 'GET', `${name}/blobs/${layer.digest}`)
    await nobody.ok(200, 'HEAD', `${name}/blobs/${config.digest}`)
  }
  const refused = [
    await nobody.call('GET', `${name}/manifests/v1`),
    await nobody.call('GET', `${name}/manifests/${secret.digest}`),
    await nobody.call('GET', `${name}/blobs/${secret.layer.digest}`),
    await nobody.call('GET', `${name}/referrers/${old.digest}`),
    await nobody.call('GET', `${name}/_svc/history/v1`),
    await nobody.call('POST', `${name}/blobs/uploads/`),
    await nobody.call('DELETE', `${name}/manifests/latest`),
    await nobody.call('GET', 'acme/app/manifests/latest'),
    await registry.nobody.call('GET', `${name}/manifests/latest`),
  ]
  for (const reply of refused) {
    assert.deepEqual(told(reply), [401, 'UNAUTHORIZED'])
    assert.match(String(reply.headers['www-authenticate']), /^Bearer realm=/)
  }
  assert.deepEqual(told(await nobody.call('GET', 'public/none/manifests/latest')), [404, 'NAME_UNKNOWN'])

  // An identity of another organization has the same access here as an anonymous client.
  await registry.puller.ok(200, 'GET', `${name}/manifests/latest`)
  assert.deepEqual(told(await registry.puller.call('GET', `${name}/manifests/v1`)), [403, 'DENIED'])
})

test('returns the same answer for a private image and a missing image to a caller without access', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage('acme/app', 'v1')
  const other = await registry.seed.group('', { name: 'other' })
  const stranger = await registry.registryAs((await registry.seed.member(other.uid, roleUids.owner)).uid)
  const replies = [
    await stranger.call('GET', 'acme/app/manifests/v1'),
    await stranger.call('GET', 'acme/none/manifests/v1'),
    await stranger.call('GET', 'nobody/none/manifests/v1'),
    await stranger.call('POST', 'acme/new/blobs/uploads/'),
    await stranger.call('POST', 'nobody/new/blobs/uploads/'),
    await stranger.call('GET', 'acme/app/tags/list'),
  ]
  const [first, ...rest] = replies.map(({ status, bytes }) => [status, bytes.toString()])
  assert.equal(first![0], 403)
  for (const reply of rest.slice(0, 4)) assert.deepEqual(reply, first)
})

test('a registry token is valid only for the repositories and actions in it', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage('acme/one', 'v1')
  await registry.pusher.pushImage('acme/two', 'v1')
  const pull = await withScope(registry, 'repository:acme/one:pull', registry.pusher.token)
  await pull.ok(200, 'GET', 'acme/one/manifests/v1')
  await pull.ok(200, 'GET', 'acme/one/_svc/history/v1')
  const elsewhere = [
    await pull.call('GET', 'acme/two/manifests/v1'),
    await pull.call('GET', 'acme/two/_svc/history/v1'),
    await pull.call('POST', 'acme/one/blobs/uploads/'),
    await pull.call('DELETE', 'acme/one/manifests/v1'),
  ]
  for (const reply of elsewhere) {
    assert.deepEqual(told(reply), [401, 'UNAUTHORIZED'])
    assert.match(String(reply.headers['www-authenticate']), /error="insufficient_scope"/)
  }
  assert.match(String(elsewhere[2]!.headers['www-authenticate']), /scope="repository:acme\/one:pull,push"/)
  const push = await withScope(registry, 'repository:acme/one:pull,push', registry.pusher.token)
  await push.ok(202, 'POST', 'acme/one/blobs/uploads/')
})

test('checks permissions for each request, also if the token was issued with more', async () => {
  await using registry = await startRegistry()
  await registry.pusher.pushImage('acme/app', 'v1')
  const identity = await registry.seed.identity(registry.org.uid)
  const binding = await registry.seed.binding(registry.org.uid, identity.uid, roleUids.pull)
  const direct = await registry.registryAs(identity.uid)
  const traded = await withScope(registry, 'repository:acme/app:pull', direct.token)
  for (const client of [direct, traded]) await client.ok(200, 'GET', 'acme/app/manifests/v1')
  await registry.operator.delete(`/iam/v2/roleBindings/${binding.uid}`)
  for (const client of [direct, traded]) {
    assert.deepEqual(told(await client.call('GET', 'acme/app/manifests/v1')), [403, 'DENIED'])
  }
})

test('a console viewer can read manifests, but not pull blobs', async () => {
  await using registry = await startRegistry()
  const layer = await registry.pusher.pushBlob('acme/app', 'layer')
  const config = await registry.pusher.pushBlob('acme/app', '{}', types.config)
  await registry.pusher.pushManifest('acme/app', imageOf(config, [layer]), 'v1')
  const viewer = await registry.registryAs((await registry.seed.member(registry.org.uid, roleUids.console_viewer)).uid)
  await viewer.ok(200, 'GET', 'acme/app/manifests/v1')
  await viewer.ok(200, 'GET', 'acme/app/tags/list')
  assert.deepEqual(told(await viewer.call('GET', `acme/app/blobs/${layer.digest}`)), [403, 'DENIED'])
})

test('creating a tag and updating a tag require different permissions', async () => {
  await using registry = await startRegistry()
  const { uid } = registry.org
  const role = await registry.seed.role(uid, ['CAP_MANIFEST_CREATE', 'CAP_TAG_CREATE'])
  await registry.pusher.pushImage('acme/app', 'other')
  const creator = await registry.registryAs((await registry.seed.member(uid, role.uid)).uid)
  const layer = await creator.pushBlob('acme/app', 'layer')
  const config = await creator.pushBlob('acme/app', '{}', types.config)
  const [one, two] = ['one', 'two'].map((title) => imageOf(config, [layer], { annotations: { title } }))
  await creator.pushManifest('acme/app', one!, 'v1')
  await creator.pushManifest('acme/app', one!, 'v1')
  const move = { body: JSON.stringify(two), headers: { 'content-type': types.image } }
  assert.deepEqual(told(await creator.call('PUT', 'acme/app/manifests/v1', move)), [403, 'DENIED'])
  const { history } = (await registry.puller.ok(200, 'GET', 'acme/app/_svc/history/v1')).body
  assert.equal(history.length, 1)
})

test('the first push by a caller with permission creates folders and repository, with their events', async () => {
  await using registry = await startRegistry()
  const { pusher, puller, org } = registry
  const before = (await registry.events()).length
  await Promise.all([1, 2, 3].map(() => pusher.ok(202, 'POST', 'acme/a/b/app/blobs/uploads/')))
  const made = (await registry.events()).slice(before).map((type) => type.replace(/^dev\.pinfold\.api\./, ''))
  assert.deepEqual(made.sort(), ['iam.group.created.v1', 'iam.group.created.v1', 'platform.registry.repo.created.v1'])
  const { repos } = (await registry.operator.get(`/registry/v2/repos?uidp.descendants_of=${org.uid}`)).body
  // The same repository by its uid, which is not a valid name.
  await pusher.ok(202, 'POST', `${repos[0].uid}/blobs/uploads/`)
  assert.deepEqual(told(await puller.call('POST', 'acme/a/new/blobs/uploads/')), [403, 'DENIED'])
  assert.deepEqual(told(await pusher.call('GET', 'acme/a/none/manifests/v1')), [404, 'NAME_UNKNOWN'])

  const role = await registry.seed.role(org.uid, ['CAP_MANIFEST_CREATE', 'CAP_REPO_CREATE'])
  const noFolders = await registry.registryAs((await registry.seed.member(org.uid, role.uid)).uid)
  await noFolders.ok(202, 'POST', 'acme/a/other/blobs/uploads/')
  const refused = await noFolders.call('POST', 'acme/c/other/blobs/uploads/')
  assert.deepEqual(told(refused), [403, 'DENIED'])
  assert.match(
    messageOf(refused),
    /you do not have the capability groups\.create to create it; an owner of the organization can grant it$/,
  )
  const nobody = await registry.registryOperator.call('POST', 'nobody/app/blobs/uploads/')
  assert.deepEqual(told(nobody), [403, 'DENIED'])
  assert.match(messageOf(nobody), /^the organization nobody does not exist; to create it: pinfold orgs create nobody$/)
  const pulling = await registry.puller.call('POST', 'acme/app/blobs/uploads/')
  assert.match(messageOf(pulling), /^you do not have the capability manifest\.create for this repository; an owner of/)
})

test('refuses invalid repository names with an error about the name', async () => {
  await using registry = await startRegistry()
  for (const name of [
    'acme',
    'Acme/app',
    'acme/-app',
    'acme/app/',
    'acme//app',
    `acme/${'a'.repeat(300)}`,
    'acme/_svc/app',
  ]) {
    const reply = await registry.pusher.call('GET', `${name}/manifests/v1`)
    assert.deepEqual(told(reply), [400, 'NAME_INVALID'], name)
    assert.match(messageOf(reply), /it must be ORG\/NAME or ORG\/FOLDER\/NAME/)
  }
  assert.deepEqual(told(await registry.pusher.call('GET', 'acme/app/nothing')), [404, 'NAME_UNKNOWN'])
  assert.deepEqual(told(await registry.pusher.call('POST', 'acme/app/manifests/v1')), [405, 'UNSUPPORTED'])
})

const documents = [{ id: 'terms-of-service.v1', label: 'Terms of service', url: 'https://example.com/terms' }]
const guarded = (...methods: string[]) => ({
  termsDocuments: documents,
  termsMethods: methods.map((method) => `pinfold.platform.${method}`),
})
const acceptTerms = ({ operator, org }: TestRegistry) =>
  operator.post(`/iam/v2/terms/${org.uid}`, { documentIds: [documents[0]!.id] })
/** Client with permission to push, but not to create repositories or to set tags. */
const pushingOnly = async ({ seed, org, registryAs }: TestRegistry) =>
  registryAs((await seed.member(org.uid, (await seed.role(org.uid, ['manifest.create'])).uid)).uid)
function assertGated(refused: Reply): void {
  assert.deepEqual(told(refused), [403, 'DENIED'])
  assert.match(refused.body.errors[0].message, /accept the documents/)
}

for (const [methods, held, free] of [
  [['registry.v2.ReposService/CreateRepo'], ['acme/app', 'acme/team/app'], []],
  [['iam.v2.GroupsService/CreateGroup'], ['acme/team/app', 'acme/team/deep/app'], ['acme/app']],
] as const) {
  test(`a push creates nothing while terms for ${methods} are not accepted`, async () => {
    await using registry = await startRegistry(guarded(...methods))
    const { pusher, operator, org } = registry
    for (const name of held) assertGated(await pusher.call('POST', `${name}/blobs/uploads/`))
    for (const name of free) await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
    // A caller without permission to create the folder gets this error before an error about terms.
    const weak = await pushingOnly(registry)
    const denied = await weak.call('POST', `${held[0]}/blobs/uploads/`)
    assert.match(denied.body.errors[0].message, /you do not have the capability/)
    assert.equal((await operator.get(`/iam/v2/groups?uidp.children_of=${org.uid}`)).body.totalCount, '0')
    assert.equal((await acceptTerms(registry)).status, 200)
    for (const name of held) await pusher.ok(202, 'POST', `${name}/blobs/uploads/`)
  })
}

test('terms for tag methods also apply to pushes and deletions of tags', async () => {
  const tags = 'registry.v2.TagsService'
  await using registry = await startRegistry(guarded(`${tags}/CreateTag`, `${tags}/DeleteTag`))
  const { pusher, registryOperator } = registry
  const { digest } = await pusher.pushImage('acme/app')
  const { bytes: body } = await pusher.ok(200, 'GET', `acme/app/manifests/${digest}`)
  const put = (client: RegistryClient, path: string) =>
    client.call('PUT', `acme/app/manifests/${path}`, { body, headers: { 'content-type': types.image } })
  for (const path of ['v1', `${digest}?tag=v1`]) assertGated(await put(pusher, path))
  assert.match(
    (await put(await pushingOnly(registry), 'v1')).body.errors[0].message,
    /you do not have the capability tag\.create/,
  )
  for (const path of ['v1', digest]) assertGated(await registryOperator.call('DELETE', `acme/app/manifests/${path}`))
  assert.equal((await acceptTerms(registry)).status, 200)
  assert.equal((await put(pusher, 'v1')).status, 201)
  for (const path of ['v1', digest]) await registryOperator.ok(202, 'DELETE', `acme/app/manifests/${path}`)
})
