// Scope of lists: the uidp filter, the filters of each list, and the rights of the caller.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { operatorUid } from '#issuer/access-token.ts'
import { refusalOf } from '../support/answers.ts'
import { assertDenied, assertInvalid, assertNotFound } from '../support/expect.ts'
import { type Answer, type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { type Kind, kinds, type Node, nodesOf, plantTree, sorted } from '../support/tree.ts'

const [groups, identities, roles, bindings, repos] = kinds as [Kind, Kind, Kind, Kind, Kind]
const missing = '0123456789abcdef'

let pinfold: Pinfold
let groupUids: Record<string, string>
let nodes: Map<Kind, Node[]>

/** A client, and the groups in which it can list a kind of resource. An empty text means all groups. */
type Viewer = { name: string; client: Client; sees: (kind: Kind) => string[] }
let viewers: Viewer[]

before(async () => {
  pinfold = await startPinfold()
  groupUids = await plantTree(pinfold, { repos: 6, others: 4 })
  const { a, b } = groupUids as { a: string; b: string }
  const [one, two, deep] = [groupUids['a/one']!, groupUids['a/two']!, groupUids['a/one/deep']!]
  const person = async (name: string, bound: [group: string, role: string][], sees: Viewer['sees']) => {
    const { uid } = await pinfold.seed.person()
    for (const [group, role] of bound) await pinfold.seed.binding(group, uid, role)
    return { name, client: await pinfold.as(uid), sees }
  }
  const { viewer } = roleUids
  const reposOnly = (await pinfold.seed.role(a, ['repo.list'])).uid
  viewers = [
    { name: 'the operator', client: pinfold.operator, sees: () => [''] },
    await person('a viewer of an organization', [[a, viewer]], () => [a]),
    await person(
      'a viewer of disjoint groups',
      [
        [deep, viewer],
        [two, viewer],
        [b, viewer],
      ],
      () => [deep, two, b],
    ),
    await person(
      'a viewer of nested groups',
      [
        [one, viewer],
        [deep, viewer],
      ],
      () => [one],
    ),
    await person('one who lists repos only', [[one, reposOnly]], (kind) => (kind === repos ? [one] : [])),
    await person('nobody', [], () => []),
  ]
  nodes = new Map()
  for (const kind of kinds) nodes.set(kind, await nodesOf(pinfold, kind))
})
after(() => pinfold[Symbol.asyncDispose]())

const parentOf = (uid: string) => (uid.includes('/') ? uid.slice(0, uid.lastIndexOf('/')) : '')
const isBelow = (uid: string, scope: string) => scope === '' || uid.startsWith(`${scope}/`)
const isAtOrBelow = (uid: string, scope: string) => uid === scope || isBelow(uid, scope)
const list = (kind: Kind, query: string, client = pinfold.operator) => client.get(`${kind.path}?page_size=200&${query}`)
const uidsIn = (kind: Kind, { body }: Answer) => (body[kind.plural] as Json[]).map(({ uid }) => uid as string)

function isVisible(kind: Kind, uid: string, viewer: Viewer): boolean {
  const seen = viewer.sees(kind)
  if (kind === roles && parentOf(uid) === '') return seen.length > 0
  return seen.some((scope) => isBelow(uid, scope) || (kind === groups && uid === scope))
}

function assertLists(kind: Kind, answer: Answer, expected: readonly Node[], what: string): void {
  assert.equal(answer.status, 200, `${what}: ${answer.text}`)
  const uids = sorted(expected, 'uid').map(({ uid }) => uid)
  assert.deepEqual([uidsIn(kind, answer), answer.body.totalCount], [uids, String(uids.length)], what)
}

type Filter = { ancestors_of: string; descendants_of: string; children_of: string; in_root: boolean; ids: string[] }

function matches(uid: string, filter: Filter): boolean {
  const { ancestors_of, descendants_of, children_of, in_root, ids } = filter
  return (
    (ancestors_of === '' || isBelow(ancestors_of, uid)) &&
    (descendants_of === '' || isBelow(uid, descendants_of)) &&
    (children_of === '' || parentOf(uid) === children_of) &&
    (!in_root || parentOf(uid) === '') &&
    (ids.length === 0 || ids.includes(uid))
  )
}

function queryOf(filter: Filter): string {
  const members = Object.entries(filter).flatMap(([member, value]) => {
    if (member === 'ids') return filter.ids.map((uid) => `uidp.ids=${uid}`)
    return value === '' || value === false ? [] : [`uidp.${member}=${value}`]
  })
  return members.join('&')
}

/** Each combination of a few values for each filter field, including resources that the caller cannot see. */
function combinations(kind: Kind): Filter[] {
  const all = nodes.get(kind)!.map(({ uid }) => uid)
  const some = all.filter((_, i) => i % 3 === 0)
  const [a, one, deep, two] = [groupUids.a!, groupUids['a/one']!, groupUids['a/one/deep']!, groupUids['a/two']!]
  const found: Filter[] = []
  for (const ancestors_of of ['', deep])
    for (const descendants_of of ['', a, one])
      for (const children_of of ['', one, two])
        for (const in_root of [false, true])
          for (const ids of [[], [...some, `${a}/${missing}`, 'e'.repeat(40), a]])
            found.push({ ancestors_of, descendants_of, children_of, in_root, ids })
  return found
}

const names = ['every right', 'an organization', 'disjoint groups', 'nested groups', 'nothing but repos', 'no rights']
for (const [index, name] of names.entries()) {
  test(`combines all filters with AND for a caller with ${name}`, async () => {
    const viewer = viewers[index]!
    for (const kind of kinds) {
      const visible = nodes.get(kind)!.filter(({ uid }) => isVisible(kind, uid, viewer))
      for (const filter of combinations(kind)) {
        const what = `${viewer.name}: ${kind.plural}?${queryOf(filter)}`
        const answer = await list(kind, queryOf(filter), viewer.client)
        const named = [filter.ancestors_of, filter.descendants_of, filter.children_of].filter((uid) => uid !== '')
        if (named.every((uid) => viewer.sees(kind).some((scope) => isAtOrBelow(uid, scope) || scope === ''))) {
          const expected = visible.filter(({ uid }) => matches(uid, filter))
          assertLists(kind, answer, expected, what)
        } else assert.equal(refusalOf(answer).code, 7, what)
      }
    }
  })
}

test('refuses a filter by position without a value over REST, except in version 1', async () => {
  const [viewer] = viewers
  for (const kind of kinds) {
    for (const member of ['ancestors_of', 'descendants_of', 'children_of', 'ids', 'childrenOf']) {
      for (const value of ['', '=', ...(member === 'ids' ? ['=,'] : [])]) {
        const field = member.replace('sO', 's_o').replace('nO', 'n_o')
        assertInvalid(await list(kind, `uidp.${member}${value}`, viewer!.client), `uidp.${field}`)
      }
    }
  }
  const older = await viewer!.client.get('/iam/v1/groups?uidp.childrenOf=&uidp.ids=')
  assert.equal(older.body.items.length, nodes.get(groups)!.length)
})

test('without access a group is denied; with access a missing group is NOT_FOUND, and invisible resources are omitted', async () => {
  const member = viewers[1]!.client
  for (const kind of kinds) {
    for (const filter of ['ancestors_of', 'descendants_of', 'children_of']) {
      const by = (uid: string) => list(kind, `uidp.${filter}=${uid}`, member)
      for (const uid of [
        'x',
        '/',
        `${groupUids.a}/`,
        `${groupUids.a}/x`,
        groupUids.a!.toUpperCase(),
        `${groupUids.a},${groupUids.b}`,
      ]) {
        assertInvalid(await by(uid), `uidp.${filter}`)
      }
      for (const uid of [groupUids.b!, `${groupUids.b}/${missing}`, 'f'.repeat(40)]) assertDenied(await by(uid))
      assertNotFound(await by(`${groupUids.a}/${missing}`), 'iam.pinfold.dev/Group', `${groupUids.a}/${missing}`)
      assert.equal((await by(groupUids.a!)).status, 200)
    }
    const elsewhere = nodes.get(kind)!.find(({ uid }) => isBelow(uid, groupUids.b!))!
    assertLists(kind, await list(kind, `uidp.ids=${elsewhere.uid}`, member), [], kind.plural)
    assertLists(kind, await list(kind, `uidp.ids=${elsewhere.uid}`), [elsewhere], kind.plural)
    assertInvalid(await list(kind, `uidp.ids=${elsewhere.uid}&uidp.ids=x`, member), 'uidp.ids')
  }
})

test('returns NOT_FOUND for descendants of a repository or an identity, and lists their ancestors', async () => {
  const chain = [groupUids.a!, groupUids['a/one']!, groupUids['a/one/deep']!]
  const expected = nodes.get(groups)!.filter(({ uid }) => chain.includes(uid))
  for (const kind of [repos, identities, roles, bindings]) {
    const { uid } = nodes.get(kind)!.find((node) => parentOf(node.uid) === chain[2])!
    assertLists(groups, await list(groups, `uidp.ancestors_of=${uid}`), expected, kind.plural)
    assertNotFound(await list(repos, `uidp.children_of=${uid}`), 'iam.pinfold.dev/Group', uid)
    assertNotFound(await list(repos, `uidp.descendants_of=${uid}`), 'iam.pinfold.dev/Group', uid)
  }
})

test('a group is not in its own descendants, but is listed for members with permission', async () => {
  const one = groupUids['a/one']!
  const nested = viewers[3]!.client
  assert.ok(!uidsIn(groups, await list(groups, `uidp.descendants_of=${one}`, nested)).includes(one))
  assert.ok(uidsIn(groups, await list(groups, '', nested)).includes(one))
  assert.deepEqual(uidsIn(groups, await list(groups, `uidp.ancestors_of=${one}`, nested)), [])
  assert.deepEqual(uidsIn(groups, await list(groups, `uidp.ancestors_of=${groupUids['a/one/deep']}`, nested)), [one])
})

test('only organizations and built-in roles have no parent', async () => {
  const rootsOf = (kind: Kind, answer: Answer) => uidsIn(kind, answer).filter((uid) => uid.includes('/'))
  for (const { client } of viewers) {
    for (const kind of kinds) assert.deepEqual(rootsOf(kind, await list(kind, 'uidp.in_root=true', client)), [])
  }
  const everything = await list(groups, 'uidp.in_root=true')
  assert.deepEqual(new Set(uidsIn(groups, everything)), new Set([groupUids.a, groupUids.b]))
  assert.deepEqual(uidsIn(groups, await list(groups, 'uidp.in_root=true', viewers[2]!.client)), [groupUids.b])
  const builtIn = nodes.get(roles)!.filter(({ uid }) => !uid.includes('/'))
  assert.ok(builtIn.length > 10)
  for (const viewer of viewers) {
    const expected = viewer.sees(roles).length > 0 ? builtIn : []
    assertLists(roles, await list(roles, 'uidp.in_root=true', viewer.client), expected, viewer.name)
  }
  assertInvalid(await list(roles, 'uidp.in_root=yes'), 'uidp.in_root')
})

test('accepts uids repeated or separated by commas, and counts each once', async () => {
  const [first, second] = nodes.get(repos)! as [Node, Node]
  for (const query of [
    `uidp.ids=${first.uid}&uidp.ids=${second.uid}`,
    `uidp.ids=${first.uid},${second.uid},${first.uid}`,
    `uidp.ids=${second.uid}%2C${first.uid}&uidp.ids=${first.uid}`,
  ]) {
    assertLists(repos, await list(repos, query), [first, second], query)
  }
  const many = Array.from({ length: 150 }, () => `${groupUids.a}/${randomBytes(8).toString('hex')}`)
  assertLists(repos, await list(repos, `uidp.ids=${[...many, first.uid].join(',')}`), [first], 'many')
})

test('a name filter is exact, and combines with other filters by AND', async () => {
  for (const kind of [groups, identities, roles, repos]) {
    const name = nodes.get(kind)!.find(({ uid }) => parentOf(uid) === groupUids.a!)!.name!
    for (const viewer of viewers) {
      const visible = nodes.get(kind)!.filter(({ uid }) => isVisible(kind, uid, viewer))
      const expected = visible.filter((node) => node.name === name)
      assertLists(kind, await list(kind, `name=${name}`, viewer.client), expected, `${viewer.name} ${kind.plural}`)
    }
    const below = nodes.get(kind)!.filter((node) => node.name === name && isBelow(node.uid, groupUids['a/one']!))
    assertLists(kind, await list(kind, `name=${name}&uidp.descendants_of=${groupUids['a/one']}`), below, kind.plural)
    for (const other of [name.toUpperCase(), name.slice(0, -1), `${name}0`, '%25', '_', '*']) {
      assertLists(kind, await list(kind, `name=${other}`), [], `${kind.plural} ${other}`)
    }
  }
})

test('ignores an empty name filter', async () => {
  for (const kind of [repos, groups, identities, roles]) {
    assertLists(kind, await list(kind, 'name='), nodes.get(kind)!, kind.plural)
  }
})

test('filtered lists support each order', async () => {
  const viewer = viewers[2]!
  for (const [kind, query, column, value] of [
    [repos, 'name=node1', 'name', 'node1'],
    [identities, 'name=node1', 'name', 'node1'],
    [bindings, `role=${roleUids.viewer}`, 'role_uid', roleUids.viewer],
  ] as const) {
    const found = nodes.get(kind)!.filter((node) => node[column] === value && isVisible(kind, node.uid, viewer))
    assert.ok(found.length >= 3, kind.plural)
    for (const [order, by] of Object.entries(kind.orders)) {
      for (const desc of [false, true]) {
        const direction = desc ? ' desc' : ''
        const answer = await list(kind, `${query}&order_by=${order}${direction}`, viewer.client)
        const expected = sorted(found, by, desc).map(({ uid }) => uid)
        assert.deepEqual(uidsIn(kind, answer), expected, `${kind.plural} ${order}${direction}`)
      }
    }
  }
})

test('filters identities by the kind of their relationship', async () => {
  const aws = { awsAccount: '123456789012', arn: 'arn:aws:iam::123456789012:role/x' }
  const made = await pinfold.operator.post(`${identities.path}/${groupUids['b/one']}`, {
    name: 'aws',
    awsIdentity: aws,
  })
  assert.equal(made.status, 200, made.text)
  const total = async (type: string) =>
    Number(
      (await list(identities, `relationship_type=${type.length > 1 ? 'RELATIONSHIP_TYPE_' : ''}${type}`)).body
        .totalCount,
    )
  assert.deepEqual(uidsIn(identities, await list(identities, 'relationshipType=RELATIONSHIP_TYPE_AWS_IDENTITY')), [
    made.body.uid,
  ])
  const everything = nodes.get(identities)!.length
  assert.equal(await total('CLAIM_MATCH'), everything)
  assert.equal(await total('3'), 1)
  assert.equal(await total('SERVICE_PRINCIPAL'), 0)
  assertInvalid(await list(identities, 'relationship_type=OTHER'), 'relationship_type')
  await pinfold.operator.delete(`${identities.path}/${made.body.uid}`)
})

test('filters role bindings by identity, group and role', async () => {
  const all = nodes.get(bindings)!
  const one = all.find(({ uid }) => parentOf(uid) === groupUids['a/one'])!
  const columns = { identity: 'identity_uid', group: 'parent_uid', role: 'role_uid' }
  const members = Object.entries(columns)
  for (let chosen = 1; chosen < 8; chosen++) {
    const used = members.filter((_, i) => chosen & (1 << i))
    const expected = all.filter((node) => used.every(([, column]) => node[column] === one[column]))
    const query = used.map(([name, column]) => `${name}=${one[column]}`).join('&')
    assert.ok(expected.length > 0)
    assertLists(bindings, await list(bindings, query), expected, query)
  }
  for (const name of Object.keys(columns)) assertInvalid(await list(bindings, `${name}=x`), name)
  assertLists(bindings, await list(bindings, `group=${groupUids.b}`, viewers[1]!.client), [], 'a group elsewhere')
})

test('a token narrowed to a group lists only resources of this group', async () => {
  const narrowed = await pinfold.as(operatorUid, { cap: { [groupUids['a/two']!]: [1605] } })
  const expected = nodes.get(repos)!.filter(({ uid }) => isBelow(uid, groupUids['a/two']!))
  assertLists(repos, await list(repos, '', narrowed), expected, 'narrowed')
  assertLists(groups, await list(groups, '', narrowed), [], 'narrowed groups')
  assertDenied(await list(repos, `uidp.children_of=${groupUids.a}`, narrowed))
})

test('refuses to list without a credential', async () => {
  for (const kind of kinds) assert.equal(refusalOf(await list(kind, '', pinfold.anonymous)).code, 16)
})
