// Each query strategy for a filtered list of advisories returns the same rows, each from an index.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql } from '#db/sql.ts'
import { advisoryFields } from '#domains/advisories/advisories/advisories.model.ts'
import { countAdvisories, type Limits, listAdvisories } from '#domains/advisories/advisories/advisory-search.store.ts'
import { type AdvisoryFilter, facets } from '#domains/advisories/advisories/advisory-terms.model.ts'
import type { Branch, Page } from '#lib/lists/paging.ts'
import { importSamples, sampleAdvisory } from '../support/advisories.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { randomFrom } from '../support/random.ts'

let pinfold: Pinfold
let org: string
let other: string

before(async () => {
  pinfold = await startPinfold()
  org = (await pinfold.seed.group()).uid
  other = (await pinfold.seed.group()).uid
  const random = randomFrom(7)
  await importSamples(
    pinfold,
    org,
    Array.from({ length: 70 }, (_, n) => sampleAdvisory(random, n)),
  )
  await importSamples(
    pinfold,
    other,
    Array.from({ length: 30 }, (_, n) => sampleAdvisory(random, n)),
  )
})
after(() => pinfold[Symbol.asyncDispose]())

const none: AdvisoryFilter = { values: [], numbers: [], excludedAuthors: [], query: '' }
const value = (facet: number, ...values: string[]): AdvisoryFilter => ({ ...none, values: [{ facet, values }] })

/** One filter of each kind, and the index in the query plan of its list. */
const filters: Record<string, AdvisoryFilter> = {
  advisory_ids: value(facets.advisoryId, 'TST-0001', 'TST-0007'),
  legacy_advisory_ids: value(facets.legacyAdvisoryId, 'OLD-3'),
  artifact_names: value(facets.artifactName, 'Package-3', 'Package-4'),
  artifact_types: value(facets.artifactType, 'apk'),
  artifact_architectures: value(facets.artifactArchitecture, 'x86_64'),
  component_names: value(facets.componentName, 'github.com/a%_b-2'),
  component_types: value(facets.componentType, 'python', 'go-module'),
  component_locations: value(facets.componentLocation, '/usr/lib-1'),
  aliases: value(facets.alias, 'CVE-2024-1003', 'CVE-2024-1004', 'CVE-2024-1005'),
  origin: value(facets.origin, 'origin-2'),
  event_authors: value(facets.eventAuthor, 'author-1', 'author-2'),
  event_reviewers: value(facets.eventReviewer, 'reviewer-1'),
  latest_event_type: value(facets.latestEventType, '3'),
  event_review_states: { ...none, numbers: [{ facet: facets.reviewStates, numbers: [2, 4] }] },
  event_types: { ...none, numbers: [{ facet: facets.eventTypes, numbers: [1] }] },
  exclude_event_authors: { ...none, excludedAuthors: ['author-0', 'author-3'] },
  query: { ...none, query: 'E-2' },
  'two of them': { ...value(facets.artifactType, 'apk'), query: 'cve-2024-10' },
}

/** Limits that select each query strategy: the usual limits first, and at last limits that make the query walk all rows. */
const ways: Record<string, Limits> = {
  merged: { arms: 400, rows: 2000 },
  collected: { arms: 0, rows: 2000 },
  walked: { arms: 0, rows: 0 },
}

const orders = [
  ['uid', false],
  ['uid', true],
  ['createTime', true],
  ['artifactName', false],
].map(([field, desc]) => {
  const { column } = advisoryFields[field as keyof typeof advisoryFields]
  return { field, column, desc } as { field: 'uid' | 'createTime' | 'artifactName'; column: string; desc: boolean }
})
const scopes = (): Record<string, Branch[]> => ({
  everywhere: [{ below: '/' }],
  'two groups': [{ below: org }, { below: other }],
  children: [{ childrenOf: org }],
})

const pageOf = (order: Page['order'], after?: Page['after'], size = 9): Page => {
  return { order, after, size, skip: 0, binding: '' }
}

for (const [name, filter] of Object.entries(filters)) {
  test(`${name}: each query strategy returns the same in each order`, async () => {
    const { db } = pinfold.app
    for (const branches of Object.values(scopes())) {
      const totals = await Promise.all(Object.values(ways).map((way) => countAdvisories(db, branches, filter, way)))
      assert.equal(new Set(totals).size, 1, `${totals}`)
      for (const order of orders) {
        const all = await listAdvisories(db, branches, pageOf(order, undefined, 500), filter)
        assert.equal(all.length, totals[0])
        for (const way of Object.values(ways)) {
          const found: string[] = []
          for (let after: Page['after'], more = true; more; ) {
            const rows = await listAdvisories(db, branches, pageOf(order, after), filter, way)
            const shown = rows.slice(0, 9)
            found.push(...shown.map(({ uid }) => uid))
            more = rows.length > 9
            const last = shown.at(-1)
            after = last && { value: last[order.field], uid: last.uid }
          }
          assert.deepEqual(
            found,
            all.map(({ uid }) => uid),
          )
        }
      }
    }
  })
}

/** Queries of the store. The test returns the rows that the store needs to continue. */
async function queriesOf(ask: (reader: Reader) => Promise<unknown>): Promise<Sql[]> {
  const queries: Sql[] = []
  const { db } = pinfold.app
  await ask({
    all: (query) => {
      queries.push(query)
      return db.all(query)
    },
    get: (query) => {
      queries.push(query)
      return db.get(query)
    },
  })
  return queries
}

/** No query reads a whole table. Only the few collected or merged rows are sorted. */
async function checkPlan(query: Sql, what: string): Promise<void> {
  const plan = await pinfold.app.db.plan(query)
  const shown = `${what}\n${compile(query, '?')}\n${plan}`
  const scan = onPostgres ? /Seq Scan/ : /SCAN (?:t|p|q|x|k|advisory_\w+|advisories)\b(?!.* USING (?:COVERING )?INDEX)/
  assert.doesNotMatch(plan, scan, shown)
}

test('each filter query uses an index', async () => {
  for (const [name, filter] of Object.entries(filters)) {
    for (const [scope, branches] of Object.entries(scopes())) {
      for (const [way, limits] of Object.entries(ways)) {
        for (const order of orders) {
          const after = { value: order.field === 'uid' ? `${org}/8` : 'm', uid: `${org}/8` }
          const queries = await queriesOf((reader) =>
            listAdvisories(reader, branches, pageOf(order, after), filter, limits),
          )
          for (const query of queries) await checkPlan(query, `${name} ${scope} by ${order.field}, ${way}`)
        }
        for (const query of await queriesOf((reader) => countAdvisories(reader, branches, filter, limits))) {
          // All texts are searched only if very many contain the text.
          if (way !== 'merged' && compile(query, '?').includes('FROM advisory_texts t')) continue
          await checkPlan(query, `count of ${name} ${scope}, ${way}`)
        }
      }
    }
  }
})

test('counts one value of one filter without reading advisories', async () => {
  const single = [
    'artifact_types',
    'component_names',
    'origin',
    'event_reviewers',
    'latest_event_type',
    'event_types',
    'event_review_states',
    'artifact_names',
    'component_types',
  ]
  for (const name of single) {
    const queries = await queriesOf((reader) => countAdvisories(reader, [{ below: '/' }], filters[name]!))
    const texts = queries.map((query) => compile(query, '?')).join('\n')
    assert.match(texts, /advisory_term_counts/, name)
    assert.doesNotMatch(texts, /advisory_postings|advisories/, name)
  }
})

test('finds a text that occurs several times in each of many terms', async () => {
  const { uid } = await pinfold.seed.group()
  const random = randomFrom(9)
  const samples = Array.from({ length: 300 }, (_, n) => {
    const sample = sampleAdvisory(random, n)
    return { ...sample, advisory: { ...sample.advisory, componentName: `zq${n + 100}`.repeat(8) } }
  })
  await importSamples(pinfold, uid, samples)
  const filter = { ...none, query: 'ZQ' }
  const page = pageOf({ field: 'uid', column: 'uid', desc: false }, undefined, 500)
  assert.equal((await listAdvisories(pinfold.app.db, [{ below: uid }], page, filter)).length, 300)
  assert.equal(await countAdvisories(pinfold.app.db, [{ below: uid }], filter), 300)
})
