// Lists, searches and counts of libraries read indexes only. A search may sort, but no more than the candidates it found.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql } from '#db/sql.ts'
import { artifactFields } from '#domains/libraries/artifacts.model.ts'
import {
  countArtifacts,
  findArtifact,
  listArtifacts,
  listVersions,
  type Scope,
} from '#domains/libraries/artifacts.store.ts'
import type { Page } from '#lib/lists/paging.ts'
import { artifactsOf, importInto } from '../support/libraries.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
  const names = Array.from({ length: 600 }, (_, i) => `lib-${i % 10 === 0 ? 'rare' : 'common'}-${i}-cu12`)
  const given = Object.fromEntries(names.map((name) => [name, ['1.0', { version: '2.0', remediated: true }]]))
  const java = Object.fromEntries(names.map((name) => [`group:${name}`, ['1.0', '2.0']]))
  for (const artifacts of [artifactsOf('python', given), artifactsOf('java', java)]) {
    const answer = await importInto(pinfold, artifacts)
    assert.equal(answer.status, 200, answer.text)
  }
})
after(() => pinfold[Symbol.asyncDispose]())

/** Queries of a store function, which gets its usual results. */
async function queriesOf(ask: (reader: Reader) => Promise<unknown>): Promise<Sql[]> {
  const { db } = pinfold.app
  const queries: Sql[] = []
  const noted = (query: Sql): Sql => {
    queries.push(query)
    return query
  }
  await ask({ all: (query) => db.all(noted(query)), get: (query) => db.get(noted(query)) })
  return queries
}

async function checkPlan(query: Sql, allowed: { sort?: boolean }): Promise<string> {
  const plan = await pinfold.app.db.plan(query)
  const shown = `${compile(query, '?')}\n${plan}`
  assert.doesNotMatch(
    plan,
    onPostgres ? /\bSeq Scan on/ : /\bSCAN (?:t|k|v|trigrams?\w*|artifact\w*|list_\w+)\b|AUTOMATIC/,
    shown,
  )
  if (!allowed.sort) assert.doesNotMatch(plan, onPostgres ? /\bSort\b/ : /TEMP B-TREE/, shown)
  return plan
}

function* pages(fields: Record<string, { column: string }>): Generator<Page> {
  for (const [field, { column }] of Object.entries(fields)) {
    for (const desc of [false, true]) {
      for (const after of [undefined, { value: 'python:m', uid: 'python:m' }]) {
        yield { order: { field, column, desc }, after, size: 10, skip: 0, binding: '' }
      }
    }
  }
}

const scope = (catalogScope: string, text = ''): Scope => ({
  ecosystem: catalogScope.startsWith('java') ? 'java' : 'python',
  catalogScope,
  text,
})
const inOrder = onPostgres ? /list_keys_pkey/ : /SEARCH k USING PRIMARY KEY \(list=\? AND place=\?/
const byGram = onPostgres ? /trigrams_pkey/ : /SEARCH trigrams USING PRIMARY KEY \(kind=\? AND gram[=>]/
const byId = onPostgres ? /artifacts_(?:pkey|uid_key)/ : /SEARCH t USING INTEGER PRIMARY KEY \(rowid=\?\)/

test('lists libraries in each order from an index, for each ecosystem', async () => {
  for (const catalogScope of ['java', 'python', 'python cuda 12', 'python remediated', 'python remediated cuda 12']) {
    for (const page of pages(artifactFields)) {
      const queries = await queriesOf((reader) => listArtifacts(reader, [scope(catalogScope)], page))
      for (const query of queries) await checkPlan(query, {})
      assert.match(await checkPlan(queries.at(-1)!, {}), inOrder)
    }
  }
})

test('reads several ecosystems in order, and sorts only the page', async () => {
  for (const page of pages(artifactFields)) {
    const queries = await queriesOf((reader) => listArtifacts(reader, [scope('java'), scope('python')], page))
    const plan = await checkPlan(queries.at(-1)!, { sort: true })
    assert.equal(plan.match(new RegExp(inOrder, 'g'))?.length, 2, plan)
  }
})

test('reads many matches in list order, and finds and sorts few matches by a search index', async () => {
  const few = ['-299', '7-c', 'n-299-cu', '99', 'rare']
  for (const text of ['l', 'li', 'common', 'lib-', ...few]) {
    for (const catalogScope of ['python', 'python cuda 12']) {
      for (const page of pages(artifactFields)) {
        const queries = await queriesOf((reader) => listArtifacts(reader, [scope(catalogScope, text)], page))
        const last = queries.pop()!
        const plans = await Promise.all(queries.map((query) => checkPlan(query, { sort: true })))
        const isFew = few.includes(text)
        assert.match(await checkPlan(last, { sort: isFew }), isFew ? byId : inOrder, text)
        if (isFew) assert.match(plans.at(-1)!, byGram)
      }
    }
  }
})

test('does not count many matches of up to three characters one by one', async () => {
  const [page] = pages(artifactFields)
  for (const text of ['l', 'li', 'lib', '-cu']) {
    const queries = await queriesOf((reader) => listArtifacts(reader, [scope('python', text)], page!))
    assert.ok(!queries.some((query) => /FROM trigrams/.test(compile(query, '?'))), text)
  }
})

test('counts libraries from the counters', async () => {
  const queries = await queriesOf((reader) => countArtifacts(reader, 'java'))
  assert.equal(queries.length, 1)
  assert.match(
    await checkPlan(queries[0]!, {}),
    onPostgres ? /list_counts_pkey/ : /SEARCH list_counts USING PRIMARY KEY/,
  )
})

test('lists versions in both orders from an index', async () => {
  const found = await findArtifact(pinfold.app.db, 'java:group:lib-common-1-cu12')
  const bySortKey = onPostgres
    ? /artifact_versions_artifact_id_sort_key_version_key/
    : /SEARCH v USING INDEX sqlite_autoindex_artifact_versions_1 \(artifact_id=\?/
  for (const page of pages({ version: { column: 'version' } })) {
    const [query] = await queriesOf((reader) => listVersions(reader, found!, page))
    assert.match(await checkPlan(query!, {}), bySortKey)
  }
})
