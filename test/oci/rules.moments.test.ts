// Limits and exact times of policies, and their choice among several candidates.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { mostDays, mostExcepted } from '#domains/policy/digests/digests.model.ts'
import { maxIdentities } from '#domains/policy/pull-rules/pull-rules.model.ts'
import { maxPatterns } from '#domains/rules/patterns.model.ts'
import { operatorUid } from '#lib/uid.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { type Answer, type Client, type Json, roleUids } from '../support/pinfold.ts'
import { digestOf, type RegistryClient, startRegistry, type TestRegistry } from '../support/registry.ts'

const day = 86_400_000
let now = Date.parse('2026-06-01T00:00:00.000Z')
let registry: TestRegistry
before(async () => {
  registry = await startRegistry({ clock: () => new Date(now) })
})
after(() => registry[Symbol.asyncDispose]())

const iso = (ms: number): string => new Date(ms).toISOString()
/** Tokens live for an hour of the clock. */
const api = (): Promise<Client> => registry.as(operatorUid)
const client = (): Promise<RegistryClient> => registry.registryAs(operatorUid)
const many = (count: number, text: string): string[] => Array.from({ length: count }, (_, i) => `${text}${i}`)

let made = 0
async function newRepo(): Promise<{ name: string; uid: string; push(tag: string): Promise<string> }> {
  const repo = `app${made++}`
  const { uid } = ok(await (await api()).post(`/registry/v2/repos/${registry.org.uid}`, { name: repo }))
  const name = `acme/${repo}`
  return { name, uid, push: async (tag) => (await (await client()).pushImage(name, tag)).digest }
}
/** An identity bound by a policy of the repository, as a function that pulls the tag. */
async function bound(repo: string, name: string, rule: Json = {}) {
  const { uid } = await memberOf()
  const given = { identities: [uid], minAge: '7d', mode: 'SERVE_OLDER', ...rule }
  ok(await (await api()).post(`/registry/v2/pullRules/${repo}`, given))
  return async (): Promise<string> => {
    const reply = await (await registry.registryAs(uid)).call('GET', `${name}/manifests/stable`)
    return reply.status === 200 ? String(reply.headers['docker-content-digest']) : `${reply.status}`
  }
}
async function memberOf(): Promise<{ uid: string }> {
  const operator = await api()
  const { uid } = ok(
    await operator.post(`/iam/v2/identities/${registry.org.uid}`, {
      name: `runner${made++}`,
      claimMatch: { issuer: 'https://issuer.example.com', subject: `runner${made}` },
    }),
  )
  ok(await operator.post(`/iam/v2/roleBindings/${registry.org.uid}`, { identityUid: uid, roleUid: roleUids.pull }))
  return { uid }
}

const rule = { minAge: '7d', mode: 'DENY', tags: [] as string[] }
const identities = (count: number) =>
  Array.from({ length: count }, (_, i) => `${registry.org.uid}/${`${i}`.padStart(16, '0')}`)
const bounds: [what: string, field: string, good: () => Json, bad: () => Json][] = [
  ['a minimum age of ten years', 'min_age', () => ({ minAge: '3650d' }), () => ({ minAge: '87601h' })],
  ['a hold of 366 days', 'hold', () => ({ hold: '366d' }), () => ({ hold: '8785h' })],
  ['patterns of tags', 'tags', () => ({ tags: many(maxPatterns, 'a') }), () => ({ tags: many(maxPatterns + 1, 'a') })],
  [
    'patterns of excepted tags',
    'except_tags',
    () => ({ exceptTags: many(maxPatterns, 'a') }),
    () => ({ exceptTags: many(maxPatterns + 1, 'a') }),
  ],
  [
    'identities',
    'identities',
    () => ({ identities: identities(maxIdentities) }),
    () => ({ identities: identities(maxIdentities + 1) }),
  ],
]
for (const [what, field, good, bad] of bounds) {
  test(`a cooldown policy accepts at most ${what}`, async () => {
    const { uid } = await newRepo()
    const operator = await api()
    const make = (change: Json): Promise<Answer> =>
      operator.post(`/registry/v2/pullRules/${uid}`, { ...rule, identities: identities(1), ...change })
    ok(await make(good()))
    const refused = await make(bad())
    assert.deepEqual([refused.status, refused.body.details[1].fieldViolations[0].field], [400, field], refused.text)
  })
}

test(`the list of unpulled images accepts 1 to ${mostDays} days, and at most ${mostExcepted} excluded identities`, async () => {
  const { uid } = await newRepo()
  const operator = await api()
  const list = (query: string) => operator.get(`/registry/v2/repos/${uid}/unpulled?${query}`)
  const except = (count: number) =>
    identities(count)
      .map((one) => `except=${one}`)
      .join('&')
  ok(await list(`days=${mostDays}`))
  assertInvalid(await list(`days=${mostDays + 1}`), 'days')
  ok(await list(except(mostExcepted)))
  assertInvalid(await list(except(mostExcepted + 1)), 'except')
})

for (const [kind, field] of [
  ['pullRuleExceptions', 'pull_rule_exception'],
  ['gateExceptions', 'gate_exception'],
] as const) {
  test(`${kind} must expire later than now, and within thirty or ninety days`, async () => {
    const { uid } = await newRepo()
    const operator = await api()
    const days = kind === 'gateExceptions' ? 90 : 30
    const make = (late: number) =>
      operator.post(`/registry/v2/${kind}/${uid}`, { digest: digestOf('x'), reason: 'r', expireTime: iso(now + late) })
    assertInvalid(await make(0), `${field}.expire_time`)
    ok(await make(1))
    const last = ok(await make(days * day))
    assertInvalid(await make(days * day + 1), `${field}.expire_time`)
    // An expired exemption is not revoked.
    now += days * day
    const ended = ok(await (await api()).post(`/registry/v2/${kind}/${last.uid}:revoke`, {}))
    assert.equal(ended.revokeTime, undefined)
  })
}

test('lists callers with the same last pull time in order of uid, after newer callers', async () => {
  const { name, uid, push } = await newRepo()
  const digest = await push('stable')
  const repo = (await registry.app.paths.find(name)).repo!.id
  const callers = many(4, `${registry.org.uid}/000000000000000`)
  const at = (caller: number, ms: number) =>
    registry.app.usage.note(repo, digest, callers[caller]!, 'GET', iso(now + ms))
  for (const caller of [2, 0, 1]) at(caller, 1000)
  at(3, 999)
  await registry.app.usage.flush()
  const { pullers } = ok(await (await api()).get(`/registry/v2/repos/${uid}/digests/${digest}/pulls`))
  assert.deepEqual(
    pullers.map(({ caller }: Json) => caller),
    callers,
  )
})

test('an image pushed with its tag gets no date for untagged images; an image that was untagged before gets one', async () => {
  const { name, uid, push } = await newRepo()
  const says = { untaggedDays: 40, keepDaysAfter: 1, mode: 'ENFORCE' }
  ok(await (await api()).post(`/registry/v2/retentionRules/${uid}`, says))
  const until = async (digest: string): Promise<string> =>
    ok(await (await api()).get(`/registry/v2/repos/${uid}/promises/${digest}`)).until
  const tagged = await push('stable')
  now += 1
  const left = now
  await push('stable')
  assert.equal(await until(tagged), iso(left + day))

  const first = now
  const untagged = await (await client()).pushImage(name)
  now += 1
  const { body } = await (await client()).ok(200, 'GET', `${name}/manifests/${untagged.digest}`)
  await (await client()).ok(201, 'PUT', `${name}/manifests/stable`, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/vnd.oci.image.manifest.v1+json' },
  })
  now += 1
  await push('stable')
  assert.equal(await until(untagged.digest), iso(first + 40 * day))
})

test('a tag appears in an age view and in its list at the same moment', async () => {
  const { name, push } = await newRepo()
  const digest = await push('stable')
  const pushed = now
  const seen = async () => {
    const reader = await client()
    const reply = await reader.call('GET', `min-7d/${name}/manifests/stable`)
    const { body } = await reader.ok(200, 'GET', `min-7d/${name}/tags/list`)
    return [reply.status === 200 ? reply.headers['docker-content-digest'] : undefined, (body.tags ?? []).join()]
  }
  now = pushed + 7 * day - 1
  assert.deepEqual(await seen(), [undefined, ''])
  now = pushed + 7 * day
  assert.deepEqual(await seen(), [digest, 'stable'])
})

test('an image that had the tag for exactly the hold time counts; a millisecond less does not', async () => {
  for (const [held, isServed] of [
    [day, true],
    [day - 1, false],
  ] as const) {
    const { name, uid, push } = await newRepo()
    const pull = await bound(uid, name, { hold: '1d' })
    const pushed = now
    const first = await push('stable')
    now = pushed + held
    await push('stable')
    now = pushed + 7 * day
    assert.equal(await pull(), isServed ? first : '403')
  }
})

test('serves the newest of several exempted images, whatever the order of exemptions', async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { name, uid, push } = await newRepo()
    const pull = await bound(uid, name)
    const digests: string[] = []
    for (let i = 0; i < 3; i++) {
      digests.push(await push('stable'))
      now += day
    }
    for (const i of order) {
      const exemption = { digest: digests[i], reason: 'mends it', expireTime: iso(now + day) }
      ok(await (await api()).post(`/registry/v2/pullRuleExceptions/${uid}`, exemption))
      now += 1000
    }
    assert.equal(await pull(), digests[1])
  }
})

test('a view can be of the current time, but not of a later time', async () => {
  const { name, uid, push } = await newRepo()
  const digest = await push('stable')
  now += 1000
  const at = (ms: number) => iso(ms).replace(/[-:]/g, '').toLowerCase()
  const reader = await client()
  const pull = (ms: number) => reader.call('GET', `at-${at(ms)}/${name}/manifests/stable`)
  assert.equal((await pull(now)).headers['docker-content-digest'], digest)
  assert.equal((await pull(now + 1)).status, 400)
  const resolve = async (ms: number) => (await api()).get(`/registry/v2/repos/${uid}/resolvedTags/stable?at=${iso(ms)}`)
  ok(await resolve(now))
  assertInvalid(await resolve(now + 1), 'at')
})
