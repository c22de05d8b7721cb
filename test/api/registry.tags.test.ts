import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { findRepoRow } from '#domains/registry/repos/repos.store.ts'
import { assignTag, removeTagsOf } from '#domains/registry/tags/tag-moves.service.ts'
import { operatorUid } from '#issuer/access-token.ts'
import { ownCause } from '#lib/cause.ts'
import { checkLists } from '../support/check-lists.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf, ledgerOf, manifestType, plantManifest, plantTag } from '../support/tags.ts'

const tagType = 'registry.pinfold.dev/Tag'
const repoType = 'registry.pinfold.dev/Repo'

/** Clock of the server, which tests set back and forth. */
let now = Date.parse('2026-05-01T10:00:00.000Z')
const { pinfold, operator, member, ...scene } = await startScene({ clock: () => new Date(now) })
const group: string = (await pinfold.seed.group(scene.org.uid)).uid
const owner = await member(roleUids.owner, group)
const viewer = await member(roleUids.viewer, group)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

const at = (time: string) => {
  now = Date.parse(time)
}
const newRepo = async (): Promise<string> => (await pinfold.seed.repo(group)).uid
const create = (repo: string, body: Json, client = operator) => client.post(`/registry/v2/tags/${repo}`, body)
const pathOf = (tag: Json) => `/registry/v2/tags/${tag.uid}`
const sha512 = `sha512:${'a'.repeat(128)}`

test('a new tag has a uid below its repository, its fields and both times', async () => {
  const repo = await newRepo()
  const digest = await plantManifest(pinfold, repo, 'one')
  const tag = ok(await create(repo, { name: 'latest', digest, bundles: ['base'] }, owner))
  assert.match(tag.uid, new RegExp(`^${repo}/[0-9a-f]{16}$`))
  const time = new Date(now).toISOString()
  const fields = { name: 'latest', digest, deprecated: false, bundles: ['base'] }
  assert.deepEqual(tag, { uid: tag.uid, ...fields, createTime: time, updateTime: time })
  assert.deepEqual(ok(await viewer.get(pathOf(tag))), tag)
})

test('creating an existing tag again updates it, and keeps its uid and its history', async () => {
  const repo = await newRepo()
  const [one, two] = [await plantManifest(pinfold, repo, 'one'), await plantManifest(pinfold, repo, 'other two')]
  at('2026-05-01T10:00:00.000Z')
  const first = ok(await create(repo, { name: 'v1', digest: one }, owner))
  at('2026-05-01T10:10:00.000Z')
  const repeated = ok(await create(repo, { name: 'v1', digest: one }, owner))
  assert.deepEqual(repeated, first)
  const moved = ok(await create(repo, { name: 'v1', digest: two }, owner))
  assert.deepEqual(moved, { ...first, digest: two, updateTime: '2026-05-01T10:10:00.000Z' })

  const who = (await ledgerOf(pinfold, repo))[0]!.actor
  assert.match(who, new RegExp(`^${group}/[0-9a-f]{16}$`))
  const common = { tag: 'v1', actor: who, source: 2, type: manifestType }
  assert.deepEqual(await ledgerOf(pinfold, repo), [
    { ...common, time: '2026-05-01T10:00:00.000Z', event: 1, digest: one, previous: '', size: 3 },
    { ...common, time: '2026-05-01T10:10:00.000Z', event: 2, digest: two, previous: one, size: 9 },
  ])
})

test('a deletion is a tag history row, and the same digest afterwards is another row', async () => {
  const repo = await newRepo()
  at('2026-05-01T10:00:00.000Z')
  const tag = await plantTag(pinfold, repo, 'v1')
  at('2026-05-01T10:20:00.000Z')
  const res = await owner.delete(pathOf(tag))
  assert.deepEqual([res.status, res.text], [200, ''])
  assertNotFound(await operator.get(pathOf(tag)), tagType, tag.uid)
  assertNotFound(await owner.delete(pathOf(tag)), tagType, tag.uid)
  at('2026-05-01T10:30:00.000Z')
  const again = await plantTag(pinfold, repo, 'v1')
  assert.notEqual(again.uid, tag.uid)

  const rows = (await ledgerOf(pinfold, repo)).map(({ time, event, digest, previous, actor, type, size }) => {
    return { time, event, digest, previous, byOperator: actor === operatorUid, type, size }
  })
  const { digest } = tag
  const same = { digest, type: manifestType, size: 2 }
  assert.deepEqual(rows, [
    { time: '2026-05-01T10:00:00.000Z', event: 1, ...same, previous: '', byOperator: true },
    { time: '2026-05-01T10:20:00.000Z', event: 3, ...same, previous: digest, byOperator: false },
    { time: '2026-05-01T10:30:00.000Z', event: 1, ...same, previous: '', byOperator: true },
  ])
})

test('the times of a tag always increase, also if the clock is set back and after a deletion', async () => {
  const repo = await newRepo()
  const digests = await Promise.all(['a', 'b', 'c'].map((text) => plantManifest(pinfold, repo, text)))
  at('2026-05-01T10:40:00.000Z')
  const times: string[] = []
  for (const [i, digest] of [...digests, ...digests].entries()) {
    if (i === 2) at('2026-05-01T10:35:00.000Z')
    const tag = ok(await create(repo, { name: 'back', digest }))
    times.push(tag.updateTime)
    if (i === 3) ok(await operator.delete(pathOf(tag)))
  }
  const rows = await ledgerOf(pinfold, repo)
  assert.equal(rows.length, 7)
  const inOrder = rows.map(({ time }) => Date.parse(time) - Date.parse('2026-05-01T10:40:00.000Z'))
  assert.deepEqual(inOrder, [0, 1, 2, 3, 4, 5, 6])
  assert.deepEqual(
    times,
    rows.filter(({ event }) => event !== 3).map(({ time }) => time),
  )
})

test('concurrent updates of one tag leave an unbroken chain', async () => {
  const repo = await newRepo()
  const digests = await Promise.all(Array.from({ length: 12 }, (_, i) => plantManifest(pinfold, repo, `image ${i}`)))
  const answers = await Promise.all(digests.map((digest) => create(repo, { name: 'busy', digest })))
  const uids = new Set(answers.map((answer) => ok(answer).uid))
  assert.equal(uids.size, 1)
  const rows = await ledgerOf(pinfold, repo)
  assert.equal(rows.length, 12)
  for (const [i, row] of rows.entries()) {
    assert.equal(row.previous, rows[i - 1]?.digest ?? '')
    assert.ok(i === 0 || row.time > rows[i - 1]!.time)
  }
  assert.equal(ok(await operator.get(pathOf({ uid: [...uids][0] }))).digest, rows.at(-1)!.digest)
})

test('deprecated and bundles have the values of the latest request, and changing them adds no history row', async () => {
  const repo = await newRepo()
  at('2026-05-01T10:00:00.000Z')
  const { digest, ...tag } = await plantTag(pinfold, repo, 'old')
  at('2026-05-01T10:20:00.000Z')
  const ended = ok(await create(repo, { name: 'old', digest, deprecated: true, bundles: ['ai'] }))
  const time = '2026-05-01T10:20:00.000Z'
  assert.deepEqual(ended, { ...tag, digest, deprecated: true, bundles: ['ai'], updateTime: time })
  assert.equal(ok(await operator.get(`/registry/v2/tags?uidp.ids=${tag.uid}`)).tags[0].deprecated, true)
  assert.equal(ok(await create(repo, { name: 'old', digest })).deprecated, false)
  assert.equal((await ledgerOf(pinfold, repo)).length, 1)
})

test('validates name, digest and bundles', async () => {
  const repo = await newRepo()
  const digest = await plantManifest(pinfold, repo, 'one')
  for (const name of ['a', '_', 'A.b-c_d', '1.2.3-r0', 'x'.repeat(128)]) ok(await create(repo, { name, digest }))
  for (const name of ['', '.a', '-a', 'a b', 'a/b', 'a:b', 'é', 'a\n', 'x'.repeat(129)]) {
    assertInvalid(await create(repo, { name, digest }), 'name')
  }
  const hex = digest.slice('sha256:'.length)
  for (const wrong of [
    '',
    'x',
    hex,
    `sha256:${hex.slice(1)}`,
    `sha256:${hex.toUpperCase()}`,
    `md5:${hex}`,
    `${digest} `,
  ]) {
    assertInvalid(await create(repo, { name: 'a', digest: wrong }), 'digest')
  }
  for (const bundle of ['', 'Base', 'other']) {
    assertInvalid(await create(repo, { name: 'a', digest, bundles: ['ai', bundle] }), 'bundles')
  }
  assertInvalid(await create(repo, { name: 'a', digest, bundles: Array(1001).fill('ai') }), 'bundles')
  assertInvalid(await create(repo, {}), 'name', 'digest')
})

test('a tag must point to a manifest in its own repository', async () => {
  const [repo, other] = [await newRepo(), await newRepo()]
  const digest = await plantManifest(pinfold, other, 'elsewhere')
  for (const missing of [digest, digestOf('nowhere'), sha512]) {
    assertBlocked(await create(repo, { name: 'a', digest: missing }), missing, 'MANIFEST_NOT_FOUND')
  }
  assert.deepEqual(await ledgerOf(pinfold, repo), [])
})

test('a tag must have a repository as its parent', async () => {
  const digest = digestOf('x')
  const tag = await plantTag(pinfold, await newRepo(), 'a')
  assertInvalid(await create(group, { name: 'a', digest }), 'parent')
  const missing = `${group}/${'0'.repeat(16)}`
  assertNotFound(await create(missing, { name: 'a', digest }), repoType, missing)
  assertNotFound(await create(tag.uid, { name: 'a', digest }), repoType, tag.uid)
  for (const uid of ['x', `${group}/`]) assertInvalid(await create(uid, { name: 'a', digest }), 'parent')
})

test('checks permission before existence', async () => {
  const repo = await newRepo()
  const tag = await plantTag(pinfold, repo, 'a')
  const missing = { uid: `${repo}/${'0'.repeat(16)}` }
  for (const one of [tag, missing]) {
    assertDenied(await stranger.get(pathOf(one)))
    assertDenied(await stranger.delete(pathOf(one)))
    assertDenied(await viewer.delete(pathOf(one)))
  }
  assertDenied(await create(repo, { name: 'b', digest: tag.digest }, viewer))
  assertDenied(await create(repo, { name: 'b', digest: tag.digest }, stranger))
  assertNotFound(await viewer.get(pathOf(missing)), tagType, missing.uid)
})

test('each change sends one event to the organization, with the tag or the request', async () => {
  const repo = await newRepo()
  const digest = await plantManifest(pinfold, repo, 'one')
  let tag: Json = {}
  const events = await eventsOf(pinfold, async () => {
    tag = ok(await create(repo, { name: 'sent', digest, bundles: ['ai'] }))
    ok(await operator.delete(pathOf(tag)))
    await create(repo, { name: 'sent', digest: digestOf('missing') })
  })
  const organization = group.slice(0, 40)
  const common = { subject: tag.uid, group: organization, audience: 'CUSTOMER' }
  assert.partialDeepStrictEqual(events, [
    { ...common, type: 'dev.pinfold.api.platform.registry.tag.created.v1' },
    { ...common, type: 'dev.pinfold.api.platform.registry.tag.deleted.v1' },
  ])
  assert.equal(events.length, 2)
  const bodies = events.map(({ body }) => (typeof body === 'string' ? JSON.parse(body) : body))
  assert.partialDeepStrictEqual(bodies, [{ uid: tag.uid, name: 'sent', digest, bundles: ['ai'] }, { uid: tag.uid }])
})

test('deleting a repository deletes its tags, and removes them from each list', async () => {
  const repo = await newRepo()
  const names = ['latest', '1.0-r0', '1.0-20260101', 'sha256-abc.sig']
  const tags = await Promise.all(names.map((name) => plantTag(pinfold, repo, name)))
  const kept = await plantTag(pinfold, await newRepo(), 'latest')
  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  for (const tag of tags) assertNotFound(await operator.get(pathOf(tag)), tagType, tag.uid)
  const all = ok(await operator.get('/registry/v2/tags?include_referrers=true&include_dates=true&include_epochs=true'))
  assert.ok(!all.tags.some((tag: Json) => tag.uid.startsWith(repo)))
  assert.deepEqual(ok(await operator.get(pathOf(kept))), kept)
})

test('deleting a manifest or a repository deletes all of its many tags, and lists no longer count them', async () => {
  const repo = await newRepo()
  const kept = await plantTag(pinfold, repo, 'kept', 'other')
  const digest = await plantManifest(pinfold, repo, 'shared by many')
  const shared = {
    repo: (await findRepoRow(pinfold.app.db, { uid: repo }))!,
    digest,
    now: new Date(now).toISOString(),
    actor: 'x',
    source: 'oci',
  } as const
  const names = Array.from({ length: 150 }, (_, i) => (i % 3 === 0 ? `n${i}-r1` : `n${i}`))
  const plant = () =>
    pinfold.app.db.tx(async (tx) => {
      for (const name of names) await assignTag(tx, pinfold, { ...shared, name })
    })
  await plant()
  await checkLists(pinfold)
  const by = { app: pinfold.app, cause: ownCause(pinfold.app.clock) }
  const told = await eventsOf(pinfold, () => pinfold.app.db.tx((tx) => removeTagsOf(tx, by, digest, shared)))
  await checkLists(pinfold)
  assert.equal(new Set(told.map(({ type, subject }) => `${type} ${subject}`)).size, names.length)
  assert.equal((await ledgerOf(pinfold, repo)).filter(({ event }) => event === 3).length, names.length)
  assert.deepEqual(ok(await operator.get(pathOf(kept))), kept)

  await plant()
  ok(await operator.delete(`/registry/v2/repos/${repo}`))
  await checkLists(pinfold)
  assert.equal((await ledgerOf(pinfold, repo)).filter(({ event }) => event === 3).length, 2 * names.length + 1)
})

test('all tags of a deleted manifest end together, each after its own last update', async () => {
  const repo = await newRepo()
  at('2026-05-01T10:00:00.000Z')
  const names = ['a', 'b', 'c-r1']
  const tags = await Promise.all(names.map((name) => plantTag(pinfold, repo, name, 'shared')))
  const other = await plantTag(pinfold, repo, 'other')
  const { digest } = tags[0]!
  const row = (await findRepoRow(pinfold.app.db, { uid: repo }))!
  const mover = { now: '2026-05-01T09:00:00.000Z', actor: 'x', source: 'oci' } as const
  const by = { app: pinfold.app, cause: ownCause(pinfold.app.clock) }
  await pinfold.app.db.tx((tx) => removeTagsOf(tx, by, digest, { repo: row, ...mover }))

  for (const tag of tags) assertNotFound(await operator.get(pathOf(tag)), tagType, tag.uid)
  assert.deepEqual(ok(await operator.get(pathOf(other))), other)
  const ends = (await ledgerOf(pinfold, repo)).filter(({ event }) => event === 3)
  assert.deepEqual(
    ends.map(({ tag, time, actor, source, type, size }) => [tag, time, actor, source, type, size]),
    names.map((name) => [name, '2026-05-01T10:00:00.001Z', 'x', 1, manifestType, 'shared'.length]),
  )
})
