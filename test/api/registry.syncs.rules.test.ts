// Copied repositories of the same server, with rules that protect tags or name the members who may move them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { copyRepos } from '#domains/mirrors/copies/syncs.job.ts'
import { runJob } from '../support/background-jobs.ts'
import { ok } from '../support/expect.ts'
import { type Client, type Json, roleUids } from '../support/pinfold.ts'
import { indexOf, startRegistry } from '../support/registry.ts'

const minute = 60_000
let shift = 0
const registry = await startRegistry({ clock: () => new Date(Date.now() + shift) })
const { seed, operator, org, app } = registry
after(() => registry[Symbol.asyncDispose]())
const repos = '/registry/v2/repos'
const v1 = '/registry/v1/repos'

const folder = async (name: string): Promise<string> => (await seed.group(org.uid, { name })).uid
const client = registry.registryOperator
/** A folder with a source repo, and one for the copy. */
async function pair(name: string) {
  const [from, to] = [await folder(`${name}-from`), await folder(`${name}-to`)]
  const source = await seed.repo(from, { name: 'app', description: 'the source' })
  return { from, to, source: source.uid as string, path: `acme/${name}-from/app`, copy: `acme/${name}-to/app` }
}
const copied = (to: string, source: string, more: Json = {}, by: Client = operator) =>
  by.post(`${repos}/${to}`, { name: 'app', syncConfig: { source }, ...more })
/** Runs the job after all copies are due again. */
async function run() {
  shift += minute + 1000
  return runJob(app, copyRepos)
}
const statusOf = async (uid: string): Promise<string> => ok(await operator.get(`${v1}/${uid}:syncstatus`)).status
const digestOf = async (path: string, tag: string) => {
  const reply = await client.call('HEAD', `${path}/manifests/${tag}`)
  return reply.status === 200 ? reply.headers['docker-content-digest'] : undefined
}
const historyOf = async (repo: string, tag: string): Promise<Json[]> =>
  ok(await operator.get(`/registry/v2/repos/${repo}/tagHistory?tag=${tag}`)).records

test('does not copy a tag that a rule protects until the rule is deleted, and copies the other tags', async () => {
  const { to, source, path, copy } = await pair('guarded')
  const first = await client.pushImage(path, 'fixed')
  const { uid } = ok(await copied(to, source))
  await run()
  const rule = ok(await operator.post(`/registry/v2/tagRules/${to}`, { tags: ['fixed'], immutable: true })).uid
  const second = await client.pushImage(path, 'fixed')
  await client.pushImage(path, 'later')
  await run()
  assert.equal(await digestOf(copy, 'fixed'), first.digest)
  assert.ok(await digestOf(copy, 'later'))
  assert.equal(await statusOf(uid), 'FAILED')
  shift += 10 * minute
  await client.pushImage(path, 'last')
  await run()
  assert.ok(await digestOf(copy, 'last'))
  assert.equal(await statusOf(uid), 'FAILED', 'it is remembered after what has changed lately')
  ok(await operator.delete(`/registry/v2/tagRules/${rule}`))
  await run()
  assert.equal(await digestOf(copy, 'fixed'), second.digest)
  assert.equal(await statusOf(uid), 'UNKNOWN')
})

test('rules for who can update a tag apply to the member who configured the copy', async () => {
  const { to, source, path, copy } = await pair('movers')
  const [mover, other] = [await seed.member(org.uid, roleUids.owner), await seed.member(org.uid, roleUids.owner)]
  await client.pushImage(path, '1.0')
  ok(await operator.post(`/registry/v2/tagRules/${to}`, { movers: [mover.uid] }))
  const { uid } = ok(await copied(to, source, {}, await registry.as(other.uid)))
  await run()
  assert.deepEqual([await digestOf(copy, '1.0'), await statusOf(uid)], [undefined, 'FAILED'])
  ok(await operator.delete(`${repos}/${uid}`))
  const again = ok(await copied(to, source, {}, await registry.as(mover.uid)))
  await run()
  assert.ok(await digestOf(copy, '1.0'))
  const [born] = await historyOf(again.uid, '1.0')
  assert.deepEqual([born!.actor, born!.source], [`sync:${source}`, 'SOURCE_SYNC'])
})

test('keeps an untagged copied manifest as long as a pushed one', async () => {
  const { to, source, path } = await pair('untagged')
  const image = await client.pushImage(path)
  const index = await client.pushManifest(path, indexOf([image]), 'all')
  ok(await operator.post(`/registry/v2/retentionRules/${to}`, { untaggedDays: 10, mode: 'ENFORCE' }))
  const { uid } = ok(await copied(to, source))
  const before = Date.now() + shift
  await run()
  const untilOf = async (digest: string) =>
    (
      await app.db.get<{ until: string }>(sql`
        SELECT p.until_time AS until FROM digest_promises p JOIN repos r ON r.id = p.repo_id
         WHERE r.uid = ${uid} AND p.digest = ${digest}`)
    )?.until
  assert.ok(Date.parse((await untilOf(image.digest))!) >= before + 10 * 24 * 60 * minute)
  assert.equal(await untilOf(index.digest), undefined, 'it has a tag')
  ok(await operator.post(`/registry/v2/tagRules/${to}`, { tags: ['fixed'], movers: [`${org.uid}/0123456789abcdef`] }))
  const refused = await client.pushImage(path, 'fixed')
  await run()
  assert.ok(Date.parse((await untilOf(refused.digest))!) >= before + 10 * 24 * 60 * minute)
})
