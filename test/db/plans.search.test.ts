// Search for anything by a part of its name: each query uses an index, and none sorts more rows than its limit.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fillSearch } from '#db/search-fill.ts'
import { searchKinds } from '#db/search-queue.ts'
import { type Reader, sql } from '#db/sql.ts'
import { indexNames } from '#domains/search/index-names.job.ts'
import * as packages from '#domains/search/index-packages.store.ts'
import * as names from '#domains/search/names.store.ts'
import { groupNumbers, readParts } from '#domains/search/parts.store.ts'
import { rarestGram, reposWithGram, reposWithGrams } from '#domains/search/tag-grams.store.ts'
import { runJob } from '../support/background-jobs.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf, queriesOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const group = 'a'.repeat(40)
const range = { standing: 0, text: 'pay', isWhole: false }
const from = { part: 'payments', id: 3 }
const tags = { shapes: [0], names: ['1.0'], isWhole: false }
const cursor = { key: '1.0', tie: group }

const asked: Record<string, (reader: Reader) => Promise<unknown>> = {
  'names with a start': (reader) => readParts(reader, searchKinds.repos, [1], range, { after: undefined, most: 201 }),
  'names after another': (reader) => readParts(reader, searchKinds.repos, [1], range, { after: from, most: 201 }),
  'equal names': (reader) => {
    return readParts(reader, searchKinds.repos, [1], { ...range, isWhole: true }, { after: undefined, most: 201 })
  },
  'numbers of groups': (reader) => groupNumbers(reader, [group]),
  groups: (reader) => names.groupsOf(reader, [1, 2]),
  repositories: (reader) => names.reposOf(reader, [1, 2]),
  'repositories by uid': (reader) => names.reposNamed(reader, [group]),
  'repositories of a scope': (reader) => names.reposBelow(reader, group, 1001),
  organizations: (reader) => names.organizationsAfter(reader, group, 100),
  identities: (reader) => names.identitiesOf(reader, [1, 2]),
  people: (reader) => names.personsOf(reader, [1, 2]),
  'role bindings of people': (reader) => names.bindingsOf(reader, [group]),
  tags: (reader) => names.tagsOf(reader, [1, 2]),
  'names of packages': (reader) => names.packageNames(reader, [1, 2]),
  'ids of vulnerabilities': (reader) => names.vulnerabilityNames(reader, 'CVE-2026-', '', 201),
  'records of vulnerabilities': (reader) => {
    return names.summariesOf(reader, ['CVE-2026-1'], { own: 'own', organizations: [group], isAll: false })
  },
  'the rarest sequence': (reader) => rarestGram(reader, 1, ['abc'], 1001),
  'repositories with a sequence': (reader) => reposWithGram(reader, { organization: 1, gram: 'abc' }, 9, 100),
  'the first row of the queue': packages.isAnyQueued,
  'the next package list': (reader) => packages.nextDue(reader, 0),
  'packages of a list': (reader) => packages.namesInList(reader, { organization: 1, listNo: 1, after: 0 }, 200),
}

for (const [what, ask] of Object.entries(asked)) {
  test(`${what}: uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, what)
  })
}

/** Queries that sort at most the rows of their inner limits. */
const merged: Record<string, (reader: Reader) => Promise<unknown>> = {
  'names in several groups': (reader) => {
    return readParts(reader, searchKinds.repos, [1, 2], range, { after: undefined, most: 201 })
  },
  'tags with a start': (reader) => names.tagKeys(reader, [group], tags, undefined, 201),
  'tags after another': (reader) => names.tagKeys(reader, [group, `${group}/b`], tags, cursor, 201),
  'images by digest': (reader) => names.manifestsFrom(reader, 'sha256:abcdef', undefined, 201),
  'images after another': (reader) => names.manifestsFrom(reader, 'sha256:abcdef', { key: 'sha256:ab', tie: 3 }, 201),
  'lists with a package': (reader) => names.listsWithPackage(reader, [group], 'openssl'),
  'repositories with several sequences': (reader) => reposWithGrams(reader, [1, 2], ['abc', 'bcd']),
}

for (const [what, ask] of Object.entries(merged)) {
  test(`${what}: reads no whole table`, async () => {
    for (const query of await queriesOf(ask)) await checkReads(query)
  })
}

async function checkReads(query: Parameters<Pinfold['app']['db']['plan']>[0]): Promise<void> {
  const plan = await pinfold.app.db.plan(query)
  const bad =
    /\bSeq Scan\b|\bSCAN (?!matches\b|found\b|f\b|c\b|m\b|CONSTANT ROW|\(subquery|\d)(?!.* USING (?:COVERING )?INDEX)/
  if (bad.test(plan)) throw new Error(plan)
}

test('rows that an upgrade finds are added once', async () => {
  const { db } = pinfold.app
  const org = await pinfold.seed.group('', { name: 'filled' })
  await pinfold.seed.repo(org.uid, { name: 'filled-repo' })
  await runJob(pinfold.app, indexNames)
  const rows = () =>
    db.all(sql`SELECT kind, scope, standing, part, id FROM search_parts ORDER BY kind, scope, standing, part, id`)
  const written = await rows()
  const fill = async () => {
    let batches = 0
    while ((await db.tx((tx) => fillSearch(tx, 2))) > 0) if (++batches > 1000) throw new Error('the fill never ends')
  }
  await db.tx((tx) => tx.run(sql`DELETE FROM facts WHERE name = 'search_filled'`))
  await fill()
  assert.deepEqual(await db.all(sql`SELECT row_id FROM search_queue`), [])
  await db.tx(async (tx) => {
    await tx.run(sql`DELETE FROM search_parts`)
    await tx.run(sql`DELETE FROM facts WHERE name = 'search_filled'`)
  })
  await fill()
  await runJob(pinfold.app, indexNames)
  assert.ok(written.length > 0)
  assert.deepEqual(await rows(), written)
})
