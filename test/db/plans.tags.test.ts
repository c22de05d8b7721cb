// Lists, counts, pulls and the history of tags use an index in the requested order. A list of several kinds of names reads each
// kind by its own keys, and merges a page of each.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql } from '#db/sql.ts'
import * as history from '#domains/registry/tags/tag-history.store.ts'
import * as parts from '#domains/registry/tags/tag-parts.store.ts'
import { tagFields } from '#domains/registry/tags/tags.model.ts'
import {
  countTags,
  digestOf,
  findTagNamed,
  listTags,
  ofRepo,
  type TagBranch,
  type TagFilter,
  tagNames,
  tagsWhere,
} from '#domains/registry/tags/tags.store.ts'
import type { Field } from '#lib/fields.ts'
import type { Page } from '#lib/lists/paging.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const repo = `${'a'.repeat(40)}/${'b'.repeat(16)}`
const digest = `sha256:${'c'.repeat(64)}`
const none: TagFilter = { name: '', digest: '', updatedSince: '', asked: 0 }
const scopes: Record<string, TagBranch> = { everything: { below: '/' }, 'one repo': { below: repo } }

/** Queries of a store function. Counts return `total`. */
async function queriesOf(ask: (reader: Reader) => Promise<unknown>, total = 0): Promise<Sql[]> {
  const queries: Sql[] = []
  const note = (query: Sql): string => {
    const text = query.parts.join('')
    // This query checks if repositories are being deleted, in a table that is nearly always empty.
    if (!text.includes('FROM repo_removals LIMIT')) queries.push(query)
    return text
  }
  await ask({
    all: async (query) => {
      note(query)
      return []
    },
    get: async <T>(query: Sql) => (note(query).includes('FROM list_counts') ? ({ total } as T) : undefined),
  })
  return queries
}

const bad = onPostgres
  ? /\bSeq Scan\b|\bSort\b/
  : /\bSCAN (?!found\b|matches\b|.* USING (?:COVERING )?INDEX)|TEMP B-TREE|AUTOMATIC/

async function planOf(query: Sql): Promise<{ plan: string; shown: string }> {
  const plan = await pinfold.app.db.plan(query)
  return { plan, shown: `${compile(query, '?')}\n${plan}` }
}

async function checkPlan(query: Sql, ...wanted: RegExp[]): Promise<void> {
  const { plan, shown } = await planOf(query)
  assert.doesNotMatch(plan, bad, shown)
  for (const part of wanted) assert.match(plan, part, shown)
}

function pagesOf(fields: Record<string, Field>): Page[] {
  const afterRow = { value: 'm', uid: `${repo}/5` }
  return Object.entries(fields)
    .filter(([, { sort }]) => sort)
    .flatMap(([field, { column }]) => {
      return [false, true].flatMap((desc) => {
        return [undefined, { ...afterRow, value: column === 'uid' ? afterRow.uid : 'm' }].map((cursor): Page => {
          return { order: { field, column, desc }, after: cursor, size: 50, skip: 0, binding: '' }
        })
      })
    })
}

const keys = onPostgres ? /list_keys_pkey/ : /SEARCH k USING PRIMARY KEY \(list=\? AND place=\?/
const shape = onPostgres ? /tags_by_shape/ : /tags_by_shape \(shape=\?/

test('lists tags in each order from an index', async () => {
  for (const branch of Object.values(scopes)) {
    for (const page of pagesOf(tagFields)) {
      const [query] = await queriesOf((reader) => listTags(reader, [branch], page, none))
      await checkPlan(query!, page.order.column === 'uid' ? shape : keys)
    }
  }
})

test('reads only the keys of skipped tags, from the nearer end', async () => {
  const pages = pagesOf(tagFields).filter(({ order }) => order.column !== 'uid')
  for (const branch of Object.values(scopes)) {
    for (const page of pages) for (const total of [1_000_000, 1100]) await checkSkipped(branch, page, total)
  }
})

async function checkSkipped(branch: TagBranch, page: Page, total: number): Promise<void> {
  const queries = await queriesOf((reader) => listTags(reader, [branch], { ...page, skip: 1000 }, none), total)
  // After a page token, the number of remaining rows is unknown.
  assert.equal(queries.length, page.after ? 1 : 2)
  const query = queries.at(-1)!
  const { plan, shown } = await planOf(query)
  const isFromEnd = !page.after && total === 1100
  assert.deepEqual(query.values.slice(-2), [51, isFromEnd ? 49 : 1000], shown)
  await checkPlan(query, keys)
  // Rows are read only after the limit is applied.
  const bound = onPostgres ? /Limit.*list_keys_pkey/s : /SCAN found\n.*SEARCH t USING INTEGER PRIMARY KEY/s
  assert.match(plan, bound, shown)
  if (onPostgres) assert.ok(plan.indexOf('Limit') > plan.indexOf('Nested Loop'), shown)
}

test('a prefix is a range of names, from its start or from the end of the last page', async () => {
  const range = onPostgres ? /name >=? '[^']+'::text\) AND \(name </ : /\(repo_id=\? AND name>\? AND name<\?\)/
  for (const last of ['', 'stable-3']) {
    const filter = { prefix: 'stable', part: '', asked: 7 }
    const asks = [
      (reader: Reader) => parts.lastNameOf(reader, 1, filter, { last, desc: false, most: 10 }),
      (reader: Reader) => parts.tagsByName(reader, 1, filter, { last, desc: false, upTo: 'stable-9', limit: 10 }),
    ]
    for (const ask of asks) {
      const [query] = await queriesOf(ask)
      const { plan, shown } = await planOf(query!)
      assert.match(plan, range, shown)
      assert.doesNotMatch(compile(query!, '?'), /name >.*name >/s, 'two lower bounds, of which SQLite takes the first')
    }
  }
})

test('a list with several kinds of names reads a page of each kind', async () => {
  for (const branch of Object.values(scopes)) {
    for (const page of pagesOf(tagFields)) {
      const [query] = await queriesOf((reader) => listTags(reader, [branch], page, { ...none, asked: 7 }))
      const { plan, shown } = await planOf(query!)
      const search =
        page.order.column === 'uid' ? /tags_by_shape/g : onPostgres ? /list_keys_pkey/g : /SEARCH k USING PRIMARY KEY/g
      assert.equal(plan.match(search)?.length, 8, shown)
      // Only the merged pages may be sorted.
      if (!onPostgres) assert.doesNotMatch(plan, /SEARCH [^\n]*\n\s*USE TEMP B-TREE/, shown)
      assert.doesNotMatch(plan, /\bSeq Scan\b|\bSCAN t\b(?!.*INDEX)/, shown)
    }
  }
})

test('filters tags by an index', async () => {
  const byUid = pagesOf({ uid: tagFields.uid })
  for (const branch of Object.values(scopes)) {
    for (const filter of [
      { ...none, name: 'latest' },
      { ...none, digest },
      { ...none, name: 'latest', digest },
    ]) {
      const index =
        filter.digest === '' ? /tags_by_name/ : filter.name === '' ? /tags_by_digest/ : /tags_by_(name|digest)/
      for (const page of byUid) {
        const [query] = await queriesOf((reader) => listTags(reader, [branch], page, filter))
        await checkPlan(query!, index)
      }
      const [count] = await queriesOf((reader) => countTags(reader, [branch], filter))
      await checkPlan(count!, index)
    }
  }
})

test('finds tags changed since a time by this time, in each order of the list', async () => {
  const since = { ...none, updatedSince: '2026-01-01T00:00:00.000Z' }
  const range = onPostgres
    ? /list_keys_pkey/
    : /PRIMARY KEY \(list=\? AND place=\? AND (value>\?|\(value,uid\)[<>]\(\?,\?\))/
  for (const branch of Object.values(scopes)) {
    for (const page of pagesOf(tagFields)) {
      const [query] = await queriesOf((reader) => listTags(reader, [branch], page, since))
      const { plan, shown } = await planOf(query!)
      assert.match(plan, range, shown)
      if (page.order.column === 'update_time') assert.doesNotMatch(plan, bad, shown)
    }
    const [count] = await queriesOf((reader) => countTags(reader, [branch], since))
    await checkPlan(count!, range)
  }
})

test('counts tags from the counters', async () => {
  for (const branch of Object.values(scopes)) {
    const [count, ...more] = await queriesOf((reader) => countTags(reader, [branch], { ...none, asked: 7 }))
    assert.equal(more.length, 0)
    await checkPlan(count!, onPostgres ? /list_counts_pkey/ : /SEARCH list_counts USING PRIMARY KEY/)
  }
})

test('a pull, a tag update and a read of the tag history each need one index search', async () => {
  // Without statistics, PostgreSQL assumes that a name is as rare as a name inside one repository.
  const tagKey = onPostgres
    ? /tags_(repo_id_name_key|by_name)/
    : /SEARCH \w+ USING (COVERING )?INDEX \w+ \(repo_id=\? AND name=\?\)/
  const names = onPostgres
    ? /Index Only Scan using tags_repo_id_name_key/
    : /COVERING INDEX \w+ \(repo_id=\? AND name>\?\)/
  const ledgerKey = onPostgres ? /tag_history_pkey/ : /PRIMARY KEY \(repo_id=\? AND tag=\?/
  const reverse = onPostgres
    ? /tag_history_by_digest/
    : /tag_history_by_digest \(repo_id=\? AND digest=\? AND tag=\? AND time>\?\)/
  const ofTag = onPostgres ? /tag_history_by_digest/ : /by_digest \(repo_id=\? AND digest=\? AND tag=\?/
  const ofDigest = onPostgres ? /tag_history_by_digest/ : /by_digest \(repo_id=\? AND digest=\? AND \(tag,time\)>/
  const byTime = /tag_history_by_time/
  const asked: [ask: (reader: Reader) => Promise<unknown>, index: RegExp][] = [
    [(reader) => digestOf(reader, 1, 'latest'), tagKey],
    [(reader) => findTagNamed(reader, 1, 'latest'), tagKey],
    [(reader) => tagNames(reader, 1, 'a', 100), names],
    [(reader) => history.movesIn(reader, 1, 'latest', { from: 'a', before: 'z' }, 10), ledgerKey],
    [(reader) => tagsWhere(reader, ofRepo({ id: 1, uid: repo }, digest)), /tags_by_digest/],
    [(reader) => history.lastTime(reader, 1, 'latest'), ledgerKey],
    [(reader) => history.digestAt(reader, 1, 'latest', 'z'), ledgerKey],
    [(reader) => history.listHistory(reader, 1, 'latest', { before: 'z' }, 10), ledgerKey],
    [(reader) => history.listHistory(reader, 1, 'latest', { before: 'z', digest }, 10), ofTag],
    [(reader) => history.listRecords(reader, 1, 'latest', { digest }, recordPage('time')), ofTag],
    [(reader) => history.listRecords(reader, 1, undefined, { digest }, recordPage('tag', ['a', 'z'])), ofDigest],
    [(reader) => history.listRecords(reader, 1, undefined, {}, recordPage('time')), byTime],
    [(reader) => history.listRecords(reader, 1, undefined, {}, recordPage('time', undefined, false)), byTime],
    [(reader) => history.listRecords(reader, 1, undefined, {}, recordPage('tag')), ledgerKey],
    [(reader) => history.listRecords(reader, 1, undefined, {}, recordPage('tag', ['b', 'z'], true)), ledgerKey],
    [(reader) => history.listRecords(reader, 1, 'latest', {}, recordPage('time', undefined, false)), ledgerKey],
    [(reader) => history.listRecords(reader, 1, undefined, { from: 'a' }, recordPage('time', ['z', 'a'])), byTime],
    [(reader) => history.countRecords(reader, 1, undefined, {}, 10), byTime],
    [(reader) => history.countRecords(reader, 1, 'latest', {}, 10), ledgerKey],
    [(reader) => history.wasEverTagged(reader, 1, digest, ['latest', 'latest-dev']), reverse],
  ]
  for (const [ask, index] of asked) {
    const [query, ...more] = await queriesOf(ask)
    assert.equal(more.length, 0)
    await checkPlan(query!, index)
  }
})

function recordPage(field: string, cursor?: [value: string, uid: string], desc = field === 'time'): history.RecordPage {
  const after = cursor && { value: cursor[0], uid: cursor[1] }
  return { order: { field, column: field, desc }, after, size: 10, skip: 0 }
}

test('finds tags by a part of their name from keys alone', async () => {
  const filter = { prefix: 'v1', part: 'rc', asked: 0 }
  const beyond = onPostgres ? /tags_by_number/ : /tags_by_number \(<expr>=\? AND <expr>[<>]\?\)/
  const index = { id: 1, upTo: 5, segments: 2 }
  const key = (table: string, columns: string) =>
    onPostgres ? new RegExp(`${table}_pkey`) : new RegExp(`SEARCH ${table} USING .*\\(${columns}\\)`)
  const asked: [ask: (reader: Reader) => Promise<unknown>, index: RegExp][] = [
    [(reader) => parts.indexOf(reader, 1), /tag_part_indexes_by_repo/],
    [(reader) => parts.newestIndexOf(reader, 1), /tag_part_indexes_by_repo/],
    [(reader) => parts.countBeyond(reader, 1, 5, 10), beyond],
    [(reader) => parts.namesBeyond(reader, 1, 5, 10), beyond],
    [
      (reader) => parts.visibleTagsNamed(reader, 1, ['v1', 'v2'], 0),
      onPostgres ? /tags_/ : /\(repo_id=\? AND name=\?\)/,
    ],
    [(reader) => parts.partsOf(reader, index, ['rc1', 'c1.']), key('tag_parts', 'index_id=\\? AND gram=\\?.*')],
    [(reader) => parts.fencesOf(reader, 1, [1, 2]), key('tag_part_segments', 'index_id=\\? AND segment=\\?')],
    [(reader) => parts.namesIn(reader, 1, [1, 2]), key('tag_part_names', 'index_id=\\? AND bucket=\\?')],
  ]
  for (const [ask, wanted] of asked) {
    const [query, ...more] = await queriesOf(ask)
    assert.equal(more.length, 0)
    await checkPlan(query!, wanted)
  }
  // Sorted rows are limited: the texts of one search, and the tags that are not in the index yet.
  const sorted: [ask: (reader: Reader) => Promise<unknown>, index: RegExp][] = [
    [(reader) => parts.byRarity(reader, 1, ['rc1', 'c1.']), key('tag_parts', 'index_id=\\? AND gram=\\?')],
    [(reader) => parts.newTagsWith(reader, 1, 5, filter, { last: '', limit: 10, most: 100 }), beyond],
    [
      (reader) => parts.reposBeyond(reader, 5, 10),
      onPostgres ? /tags_pkey/ : /SEARCH tags USING INTEGER PRIMARY KEY \(rowid>\?\)/,
    ],
  ]
  for (const [ask, wanted] of sorted) {
    const [query] = await queriesOf(ask)
    const { plan, shown } = await planOf(query!)
    assert.match(plan, wanted, shown)
    assert.doesNotMatch(plan, /\bSeq Scan\b|\bSCAN tags\b/, shown)
  }
})
