// Named attacks on a cooldown policy: a bound caller gets no image that is too young, by any request.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { copyRepos } from '#domains/mirrors/copies/syncs.job.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import {
  type Descriptor,
  digestOf,
  imageOf,
  indexOf,
  type RegistryClient,
  startRegistry,
  types,
} from '../support/registry.ts'

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse('2026-06-01T00:00:00.000Z')
let now = start
let registry: Awaited<ReturnType<typeof startRegistry>>
let runner: string
/** Caller with the same permissions, to whom no cooldown policy applies. */
let unbound: string
/** Caller to whom the policy of the organization does not apply. */
let copier: string
let rule: Json

before(async () => {
  now = start
  registry = await startRegistry({ clock: () => new Date(now) })
  runner = (await registry.seed.member(registry.org.uid, roleUids.push)).uid
  unbound = (await registry.seed.member(registry.org.uid, roleUids.push)).uid
  copier = (await registry.seed.member(registry.org.uid, roleUids.owner)).uid
  const given = { name: 'a week', identities: [runner], minAge: '7d', mode: 'SERVE_OLDER' }
  rule = ok(await registry.operator.post(`/registry/v2/pullRules/${registry.org.uid}`, given))
})
after(() => registry[Symbol.asyncDispose]())

/** Client that pushes. It is new for each day, because tokens expire earlier. */
async function on(days: number): Promise<RegistryClient> {
  now = start + days * day
  return registry.registryAs(operatorUid)
}

/** Result of an attack: a repository with a good image at `stable`, and the content that must not be served. */
type Scene = { name: string; good: Descriptor; bad: Descriptor; tags: string[]; blobs: string[] }
type Attack = (scene: {
  name: string
  good: Descriptor
}) => Promise<{ bad: Descriptor; tags?: string[]; blobs?: string[] }>

const today = 20
const content = async (client: RegistryClient, name: string, { digest }: Descriptor): Promise<string> =>
  (await client.ok(200, 'GET', `${name}/manifests/${digest}`)).bytes.toString()

/** Pushes an image with layers of a type, its config, and further fields. */
async function anImage(
  client: RegistryClient,
  name: string,
  reference?: string,
  extra: Json = {},
  type = types.layer,
  configType = types.config,
) {
  const layer = await client.pushBlob(name, randomBytes(64), type)
  const config = await client.pushBlob(
    name,
    JSON.stringify({ os: 'linux', id: randomBytes(8).toString('hex') }),
    configType,
  )
  const bad = await client.pushManifest(name, imageOf(config, [layer], extra), reference)
  return { bad, blobs: [layer.digest, config.digest] }
}

const visit =
  (hours: number, back = true): Attack =>
  async ({ name, good }) => {
    const client = await on(5)
    const made = await anImage(client, name, 'stable')
    const later = await on(5 + hours / 24)
    if (back) await later.pushManifest(name, await content(later, name, good), 'stable')
    else await anImage(later, name, 'stable')
    const last = await on(today)
    await last.pushManifest(name, await content(last, name, made.bad), 'stable')
    return made
  }

const aboutGood = ({ digest }: Descriptor, suffix: string): string => `${digest.replace(':', '-')}${suffix}`
const posing =
  (type: string, { config = types.config, kind = types.image } = {}): Attack =>
  async ({ name, good }) =>
    anImage(await on(today), name, undefined, { subject: good, mediaType: kind }, type, config)
const dockerConfig = 'application/vnd.docker.container.image.v1+json'

const attacks: Record<string, Attack> = {
  'a push of today': async ({ name }) => anImage(await on(today), name, 'stable'),
  'a push of today under a new tag': async ({ name }) => ({
    ...(await anImage(await on(today), name, 'new')),
    tags: ['new'],
  }),
  'a push six days and some hours ago': async ({ name }) => anImage(await on(today - 6.9), name, 'stable'),
  'a push without a tag': async ({ name }) => ({ ...(await anImage(await on(1), name)), tags: [] }),
  'a visit of an hour long ago': visit(1),
  'a visit of five hours and a half long ago': visit(5.5, false),
  'a visit of two days that was rolled back': visit(48),
  'a tag of last week that was deleted and made again': async ({ name }) => {
    const made = await anImage(await on(5), name, 'again')
    await (await on(15)).ok(202, 'DELETE', `${name}/manifests/again`)
    const client = await on(today)
    await client.pushManifest(name, await content(client, name, made.bad), 'again')
    return { ...made, tags: ['again'] }
  },
  'a bad push of three hours that was corrected': async ({ name }) => {
    const made = await anImage(await on(12.5), name, 'stable')
    await anImage(await on(12.5 + 3 / 24), name, 'stable')
    await on(today)
    return made
  },
  'a tag that flaps': async ({ name, good }) => {
    const made = await anImage(await on(10), name, 'stable')
    const texts = [await content(await on(10), name, good), await content(await on(10), name, made.bad)]
    for (let i = 0; i < 40; i++) await (await on(10 + i / 8)).pushManifest(name, texts[i % 2]!, 'stable')
    await on(today)
    return made
  },
  'an index of today': async ({ name }) => {
    const client = await on(today)
    const child = await anImage(client, name)
    return { bad: await client.pushManifest(name, indexOf([child.bad]), 'stable'), blobs: child.blobs }
  },
  'a child of an index of today': async ({ name, good }) => {
    const client = await on(today)
    const child = await anImage(client, name)
    await client.pushManifest(name, indexOf([good, child.bad]), 'stable')
    return { ...child, tags: [] }
  },
  'a child of an index in an index of today': async ({ name, good }) => {
    const client = await on(today)
    const child = await anImage(client, name)
    const inner = await client.pushManifest(name, indexOf([child.bad]))
    await client.pushManifest(name, indexOf([good, inner]), 'stable')
    return { ...child, tags: [] }
  },
  'an image that says it is about a good one': posing(types.layer),
  'an image of docker layers that says so': posing('application/vnd.docker.image.rootfs.diff.tar.gzip'),
  'an image of foreign layers that says so': posing('application/vnd.example.layer.v1.tar+zstd'),
  'an image of squashfs that says so': posing('application/vnd.example.squashfs'),
  'an image of wasm that says so': posing('application/wasm'),
  'a program of wasm that says so': posing('application/wasm', { config: 'application/vnd.wasm.config.v0+json' }),
  'an image of bytes that says so': posing('application/octet-stream'),
  'an image of layers of no known type that says so': posing('x/y'),
  'an image of JSON that says so': posing('application/json'),
  'an image whose layers begin as those of a signature do': posing('application/vnd.in-totoo+json'),
  'an image with the config of Docker that says so': posing('x/y', { config: dockerConfig }),
  'an image with a config of bytes that says so': posing('x/y', { config: 'application/octet-stream' }),
  'an image with a config of another version that says so': posing('x/y', {
    config: 'application/vnd.oci.image.config.v2+json',
  }),
  'an image with a config that only begins as one of Docker does': posing('application/vnd.docker.x', {
    config: 'application/vnd.Docker.x',
  }),
  'a manifest of Docker that says so': posing('x/y', { config: 'x/z', kind: types.dockerImage }),
  'an image that has a statement beside its layer': async ({ name, good }) => {
    const client = await on(today)
    const statement = await client.pushBlob(name, randomBytes(64), 'application/vnd.in-toto+json')
    const layer = await client.pushBlob(name, randomBytes(64), 'x/y')
    const config = await client.pushBlob(name, JSON.stringify({ id: randomBytes(8).toString('hex') }), types.config)
    const bad = await client.pushManifest(name, imageOf(config, [statement, layer], { subject: good }))
    return { bad, blobs: [statement.digest, layer.digest, config.digest] }
  },
  'an image of no known type under the tag of a signature': async ({ name, good }) => {
    const tag = aboutGood(good, '.sig')
    return { ...(await anImage(await on(today), name, tag, {}, 'x/y')), tags: [tag] }
  },
  'an index that says it is about a good image': async ({ name, good }) => {
    const client = await on(today)
    const child = await anImage(client, name)
    return { bad: await client.pushManifest(name, indexOf([child.bad], { subject: good })), blobs: child.blobs }
  },
  'a child of an index that says so': async ({ name, good }) => {
    const client = await on(today)
    const child = await anImage(client, name)
    await client.pushManifest(name, indexOf([child.bad], { subject: good }))
    return { ...child, tags: [] }
  },
  'an image under the tag of a signature': async ({ name, good }) => {
    const tag = aboutGood(good, '.sig')
    return { ...(await anImage(await on(today), name, tag)), tags: [tag] }
  },
  'an index under the tag of the referrers': async ({ name, good }) => {
    const client = await on(today)
    const [child, tag] = [await anImage(client, name), aboutGood(good, '')]
    return { bad: await client.pushManifest(name, indexOf([child.bad]), tag), tags: [tag], blobs: child.blobs }
  },
  'a statement about nothing': async ({ name }) => {
    const type = 'application/vnd.in-toto+json'
    return { ...(await anImage(await on(today), name, 'stable', {}, type)), blobs: [] }
  },
  'a statement under a tag about itself': async ({ name }) => {
    const client = await on(today)
    const made = await anImage(client, name, undefined, {}, 'application/vnd.in-toto+json')
    const tag = aboutGood(made.bad, '.att')
    await client.pushManifest(name, await content(client, name, made.bad), tag)
    return { ...made, tags: [tag], blobs: [] }
  },
  'two statements under tags about each other': async ({ name }) => {
    const client = await on(today)
    const made = await anImage(client, name, undefined, {}, 'application/vnd.in-toto+json')
    const other = await anImage(client, name, aboutGood(made.bad, '.att'), {}, 'application/vnd.in-toto+json')
    const tag = aboutGood(other.bad, '.att')
    await client.pushManifest(name, await content(client, name, made.bad), tag)
    return { ...made, tags: [tag], blobs: [] }
  },
}

/** Requests for the content, and the target of mounts. An answer 200 with the bad digest is a successful attack. */
type Way = (scene: Scene, to: string) => [method: string, path: string, also?: Json][]
const repoUids = new Map<string, string>()
const viaUid = ({ name }: Scene): string => repoUids.get(name)!
const ways: Record<string, Way> = {
  'by tag': ({ name, tags }) => tags.map((tag) => ['GET', `${name}/manifests/${tag}`]),
  'by HEAD of the tag': ({ name, tags }) => tags.map((tag) => ['HEAD', `${name}/manifests/${tag}`]),
  'by digest': ({ name, bad }) => [['GET', `${name}/manifests/${bad.digest}`]],
  'by HEAD of the digest': ({ name, bad }) => [['HEAD', `${name}/manifests/${bad.digest}`]],
  'by the uid and the tag': (scene) => scene.tags.map((tag) => ['GET', `${viaUid(scene)}/manifests/${tag}`]),
  'by the uid and the digest': (scene) => [['GET', `${viaUid(scene)}/manifests/${scene.bad.digest}`]],
  'in a view of a smaller age': ({ name, tags }) =>
    tags.map((tag) => ['GET', `min-1h_hold-1h/${name}/manifests/${tag}`]),
  'in a view of today': ({ name, tags }) => tags.map((tag) => ['GET', `at-20260621t010000z/${name}/manifests/${tag}`]),
  'in a view of back then': ({ name, tags }) =>
    tags.flatMap((tag) => [
      ['GET', `at-20260606t003000z/${name}/manifests/${tag}`],
      ['GET', `at-20260613t130000z/${name}/manifests/${tag}`],
    ]),
  'in a view, by digest': ({ name, bad }) => [['GET', `min-1h/${name}/manifests/${bad.digest}`]],
  'behind a doubled version': ({ name, bad }) => [['GET', `min-1h/v2/${name}/manifests/${bad.digest}`]],
  'its blobs': ({ name, blobs }) => blobs.map((digest) => ['GET', `${name}/blobs/${digest}`]),
  'its blobs by HEAD': ({ name, blobs }) => blobs.map((digest) => ['HEAD', `${name}/blobs/${digest}`]),
  'its blobs in parts': ({ name, blobs }) =>
    blobs.map((digest) => ['GET', `${name}/blobs/${digest}`, { headers: { range: 'bytes=0-9' } }]),
  'a mount of its blobs': ({ name, blobs }, to) =>
    blobs.map((digest) => ['POST', `${to}/blobs/uploads/?mount=${digest}&from=${name}`]),
  'a mount of its blobs from anywhere': ({ blobs }, to) =>
    blobs.map((digest) => ['POST', `${to}/blobs/uploads/?mount=${digest}`]),
  'a mount of its blobs by the uid': (scene, to) =>
    scene.blobs.map((digest) => ['POST', `${to}/blobs/uploads/?mount=${digest}&from=${viaUid(scene)}`]),
}

let repos = 0
async function sceneOf(attack: Attack): Promise<Scene> {
  const name = `acme/app${repos++}`
  const good = await (await on(0)).pushImage(name, 'stable')
  const found = await registry.app.paths.find(name)
  repoUids.set(name, found.repo!.uid)
  return { name, good, tags: ['stable'], blobs: [], ...(await attack({ name, good })) }
}

/** Requests by which the caller gets the content, and errors of the other requests. */
async function tryAll(scene: Scene, uid: string): Promise<{ had: Set<string>; broken: string[] }> {
  const client = await registry.registryAs(uid)
  const [had, broken] = [new Set<string>(), [] as string[]]
  for (const [i, [name, way]] of Object.entries(ways).entries()) {
    // Each caller has a separate target, because content mounted earlier would be available.
    const to = `acme/${uid === runner ? 'bound' : 'unbound'}-${i}`
    for (const [method, path, also] of way(scene, to)) {
      const reply = await client.call(method, path, also)
      const digest = reply.headers['docker-content-digest'] ?? (reply.bytes.length > 0 && digestOf(reply.bytes))
      const isBad = digest === scene.bad.digest || scene.blobs.includes(String(digest))
      if ((reply.status < 300 && isBad) || reply.status === 201) had.add(name)
      if (reply.status >= 500) broken.push(`${name}: ${reply.status}`)
    }
  }
  return { had, broken }
}

/** Attacks and requests that succeed without a policy. A policy can prevent only these. */
const possible = new Set<string>()
for (const [name, attack] of Object.entries(attacks)) {
  test(`a cooldown policy holds back the image on every path: ${name}`, async () => {
    const scene = await sceneOf(attack)
    now += 2 * hour
    for (const mode of ['SERVE_OLDER', 'DENY']) {
      ok(await setMode(mode))
      const bound = await tryAll(scene, runner)
      assert.deepEqual([...bound.had, ...bound.broken], [], mode)
    }
    const free = await tryAll(scene, unbound)
    assert.deepEqual(free.broken, [])
    assert.ok(free.had.size > 0, 'without a rule it is had')
    for (const way of free.had) possible.add(`${name}, ${way}`)
  })
}

async function setMode(mode: string) {
  return (await registry.as(operatorUid)).call('PATCH', `/registry/v2/pullRules/${rule.uid}`, { mode })
}

test('a caller bound by a repository policy cannot copy young images of it, whichever was configured first', async () => {
  const { name, bad } = await sceneOf(attacks['a push of today']!)
  const source = repoUids.get(name)!
  const [api, operator] = [await registry.as(copier), await registry.as(operatorUid)]
  const repos = `/registry/v2/repos/${registry.org.uid}`
  const before = ok(await api.post(repos, { name: 'copied-before', syncConfig: { source } }))
  const given = { identities: [copier], minAge: '7d', mode: 'SERVE_OLDER' }
  const { uid } = ok(await operator.post(`/registry/v2/pullRules/${source}`, given))
  const made = ok(await api.post(repos, { name: 'copied-after' }))
  const asked = { syncConfig: { source } }
  assertInvalid(await api.post(repos, { name: 'copied-never', ...asked }), 'sync_config.source')
  assertInvalid(await api.call('PATCH', `/registry/v2/repos/${made.uid}`, asked), 'sync_config.source')
  assertInvalid(
    await api.call('PATCH', `/registry/v2/repos/${made.uid}`, { syncConfig: { source: name } }),
    'sync_config.source',
  )
  await runJob(registry.app, copyRepos)
  const client = await registry.registryAs(copier)
  for (const copy of ['acme/copied-before', 'acme/copied-after', 'acme/copied-never']) {
    for (const reference of ['stable', bad.digest]) {
      assert.equal((await client.call('GET', `${copy}/manifests/${reference}`)).status, 404, copy)
    }
  }
  const statusOf = async () => ok(await operator.get(`/registry/v1/repos/${before.uid}:syncstatus`)).status
  assert.equal(await statusOf(), 'FAILED')
  ok(await operator.call('PATCH', `/registry/v2/pullRules/${uid}`, { mode: 'OBSERVE' }))
  now += 61_000
  await runJob(registry.app, copyRepos)
  assert.equal(await statusOf(), 'UNKNOWN')
  const { headers } = await client.ok(200, 'GET', 'acme/copied-before/manifests/stable')
  assert.equal(headers['docker-content-digest'], bad.digest)
})

test('without a policy, at least two hundred pairs of an attack and an entry point succeed', () => {
  assert.ok(possible.size >= 200, `${possible.size}`)
})
