// Tag history in the API: lists for auditors, and imports.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { assertBlocked, assertDenied, assertInvalid, assertNotFound, eventsOf, ok } from '../support/expect.ts'
import { type Json, roleUids } from '../support/pinfold.ts'
import { startScene } from '../support/scene.ts'
import { digestOf, ledgerOf, plantManifest, plantTag } from '../support/tags.ts'

const start = Date.parse('2026-05-01T10:00:00.000Z')
let now = start
const minute = (i: number): string => new Date(start + i * 60_000).toISOString()

const { pinfold, operator, member, ...scene } = await startScene({
  clock: () => new Date(now),
  jobs: [],
})
const group: string = scene.org.uid
const viewer = await member(roleUids.viewer)
const owner = await member(roleUids.owner)
const stranger = await scene.foreigner()
after(() => pinfold[Symbol.asyncDispose]())

const newRepo = async (): Promise<string> => (await pinfold.seed.repo(group)).uid
const list = (repo: string, query: string, client = viewer) =>
  client.get(`/registry/v2/repos/${repo}/tagHistory?${query}`)
const load = (repoUid: string, tags: Json[], client = operator) =>
  client.post('/control/v1/tagHistory:import', { repoUid, tags })
const record = (i: number, text: string) => ({ time: minute(i), digest: digestOf(text) })

async function pagesOf(repo: string, query: string): Promise<Json[]> {
  const found: Json[] = []
  for (let token = ''; ; ) {
    const page = ok(await list(repo, `${query}&page_token=${token}`))
    found.push(...page.records)
    token = page.nextPageToken
    if (!token) return found
  }
}

test('tag history records show event, actor, source and time range', async () => {
  const repo = await newRepo()
  now = start
  const tag = await plantTag(pinfold, repo, 'v1', 'one')
  now += 60_000
  await plantTag(pinfold, repo, 'v1', 'two')
  now += 60_000
  ok(await operator.delete(`/registry/v2/tags/${tag.uid}`))
  const [one, two] = [digestOf('one'), digestOf('two')]
  const common = { tag: 'v1', actor: operatorUid, source: 'SOURCE_API', actorName: 'operator', restoreReason: '' }
  const expected = [
    { ...common, time: minute(2), event: 'EVENT_DELETED', digest: two, previousDigest: two },
    { ...common, time: minute(1), endTime: minute(2), event: 'EVENT_MOVED', digest: two, previousDigest: one },
    { ...common, time: minute(0), endTime: minute(1), event: 'EVENT_CREATED', digest: one, previousDigest: '' },
  ]
  assert.deepEqual(ok(await list(repo, 'tag=v1')).records, expected)
  assert.deepEqual(ok(await list(repo, `tag=v1&start_time=${minute(1)}&end_time=${minute(2)}`)).records, [expected[1]])
  assert.deepEqual(await pagesOf(repo, 'tag=v1&page_size=1'), expected)
  assert.deepEqual(ok(await list(repo, 'tag=never')).records, [])
})

test('lists the history of a repository newest first, in pages, in a time window', async () => {
  const repo = await newRepo()
  for (let i = 0; i < 6; i++) {
    // Two tags move in the same millisecond.
    now = start + Math.floor(i / 2) * 60_000
    await plantTag(pinfold, repo, i % 2 ? 'a' : 'b', `image ${i}`)
  }
  const all = ok(await list(repo, '')).records.map(({ tag, time }: Json) => [time, tag])
  const expected = [2, 2, 1, 1, 0, 0].map((i, at) => [minute(i), at % 2 ? 'a' : 'b'])
  assert.deepEqual(all, expected)
  for (const size of [1, 2, 4]) {
    const pages = await pagesOf(repo, `page_size=${size}`)
    assert.deepEqual(
      pages.map(({ tag, time }) => [time, tag]),
      expected,
    )
  }
  const window = ok(await list(repo, `start_time=${minute(1)}&end_time=${minute(2)}`)).records
  assert.deepEqual(
    window.map(({ tag, endTime }: Json) => [tag, endTime]),
    [
      ['b', minute(2)],
      ['a', minute(2)],
    ],
  )
  assertDenied(await list(repo, '', stranger))
})

test('a record names an existing actor, a person by name or email address', async () => {
  const repo = await newRepo()
  const { uid: robot } = await pinfold.seed.member(group, roleUids.owner)
  const { uid: jane } = await pinfold.seed.person({ name: '', email: 'jane@example.com' })
  ok(await operator.post(`/iam/v2/roleBindings/${group}`, { identityUid: jane, roleUid: roleUids.owner }))
  for (const [i, uid] of [robot, jane].entries()) {
    now = start + i * 60_000
    const digest = await plantManifest(pinfold, repo, uid)
    ok(await (await pinfold.as(uid)).post(`/registry/v2/tags/${repo}`, { name: `of-${i}`, digest }))
  }
  const named = async () => ok(await list(repo, '')).records.map(({ actor, actorName }: Json) => [actor, actorName])
  const { name } = ok(await operator.get(`/iam/v2/identities/${robot}`))
  assert.deepEqual(await named(), [
    [jane, 'jane@example.com'],
    [robot, name],
  ])
  const puller = await member(roleUids.pull)
  for (const { actorName } of ok(await list(repo, '', puller)).records) assert.equal(actorName, '')
  ok(await operator.delete(`/iam/v2/identities/${robot}`))
  assert.deepEqual((await named())[1], [robot, ''])
})

test('a digest shows each tag that has pointed to it, with the time ranges', async () => {
  const repo = await newRepo()
  for (const [i, [tag, image]] of Object.entries([
    ['b', 'x'],
    ['a', 'x'],
    ['a', 'y'],
    ['c', 'y'],
    ['a', 'x'],
  ])) {
    now = start + Number(i) * 60_000
    await plantTag(pinfold, repo, tag!, image)
  }
  const spans = (records: Json[]) => records.map(({ tag, time, endTime }) => [tag, time, endTime])
  const expected = [
    ['a', minute(1), minute(2)],
    ['a', minute(4), undefined],
    ['b', minute(0), undefined],
  ]
  assert.deepEqual(spans(ok(await list(repo, `digest=${digestOf('x')}`)).records), expected)
  assert.deepEqual(spans(await pagesOf(repo, `digest=${digestOf('x')}&page_size=1`)), expected)
  assert.deepEqual(spans(ok(await list(repo, `digest=${digestOf('x')}&tag=a`)).records), [expected[1], expected[0]])
  assert.deepEqual(ok(await list(repo, `digest=${digestOf('z')}`)).records, [])
})

test('reading tag history requires the capability tag.list', async () => {
  const repo = await newRepo()
  const missing = `${group}/${'0'.repeat(16)}`
  assertDenied(await list(repo, 'tag=a', stranger))
  assertDenied(await list(missing, 'tag=a', stranger))
  assertNotFound(await list(missing, 'tag=a'), 'registry.pinfold.dev/Repo', missing)
  assertInvalid(await list(repo, 'digest=x'), 'digest')
  const window = 'order_by=tag&start_time=2026-01-01T00:00:00Z'
  assertInvalid(await list(repo, window), 'order_by')
  ok(await list(repo, `${window}&tag=a`))
  assertInvalid(await list(repo, 'tag=a&page_size=-1'), 'page_size')
  assertInvalid(await list(repo, 'tag=a&page_token=x'), 'page_token')
})

test('an import keeps the times, and creates tags that are listed without their images', async () => {
  const repo = await newRepo()
  now = start + 50 * 60_000
  const tags = [
    { name: 'latest', records: [record(0, 'a'), record(1, 'b'), record(5, 'a')] },
    { name: '1.0', deprecated: true, records: [record(2, 'b')] },
  ]
  const before = ok(await operator.get(`/registry/v2/tags?uidp.children_of=${repo}`))
  assert.equal(before.totalCount, '0')
  const events = await eventsOf(pinfold, async () => {
    assert.deepEqual(ok(await load(repo, tags)), { tagsCreated: 2, recordsCreated: 4, recordsUnchanged: 0 })
  })
  // The import is one event for each tag, with its present digest, and no events about the past.
  assert.deepEqual(
    events.map(({ type, group, body }) => [type, group, body.name, body.update_time]),
    [
      ['dev.pinfold.api.platform.registry.tag.created.v1', group, 'latest', minute(5)],
      ['dev.pinfold.api.platform.registry.tag.created.v1', group, '1.0', minute(2)],
    ],
  )

  const listed = ok(await operator.get(`/registry/v2/tags?uidp.children_of=${repo}&order_by=name`)).tags as Json[]
  const shown = listed.map(({ name, digest, deprecated, createTime, updateTime }) => {
    return { name, digest, deprecated, createTime, updateTime }
  })
  assert.deepEqual(shown, [
    { name: '1.0', digest: digestOf('b'), deprecated: true, createTime: minute(2), updateTime: minute(2) },
    { name: 'latest', digest: digestOf('a'), deprecated: false, createTime: minute(0), updateTime: minute(5) },
  ])
  const rows = await ledgerOf(pinfold, repo)
  const common = { actor: operatorUid, source: 3, type: '', size: 0 }
  const [a, b] = [digestOf('a'), digestOf('b')]
  assert.deepEqual(rows, [
    { ...common, tag: '1.0', time: minute(2), event: 1, digest: b, previous: '' },
    { ...common, tag: 'latest', time: minute(0), event: 1, digest: a, previous: '' },
    { ...common, tag: 'latest', time: minute(1), event: 2, digest: b, previous: a },
    { ...common, tag: 'latest', time: minute(5), event: 2, digest: a, previous: b },
  ])
  // The API still requires an image.
  const move = await operator.post(`/registry/v2/tags/${repo}`, { name: 'latest', digest: digestOf('b') })
  assertBlocked(move, digestOf('b'), 'MANIFEST_NOT_FOUND')
})

test('an import adds only new records after existing ones, and adds nothing when repeated', async () => {
  const repo = await newRepo()
  now = start + 50 * 60_000
  const records = [record(0, 'a'), record(1, 'b'), record(5, 'a')]
  ok(await load(repo, [{ name: 'v', records: records.slice(0, 2) }]))
  assert.deepEqual(ok(await load(repo, [{ name: 'v', records }])), {
    tagsCreated: 0,
    recordsCreated: 1,
    recordsUnchanged: 2,
  })
  const before = await ledgerOf(pinfold, repo)
  const again = { tagsCreated: 0, recordsCreated: 0, recordsUnchanged: 3 }
  assert.deepEqual(ok(await load(repo, [{ name: 'v', records }])), again)
  assert.deepEqual(await ledgerOf(pinfold, repo), before)

  now += 60_000
  await plantTag(pinfold, repo, 'v', 'pushed')
  const pushed = (await ledgerOf(pinfold, repo)).at(-1)!
  assert.deepEqual([pushed.event, pushed.previous], [2, digestOf('a')])
  assert.deepEqual(ok(await load(repo, [{ name: 'v', records }])), again, 'also after it has moved on')
})

test('an import that contradicts the tag history is refused completely', async () => {
  const repo = await newRepo()
  now = start + 10 * 60_000
  await plantTag(pinfold, repo, 'v', 'here')
  now = start + 50 * 60_000
  const fine = { name: 'fine', records: [record(1, 'a')] }
  const conflict = await load(repo, [fine, { name: 'v', records: [record(1, 'a'), record(20, 'b')] }])
  assertBlocked(conflict, 'v', 'TAG_HISTORY_CONFLICT')
  assert.deepEqual(
    (await ledgerOf(pinfold, repo)).map(({ tag }) => tag),
    ['v'],
  )
  const later = { name: 'v', records: [record(20, 'b')] }
  assert.equal(ok(await load(repo, [later])).recordsCreated, 1)
  assert.equal(ok(await operator.get(`/registry/v2/tags?uidp.children_of=${repo}`)).tags[0].digest, digestOf('b'))
})

test('an imported record gets media type and size of an existing image', async () => {
  const repo = await newRepo()
  now = start + 50 * 60_000
  await plantManifest(pinfold, repo, 'present')
  ok(await load(repo, [{ name: 'v', records: [record(0, 'present')] }]))
  assert.equal((await ledgerOf(pinfold, repo))[0]!.size, 'present'.length)
})

test('only the operator can import, and an error names each invalid value', async () => {
  const repo = await newRepo()
  now = start + 50 * 60_000
  const tag = { name: 'v', records: [record(0, 'a')] }
  assertDenied(await load(repo, [tag], owner))
  const missing = `${group}/${'0'.repeat(16)}`
  assertNotFound(await load(missing, [tag]), 'registry.pinfold.dev/Repo', missing)
  assertInvalid(await load(repo, []), 'tags')
  assertInvalid(await load(repo, Array(1001).fill(tag)), 'tags')
  assertInvalid(await load(repo, [{ ...tag, records: Array(10_001).fill(record(0, 'a')) }]), 'tags')
  assertInvalid(await load(repo, [tag, tag]), 'tags[1].name')
  assertInvalid(await load(repo, [{ name: '.v', records: [] }]), 'tags[0].name', 'tags[0].records')
  const wrong = [
    record(1, 'a'),
    record(1, 'b'),
    record(2, 'b'),
    { time: minute(3), digest: 'x' },
    { digest: digestOf('c') },
  ]
  assertInvalid(
    await load(repo, [{ name: 'v', records: [...wrong, record(600, 'd')] }]),
    'tags[0].records[1].time',
    'tags[0].records[2].digest',
    'tags[0].records[3].digest',
    'tags[0].records[4].time',
    'tags[0].records[5].time',
  )
  assert.deepEqual(await ledgerOf(pinfold, repo), [])
})

test('an import runs the same number of queries per tag, for any number of tags', async () => {
  const repo = await newRepo()
  now = start + 50 * 60_000
  const { db } = pinfold.app
  const tx = db.tx.bind(db)
  let statements = 0
  const aside: unknown[] = []
  db.tx = (work, options) =>
    tx((one) => {
      aside.push(options?.aside)
      const counted = new Proxy(one, {
        get(target, name) {
          const value = Reflect.get(target, name)
          if (typeof value !== 'function' || name === 'after') return value
          return (...args: unknown[]) => {
            statements++
            return value.apply(target, args)
          }
        },
      })
      return work(counted)
    }, options)
  const costOf = async (tags: Json[]) => {
    statements = 0
    ok(await load(repo, tags))
    return statements
  }
  const some = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `${prefix}${i}`, records: [record(0, `${prefix}${i}`)] }))
  try {
    const [first, second] = [some('a', 20), some('c', 20)]
    const alone = await costOf(first)
    assert.ok(alone > 20 && alone < 20 * 12, `${alone} statements`)
    const twice = await costOf(some('b', 40))
    assert.ok(twice <= 2 * alone, `${twice} statements for 40 tags, ${alone} for 20`)
    await costOf(some('many', 600))
    assert.equal(await costOf(second), alone)
    // The second import writes nothing.
    const again = await costOf(first)
    assert.ok(again <= 3 * 20, `${again} statements`)
    // With an in-memory database, SQLite statements get slower with each changed page: ten thousand records take ten seconds.
    assert.ok(aside.includes('disk') && !aside.includes('memory'))
  } finally {
    db.tx = tx
  }
})
