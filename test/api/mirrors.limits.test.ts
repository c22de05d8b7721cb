// Limits of upstreams, mirrors and copies: accepts the largest value, and refuses the next.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { copyRepos } from '#domains/mirrors/copies/syncs.job.ts'
import {
  longestIntervalMs,
  longestStaleForMs,
  maxPlatforms,
  shortestIntervalMs,
} from '#domains/mirrors/follows/follows.model.ts'
import { maxAllowed, maxPassword, maxRequestsPerSecond } from '#domains/mirrors/follows/upstreams.model.ts'
import { maxPathLength } from '#lib/oci-names.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import type { Answer, Json } from '../support/pinfold.ts'
import { startRegistry, type TestRegistry } from '../support/registry.ts'
import { localUpstreams } from '../support/upstream.ts'

const minute = 60_000
const prefix = 'library'
let registry: TestRegistry
let shift = 0
let made = 0
before(async () => {
  registry = await startRegistry({ ...localUpstreams, clock: () => new Date(Date.now() + shift) })
})
after(() => registry[Symbol.asyncDispose]())

const addUpstream = (body: Json, group: string = registry.org.uid): Promise<Answer> =>
  registry.operator.post(`/registry/v2/upstreams/${group}`, {
    name: `upstream${made++}`,
    url: 'http://127.0.0.1:9',
    ...body,
  })
async function follow(body: Json): Promise<Answer> {
  const { uid: upstreamUid } = ok(await addUpstream({ prefix }))
  const repo = await registry.seed.repo(registry.org.uid)
  return registry.operator.post(`/registry/v2/repos/${repo.uid}/follow`, { upstreamUid, path: 'app', ...body })
}
const seconds = (ms: number): string => `${ms / 1000}s`
const upstream = (name: string, good: unknown, bad: unknown): Bound => [addUpstream, 'upstream', name, good, bad]
const ofFollow = (name: string, good: unknown, bad: unknown): Bound => [follow, 'follow', name, good, bad]
const pathOf = (length: number): string => 'x'.repeat(length - prefix.length - 1)
const platforms = (count: number) => Array.from({ length: count }, (_, i) => `linux/amd64/v${i}`)
const patterns = (count: number) => Array.from({ length: count }, (_, i) => `library/a${i}`)

type Bound = [call: (body: Json) => Promise<Answer>, of: string, member: string, good: unknown, bad: unknown]
for (const [call, of, member, good, bad] of [
  upstream('requestsPerSecond', 1, -1),
  upstream('requestsPerSecond', maxRequestsPerSecond, maxRequestsPerSecond + 1),
  upstream('password', 'x'.repeat(maxPassword), 'x'.repeat(maxPassword + 1)),
  upstream('allow', patterns(maxAllowed), patterns(maxAllowed + 1)),
  ofFollow('interval', seconds(shortestIntervalMs), seconds(shortestIntervalMs - 1)),
  ofFollow('interval', seconds(longestIntervalMs), seconds(longestIntervalMs + 1)),
  ofFollow('staleFor', seconds(longestStaleForMs), seconds(longestStaleForMs + 1)),
  ofFollow('platforms', platforms(maxPlatforms), platforms(maxPlatforms + 1)),
  ofFollow('path', pathOf(maxPathLength), pathOf(maxPathLength + 1)),
]) {
  const text = (value: unknown) => JSON.stringify(value).slice(0, 20)
  test(`${member} of the ${of} accepts ${text(good)}, and refuses ${text(bad)}`, async () => {
    const more = {
      ...(member === 'platforms' && { mode: 'MODE_FULL' }),
      ...(member === 'password' && { username: 'u' }),
    }
    ok(await call({ ...more, [member]: good }))
    const field = member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    const refused = await call({ ...more, [member]: bad })
    assert.equal(refused.status, 400, refused.text)
    assert.match(refused.body.message, new RegExp(field.split('_')[0]!))
  })
}

test('a repository can follow an upstream of a group above it, and not of another group', async () => {
  const { operator, org, seed } = registry
  const [folder, beside] = [(await seed.group(org.uid)).uid, (await seed.group(org.uid)).uid]
  const repo = (await seed.repo(folder)).uid
  const from = async (group: string): Promise<Answer> => {
    const { uid: upstreamUid } = ok(await addUpstream({}, group))
    return operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid, path: 'app' })
  }
  assertInvalid(await from(beside), 'upstream_uid')
  ok(await from(folder))
})

test('a copy gets a unique tag if its name with the time fits into 128 characters', async () => {
  const { operator, org, seed, registryOperator: client, app } = registry
  const [from, to] = [await seed.group(org.uid, { name: 'from' }), await seed.group(org.uid, { name: 'to' })]
  const source = await seed.repo(from.uid, { name: 'app' })
  ok(await operator.call('PUT', `/registry/v1/settings/${org.uid}`, { uniqueTags: true }))
  const [fits, long] = ['a'.repeat(113), 'b'.repeat(114)]
  for (const tag of [fits, long]) await client.pushImage('acme/from/app', tag)
  const copy = ok(
    await operator.post(`/registry/v2/repos/${to.uid}`, { name: 'app', syncConfig: { source: source.uid } }),
  )
  shift += minute + 1000
  await runJob(app, copyRepos)
  const { items } = ok(await operator.get(`/registry/v1/tags?uidp.childrenOf=${copy.uid}`))
  const names = (items as Json[]).map(({ name }) => name as string).sort()
  assert.deepEqual([names.length, names[0], names[2]], [3, fits, long])
  assert.match(names[1]!, /^a{113}-\d{14}$/)
})
