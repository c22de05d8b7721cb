// Mirrors with tags that rules or holds protect: mirroring does not bypass the protection, and tags that were set here stay.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { followUpstreams } from '#domains/mirrors/follows/follows.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { assertError, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { imageOf, startRegistry, types } from '../support/registry.ts'
import { localUpstreams, startUpstream } from '../support/upstream.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({ ...localUpstreams, monotonic: () => performance.now() * 1000 + shift })
const { seed, operator, org, app, registryOperator: client } = registry
after(() => registry[Symbol.asyncDispose]())

let count = 0
/** A folder with a repository with one tag, and an upstream that the repository can mirror. */
async function scene() {
  const there = await startUpstream()
  after(() => there[Symbol.asyncDispose]())
  // Deletes the mirrors of earlier tests.
  await app.db.tx((tx) => tx.run(sql`DELETE FROM follows`))
  const name = `guarded-${count++}`
  const folder = (await seed.group(org.uid, { name })).uid as string
  const repo = (await seed.repo(folder, { name: 'app' })).uid as string
  const mine = (await client.pushImage(`acme/${name}/app`, 'mine')).digest
  const upstream = ok(await operator.post(`/registry/v2/upstreams/${folder}`, { name, url: there.url }))
  const follow = (body: Json = {}) =>
    operator.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid: upstream.uid, path: 'app', ...body })
  const guard = async (kind: string, says: Json) =>
    ok(await operator.post(`/registry/v2/${kind}/${folder}`, says)).uid as string
  return { there, repo, folder, name: `acme/${name}/app`, mine, upstream, follow, guard }
}
/** The clock of the job moves, while tokens stay valid. */
const later = { ...app, clock: () => new Date(Date.now() + shift) }
const look = async (afterMs = 0) => {
  shift += afterMs
  return runJob(later, followUpstreams)
}
const digestOf = async (name: string, tag: string) =>
  (await client.call('HEAD', `${name}/manifests/${tag}`)).headers['docker-content-digest']
const pointsTo = async (repo: string, tag: string): Promise<string> =>
  ok(await operator.get(`/registry/v2/tags?uidp.childrenOf=${repo}&name=${tag}`)).tags[0].digest
const problemOf = async (repo: string): Promise<string> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/follow`)).problem ?? ''

const guards: Record<string, [kind: string, says: Json]> = {
  'a rule that it never moves': ['tagRules', { tags: ['m*'], immutable: true }],
  'a rule of who moves it': ['tagRules', { tags: ['m*'], movers: [`${org.uid}/0123456789abcdef`] }],
  'a hold': ['holds', { tags: ['mine'], reason: 'the court asks for it' }],
}
for (const [what, [kind, says]] of Object.entries(guards)) {
  test(`refuses to make a repository a mirror if ${what} protects a tag, and names the tag and the rule`, async () => {
    const { repo, follow, guard, folder, upstream } = await scene()
    const uid = await guard(kind, says)
    const refused = await follow()
    const violations = [{ type: 'TAGS_GUARDED', subject: 'mine', description: refused.body.message }]
    assertError(refused, 400, 9, 'TAGS_GUARDED', { type: 'PreconditionFailure', violations })
    assert.ok(refused.text.includes(uid))
    assert.equal((await operator.get(`/registry/v2/repos/${repo}/follow`)).status, 404)
    // A rule does not prevent mirroring if it matches no tag of the repository.
    const other = (await seed.repo(folder, { name: 'other' })).uid
    ok(await operator.post(`/registry/v2/repos/${other}/follow`, { upstreamUid: upstream.uid, path: 'app' }))
  })
}

test('in a mirror, a tag rule protects tags that were set here, and other tags still follow the upstream', async () => {
  const { there, repo, follow, guard, name, mine } = await scene()
  there.move('3', 'one')
  ok(await follow())
  await look()
  await guard('tagRules', { immutable: true })
  ok(await follow({ interval: '600s' }))
  there.move('mine', 'theirs')
  const second = there.move('3', 'two')
  const looked = await look(61 * minute)
  assert.deepEqual([looked.moves, looked.failed], [1, 1])
  assert.deepEqual([await pointsTo(repo, '3'), await digestOf(name, 'mine')], [second, mine])
  assert.equal(await problemOf(repo), 'a tag rule or a legal hold protects the tag')
  const third = there.move('3', 'three')
  assert.equal((await look(61 * minute)).moves, 1, 'and the others go on')
  assert.equal(await pointsTo(repo, '3'), third)
  const elsewhere = await follow({ path: 'another' })
  assertError(elsewhere, 400, 9, 'TAGS_GUARDED', elsewhere.body.details[1])
})

test('a hold protects a tag that was set here, although the upstream does not have this tag', async () => {
  const { repo, follow, guard, mine } = await scene()
  ok(await follow({ tags: ['mine'] }))
  await guard('holds', { tags: ['mine'], reason: 'the court asks for it' })
  for (let i = 0; i < 5; i++) await look(61 * minute)
  assert.equal(await pointsTo(repo, 'mine'), mine)
  assert.equal(await problemOf(repo), 'a tag rule or a legal hold protects the tag')
})

test('a pull returns the tag that was set here with a warning, and checks the upstream once in five minutes', async () => {
  const { there, follow, guard, name, mine } = await scene()
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux' }), types.config)
  const theirs = there.add(JSON.stringify(imageOf(config, [])), types.image)
  there.tags.set('mine', theirs.digest)
  ok(await follow({ mode: 'MODE_ON_DEMAND' }))
  await guard('tagRules', { immutable: true })
  for (let i = 0; i < 3; i++) {
    const pulled = await client.ok(200, 'GET', `${name}/manifests/mine`)
    assert.equal(pulled.headers['docker-content-digest'], mine)
    assert.match(String(pulled.headers.warning), /^299 - "a tag rule or a legal hold protects the tag/)
  }
  assert.equal(there.count('HEAD /v2/app/manifests/mine'), 1)
})

test('the upstream can create a restricted tag only if a permitted member configured the mirror', async () => {
  const { there, repo, follow, guard, name } = await scene()
  const mover = (await seed.member(org.uid, roleUids.owner)).uid as string
  await guard('tagRules', { tags: ['release-*'], movers: [mover] })
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux' }), types.config)
  const image = there.add(JSON.stringify(imageOf(config, [])), types.image)
  there.tags.set('release-1', image.digest)
  there.tags.set('3', image.digest)
  ok(await follow({ mode: 'MODE_ON_DEMAND' }))
  assert.equal((await client.call('GET', `${name}/manifests/release-1`)).status, 404)
  await client.ok(200, 'GET', `${name}/manifests/3`)
  ok(await follow({ mode: 'MODE_WATCH' }))
  const looked = await look(61 * minute)
  assert.deepEqual([looked.failed, await problemOf(repo)], [1, 'a tag rule or a legal hold protects the tag'])
  const { upstreamUid } = ok(await operator.get(`/registry/v2/repos/${repo}/follow`))
  const theirs = await registry.as(mover)
  ok(await theirs.post(`/registry/v2/repos/${repo}/follow`, { upstreamUid, path: 'app' }))
  await look(61 * minute)
  assert.equal(await pointsTo(repo, 'release-1'), image.digest)
})
