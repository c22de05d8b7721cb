// Retention guarantees at every entry point.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertError, ok } from '../support/expect.ts'
import { type Answer, type Client, type Json, roleUids } from '../support/pinfold.ts'
import {
  codeOf,
  imageOf,
  indexOf,
  type RegistryClient,
  registryClient,
  startRegistry,
  types,
} from '../support/registry.ts'

const day = 86_400_000
let now = Date.parse('2026-05-01T10:00:00.000Z')
const registry = await startRegistry({ clock: () => new Date(now) })
const { org, pusher, puller, operator } = registry
after(() => registry[Symbol.asyncDispose]())

const owner = await registry.as((await registry.seed.member(org.uid, roleUids.owner)).uid)
const pusherApi = await registry.as(pusher.uid)

let made = 0
/** A folder of its own for each test, with one repo to push to. */
async function createFolder(): Promise<{ folder: string; name: string }> {
  const folder = await registry.seed.group(org.uid, { name: `f${++made}` })
  return { folder: folder.uid, name: `acme/f${made}/app` }
}

/** Tokens live for an hour of the clock that tests set forward. */
const pushing = (): Promise<RegistryClient> => registry.registryAs(pusher.uid)
const pulling = (): Promise<RegistryClient> => registry.registryAs(puller.uid)

const repoOf = async (folder: string): Promise<string> => {
  const { repos } = ok(await operator.get(`/registry/v2/repos?uidp.children_of=${folder}`))
  return repos[0].uid
}

async function rule(scope: string, says: Json): Promise<Json> {
  return ok(await owner.post(`/registry/v2/retentionRules/${scope}`, { mode: 'ENFORCE', ...says }))
}

type Trying = { client: RegistryClient; api: Client }
/** A push token of a member who may push and delete, and that member. */
async function pushTokenFor(folder: string, name: string): Promise<{ token: Trying; maker: Trying; uid: string }> {
  const { uid } = await registry.seed.person()
  await registry.seed.binding(org.uid, uid, roleUids.push)
  const maker = { client: await registry.registryAs(uid), api: await registry.as(uid) }
  const { pushToken, secret } = ok(await maker.api.post(`/control/v1/pushTokens/${folder}`, { name: 'ci', push: true }))
  const authorization = `Basic ${Buffer.from(`${pushToken.userName}:${secret}`).toString('base64')}`
  const scope = `repository:${name}:pull,push,delete`
  const { token } = ok(await registry.anonymous.call('GET', `/token?scope=${scope}`, undefined, { authorization }))
  return { token: { client: registryClient(maker.client.origin, token), api: registry.withToken(token) }, maker, uid }
}

function assertKept({ status, body }: Answer): void {
  assert.deepEqual([status, body.code, body.details[0].reason], [400, 9, 'CONTENT_KEPT'])
}

test('a digest that lost its tag gets a date, and cannot be deleted before it', async () => {
  const { folder, name } = await createFolder()
  const { uid } = await rule(folder, { tags: ['v*'], keepDaysAfter: 10 })
  const client = await pushing()
  const one = await client.pushImage(name, 'v1')
  const other = await client.pushImage(name, 'nightly')
  now += 1000
  await client.pushImage(name, 'v1')
  await client.pushImage(name, 'nightly')
  const refused = await client.call('DELETE', `${name}/manifests/${one.digest}`)
  assert.deepEqual([refused.status, codeOf(refused)], [409, 'DENIED'])
  const until = new Date(now + 10 * day).toISOString()
  assert.deepEqual(refused.body.errors[0].detail, { until, rule: uid, tags: ['v1'] })
  assert.equal((await client.call('DELETE', `${name}/manifests/${other.digest}`)).status, 202, 'no rule is about it')
})

test('a date never becomes earlier when a rule is shortened, turned off or deleted; a longer rule extends it', async () => {
  const { folder, name } = await createFolder()
  const { uid } = await rule(folder, { keepDaysAfter: 10 })
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  now += 1000
  await client.pushImage(name, 'v1')
  const promise = async (): Promise<Json> =>
    ok(await owner.get(`/registry/v2/repos/${await repoOf(folder)}/promises/${digest}`))
  const until = new Date(now + 10 * day).toISOString()
  assert.deepEqual([(await promise()).reason, (await promise()).until], ['PROMISED', until])
  const change = (body: Json) => owner.patch(`/registry/v2/retentionRules/${uid}`, body)
  ok(await change({ keepDaysAfter: 20 }))
  const longer = new Date(now + 20 * day).toISOString()
  assert.equal((await promise()).until, longer)
  for (const body of [{ keepDaysAfter: 1 }, { mode: 'OFF' }, { mode: 'DRY_RUN' }]) {
    ok(await change(body))
    assert.equal((await promise()).until, longer, JSON.stringify(body))
  }
  ok(await owner.delete(`/registry/v2/retentionRules/${uid}`))
  assert.equal((await promise()).until, longer)
  assert.equal((await client.call('DELETE', `${name}/manifests/${digest}`)).status, 409)
  const whole = await pusherApi.delete(`/registry/v2/repos/${await repoOf(folder)}`)
  assertKept(whole)
  assert.match(whole.body.message, /^the repository cannot be deleted, because an image in it is protected: /)
})

test('a push token and its creator fail with twenty-eight ways to destroy history', async () => {
  const { folder, name } = await createFolder()
  const { uid: kept } = await rule(folder, { keepDaysAfter: 30, untaggedDays: 30 })
  const { uid: never } = ok(await owner.post(`/registry/v2/tagRules/${folder}`, { tags: ['fixed'], immutable: true }))
  const { token, maker } = await pushTokenFor(folder, name)
  const { client } = token
  const old = await client.pushImage(name, 'v1')
  const fixed = await client.pushImage(name, 'fixed')
  const child = await client.pushImage(name)
  const index = await client.pushManifest(name, indexOf([child]), 'multi')
  const signature = await client.pushImage(name, undefined, { subject: index })
  const signed = `${old.digest.replace(':', '-')}.sig`
  const [first, second] = [await client.pushImage(name, signed), await client.pushImage(name, signed)]
  const layer = await client.pushBlob(name, 'a layer that only the old image has')
  const config = await client.pushBlob(name, '{}', types.config)
  const bare = await client.pushManifest(
    name,
    { schemaVersion: 2, mediaType: types.image, config, layers: [layer] },
    'bare',
  )
  const fresh = await client.pushImage(name, 'v1')
  const repo = await repoOf(folder)
  const tags: Json[] = ok(await maker.api.get(`/registry/v2/tags?uidp.children_of=${repo}&include_referrers=true`)).tags
  const uidOf = (tag: string): string => tags.find((one) => one.name === tag)!.uid
  const image = (await client.ok(200, 'GET', `${name}/manifests/${fresh.digest}`)).bytes
  const put = ({ client }: Trying, reference: string) =>
    client.call('PUT', `${name}/manifests/${reference}`, { body: image, headers: { 'content-type': types.image } })
  const remove = ({ client }: Trying, path: string) => client.call('DELETE', `${name}/${path}`)
  const retention = `/registry/v2/retentionRules/${kept}`
  const ways: Record<string, (by: Trying) => Promise<{ status: number }>> = {
    'deletes the manifest that a tag has left': (by) => remove(by, `manifests/${old.digest}`),
    'deletes the manifest that a tag points to': (by) => remove(by, `manifests/${fresh.digest}`),
    'deletes the image of an index': (by) => remove(by, `manifests/${child.digest}`),
    'deletes the index': (by) => remove(by, `manifests/${index.digest}`),
    'deletes a signature': (by) => remove(by, `manifests/${signature.digest}`),
    'deletes the tag of a signature of cosign': (by) => remove(by, `manifests/${signed}`),
    'deletes it over the API': ({ api }) => api.delete(`/registry/v2/tags/${uidOf(signed)}`),
    'deletes it over version 1': ({ api }) => api.delete(`/registry/v1/tags/${uidOf(signed)}`),
    'deletes what it points to': (by) => remove(by, `manifests/${second.digest}`),
    'deletes what it pointed to before': (by) => remove(by, `manifests/${first.digest}`),
    'deletes a layer': (by) => remove(by, `blobs/${layer.digest}`),
    'deletes a config': (by) => remove(by, `blobs/${config.digest}`),
    'deletes an immutable tag': (by) => remove(by, 'manifests/fixed'),
    'deletes the manifest of an immutable tag': (by) => remove(by, `manifests/${fixed.digest}`),
    'moves an immutable tag': (by) => put(by, 'fixed'),
    'moves an immutable tag by a push by digest': (by) => put(by, `${fresh.digest}?tag=fixed`),
    'moves an immutable tag over the API': ({ api }) =>
      api.post(`/registry/v2/tags/${repo}`, { name: 'fixed', digest: fresh.digest }),
    'replaces an immutable tag over version 1': ({ api }) =>
      api.call('PUT', `/registry/v1/tags/${uidOf('fixed')}`, { digest: fresh.digest }),
    'deletes an immutable tag over the API': ({ api }) => api.delete(`/registry/v2/tags/${uidOf('fixed')}`),
    'deletes an immutable tag over version 1': ({ api }) => api.delete(`/registry/v1/tags/${uidOf('fixed')}`),
    'deletes the rule of tags': ({ api }) => api.delete(`/registry/v2/tagRules/${never}`),
    'deletes the repo': ({ api }) => api.delete(`/registry/v2/repos/${repo}`),
    'deletes the repo over version 1': ({ api }) => api.delete(`/registry/v1/repos/${repo}`),
    'deletes the group': ({ api }) => api.delete(`/iam/v2/groups/${folder}`),
    'turns the rule off': ({ api }) => api.patch(retention, { mode: 'OFF' }),
    'shortens the rule': ({ api }) => api.patch(retention, { keepDaysAfter: 1, untaggedDays: 1 }),
    'deletes the rule': ({ api }) => api.delete(retention),
    'breaks the promise': ({ api }) =>
      api.post(`/registry/v2/repos/${repo}:breakPromises`, { digest: old.digest, reason: 'space' }),
  }
  assert.equal(Object.keys(ways).length, 28)
  for (const [way, attempt] of Object.entries(ways)) {
    for (const [who, by] of Object.entries({ token, maker })) {
      const { status } = await attempt(by)
      // A caller without credentials gets 401.
      const isRefused = status >= 400 && status < 500 && (who === 'token' || status !== 401)
      assert.ok(isRefused, `${who} ${way}: ${status}`)
    }
  }
  for (const { digest } of [old, fresh, fixed, child, index, signature, first, second, bare]) {
    await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  }
  for (const blob of [layer, config]) await client.ok(200, 'GET', `${name}/blobs/${blob.digest}`)
  for (const [tag, { digest }] of Object.entries({ fixed, [signed]: second })) {
    const { headers } = await client.ok(200, 'GET', `${name}/manifests/${tag}`)
    assert.equal(headers['docker-content-digest'], digest)
  }
  const { mode, keepDaysAfter } = ok(await owner.get(retention))
  assert.deepEqual([mode, keepDaysAfter], ['ENFORCE', 30])
})

test('deleting a tag gives its digest a date, which the tag history shows', async () => {
  const { folder, name } = await createFolder()
  await rule(folder, { keepDaysAfter: 5 })
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  now += 1000
  await client.ok(202, 'DELETE', `${name}/manifests/v1`)
  const reply = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.equal(reply.headers.sunset, new Date(now + 5 * day).toUTCString())
  assert.match(String(reply.headers.warning), /^299 - ".*it can be deleted after 2026-/)
  assert.equal((await client.call('DELETE', `${name}/manifests/${digest}`)).status, 409)
})

test('an immutable tag can be pushed once; the same digest, other tags and excluded tags are not affected', async () => {
  const { folder, name } = await createFolder()
  const { uid } = ok(await owner.post(`/registry/v2/tagRules/${folder}`, { immutable: true, exceptTags: ['latest'] }))
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  const { bytes: body } = await client.ok(200, 'GET', `${name}/manifests/v1`)
  const headers = { 'content-type': types.image }
  await client.ok(201, 'PUT', `${name}/manifests/v1`, { body, headers })
  await client.pushImage(name, 'latest')
  const other = await client.pushImage(name, 'latest')
  const moved = (await client.ok(200, 'GET', `${name}/manifests/${other.digest}`)).bytes
  const refused = await client.call('PUT', `${name}/manifests/v1`, { body: moved, headers })
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'DENIED'])
  assert.deepEqual(refused.body.errors[0].detail, { rule: uid, tags: ['v1'] })
  const repo = await repoOf(folder)
  const answer = await pusherApi.post(`/registry/v2/tags/${repo}`, { name: 'v1', digest: other.digest })
  const violations = [{ type: 'TAG_IMMUTABLE', subject: 'v1', description: answer.body.message }]
  assertError(answer, 400, 9, 'TAG_IMMUTABLE', { type: 'PreconditionFailure', violations })
  const gone = await client.call('DELETE', `${name}/manifests/${digest}`)
  assert.deepEqual([gone.status, gone.body.errors[0].detail], [409, { until: null, rule: uid, tags: ['v1'] }])
  ok(await owner.delete(`/registry/v2/tagRules/${uid}`))
  assert.equal((await client.call('DELETE', `${name}/manifests/${digest}`)).status, 202)
})

test('only the allowed identities of a tag rule, and their push tokens, can update a tag', async () => {
  const { folder, name } = await createFolder()
  const mover = await registry.seed.member(org.uid, roleUids.push)
  const { uid } = ok(await owner.post(`/registry/v2/tagRules/${folder}`, { tags: ['prod'], movers: [mover.uid] }))
  const client = await pushing()
  const image = await client.pushImage(name, 'staging')
  const body = (await client.ok(200, 'GET', `${name}/manifests/${image.digest}`)).bytes
  const headers = { 'content-type': types.image }
  const refused = await client.call('PUT', `${name}/manifests/prod`, { body, headers })
  assert.deepEqual([refused.status, refused.body.errors[0].detail], [403, { rule: uid, tags: ['prod'] }])
  const theirs = await registry.registryAs(mover.uid)
  await theirs.ok(201, 'PUT', `${name}/manifests/prod`, { body, headers })
  assert.equal((await client.call('DELETE', `${name}/manifests/prod`)).status, 403)
  assert.equal((await client.call('DELETE', `${name}/manifests/${image.digest}`)).status, 403)
  assert.equal((await pusherApi.delete(`/registry/v2/repos/${await repoOf(folder)}`)).body.code, 7)
  await theirs.ok(202, 'DELETE', `${name}/manifests/prod`)
  const [named, unnamed] = [await pushTokenFor(folder, name), await pushTokenFor(folder, name)]
  ok(await owner.patch(`/registry/v2/tagRules/${uid}`, { movers: [named.uid] }))
  for (const [{ client }, status] of [
    [named.token, 201],
    [named.maker, 201],
    [unnamed.token, 403],
    [unnamed.maker, 403],
    [{ client: theirs }, 403],
  ] as const) {
    const { digest } = await (await pushing()).pushImage(name)
    const { bytes } = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
    assert.equal((await client.call('PUT', `${name}/manifests/prod`, { body: bytes, headers })).status, status)
  }
})

test('a hold protects a digest, or all digests that a tag has had, until it is released', async () => {
  const { folder, name } = await createFolder()
  const client = await pushing()
  const one = await client.pushImage(name, 'v1')
  const two = await client.pushImage(name, 'v1')
  const three = await client.pushImage(name, 'other')
  const byTag = ok(await owner.post(`/registry/v2/holds/${folder}`, { tags: ['v*'], reason: 'the court asks for it' }))
  const byDigest = ok(await owner.post(`/registry/v2/holds/${folder}`, { digest: three.digest, reason: 'so does it' }))
  const gone = (reference: string) => client.call('DELETE', `${name}/manifests/${reference}`)
  for (const reference of [one.digest, two.digest, three.digest, 'v1'])
    assert.equal((await gone(reference)).status, 409)
  const repo = await repoOf(folder)
  assertKept(await owner.delete(`/registry/v2/repos/${repo}`))
  const broken = await owner.post(`/registry/v2/repos/${repo}:breakPromises`, { reason: 'space' })
  assertKept(broken)
  ok(await owner.post(`/registry/v2/holds/${byTag.uid}:release`, {}))
  assert.equal((await gone(one.digest)).status, 202)
  assert.equal((await gone(three.digest)).status, 409)
  const released = ok(await owner.post(`/registry/v2/holds/${byDigest.uid}:release`, {}))
  assert.equal(released.releaseTime, new Date(now).toISOString())
  assert.equal((await gone(three.digest)).status, 202)
})

test('no request overrides a hold, whatever else protects the digest', async () => {
  const { folder, name } = await createFolder()
  const { uid } = await rule(folder, { keepDaysAfter: 5, untaggedDays: 5 })
  assert.ok(uid)
  const client = await pushing()
  const child = await client.pushImage(name, 'child')
  const held = await client.pushManifest(name, indexOf([child]), 'held')
  await client.pushImage(name, 'other')
  await client.pushImage(name, 'other')
  ok(await owner.post(`/registry/v2/holds/${folder}`, { digest: held.digest, reason: 'asked for by a court' }))
  const breaking = `/registry/v2/repos/${await repoOf(folder)}:breakPromises`
  for (const digest of [child.digest, held.digest, '']) {
    assertKept(await owner.post(breaking, { ...(digest && { digest }), reason: 'space' }))
  }
  for (const { digest } of [child, held]) await client.ok(200, 'GET', `${name}/manifests/${digest}`)
})

test('returns 403 for pulls of a quarantined digest, and serves it again after the release', async () => {
  const { folder, name } = await createFolder()
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  const mark = ok(
    await owner.post(`/registry/v2/quarantined/${folder}:quarantine`, { digest, reason: 'it mines coins' }),
  )
  for (const reference of ['v1', digest]) {
    const refused = await client.call('GET', `${name}/manifests/${reference}`)
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'DENIED'])
    assert.match(refused.body.errors[0].message, /it mines coins/)
    assert.equal((await client.call('HEAD', `${name}/manifests/${reference}`)).status, 403)
  }
  ok(await owner.post(`/registry/v2/quarantined/${mark.uid}:release`, {}))
  await client.ok(200, 'GET', `${name}/manifests/v1`)
})

test('quarantine also blocks images and blobs that only a quarantined manifest uses, unless they have another tag or index', async () => {
  const { folder, name } = await createFolder()
  const client = await pushing()
  const [bad, shared, tagged] = [
    await client.pushImage(name),
    await client.pushImage(name),
    await client.pushImage(name, 'own'),
  ]
  const inner = await client.pushManifest(name, indexOf([bad]))
  const outer = await client.pushManifest(name, indexOf([inner, shared, tagged]), 'multi')
  const clean = await client.pushManifest(name, indexOf([shared]), 'clean')
  const blobsOf = async ({ digest }: { digest: string }): Promise<string[]> => {
    const { config, layers } = (await client.ok(200, 'GET', `${name}/manifests/${digest}`)).body
    return [config, ...layers].map((one: Json) => one.digest)
  }
  const [badLayer, goodLayer] = [(await blobsOf(bad))[1]!, (await blobsOf(shared))[1]!]
  const why = { digest: outer.digest, reason: 'it mines coins' }
  const { uid } = ok(await owner.post(`/registry/v2/quarantined/${folder}:quarantine`, why))
  const statusOf = async (path: string, method = 'GET') => (await client.call(method, `${name}/${path}`)).status
  for (const { digest } of [outer, inner, bad]) assert.equal(await statusOf(`manifests/${digest}`), 403)
  const refused = await client.call('GET', `${name}/manifests/${bad.digest}`)
  assert.deepEqual(refused.body.errors[0].detail.digest, outer.digest)
  for (const { digest } of [clean, shared, tagged]) assert.equal(await statusOf(`manifests/${digest}`), 200)
  assert.deepEqual([await statusOf(`blobs/${badLayer}`), await statusOf(`blobs/${goodLayer}`)], [403, 200])
  assert.equal(await statusOf(`blobs/${badLayer}`, 'HEAD'), 200, 'whoever pushes is told that it is here')
  ok(await owner.post(`/registry/v2/quarantined/${uid}:release`, {}))
  for (const { digest } of [outer, inner, bad]) assert.equal(await statusOf(`manifests/${digest}`), 200)
  assert.equal(await statusOf(`blobs/${badLayer}`), 200)
})

test('a quarantine of a repository or folder applies only to it, also for parts of quarantined images', async () => {
  const [here, beside] = [await createFolder(), await createFolder()]
  const client = await pushing()
  const image = await client.pushImage(here.name)
  const { config, layers } = (await client.ok(200, 'GET', `${here.name}/manifests/${image.digest}`)).body
  const index = await client.pushManifest(here.name, indexOf([image]), 'multi')
  const names = [`${here.name}-two`, beside.name]
  for (const name of names) {
    for (const { digest } of [config, ...layers]) {
      await client.ok(201, 'POST', `${name}/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(here.name)}`)
    }
    await client.pushManifest(name, imageOf(config, layers))
    await client.pushManifest(name, indexOf([image]), 'multi')
  }
  const pulls = async () => {
    const found = []
    for (const name of [here.name, ...names]) {
      for (const { digest } of [index, image]) {
        found.push((await client.call('GET', `${name}/manifests/${digest}`)).status)
      }
      found.push((await client.call('GET', `${name}/blobs/${layers[0].digest}`)).status)
    }
    return found
  }
  const repo = (await registry.app.paths.find(here.name)).repo!.uid
  const [held, free] = [Array(3).fill(403), Array(3).fill(200)]
  // A quarantine of another digest in the whole organization changes nothing.
  const other = { digest: `sha256:${'0'.repeat(64)}`, reason: 'it is not here' }
  const everywhere = ok(await owner.post(`/registry/v2/quarantined/${org.uid}:quarantine`, other))
  for (const [scope, expected] of [
    [repo, [...held, ...free, ...free]],
    [here.folder, [...held, ...held, ...free]],
  ] as const) {
    const why = { digest: index.digest, reason: 'it mines coins' }
    const { uid } = ok(await owner.post(`/registry/v2/quarantined/${scope}:quarantine`, why))
    assert.deepEqual(await pulls(), expected)
    ok(await owner.post(`/registry/v2/quarantined/${uid}:release`, {}))
  }
  ok(await owner.post(`/registry/v2/quarantined/${everywhere.uid}:release`, {}))
})

test('a blob of a quarantined image cannot be mounted into another repository', async () => {
  const [from, to] = [await createFolder(), await createFolder()]
  const client = await pushing()
  const bad = await client.pushImage(from.name, 'v1')
  const { config, layers } = (await client.ok(200, 'GET', `${from.name}/manifests/${bad.digest}`)).body
  const why = { digest: bad.digest, reason: 'it mines coins' }
  const { uid } = ok(await owner.post(`/registry/v2/quarantined/${from.folder}:quarantine`, why))
  const mount = (digest: string) =>
    client.call('POST', `${to.name}/blobs/uploads/?mount=${digest}&from=${encodeURIComponent(from.name)}`)
  for (const { digest } of [config, layers[0]]) assert.equal((await mount(digest)).status, 202, 'it has to be uploaded')
  ok(await owner.post(`/registry/v2/quarantined/${uid}:release`, {}))
  assert.equal((await mount(layers[0].digest)).status, 201)
})

test('a member who manages the rules can override a retention guarantee with a reason, which the audit log records', async () => {
  const { folder, name } = await createFolder()
  const { uid } = await rule(folder, { forever: true })
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  const repo = await repoOf(folder)
  const kept = await client.call('DELETE', `${name}/manifests/${digest}`)
  assert.deepEqual([kept.status, kept.body.errors[0].detail.until], [409, null])
  assertKept(await owner.delete(`/registry/v2/repos/${repo}`))
  const breaking = `/registry/v2/repos/${repo}:breakPromises`
  assert.equal((await owner.post(breaking, { digest })).status, 400, 'without a reason')
  const broken = ok(await owner.post(breaking, { digest, reason: 'it has a secret in it' }))
  assert.deepEqual([broken.rule, broken.until], [uid, undefined])
  assert.equal((await client.call('GET', `${name}/manifests/${digest}`)).status, 404)
  await client.pushImage(name, 'v2')
  now += 1000
  ok(await owner.post(breaking, { reason: 'all of it' }))
  const { auditEntries } = ok(await owner.get(`/events/v2/audit?subject=${encodeURIComponent(repo)}`))
  const reasons = auditEntries.map(({ body }: Json) => JSON.parse(body).reason)
  assert.deepEqual(reasons, ['all of it', 'it has a secret in it'])
})

test('keeps the configured number of last digests of matching tags, whatever their date is', async () => {
  const { folder, name } = await createFolder()
  await rule(folder, { tags: ['v*'], keepLast: 2 })
  const client = await pushing()
  const images = []
  for (let i = 0; i < 4; i++) images.push(await client.pushImage(name, 'v1'))
  const statuses = []
  for (const { digest } of images) statuses.push((await client.call('DELETE', `${name}/manifests/${digest}`)).status)
  assert.deepEqual(statuses, [202, 202, 409, 409])
})

test('without a rule, nothing is protected, and deleting a repository deletes all of its content', async () => {
  const { folder, name } = await createFolder()
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  const pulled = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.deepEqual([pulled.headers.sunset, pulled.headers.warning], [undefined, undefined])
  const repo = await repoOf(folder)
  assert.deepEqual(ok(await owner.get(`/registry/v2/repos/${repo}/promises/${digest}`)).reason, undefined)
  assert.deepEqual(ok(await owner.get(`/registry/v2/repos/${repo}/promises/${digest}`)).tags, ['v1'])
  await client.ok(202, 'DELETE', `${name}/manifests/${digest}`)
  ok(await pusherApi.delete(`/registry/v2/repos/${repo}`))
})

test('pulls show no end date for digests that are on hold, or that can be kept as last digests', async () => {
  const { folder, name } = await createFolder()
  await rule(folder, { keepDaysAfter: 5 })
  const client = await pushing()
  const left = async (tag: string): Promise<string> => {
    const { digest } = await client.pushImage(name, tag)
    now += 1000
    await client.pushImage(name, tag)
    return digest
  }
  const [plain, byDigest, byTag] = [await left('v1'), await left('v2'), await left('w1')]
  const told = async (digest: string) => {
    const { headers } = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
    return [headers.sunset !== undefined, headers.warning !== undefined]
  }
  for (const digest of [plain, byDigest, byTag]) assert.deepEqual(await told(digest), [true, true])
  const hold = async (about: Json): Promise<string> =>
    ok(await owner.post(`/registry/v2/holds/${folder}`, { ...about, reason: 'the court asks for it' })).uid
  const [first, second] = [await hold({ digest: byDigest }), await hold({ tags: ['w*'] })]
  assert.deepEqual(await told(plain), [true, true])
  for (const digest of [byDigest, byTag]) assert.deepEqual(await told(digest), [false, false])
  for (const uid of [first, second]) ok(await owner.post(`/registry/v2/holds/${uid}:release`, {}))
  for (const digest of [byDigest, byTag]) assert.deepEqual(await told(digest), [true, true])
  await rule(folder, { tags: ['v*'], keepLast: 2 })
  for (const digest of [plain, byDigest]) assert.deepEqual(await told(digest), [false, false])
  assert.deepEqual(await told(byTag), [true, true], 'the rule is about other tags')
})

test('pulls show the end date of a digest, and a warning in its last thirty days; tagged digests have no date', async () => {
  const { folder, name } = await createFolder()
  await rule(folder, { keepDaysAfter: 40 })
  const client = await pushing()
  const { digest } = await client.pushImage(name, 'v1')
  const tagged = await client.ok(200, 'HEAD', `${name}/manifests/${digest}`)
  assert.deepEqual([tagged.headers.sunset, tagged.headers.warning], [undefined, undefined])
  now += 1000
  await client.pushImage(name, 'v1')
  const until = now + 40 * day
  const far = await client.ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.deepEqual([far.headers.sunset, far.headers.warning], [new Date(until).toUTCString(), undefined])
  now = until - 30 * day
  const near = await (await pulling()).ok(200, 'GET', `${name}/manifests/${digest}`)
  assert.match(String(near.headers.warning), /^299 - /)
  now = until - 1
  assert.equal((await (await pushing()).call('DELETE', `${name}/manifests/${digest}`)).status, 409)
  now = until
  assert.equal((await (await pushing()).call('DELETE', `${name}/manifests/${digest}`)).status, 202)
})
