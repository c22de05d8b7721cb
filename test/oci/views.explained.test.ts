// Explanations of a tag, in the registry and in the API, name the digest that a pull of the tag returns.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { type RegistryClient, startRegistry, types } from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
let now = start
let registry: Awaited<ReturnType<typeof startRegistry>>

before(async () => {
  now = start
  registry = await startRegistry({ clock: () => new Date(now) })
})
after(() => registry[Symbol.asyncDispose]())

async function on(days: number): Promise<RegistryClient & { api: Client }> {
  now = start + days * day
  return { ...(await registry.registryAs(operatorUid)), api: await registry.as(operatorUid) }
}

let count = 0
/** A tag that moved on days 0 and 10, a signature of its first image by tag, and an identity that the rules bind. */
async function scene(...rules: Json[]) {
  const name = `acme/app${count++}`
  const first = await (await on(0)).pushImage(name, 'stable')
  const runner = (await registry.seed.member(registry.org.uid, roleUids.pull)).uid as string
  const { repo } = await registry.app.paths.find(name)
  const { api, ...pusher } = await on(10)
  const second = await pusher.pushImage(name, 'stable')
  const layer = await pusher.pushBlob(name, '{}', 'application/vnd.dev.cosign.simplesigning.v1+json')
  const config = await pusher.pushBlob(name, '{}', types.config)
  const signature = `${first.digest.replace(':', '-')}.sig`
  const signed = await pusher.pushManifest(
    name,
    { schemaVersion: 2, mediaType: types.image, config, layers: [layer] },
    signature,
  )
  const posing = `${first.digest.replace(':', '-')}.img`
  await pusher.pushImage(name, posing)
  const made: Json[] = []
  for (const rule of rules) {
    const given = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER', ...rule }
    made.push(ok(await api.post(`/registry/v2/pullRules/${repo!.uid}`, given)))
  }
  const resolved = `/registry/v2/repos/${repo!.uid}/resolvedTags`
  return { name, first, second, signed, signature, posing, repo: repo!.uid, made, runner, resolved }
}

type Scene = Awaited<ReturnType<typeof scene>>

/** Path prefix of a view, and its parameters in queries of the registry and of the API. */
const views = [
  { path: '', query: '', api: '' },
  { path: 'min-7d/', query: 'min_age=7d', api: 'minAge=7d' },
  { path: 'min-1h/', query: 'min_age=1h', api: 'minAge=1h' },
  { path: 'at-20260605/', query: 'at=2026-06-05', api: 'at=2026-06-05T00:00:00Z' },
  { path: 'at-20260612/', query: 'at=2026-06-12', api: 'at=2026-06-12T00:00:00Z' },
  { path: 'at-20260612_min-7d/', query: 'at=2026-06-12&min_age=7d', api: 'at=2026-06-12T00:00:00Z&minAge=7d' },
]

/** Compares each view of each tag, and returns the statuses of the pulls. */
async function compare({ name, runner, resolved, signature, posing }: Scene): Promise<number[]> {
  const [client, api] = [await registry.registryAs(runner), await registry.as(operatorUid)]
  const statuses: number[] = []
  for (const tag of ['stable', signature, posing]) {
    for (const { path, query, api: asked } of views) {
      const pulled = await client.call('GET', `${path}${name}/manifests/${tag}`)
      statuses.push(pulled.status)
      const here = await client.call('GET', `${name}/_svc/resolve/${tag}?${query}`)
      const same = await client.call('GET', `${path}${name}/_svc/resolve/${tag}`)
      const there = ok(await api.get(`${resolved}/${tag}?${asked}&identityUid=${runner}`))
      const what = `${path}${name}:${tag} ${pulled.status} ${JSON.stringify([here.body, there])}`
      const digest = pulled.status === 200 ? pulled.headers['docker-content-digest'] : undefined
      for (const { chosen, rule, reason = '' } of [here.body, same.body, there]) {
        if (here.status === 404) continue
        assert.equal(rule?.refuses ? undefined : chosen?.digest, digest, what)
        if (pulled.status === 403) assert.ok(rule?.refuses || reason === 'young', what)
      }
      if (here.status === 404) assert.deepEqual([pulled.status, there.reason], [404, 'no tag'], what)
    }
  }
  return statuses
}

test('explanations agree with pulls in each view, for tags of images and of signatures', async () => {
  const free = await scene()
  await on(12)
  assert.ok((await compare(free)).includes(200))
  const bound = await scene({})
  await on(12)
  const statuses = await compare(bound)
  assert.deepEqual([...new Set(statuses)].sort(), [200, 403, 404])
  const { body } = await (await registry.registryAs(bound.runner)).ok(
    200,
    'GET',
    `${bound.name}/_svc/resolve/${bound.signature}?min_age=7d`,
  )
  assert.equal(body.chosen.digest, bound.signed.digest)
})

test('explanations agree with pulls in each mode, for the strictest of several policies, and with exemptions', async () => {
  for (const rules of [
    [{ mode: 'DENY' }],
    [{ mode: 'OBSERVE' }],
    [{ minAge: '1h' }, { minAge: '7d', mode: 'DENY', tags: ['sta*'] }],
    [{ minAge: '5d', countFrom: 'REPO' }],
  ]) {
    const there = await scene(...rules)
    await on(12)
    await compare(there)
    const { api } = await on(12)
    const exception = { digest: there.second.digest, reason: 'a fix', expireTime: new Date(now + day).toISOString() }
    ok(await api.post(`/registry/v2/pullRuleExceptions/${there.repo}`, exception))
    assert.ok((await compare(there)).includes(200))
    await on(30)
    await compare(there)
  }
})

test('a policy can be tried on a tag without a bound identity, also in dry-run mode', async () => {
  const { resolved, made, first, second, repo } = await scene(
    { name: 'week', mode: 'OBSERVE' },
    { tags: ['v*'] },
    { mode: 'DENY' },
  )
  const { api } = await on(12)
  const by = async (rule: Json) => ok(await api.get(`${resolved}/stable?pullRuleUid=${rule.uid}`))
  const observed = await by(made[0]!)
  assert.deepEqual(
    [observed.chosen.digest, observed.latest.digest, observed.rule],
    [first.digest, second.digest, { uid: made[0]!.uid, name: 'week', mode: 'OBSERVE', refuses: false }],
  )
  assert.equal(observed.next.eligibleTime, new Date(start + 17 * day).toISOString())
  const other = await by(made[1]!)
  assert.deepEqual([other.chosen.digest, other.rule], [second.digest, undefined])
  assert.deepEqual([(await by(made[2]!)).rule.refuses, (await by(made[2]!)).rule.mode], [true, 'DENY'])
  const exception = { digest: second.digest, reason: 'a fix', expireTime: new Date(now + day).toISOString() }
  ok(await api.post(`/registry/v2/pullRuleExceptions/${repo}`, exception))
  assert.equal((await by(made[0]!)).chosen.digest, second.digest)
  assert.equal((await by(made[2]!)).rule.refuses, false)
})

test('explanations show if a time was imported', async () => {
  const { name, first, resolved, repo, runner } = await scene()
  const { api } = await on(12)
  const tags = [{ name: 'old', records: [{ time: '2026-01-01T00:00:00Z', digest: first.digest }] }]
  ok(await api.post('/control/v1/tagHistory:import', { repoUid: repo, tags }))
  const client = await registry.registryAs(runner)
  for (const [tag, wanted] of [
    ['old', true],
    ['stable', undefined],
  ] as const) {
    const { chosen } = (await client.ok(200, 'GET', `${name}/_svc/resolve/${tag}?min_age=7d`)).body
    assert.deepEqual([chosen.digest, chosen.imported], [first.digest, wanted])
    assert.equal(ok(await api.get(`${resolved}/${tag}?minAge=7d`)).chosen.imported, wanted ?? false)
  }
})

test('only members who manage policies can ask about policies of others, and errors name the field', async () => {
  const { resolved, made, runner, repo } = await scene({})
  const elsewhere = await scene({})
  const own = await registry.as(runner)
  assert.equal(ok(await own.get(`${resolved}/stable?identityUid=${runner}`)).rule.uid, made[0]!.uid)
  for (const query of [`identityUid=${operatorUid}`, `pullRuleUid=${made[0]!.uid}`]) {
    assert.equal((await own.get(`${resolved}/stable?${query}`)).status, 403, query)
  }
  const { api } = await on(12)
  assertInvalid(await api.get(`${resolved}/stable?identityUid=somebody`), 'identity_uid')
  assertInvalid(await api.get(`${resolved}/stable?identityUid=${runner}&pullRuleUid=${made[0]!.uid}`), 'pull_rule_uid')
  for (const uid of ['x', elsewhere.made[0]!.uid, `${repo}/${'0'.repeat(16)}`]) {
    assertInvalid(await api.get(`${resolved}/stable?pullRuleUid=${uid}`), 'pull_rule_uid')
  }
  const none = ok(await api.get(`${resolved}/stable?identityUid=${operatorUid}`))
  assert.equal(none.rule, undefined)
})
