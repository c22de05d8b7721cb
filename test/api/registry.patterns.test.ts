// Patterns from users: refused above the limits with the field, compiled once, and kept if they were stored before the limits.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { patterns } from '#lib/patterns/patterns.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertInvalid, ok } from '../support/expect.ts'
import { publishAt } from '../support/hostile-upstreams.ts'
import type { Json } from '../support/pinfold.ts'
import { startRegistry } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const registry = await startRegistry(localUpstreams)
after(() => registry[Symbol.asyncDispose]())
const { app, operator, org, puller, seed } = registry
const upstreams = '/registry/v2/upstreams'

let count = 0
async function scene(body: Json = {}) {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `patterns-${count++}`
  const group = (await seed.group(org.uid, { name })).uid as string
  const upstream = ok(await operator.post(`${upstreams}/${group}`, { name, url: there.url, ...body }))
  const repo = (await seed.repo(group, { name: 'app' })).uid as string
  const follow = (more: Json = {}) =>
    operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path: 'team/app', ...more })
  return { there, upstream, repo, follow, path: `acme/${name}` }
}

/** Above the current limits of a single pattern, and within the former limits. */
const old = '(?:[a-z]{1,20}/?){1,20}'
const oldTag = '(?:[a-z0-9.]{1,30}-?){1,20}'
const hostile = '(\\pL{1,100}){1,10}'

test('an error for a pattern above the limits names its field, and the pattern is not compiled', async () => {
  const { follow, upstream } = await scene()
  const { compiled } = patterns.counts()
  assertInvalid(await operator.patch(`${upstreams}/${upstream.uid}`, { allow: ['limits/.*', hostile] }), 'allow[1]')
  assertInvalid(await follow({ tags: ['limits', 'limits-.*', hostile] }), 'tags[2]')
  assertInvalid(await follow({ tags: ['\\pL'.repeat(170)] }), 'tags[0]')
  const claimMatch = { issuer: 'https://issuer.example', subjectPattern: hostile }
  const identity = await operator.post(`/iam/v2/identities/${org.uid}`, { name: 'n', claimMatch })
  assertInvalid(identity, 'claim_match.subject_pattern')
  const match = { issuer: 'https://issuer.example', subject: 's', claimPatterns: { a: hostile } }
  const check = { claims: '{"a":"x"}', match }
  assertInvalid(await operator.post(`/control/v1/claimChecks/${org.uid}`, check), 'match.claim_patterns.a')
  // Compiles only the three patterns within the limits, which come first. No other test has them, since compiled patterns are kept.
  assert.equal(patterns.counts().compiled - compiled, 3)
})

test('pulls of a missing repository compile the upstream patterns above it once, not per pull', async () => {
  const { compiled } = patterns.counts()
  const { path } = await scene({ makeRepos: true, allow: ['once/a[0-9]+', 'once/b[0-9]+'] })
  for (let i = 0; i < 5; i++) await puller.call('GET', `${path}/once/c${i}/manifests/1.0`)
  assert.equal(patterns.counts().compiled - compiled, 2)
})

test('on-demand pulls of a repository compile its patterns once', async () => {
  const { compiled } = patterns.counts()
  const { there, follow, path } = await scene({ allow: ['team/(?:app|tool)'] })
  publishAt(there, 'demand-1')
  ok(await follow({ mode: 'MODE_ON_DEMAND', tags: ['demand-[0-9]+', 'never-[0-9]+'] }))
  for (let i = 0; i < 5; i++) await puller.ok(200, 'HEAD', `${path}/app/manifests/demand-1`)
  for (let i = 0; i < 5; i++) await puller.call('HEAD', `${path}/app/manifests/other-${i}`)
  assert.equal(patterns.counts().compiled - compiled, 3)
})

test('patterns above later limits still match, are reported, and do not block other changes', async () => {
  const { there, follow, upstream, repo } = await scene()
  ok(await follow())
  await app.db.tx(async (tx) => {
    await tx.run(sql`UPDATE upstreams SET allow = ${JSON.stringify([old])} WHERE uid = ${upstream.uid}`)
    await tx.run(sql`UPDATE follows SET tags = ${JSON.stringify([oldTag])} WHERE repo_uid = ${repo}`)
  })
  const shown = ok(await operator.get(`${upstreams}/${upstream.uid}`))
  assert.match(shown.problem, /^allow\[0\] .* has \d+ steps.* It matches texts of up to \d+ characters/)
  assert.match(
    ok(await operator.get(`/registry/v2/repos/${repo}/follow`)).problem,
    /^tags\[0\] is too large: it has \d+ steps/,
  )

  there.move('1.0-old', 'one')
  there.move('UPPER', 'other')
  assert.deepEqual(await runJob(app, followUpstreams), { looks: 1, moves: 1, failed: 0 })

  assert.equal(ok(await operator.patch(`${upstreams}/${upstream.uid}`, { requestsPerSecond: 7 })).allow[0], old)
  assert.equal(ok(await follow({ tags: [oldTag], interval: '600s' })).tags[0], oldTag)
  assertInvalid(await follow({ tags: [`${oldTag}x`] }), 'tags[0]')
  assertInvalid(await operator.patch(`${upstreams}/${upstream.uid}`, { allow: [`${old}x`] }), 'allow[0]')
  assert.equal(ok(await operator.patch(`${upstreams}/${upstream.uid}`, { allow: ['team/.*'] })).problem, '')
})
