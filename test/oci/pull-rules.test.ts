// Cooldown policies: the minimum age of pulled images, and their exemptions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Sql, sql } from '#db/sql.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import {
  codeOf,
  type Descriptor,
  imageOf,
  indexOf,
  type RegistryClient,
  startRegistry,
  types,
} from '../support/registry.ts'

const day = 24 * 3_600_000
const start = Date.parse('2026-06-01T00:00:00.000Z')
const iso = (days: number): string => new Date(start + days * day).toISOString()
let now = start
let registry: Awaited<ReturnType<typeof startRegistry>>

before(async () => {
  now = start
  registry = await startRegistry({ clock: () => new Date(now) })
  await registry.seed.subscription(registry.org.uid)
})
after(() => registry[Symbol.asyncDispose]())

async function on(days: number): Promise<RegistryClient & { api: Client }> {
  now = start + days * day
  return { ...(await registry.registryAs(operatorUid)), api: await registry.as(operatorUid) }
}

let count = 0
/** Creates a repository, an identity that pulls from it, and a rule for that identity. */
async function scene(rule: Json) {
  const name = `acme/app${count++}`
  const { api, ...client } = await on(0)
  const first = await client.pushImage(name, 'stable')
  const runner = (await registry.seed.member(registry.org.uid, roleUids.pull)).uid as string
  const { repo } = await registry.app.paths.find(name)
  const given = { identities: [runner], minAge: '7d', mode: 'SERVE_OLDER', ...rule }
  const made = ok(await api.post(`/registry/v2/pullRules/${repo!.uid}`, given))
  return { name, first, repo: repo!.uid, rule: made, as: () => registry.registryAs(runner) }
}
const digestBy = async (client: RegistryClient, path: string) =>
  (await client.ok(200, 'GET', path)).headers['docker-content-digest']

test('a bound caller gets the newest image of the minimum age, with a warning, and others get the newest', async () => {
  const { name, first, as } = await scene({})
  const second = await (await on(10)).pushImage(name, 'stable')
  const free = await on(12)
  assert.equal(await digestBy(free, `${name}/manifests/stable`), second.digest)
  const bound = await (await as()).ok(200, 'GET', `${name}/manifests/stable`)
  assert.equal(bound.headers['docker-content-digest'], first.digest)
  assert.match(String(bound.headers.warning), new RegExp(`can be pulled from ${iso(17)}`))
  const refused = await (await as()).call('GET', `${name}/manifests/${second.digest}`)
  assert.deepEqual([refused.status, codeOf(refused)], [403, 'DENIED'])
  await on(17)
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), second.digest)
  assert.equal(await digestBy(await as(), `${name}/manifests/${second.digest}`), second.digest)
})

test('a denial names the digest that can be pulled now, and the time when the current image can be pulled', async () => {
  const { name, first, rule, as } = await scene({ mode: 'DENY', name: 'strict' })
  const second = await (await on(10)).pushImage(name, 'stable')
  await on(12)
  const refused = await (await as()).call('GET', `${name}/manifests/stable`)
  assert.equal(refused.status, 403)
  assert.deepEqual(refused.body.errors[0].detail, {
    tag: 'stable',
    digest: second.digest,
    time: iso(17),
    eligible: first.digest,
  })
  assert.deepEqual((await (await as()).ok(200, 'GET', `${name}/tags/list`)).body.tags, [])
  const resolved = await (await as()).ok(200, 'GET', `${name}/_svc/resolve/stable`)
  assert.deepEqual(resolved.body.rule, { uid: rule.uid, name: 'strict', mode: 'DENY', refuses: true })
  assert.equal(resolved.body.chosen.digest, first.digest)
})

test('allows an image of the minimum age with its children, signatures and referrers', async () => {
  const { name, as } = await scene({})
  const client = await on(1)
  const child = await client.pushImage(name)
  const index = await client.pushManifest(name, indexOf([child]), 'multi')
  const late = await on(19)
  const layer = await late.pushBlob(name, '{}', 'application/vnd.dev.cosign.simplesigning.v1+json')
  const config = await late.pushBlob(name, '{"a":1}', types.config)
  const said = { schemaVersion: 2, mediaType: types.image, config, layers: [layer] }
  const referrer = await late.pushManifest(name, { ...said, subject: index })
  const tag = `${child.digest.replace(':', '-')}.sig`
  const signature = await late.pushManifest(name, said, tag)
  const aboutSignature = await late.pushManifest(name, { ...said, subject: referrer, annotations: { a: 'b' } })
  const runner = await as()
  for (const reference of ['multi', index.digest, child.digest, referrer.digest, signature.digest, tag]) {
    await runner.ok(200, 'GET', `${name}/manifests/${reference}`)
  }
  await runner.ok(200, 'GET', `${name}/manifests/${aboutSignature.digest}`)
  const { manifests } = (await runner.ok(200, 'GET', `${name}/referrers/${index.digest}`)).body
  assert.equal(manifests.length, 1)
  const image = (await runner.ok(200, 'GET', `${name}/manifests/${child.digest}`)).body as Json
  for (const { digest } of [image.config, ...image.layers, layer, config] as Descriptor[]) {
    await runner.ok(200, 'GET', `${name}/blobs/${digest}`)
  }
})

test('allows new signatures, attestations and SBOMs, also for the config of an image', async () => {
  const { name, first, as } = await scene({})
  const late = await on(19)
  const config = await late.pushBlob(name, '{"architecture":"","os":""}', types.config)
  const runner = await as()
  const statements = [
    'application/vnd.dev.cosign.simplesigning.v1+json',
    'application/vnd.dsse.envelope.v1+json',
    'application/vnd.dev.sigstore.bundle.v0.3+json',
    'application/vnd.dev.sigstore.bundle+json;version=0.2',
    'application/vnd.in-toto+json',
    'application/spdx+json',
    'text/spdx',
    'application/vnd.cyclonedx',
    'application/vnd.cyclonedx+xml',
    'application/jose+json',
    'application/cose',
  ]
  for (const type of statements) {
    const layer = await late.pushBlob(name, `{"type":"${type}"}`, type)
    const said = { schemaVersion: 2, mediaType: types.image, config, layers: [layer] }
    const { digest } = await late.pushManifest(name, { ...said, subject: first })
    await runner.ok(200, 'GET', `${name}/manifests/${digest}`)
    await runner.ok(200, 'GET', `${name}/blobs/${layer.digest}`)
  }
})

test('a cooldown policy applies to its tags except excluded ones, and can count the age from any tag of the repository', async () => {
  const { name, rule, as } = await scene({ tags: ['prod*', 'stable'], exceptTags: ['prod-hotfix'], countFrom: 'REPO' })
  const candidate = await (await on(10)).pushImage(name, 'candidate')
  const fix = await (await on(20)).pushImage(name, 'prod-hotfix')
  const client = await on(20)
  const text = (await client.ok(200, 'GET', `${name}/manifests/candidate`)).bytes.toString()
  await client.pushManifest(name, text, 'prod')
  assert.equal(await digestBy(await as(), `${name}/manifests/prod`), candidate.digest, 'it has been a candidate')
  for (const reference of ['prod-hotfix', fix.digest]) {
    assert.equal(await digestBy(await as(), `${name}/manifests/${reference}`), fix.digest)
  }
  const young = await client.pushImage(name, 'prod-new')
  assert.equal((await (await as()).call('GET', `${name}/manifests/prod-new`)).status, 403, young.digest)
  assert.deepEqual((await (await as()).ok(200, 'GET', `${name}/tags/list`)).body.tags, [
    'candidate',
    'prod',
    'prod-hotfix',
    'stable',
  ])
  ok(await client.api.call('PATCH', `/registry/v2/pullRules/${rule.uid}`, { countFrom: 'TAG' }))
  assert.equal((await (await as()).call('GET', `${name}/manifests/prod`)).status, 403)
})

test('the largest minimum age applies, and a policy for a group applies to all identities below it', async () => {
  const { name, first, as } = await scene({ minAge: '2d' })
  const second = await (await on(10)).pushImage(name, 'stable')
  await on(13)
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), second.digest)
  const { api } = await on(13)
  const wide = { belowGroup: registry.org.uid, minAge: '5d', mode: 'SERVE_OLDER' }
  const made = ok(await api.post(`/registry/v2/pullRules/${registry.org.uid}`, wide))
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), first.digest)
  assert.equal(await digestBy(await registry.registryAs(registry.puller.uid), `${name}/manifests/stable`), first.digest)
  ok(await api.call('DELETE', `/registry/v2/pullRules/${made.uid}`))
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), second.digest, 'at once')
})

test('an exemption allows one digest and its children until it expires', async () => {
  const { name, first, repo, as } = await scene({})
  const client = await on(10)
  const child = await client.pushImage(name)
  const index = await client.pushManifest(name, indexOf([child]), 'stable')
  const given = { digest: index.digest, reason: 'Mends CVE-2026-1', expireTime: iso(15) }
  const path = `/registry/v2/pullRuleExceptions/${repo}`
  const made = ok(await client.api.post(path, given))
  for (const reference of ['stable', index.digest, child.digest]) {
    await (await as()).ok(200, 'GET', `${name}/manifests/${reference}`)
  }
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), index.digest)
  now = start + 15 * day - 1
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), index.digest, 'a moment before its end')
  await on(15)
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), first.digest, 'it has ended by itself')
  const { api } = await on(16)
  const other = ok(await api.post(path, { ...given, expireTime: iso(18) }))
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), index.digest)
  assert.equal(ok(await api.post(`/registry/v2/pullRuleExceptions/${other.uid}:revoke`, {})).revokeTime, iso(16))
  assert.equal(await digestBy(await as(), `${name}/manifests/stable`), first.digest)
  const listed = ok(await api.get(`/registry/v2/pullRuleExceptions?scopeUid=${repo}&includeEnded=true`))
  assert.deepEqual(listed.pullRuleExceptions.map(({ uid }: Json) => uid).sort(), [made.uid, other.uid].sort())
  for (const [member, wrong] of [
    ['expireTime', { ...given, expireTime: iso(16 + 31) }],
    ['expireTime', { ...given, expireTime: iso(15) }],
    ['reason', { ...given, expireTime: iso(17), reason: ' ' }],
    ['digest', { ...given, expireTime: iso(17), digest: 'latest' }],
  ] as const) {
    const field = member === 'expireTime' ? 'expire_time' : member
    assertInvalid(await api.post(path, wrong), `pull_rule_exception.${field}`)
  }
  const audit = await registry.app.db.all<{ type: string }>(
    sql`SELECT type FROM audit_log WHERE type LIKE ${'%pull_rule.exception%'} ORDER BY id`,
  )
  assert.equal(audit.length, 3)
})

test('policies and exemptions of one repository or folder do not apply to its siblings', async () => {
  const { api, ...client } = await on(0)
  const folders = [await registry.seed.group(registry.org.uid), await registry.seed.group(registry.org.uid)]
  const names = folders.flatMap(({ name }) => [`acme/${name}/one`, `acme/${name}/two`])
  for (const name of names) await client.pushImage(name, 'stable')
  const runner = (await registry.seed.member(registry.org.uid, roleUids.pull)).uid as string
  const layer = await client.pushBlob(names[0]!, 'the same everywhere')
  const late = await on(10)
  let digest = ''
  for (const name of names) {
    await late.pushBlob(name, 'the same everywhere')
    const config = await late.pushBlob(name, '{"architecture":"amd64","os":"linux"}', types.config)
    digest = (await late.pushManifest(name, imageOf(config, [layer]), 'stable')).digest
  }
  const rule = { identities: [runner], minAge: '7d', mode: 'DENY' }
  const pulls = async () => {
    const bound = await registry.registryAs(runner)
    const replies = await Promise.all(names.map((name) => bound.call('GET', `${name}/manifests/${digest}`)))
    return replies.map(({ status }) => status)
  }
  const repos = await Promise.all(names.map(async (name) => (await registry.app.paths.find(name)).repo!.uid))
  for (const [scope, expected] of [
    [repos[1], [200, 403, 200, 200]],
    [folders[0]!.uid, [403, 403, 200, 200]],
  ] as const) {
    const made = ok(await late.api.post(`/registry/v2/pullRules/${scope}`, rule))
    assert.deepEqual(await pulls(), expected)
    ok(await late.api.delete(`/registry/v2/pullRules/${made.uid}`))
  }
  ok(await late.api.post(`/registry/v2/pullRules/${registry.org.uid}`, rule))
  assert.deepEqual(await pulls(), [403, 403, 403, 403])
  const exemption = { digest, reason: 'Mends CVE-2026-1', expireTime: iso(15) }
  for (const [scope, expected] of [
    [repos[1], [403, 200, 403, 403]],
    [folders[1]!.uid, [403, 403, 200, 200]],
  ] as const) {
    const made = ok(await late.api.post(`/registry/v2/pullRuleExceptions/${scope}`, exemption))
    assert.deepEqual(await pulls(), expected)
    ok(await late.api.post(`/registry/v2/pullRuleExceptions/${made.uid}:revoke`, {}))
  }
})

test('a policy in dry-run mode changes nothing, and the pull event contains its verdict', async () => {
  const { name, rule, as } = await scene({ mode: 'OBSERVE', name: 'to try' })
  const second = await (await on(10)).pushImage(name, 'stable')
  await on(12)
  for (const reference of ['stable', second.digest]) {
    assert.equal(await digestBy(await as(), `${name}/manifests/${reference}`), second.digest)
    assert.deepEqual(await resultsOfLast(), [
      { policy_id: rule.uid, policy_name: 'to try', mode: 'POLICY_MODE_DRY_RUN', result: 'RESULT_DENIED' },
    ])
  }
})

async function resultsOfLast(): Promise<unknown> {
  await registry.app.registryEvents.flush()
  const row = await registry.app.db.get<{ body: string }>(sql`
    SELECT body FROM events_outbox WHERE type = ${'dev.pinfold.registry.pull.v1'} ORDER BY id DESC LIMIT 1`)
  return JSON.parse(row!.body).policy_results
}

test('policies can be read, listed, changed and deleted, and invalid values are refused', async () => {
  const { repo, rule } = await scene({ name: 'one' })
  const { api } = await on(1)
  const path = '/registry/v2/pullRules'
  assert.deepEqual(ok(await api.get(`${path}/${rule.uid}`)), rule)
  assert.deepEqual([rule.minAge, rule.hold, rule.countFrom, rule.mode], ['7d', '6h', 'TAG', 'SERVE_OLDER'])
  assert.deepEqual(ok(await api.get(`${path}?scopeUid=${repo}`)).pullRules, [rule])
  const changed = ok(await api.call('PATCH', `${path}/${rule.uid}?updateMask=hold,tags`, { hold: '1h', tags: ['v*'] }))
  assert.deepEqual(changed, { ...rule, hold: '1h', tags: ['v*'], updateTime: iso(1) })
  const given = { identities: ['a'.repeat(40)], minAge: '7d', mode: 'DENY' }
  for (const [field, wrong] of [
    ['min_age', { minAge: '7' }],
    ['min_age', { minAge: '9999w' }],
    ['min_age', { minAge: '' }],
    ['hold', { hold: '400d' }],
    ['mode', { mode: undefined }],
    ['identities', { identities: [] }],
    ['identities', { belowGroup: registry.org.uid }],
    ['identities', { identities: ['nobody'] }],
    ['below_group', { identities: [], belowGroup: 'b'.repeat(40) }],
    ['tags', { tags: ['a/b'] }],
    ['tags', { tags: Array.from({ length: 21 }, (_, i) => `t${i}`) }],
  ] as const) {
    assertInvalid(await api.post(`${path}/${repo}`, { ...given, ...wrong }), field)
  }
  assert.equal((await api.post(`${path}/${'c'.repeat(40)}`, given)).status, 404)
  const reader = await registry.as(registry.puller.uid)
  assert.equal((await reader.get(`${path}/${rule.uid}`)).status, 403)
  assert.equal((await reader.post(`${path}/${repo}`, given)).status, 403)
  ok(await api.call('DELETE', `${path}/${rule.uid}`))
  assert.equal((await api.get(`${path}/${rule.uid}`)).status, 404)
})

test('a pull without policies runs no further queries', async () => {
  let clock = 0
  await using plain = await startRegistry({ monotonic: () => clock })
  for (const tag of ['stable', 'other']) await plain.pusher.pushImage('acme/app', tag)
  const asked: string[] = []
  const { db } = plain.app
  for (const name of ['get', 'all'] as const) {
    const read = db[name].bind(db) as (query: Sql) => Promise<unknown>
    ;(db as unknown as Record<string, unknown>)[name] = (query: Sql) => {
      asked.push(query.parts.join('?'))
      return read(query)
    }
  }
  await plain.puller.ok(200, 'GET', 'acme/app/manifests/stable')
  clock += 100
  asked.length = 0
  for (let i = 0; i < 18; i++) await plain.puller.ok(200, 'GET', 'acme/app/manifests/stable')
  // The first pull of this image queries the digest of its tag and its manifest.
  await plain.puller.ok(200, 'GET', 'acme/app/manifests/other')
  assert.ok(asked.length <= 20, asked.join('\n'))
  assert.ok(
    asked.some((text) => text.includes('FROM tags')),
    'what is asked is seen',
  )
  assert.deepEqual(
    asked.filter((text) => text.includes('pull_rules')),
    [],
  )
})
