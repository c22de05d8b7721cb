import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { assertInvalid } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { kinds, nodesOf, plantTree, sorted, walk } from '../support/tree.ts'

const repoKind = kinds.at(-1)!
const day = 24 * 60 * 60 * 1000

let pinfold: Pinfold
let groupUids: Record<string, string>
/** The clock moves in steps. Several resources have the same time, and orders by time have ties. */
let ticks = 0
const clock = () => new Date(Date.parse('2026-03-01T12:00:00.000Z') + 1000 * Math.floor(ticks++ / 100))

before(async () => {
  pinfold = await startPinfold({ clock })
  groupUids = await plantTree(pinfold, { repos: 50, others: 12 })
  const repos = await nodesOf(pinfold, repoKind)
  await Promise.all(
    repos
      .filter((_, i) => i % 3 === 0)
      .map(({ uid }) => pinfold.operator.patch(`${repoKind.path}/${uid}`, { description: 'later' })),
  )
})
after(() => pinfold[Symbol.asyncDispose]())

const list = (query = '', client = pinfold.operator, kind = repoKind) => client.get(`${kind.path}?${query}`)
const uidsOf = (body: Json, kind = repoKind): string[] => (body[kind.plural] as Json[]).map(({ uid }) => uid as string)
const expectedRepos = async (column = 'uid', desc = false) =>
  sorted(await nodesOf(pinfold, repoKind), column, desc).map(({ uid }) => uid)

/** Caller with access to several groups, which may contain each other. */
async function memberOf(...groups: string[]): Promise<Client> {
  const person = (await pinfold.seed.person()).uid
  for (const group of groups) await pinfold.seed.binding(group, person, roleUids.viewer)
  return pinfold.as(person)
}

test('the response has all its fields, with and without items', async () => {
  for (const kind of kinds) {
    const found = await list('', pinfold.operator, kind)
    const none = await list(`uidp.ids=${'0'.repeat(40)}`, pinfold.operator, kind)
    for (const { body } of [found, none]) {
      const members = new Set([...Object.keys(body), 'nextPageToken'])
      assert.deepEqual(members, new Set([kind.plural, 'nextPageToken', 'totalCount', 'skipped']), kind.plural)
    }
    const total = (await nodesOf(pinfold, kind)).length
    assert.deepEqual([found.body.totalCount, found.body.skipped], [String(total), 0])
    assert.deepEqual([none.body[kind.plural], none.body.totalCount, none.body.nextPageToken || ''], [[], '0', ''])
  }
})

test('a page has 50 items by default, and at most 200', async () => {
  const sizes = { '': 50, 'page_size=0': 50, 'page_size=1': 1, 'page_size=49': 49, 'page_size=200': 200 }
  const clamped = { 'page_size=201': 200, 'page_size=2147483647': 200 }
  for (const [query, size] of Object.entries({ ...sizes, ...clamped })) {
    assert.equal(uidsOf((await list(query)).body).length, size, query)
  }
  for (const size of ['-1', '-2147483648', '2147483648', '1.5', 'x', '']) {
    assertInvalid(await list(`page_size=${size}`), 'page_size')
  }
})

test('pages contain each item exactly once in each order, with equal items ordered by uid', async () => {
  const scopes: Record<string, (uid: string) => boolean> = {
    '': () => true,
    [`uidp.descendants_of=${groupUids.a}`]: (uid) => uid.startsWith(`${groupUids.a}/`),
    [`uidp.children_of=${groupUids['a/one']}`]: (uid) => uid.slice(0, uid.lastIndexOf('/')) === groupUids['a/one'],
  }
  for (const kind of kinds) {
    const nodes = await nodesOf(pinfold, kind)
    for (const [scope, isIn] of Object.entries(scopes)) {
      const inScope = nodes.filter(({ uid }) => isIn(uid))
      for (const [order, column] of Object.entries(kind.orders)) {
        for (const direction of ['', ' asc', ' desc']) {
          const size = direction === '' ? 23 : 60
          const walked = await walk(pinfold.operator, kind, `${scope}&order_by=${order}${direction}&page_size=${size}`)
          const expected = sorted(inScope, column, direction === ' desc').map(({ uid }) => uid)
          assert.deepEqual(walked.uids, expected, `${kind.plural} ${scope} ${order}${direction}`)
          assert.deepEqual(new Set(walked.totals), new Set([String(inScope.length)]))
          assert.equal(walked.pages, Math.max(1, Math.ceil(inScope.length / size)))
        }
      }
    }
  }
})

test('a caller with access to several groups gets one merged order', async () => {
  const groups = [groupUids['a/one/deep']!, groupUids['a/two']!, groupUids.b!]
  const member = await memberOf(...groups)
  for (const kind of kinds) {
    const builtIn = (uid: string) => kind.table === 'roles' && !uid.includes('/')
    const itself = (uid: string) => kind.table === 'groups' && groups.includes(uid)
    const visible = (await nodesOf(pinfold, kind)).filter(
      ({ uid }) => builtIn(uid) || itself(uid) || groups.some((group) => uid.startsWith(`${group}/`)),
    )
    for (const [order, column] of Object.entries(kind.orders)) {
      for (const desc of [false, true]) {
        const expected = sorted(visible, column, desc).map(({ uid }) => uid)
        const query = `order_by=${order}${desc ? ' desc' : ''}`
        const walked = await walk(member, kind, `${query}&page_size=17`)
        assert.deepEqual(walked.uids, expected, `${kind.plural} ${query}`)
        assert.deepEqual(new Set(walked.totals), new Set([String(visible.length)]))
        const skipped = await list(`${query}&skip=40&page_size=15`, member, kind)
        assert.deepEqual(uidsOf(skipped.body, kind), expected.slice(40, 55), `${kind.plural} ${query} with skip`)
      }
    }
  }
})

test('items created or deleted between two pages neither hide nor repeat others', async () => {
  for (const query of ['', 'order_by=uid desc', 'order_by=name', 'order_by=name desc', 'order_by=createdAt desc']) {
    const root = (await pinfold.seed.group()).uid
    const folder = (await pinfold.seed.group(root)).uid
    const made: Json[] = await Promise.all(
      Array.from({ length: 60 }, (_, i) => pinfold.seed.repo(i % 2 ? root : folder, { name: `n${i}` })),
    )
    const gone = new Set<string>()
    let count = 0
    const disturb = async () => {
      const victim = made[(count * 17) % made.length]!
      if ((await pinfold.operator.delete(`${repoKind.path}/${victim.uid}`)).status === 200) gone.add(victim.uid)
      await pinfold.seed.repo(root, { name: `n${count++}-late` })
      await pinfold.seed.repo(folder, { name: `a${count}-late` })
    }
    const { uids } = await walk(pinfold.operator, repoKind, `uidp.descendants_of=${root}&${query}&page_size=7`, disturb)

    assert.equal(new Set(uids).size, uids.length, `${query} repeats a row`)
    assert.ok(gone.size > 3)
    const stayed = made.filter(({ uid }) => !gone.has(uid)).map(({ uid }) => uid as string)
    assert.deepEqual(new Set(stayed.filter((uid) => !uids.includes(uid))), new Set(), `${query} hides a row`)
    const [, field = 'uid', direction] = /^order_by=(\w+)(?: (\w+))?$/.exec(query) ?? []
    const column = field === 'createdAt' ? 'createTime' : field
    const inOrder = sorted(made as never, column, direction === 'desc').map(({ uid }) => uid)
    const kept = new Set(stayed)
    const seen = uids.filter((uid) => kept.has(uid))
    assert.deepEqual(
      seen,
      inOrder.filter((uid) => kept.has(uid)),
    )
  }
})

test('skip omits items at the start or after a page token, and is returned', async () => {
  for (const desc of [false, true]) {
    const order = `order_by=name${desc ? ' desc' : ''}`
    const all = await expectedRepos('name', desc)
    const alone = await list(`${order}&skip=30&page_size=10`)
    assert.deepEqual(uidsOf(alone.body), all.slice(30, 40))
    assert.deepEqual([alone.body.skipped, alone.body.totalCount], [30, String(all.length)])

    const token = alone.body.nextPageToken
    const next = await list(`${order}&page_size=10&page_token=${token}`)
    assert.deepEqual([uidsOf(next.body), next.body.skipped], [all.slice(40, 50), 0])
    const further = await list(`${order}&page_size=10&page_token=${token}&skip=5`)
    assert.deepEqual([uidsOf(further.body), further.body.skipped], [all.slice(45, 55), 5])
    assert.equal(further.body.totalCount, String(all.length))

    const beyond = await list(`${order}&skip=100000`)
    assert.deepEqual([uidsOf(beyond.body), beyond.body.skipped, beyond.body.nextPageToken || ''], [[], 100000, ''])
    assert.equal(beyond.body.totalCount, String(all.length))
  }
  for (const skip of ['-1', '2147483648', 'x']) assertInvalid(await list(`skip=${skip}`), 'skip')
})

test('the last page has no token, even when it is full', async () => {
  const total = (await nodesOf(pinfold, repoKind)).length
  const last = await list(`skip=${total - 20}&page_size=20`)
  assert.deepEqual([uidsOf(last.body).length, last.body.nextPageToken || ''], [20, ''])
  const almost = await list(`skip=${total - 21}&page_size=20`)
  assert.ok(almost.body.nextPageToken)
})

test('accepts a known field with an optional direction as the order', async () => {
  const columns = { uid: 'uid', name: 'name', created_at: 'create_time', create_time: 'create_time' }
  const synonyms = { ...columns, createTime: 'create_time', createdAt: 'create_time', updated_at: 'update_time' }
  for (const [name, column] of Object.entries({
    ...synonyms,
    update_time: 'update_time',
    updateTime: 'update_time',
    '': 'uid',
  })) {
    const expected = (await expectedRepos(column)).slice(0, 50)
    const spellings = [
      `order_by=${name}`,
      `orderBy=${name}`,
      ...(name && [`order_by=${name} asc`, `order_by=  ${name}  `]),
    ]
    for (const spelling of spellings) assert.deepEqual(uidsOf((await list(spelling)).body), expected, spelling)
  }
  const unknown = [
    'other',
    'description',
    'NAME',
    '-name',
    'name,uid',
    'constructor',
    '__proto__',
    'parent_uid',
    't.name',
  ]
  const malformed = ['name up', 'name DESC', 'name desc desc', 'desc', 'name;', 'name, desc']
  for (const order of [...unknown, ...malformed])
    assertInvalid(await list(`order_by=${encodeURIComponent(order)}`), 'order_by')
  assertInvalid(await list('order_by=name', pinfold.operator, kinds[3]), 'order_by')
  // The token would be valid without the spaces. The server refuses it without decoding it.
  const long = await list(`order_by=${encodeURIComponent('name'.padEnd(201))}`)
  assertInvalid(long, 'order_by')
  assert.match(long.text, /must be at most 200 characters long/)
})

test('a page token is valid only for its method, order, filters and caller', async () => {
  const query = `order_by=name&uidp.descendants_of=${groupUids.a}&page_size=5`
  const token = (await list(query)).body.nextPageToken
  const member = await memberOf(groupUids.a!)
  const others = [
    `order_by=name desc&uidp.descendants_of=${groupUids.a}`,
    `uidp.descendants_of=${groupUids.a}`,
    `order_by=created_at&uidp.descendants_of=${groupUids.a}`,
    'order_by=name',
    `order_by=name&uidp.descendants_of=${groupUids['a/one']}`,
    `order_by=name&uidp.children_of=${groupUids.a}`,
    `order_by=name&uidp.descendants_of=${groupUids.a}&name=node1`,
  ]
  for (const other of others) assertInvalid(await list(`${other}&page_token=${token}`), 'page_token')
  assertInvalid(await list(`${query}&page_token=${token}`, member), 'page_token')
  assertInvalid(await list(`${query}&page_token=${token}`, pinfold.operator, kinds[0]), 'page_token')

  const same = `orderBy=name asc&uidp.descendantsOf=${groupUids.a}&pageSize=9`
  assert.equal(uidsOf((await list(`${same}&pageToken=${token}`)).body).length, 9)
})

test('a token that is too short is INVALID_ARGUMENT, whatever its length', async () => {
  for (let bytes = 1; bytes < 40; bytes++) {
    assertInvalid(await list(`page_token=${Buffer.alloc(bytes, 7).toString('base64url')}`), 'page_token')
  }
})

test('refuses a changed page token', async () => {
  const token: string = (await list('page_size=5')).body.nextPageToken
  for (let at = 0; at < token.length - 1; at += 7) {
    const swapped = token[at] === 'A' ? 'B' : 'A'
    assertInvalid(await list(`page_token=${token.slice(0, at)}${swapped}${token.slice(at + 1)}`), 'page_token')
  }
  const garbage = [
    'x',
    '0',
    'e30',
    token.slice(1),
    token.slice(0, -4),
    `${token}AAAA`,
    `${token}=`,
    `${token}.`,
    '%00',
    '💥',
  ]
  for (const text of [...garbage, 'A'.repeat(5000)]) assertInvalid(await list(`page_token=${text}`), 'page_token')
  await using another = await startPinfold()
  const group = (await another.seed.group()).uid
  for (let i = 0; i < 2; i++) await another.seed.repo(group)
  const foreign = (await list('page_size=1', another.operator)).body.nextPageToken
  assertInvalid(await list(`page_token=${foreign}`), 'page_token')
})

test('a page token older than three days starts again at the first page', async () => {
  let now = Date.parse('2026-03-01T12:00:00.000Z')
  await using aging = await startPinfold({ clock: () => new Date(now) })
  const group = (await aging.seed.group()).uid
  for (let i = 0; i < 9; i++) await aging.seed.repo(group, { name: `repo${i}` })
  const namesOf = ({ body }: Awaited<ReturnType<typeof list>>) => (body.repos as Json[]).map(({ name }) => name)

  const first = await list('page_size=3&order_by=name', aging.operator)
  const next = `page_size=3&order_by=name&page_token=${first.body.nextPageToken}`
  now += 3 * day
  const afterThreeDays = await aging.as(operatorUid)
  assert.deepEqual(namesOf(await list(next, afterThreeDays)), ['repo3', 'repo4', 'repo5'])
  now += 1
  assert.deepEqual(namesOf(await list(next, afterThreeDays)), ['repo0', 'repo1', 'repo2'])
  const skipped = await list(`${next}&skip=1`, afterThreeDays)
  assert.deepEqual([namesOf(skipped), skipped.body.skipped], [['repo1', 'repo2', 'repo3'], 1])
  assertInvalid(await list(`page_token=${first.body.nextPageToken.slice(1)}`, afterThreeDays), 'page_token')
})

test('accepts parameters in snake case and camel case, but refuses the same parameter in both', async () => {
  const { body } = await list('page_size=3&order_by=name')
  const camel = await list('pageSize=3&orderBy=name')
  assert.deepEqual(uidsOf(camel.body), uidsOf(body))
  const second = await list(`pageSize=3&orderBy=name&pageToken=${camel.body.nextPageToken}`)
  assert.deepEqual(uidsOf(second.body), (await expectedRepos('name')).slice(3, 6))
  const total = async (query: string) => (await list(query)).body.totalCount
  assert.equal(await total(`uidp.childrenOf=${groupUids.b}`), await total(`uidp.children_of=${groupUids.b}`))
  assert.equal(await total('uidp.inRoot=true'), await total('uidp.in_root=true'))
  assertInvalid(await list('page_size=3&pageSize=3'), 'page_size')
  assertInvalid(await list('page_sizes=3'), 'page_sizes')
  assertInvalid(await list('uidp.other=3'), 'uidp.other')
})
