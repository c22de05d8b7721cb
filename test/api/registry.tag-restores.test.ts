// Restores of tags: a former digest with a reason, the row in the tag history, the events and the audit entry.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf, plantManifest, plantTag } from '../support/tags.ts'

const { pinfold, operator, member, ...scene } = await startScene({ jobs: [] })
const group: string = scene.org.uid
const pusher = await member(roleUids.push)
const viewer = await member(roleUids.viewer)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

const [one, two] = [digestOf('one'), digestOf('two')]

/** Repository whose tag `stable` had the digest `one` and has the digest `two`. */
async function newRepo(): Promise<string> {
  const { uid } = await pinfold.seed.repo(group)
  await plantTag(pinfold, uid, 'stable', 'one')
  await plantTag(pinfold, uid, 'stable', 'two')
  return uid
}

const reason = 'The release fails its health check'
const at = (repo: string, tag = 'stable') => `/registry/v2/repos/${repo}/restoredTags/${tag}`
const historyOf = async (repo: string) =>
  ok(await viewer.get(`/registry/v2/repos/${repo}/tagHistory?tag=stable`)).records

test('a restore assigns a former digest, with its reason in the history, the event and the audit log', async () => {
  const repo = await newRepo()
  let restored: Json = {}
  const events = await eventsOf(pinfold, async () => {
    restored = ok(await pusher.post(at(repo), { digest: one, reason: ` ${reason} ` }))
  })
  const { tagUid, time } = restored
  const about = { repoUid: repo, tag: 'stable', digest: one, previousDigest: two, reason }
  assert.deepEqual(restored, { ...about, tagUid, time })
  const [record, before] = await historyOf(repo)
  assert.deepEqual(
    [record.event, record.digest, record.previousDigest, record.time, record.source, record.restoreReason],
    ['EVENT_MOVED', one, two, time, 'SOURCE_API', reason],
  )
  assert.equal(before.restoreReason, '')
  assert.deepEqual(
    events.map(({ type }) => type),
    ['dev.pinfold.api.platform.registry.tag.created.v1', 'dev.pinfold.control.registry.tag.restored.v1'],
  )
  const { auditEntries: items } = ok(await operator.get(`/events/v2/audit?subject=${tagUid}`))
  assert.equal(items.length, 1)
  assert.equal(items[0].type, 'dev.pinfold.control.registry.tag.restored.v1')
  assert.equal(JSON.parse(items[0].body).reason, reason)
})

test('the audit entry of a restore belongs to the folder of the repository', async () => {
  const folder = await pinfold.seed.group(group)
  const { uid: repo } = await pinfold.seed.repo(folder.uid)
  for (const image of ['one', 'two']) await plantTag(pinfold, repo, 'stable', image)
  const { tagUid } = ok(await operator.post(at(repo), { digest: one, reason }))
  const { auditEntries } = ok(await operator.get(`/events/v2/audit?subject=${tagUid}`))
  assert.equal(auditEntries[0].uid.slice(0, -17), folder.uid)
})

test('a deleted tag is created again', async () => {
  const repo = await newRepo()
  const { tags } = ok(await operator.get(`/registry/v2/tags?uidp.childrenOf=${repo}`))
  ok(await operator.delete(`/registry/v2/tags/${tags[0].uid}`))
  const restored = ok(await pusher.post(at(repo), { digest: one, reason }))
  assert.equal(restored.previousDigest, '')
  assert.equal((await historyOf(repo))[0].event, 'EVENT_CREATED')
})

test('If-Match refuses a restore if the tag was updated meanwhile', async () => {
  const repo = await newRepo()
  const send = (match: string) => pusher.call('POST', at(repo), { digest: one, reason }, { 'if-match': `"${match}"` })
  const refused = await send(one)
  assert.deepEqual([refused.status, refused.body.details[0].reason], [412, 'ETAG_MISMATCH'])
  assert.equal((await historyOf(repo))[0].digest, two)
  ok(await send(two))
  assert.equal((await historyOf(repo))[0].digest, one)
})

test('a digest that the tag never had, that is not stored, or that the tag has now is refused', async () => {
  const repo = await newRepo()
  await plantManifest(pinfold, repo, 'other')
  await operator.post('/control/v1/tagHistory:import', {
    repoUid: repo,
    tags: [{ name: 'past', records: [{ time: '2026-01-01T00:00:00.000Z', digest: digestOf('lost') }] }],
  })
  const send = (tag: string, digest: string) => pusher.post(at(repo, tag), { digest, reason })
  assertBlocked(await send('stable', digestOf('other')), 'stable', 'NOT_IN_TAG_HISTORY')
  assertBlocked(await send('past', digestOf('lost')), digestOf('lost'), 'MANIFEST_NOT_FOUND')
  assertBlocked(await send('stable', two), 'stable', 'TAG_UNCHANGED')
})

test('reason, digest and tag are checked, and a viewer or a stranger cannot restore', async () => {
  const repo = await newRepo()
  assertInvalid(await pusher.post(at(repo), { digest: one, reason: '  ' }), 'reason')
  assertInvalid(await pusher.post(at(repo), { digest: one, reason: 'x'.repeat(501) }), 'reason')
  assertInvalid(await pusher.post(at(repo), { digest: 'sha256:1', reason }), 'digest')
  assertInvalid(await pusher.post(at(repo, '.bad'), { digest: one, reason }), 'tag')
  assertDenied(await viewer.post(at(repo), { digest: one, reason }))
  assertDenied(await stranger.post(at(repo), { digest: one, reason }))
  const missing = `${group}/0123456789abcdef`
  assertNotFound(await operator.post(at(missing), { digest: one, reason }), 'registry.pinfold.dev/Repo', missing)
})
