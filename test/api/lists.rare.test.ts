// Lists of resources that exist in only a few groups, or below a resource other than a group. They keep the same rules as all
// lists.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { checkLists } from '../support/check-lists.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { type Kind, type Node, nodesOf, rareKinds, sorted, walk } from '../support/tree.ts'

const byGroup = new Map(rareKinds.map((kind) => [kind.plural, kind]))
const associations = byGroup.get('accountAssociations')!

let pinfold: Pinfold
let issuer: FakeIssuer
let groupUids: Record<string, string>
/** The clock moves in steps, so several resources have the same time and orders by time have ties. */
let ticks = 0
const clock = () => new Date(Date.parse('2026-03-01T12:00:00.000Z') + 1000 * Math.floor(ticks++ / 20))

before(async () => {
  issuer = await startIssuer()
  pinfold = await startPinfold({ allowInsecureIssuers: true, allowPrivateAddresses: true, clock })
  const { seed, operator } = pinfold
  groupUids = {}
  for (const path of ['a', 'b', 'a/one', 'a/two', 'a/one/deep']) {
    const above = path.includes('/') ? groupUids[path.slice(0, path.lastIndexOf('/'))]! : ''
    const group = (await seed.group(above)).uid as string
    groupUids[path] = group
    await seed.association(group, { name: `name ${path.length % 3}` })
    for (let i = 0; i < 4; i++) await seed.invite(group, roleUids.viewer)
    if (above !== '') continue
    for (let i = 0; i < 5; i++) {
      const provider = await seed.provider(group, issuer.url, { name: `name ${i}` })
      for (let j = 0; j < 3; j++) await seed.mapping(provider.uid, roleUids.viewer)
    }
  }
  for (const path of ['a', 'a/two'])
    await operator.patch(`${associations.path}/${groupUids[path]}`, { description: 'later' })
})
after(async () => {
  await pinfold[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const parentOf = (uid: string) => uid.slice(0, Math.max(uid.lastIndexOf('/'), 0))
const isBelow = (uid: string, scope: string) => uid.startsWith(`${scope}/`)
const uidsOf = (nodes: readonly Node[], column = 'uid', desc = false) =>
  sorted(nodes, column, desc).map(({ uid }) => uid)

async function memberOf(...groups: string[]): Promise<Client> {
  const person = (await pinfold.seed.person()).uid
  for (const group of groups) await pinfold.seed.binding(group, person, roleUids.viewer)
  return pinfold.as(person)
}

/** True if a member of the groups sees the resource: the resource is below a group, or is the account association of a group. */
const isSeen = (kind: Kind, uid: string, groups: readonly string[]) =>
  groups.some((group) => isBelow(uid, group) || (kind === associations && uid === group))

test('pages contain each item exactly once in each order, for all resources and for one scope', async () => {
  const { a, b } = groupUids as { a: string; b: string }
  for (const kind of rareKinds) {
    const nodes = await nodesOf(pinfold, kind)
    assert.ok(nodes.length >= 5, kind.plural)
    for (const [scope, isIn] of [
      ['', () => true],
      [`uidp.descendants_of=${a}`, (uid: string) => isBelow(uid, a)],
      [`uidp.children_of=${b}`, (uid: string) => parentOf(uid) === b],
    ] as const) {
      const inScope = nodes.filter(({ uid }) => isIn(uid))
      for (const [order, column] of Object.entries(kind.orders)) {
        for (const desc of [false, true]) {
          const query = `${scope}&order_by=${order}${desc ? ' desc' : ''}&page_size=4`
          const walked = await walk(pinfold.operator, kind, query)
          assert.deepEqual(walked.uids, uidsOf(inScope, column, desc), `${kind.plural} ${query}`)
          assert.deepEqual(new Set(walked.totals), new Set([String(inScope.length)]))
        }
      }
    }
  }
})

test('merges resources of all groups of the caller into one order', async () => {
  const groups = [groupUids['a/one']!, groupUids['a/two']!, groupUids.b!]
  const member = await memberOf(...groups)
  for (const kind of rareKinds) {
    const visible = (await nodesOf(pinfold, kind)).filter(({ uid }) => isSeen(kind, uid, groups))
    for (const [order, column] of Object.entries(kind.orders)) {
      const walked = await walk(member, kind, `order_by=${order} desc&page_size=3`)
      assert.deepEqual(walked.uids, uidsOf(visible, column, true), `${kind.plural} ${order}`)
      assert.deepEqual(new Set(walked.totals), new Set([String(visible.length)]))
    }
    for (const { uid } of await nodesOf(pinfold, kind)) {
      const listed = ok(await member.get(`${kind.path}?uidp.ids=${uid}`))[kind.plural] as Json[]
      assert.equal(listed.length, isSeen(kind, uid, groups) ? 1 : 0, `${kind.plural} ${uid}`)
    }
    assertDenied(await member.get(`${kind.path}?uidp.children_of=${groupUids.a}`))
    assertDenied(await member.get(`${kind.path}?uidp.descendants_of=${groupUids.a}/${'0'.repeat(16)}`))
    const missing = `${groupUids.b}/${'0'.repeat(16)}`
    assertNotFound(await member.get(`${kind.path}?uidp.descendants_of=${missing}`), 'iam.pinfold.dev/Group', missing)
    assertInvalid(await member.get(`${kind.path}?uidp.descendants_of=x`), 'uidp.descendants_of')
  }
})

test('refuses a page token of another list, order or filter', async () => {
  for (const kind of rareKinds) {
    const { nextPageToken } = ok(await pinfold.operator.get(`${kind.path}?page_size=2`))
    const follow = (query: string) => pinfold.operator.get(`${kind.path}?page_token=${nextPageToken}&${query}`)
    ok(await follow('page_size=2'))
    assertInvalid(await follow('order_by=created_at asc'), 'page_token')
    assertInvalid(await follow(`uidp.descendants_of=${groupUids.a}`), 'page_token')
    assertInvalid(await pinfold.operator.get(`${kind.path}?page_size=-1`), 'page_size')
    const skipped = ok(await pinfold.operator.get(`${kind.path}?skip=3&order_by=uid`))
    assert.deepEqual(
      (skipped[kind.plural] as Json[]).map(({ uid }) => uid),
      uidsOf(await nodesOf(pinfold, kind)).slice(3, 53),
    )
  }
})

test('accepts the uid of each resource as the scope ancestors_of', async () => {
  for (const kind of rareKinds.filter((one) => one !== associations)) {
    const { uid } = (await nodesOf(pinfold, kind)).find((node) => isBelow(node.uid, groupUids.b!))!
    const { groups } = ok(await pinfold.operator.get(`/iam/v2/groups?uidp.ancestors_of=${uid}`))
    assert.deepEqual(
      (groups as Json[]).map((group) => group.uid),
      [groupUids.b],
      kind.plural,
    )
  }
  await checkLists(pinfold)
})
