// Every filter of the list of tags against a naive reading of the tables.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from '#db/sql.ts'
import { assertDenied, assertInvalid, assertNotFound, ok } from '../support/expect.ts'
import { type Client, type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { plantManifest, plantTag } from '../support/tags.ts'
import { sorted, walk } from '../support/tree.ts'

const tagKind = { plural: 'tags', path: '/registry/v2/tags', table: 'tags', orders: {} }
const columns: Record<string, string> = {
  uid: 'uid',
  name: 'name',
  digest: 'digest',
  created_at: 'create_time',
  create_time: 'create_time',
  updateTime: 'update_time',
}
/** Names with the flags that they need, written by hand as behavior 8.4 describes. */
const names: Record<string, string> = {
  latest: '',
  'latest-dev': '',
  '1.0': '',
  '1.0-20': '',
  '1.0-2026010': '',
  '1.0-202601011': '',
  '20260101': '',
  '1.0-19990101': '',
  '1.0-r': '',
  '1.0-r1a': '',
  sha256: '',
  'a-sha256-b': '',
  '1.0-20260101': 'dates',
  '1.0-2026010112': 'dates',
  '1.0-202601011230': 'dates',
  '1.0-20260101123059': 'dates',
  '1.0-r0': 'epochs',
  '1.0-r12': 'epochs',
  'sha256-0123.sig': 'referrers',
  'sha256-0123-r4': 'referrers epochs',
  'sha256-0123-20260101': 'referrers dates',
}
const flags = ['referrers', 'dates', 'epochs']

type Row = Record<string, string> & { uid: string; name: string }

let pinfold: Pinfold
let operator: Client
/** Two repos in one folder, one directly in the organization, one elsewhere. */
let repos: string[]
let organization: string
let folder: string
let rows: Row[]
let ticks = 0

before(async () => {
  const clock = () => new Date(Date.parse('2026-05-01T10:00:00.000Z') + 1000 * Math.floor(ticks++ / 60))
  pinfold = await startPinfold({ clock })
  operator = pinfold.operator
  organization = (await pinfold.seed.group()).uid
  folder = (await pinfold.seed.group(organization)).uid
  const elsewhere = (await pinfold.seed.group()).uid
  repos = await Promise.all(
    [folder, folder, organization, elsewhere].map(async (scope) => (await pinfold.seed.repo(scope)).uid),
  )
  for (const repo of repos) {
    await Promise.all(Object.keys(names).map((name, i) => plantTag(pinfold, repo, name, `image ${i % 5}`)))
  }
  const late = await plantManifest(pinfold, repos[0]!, 'late')
  for (const name of ['latest', '1.0-r0', '1.0-20260101'])
    ok(await operator.post(`${tagKind.path}/${repos[0]}`, { name, digest: late }))
  rows = await pinfold.app.db.all<Row>(sql`SELECT * FROM tags`)
})
after(() => pinfold[Symbol.asyncDispose]())

const list = (query: string, client = operator) => client.get(`${tagKind.path}?${query}`)
const show = (asked: readonly string[]) => asked.map((flag) => `include_${flag}=true`).join('&')
const everything = show(flags)
const isShown = (name: string, asked: readonly string[]) =>
  names[name]!.split(' ').every((flag) => flag === '' || asked.includes(flag))
const uidsOf = (found: readonly { uid: string }[]) => found.map(({ uid }) => uid)

test('each combination of flags lists and counts exactly the selected kinds of tags', async () => {
  for (let bits = 0; bits < 8; bits++) {
    const asked = flags.filter((_, i) => bits & (1 << i))
    const expected = rows.filter(({ name }) => isShown(name, asked))
    const walked = await walk(operator, tagKind, `${show(asked)}&page_size=7`)
    assert.deepEqual(walked.uids, uidsOf(sorted(expected, 'uid')), show(asked))
    assert.deepEqual(new Set(walked.totals), new Set([String(expected.length)]))
  }
})

test('supports each order, in each scope, with and without hidden tags', async () => {
  const scopes: Record<string, (uid: string) => boolean> = {
    '': () => true,
    [`uidp.descendants_of=${organization}`]: (uid) => uid.startsWith(`${organization}/`),
    [`uidp.descendants_of=${folder}`]: (uid) => uid.startsWith(`${folder}/`),
    [`uidp.descendants_of=${repos[0]}`]: (uid) => uid.startsWith(`${repos[0]}/`),
    [`uidp.children_of=${repos[0]}`]: (uid) => uid.startsWith(`${repos[0]}/`),
    [`uidp.children_of=${repos[0]}&uidp.descendants_of=${folder}`]: (uid) => uid.startsWith(`${repos[0]}/`),
    [`uidp.children_of=${folder}`]: () => false,
    'uidp.in_root=true': () => false,
    [`uidp.ancestors_of=${repos[0]}`]: () => false,
  }
  for (const [scope, isIn] of Object.entries(scopes)) {
    for (const asked of [[], ['epochs'], flags]) {
      const inScope = rows.filter(({ uid, name }) => isIn(uid) && isShown(name, asked))
      for (const [order, column] of Object.entries(columns)) {
        for (const desc of [false, true]) {
          const query = `${scope}&${show(asked)}&order_by=${order}${desc ? ' desc' : ''}`
          const walked = await walk(operator, tagKind, `${query}&page_size=11`)
          assert.deepEqual(walked.uids, uidsOf(sorted(inScope, column, desc)), query)
          assert.deepEqual(new Set(walked.totals), new Set([String(inScope.length)]), query)
          const skipped = ok(await list(`${query}&skip=9&page_size=5`))
          assert.deepEqual(uidsOf(skipped.tags), uidsOf(sorted(inScope, column, desc)).slice(9, 14), query)
        }
      }
    }
  }
})

test('name and digest filters are exact, also together, and hidden tags still need their flag', async () => {
  const { digest } = rows.find(({ name }) => name === 'latest-dev')!
  const filters: Record<string, (row: Row) => boolean> = {
    'name=latest': ({ name }) => name === 'latest',
    'name=LATEST': () => false,
    'name=1.0-r0': ({ name }) => name === '1.0-r0',
    'name=sha256-0123-r4': ({ name }) => name === 'sha256-0123-r4',
    'name=%21': () => false,
    [`digest=${digest}`]: (row) => row.digest === digest,
    [`digest=${digest}&name=latest-dev`]: (row) => row.digest === digest && row.name === 'latest-dev',
    [`digest=${digest}&uidp.descendants_of=${repos[1]}`]: (row) =>
      row.digest === digest && row.uid.startsWith(repos[1]!),
    [`name=latest&uidp.children_of=${repos[2]}`]: (row) => row.name === 'latest' && row.uid.startsWith(repos[2]!),
  }
  for (const [filter, matches] of Object.entries(filters)) {
    for (const asked of [[], ['referrers'], ['referrers', 'epochs'], flags]) {
      const expected = sorted(
        rows.filter((row) => matches(row) && isShown(row.name, asked)),
        'uid',
      )
      const walked = await walk(operator, tagKind, `${filter}&${show(asked)}&page_size=2`)
      assert.deepEqual(walked.uids, uidsOf(expected), `${filter} ${show(asked)}`)
      assert.deepEqual(new Set(walked.totals), new Set([String(expected.length)]))
    }
  }
  for (const wrong of ['x', 'sha256:', digest!.slice(7), digest!.toUpperCase()]) {
    assertInvalid(await list(`digest=${wrong}`), 'digest')
  }
})

test('updated_since means strictly later, in each order and with the other filters', async () => {
  const times = [...new Set(rows.map((row) => row.update_time!))].sort()
  const middle = times[Math.floor(times.length / 2)]!
  const sameInstant = `${middle.slice(0, 11)}${String(Number(middle.slice(11, 13)) + 2).padStart(2, '0')}${middle.slice(13, -1)}%2B02:00`
  for (const since of ['2001-01-01T00:00:00Z', times[0]!, middle, sameInstant, times.at(-1)!, '2100-01-01T00:00:00Z']) {
    const iso = since === sameInstant ? middle : new Date(since).toISOString()
    for (const [more, matches] of Object.entries<(row: Row) => boolean>({
      '': () => true,
      [`uidp.descendants_of=${folder}`]: ({ uid }) => uid.startsWith(`${folder}/`),
      'name=latest': ({ name }) => name === 'latest',
    })) {
      const later = rows.filter((row) => row.update_time! > iso && matches(row))
      for (const [order, column] of Object.entries(columns)) {
        for (const desc of [false, true]) {
          const query = `updated_since=${since}&${more}&${everything}&order_by=${order}${desc ? ' desc' : ''}&page_size=13`
          const walked = await walk(operator, tagKind, query)
          assert.deepEqual(walked.uids, uidsOf(sorted(later, column, desc)), query)
          assert.deepEqual(new Set(walked.totals), new Set([String(later.length)]), query)
        }
      }
    }
  }
  assertInvalid(await list('updated_since=yesterday'), 'updated_since')
})

test('uid filters are exact, and hidden tags still need their flags', async () => {
  const some = rows.filter((_, i) => i % 4 === 0)
  const query = some.map(({ uid }) => `uidp.ids=${uid}`).join('&')
  for (const asked of [[], ['dates'], flags]) {
    const expected = sorted(
      some.filter(({ name }) => isShown(name, asked)),
      'name',
      true,
    )
    const walked = await walk(operator, tagKind, `${query}&${show(asked)}&order_by=name desc&page_size=6`)
    assert.deepEqual(walked.uids, uidsOf(expected))
    assert.deepEqual(new Set(walked.totals), new Set([String(expected.length)]))
  }
})

test('lists the tags of all groups where the caller holds tag.list, merged and counted', async () => {
  const member = await pinfold.seed.member(folder, roleUids.viewer)
  const viewer = await pinfold.as(member.uid)
  for (const asked of [[], flags]) {
    const visible = rows.filter(({ uid, name }) => uid.startsWith(`${folder}/`) && isShown(name, asked))
    const walked = await walk(viewer, tagKind, `${show(asked)}&order_by=digest&page_size=9`)
    assert.deepEqual(walked.uids, uidsOf(sorted(visible, 'digest')))
    assert.deepEqual(new Set(walked.totals), new Set([String(visible.length)]))
  }
  const role = await pinfold.seed.role(folder, ['repo.list'])
  const blind = await pinfold.as((await pinfold.seed.member(folder, role.uid)).uid)
  assert.deepEqual([ok(await list('', blind)).tags, ok(await list('', blind)).totalCount], [[], '0'])

  assertDenied(await list(`uidp.children_of=${repos[3]}`, viewer))
  const missing = `${folder}/${'0'.repeat(16)}`
  assertNotFound(await list(`uidp.children_of=${missing}`, viewer), 'registry.pinfold.dev/Repo', missing)
  assertInvalid(await list('uidp.children_of=x'), 'uidp.children_of')
})

test('page tokens are valid only for their filters', async () => {
  const first: Json = ok(await list('page_size=2'))
  assert.equal((await list(`page_size=2&page_token=${first.nextPageToken}`)).status, 200)
  for (const other of ['include_dates=true', 'name=latest', 'updated_since=2001-01-01T00:00:00Z', 'order_by=name']) {
    assertInvalid(await list(`page_size=2&page_token=${first.nextPageToken}&${other}`), 'page_token')
  }
  assertInvalid(await list('order_by=deprecated'), 'order_by')
})
