// Lists advisories with each filter, in a small and in a large database: `bin/pinfold-node bench/advisories.ts`. Measures the
// store without HTTP, whose constant cost would hide differences. Defaults: `--small 10000 --large 1000000 --rounds 7`. `--keep
// FOLDER` keeps the data for the next run. With PINFOLD_TEST_DATABASE it measures PostgreSQL.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '#config.ts'
import type { Db } from '#db/sql.ts'
import { sql } from '#db/sql.ts'
import type { Advisory, AdvisoryEvent, EventType } from '#domains/advisories/advisories/advisories.model.ts'
import { saveAdvisories } from '#domains/advisories/advisories/advisories.store.ts'
import { countAdvisories, listAdvisories } from '#domains/advisories/advisories/advisory-search.store.ts'
import { type AdvisoryFilter, facets } from '#domains/advisories/advisories/advisory-terms.model.ts'
import { insertGroup } from '#domains/iam/groups/groups.store.ts'
import { newUid } from '#lib/uid.ts'
import { createApp } from '../src/create-app.ts'
import { median } from './load.ts'

const { values } = parseArgs({
  options: {
    small: { type: 'string', default: '10000' },
    large: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '7' },
    keep: { type: 'string' },
  },
})
const rounds = Number(values.rounds)
const folder = values.keep ?? mkdtempSync(join(tmpdir(), 'pinfold-bench-'))
const server = process.env.PINFOLD_TEST_DATABASE

/** Rows that share a rare word, whatever the size. A common word is in a share of all rows. */
const few = 40
const common = (n: number, share: number, word: string) =>
  n % 100 < share ? `common ${word}` : `${word} ${Math.floor(n / few)}`

function advisory(group: string, n: number): Advisory {
  const uid = newUid(group)
  const time = new Date(1.7e12 + n * 1000).toISOString()
  const event = (type: EventType, reviewState: number, author: string, reviewer: string): AdvisoryEvent => ({
    uid: newUid(uid),
    createTime: time,
    author,
    reviewer,
    reviewState,
    findings: '',
    type,
    data: {},
    imported: true,
  })
  const rare = n < few
  return {
    uid,
    advisoryId: `BEN-${n}`,
    legacyAdvisoryId: `OLD-${n}`,
    origin: common(n, 5, 'origin'),
    author: 'bench',
    artifactName: common(n, 5, 'artifact'),
    artifactType: rare ? 'rare' : ['apk', 'image', 'library'][n % 3]!,
    artifactArchitecture: rare ? 'rare' : ['x86_64', 'aarch64'][n % 2]!,
    componentName: rare ? `needle ${n}` : common(n, 10, 'component'),
    componentType: rare ? 'rare' : ['go-module', 'python'][n % 2]!,
    componentLocation: common(n, 20, 'location'),
    aliases: [`CVE-2024-${Math.floor(n / few)}`, n % 100 < 2 ? 'CVE-COMMON' : `GHSA-${n}`],
    events: [
      event('detection', 2, 'bot', ''),
      rare
        ? event('patched', 2, 'rare', 'rare')
        : event(n % 3 === 0 ? 'fixNotPlanned' : 'fixed', 2, n % 2 ? 'bot' : 'person', 'reviewer'),
      ...(rare ? [event('fixed', 4, 'rare', 'rare')] : []),
    ],
    createTime: time,
    updateTime: time,
  }
}

const none: AdvisoryFilter = { values: [], numbers: [], excludedAuthors: [], query: '' }
const value = (facet: number, text: string): AdvisoryFilter => ({ ...none, values: [{ facet, values: [text] }] })
const number = (facet: number, ...numbers: number[]): AdvisoryFilter => ({ ...none, numbers: [{ facet, numbers }] })

/**
 * Each filter with a value that few rows have, and with a value that a share of the rows has. `oneByOne`: the server caches the
 * total of such a filter.
 */
const cases: [name: string, share: string, filter: AdvisoryFilter, oneByOne?: true][] = [
  ['no filter', 'all', none],
  ['advisory_ids', '1 row', value(facets.advisoryId, 'BEN-77')],
  ['legacy_advisory_ids', '1 row', value(facets.legacyAdvisoryId, 'OLD-77')],
  ['artifact_names', '40 rows', value(facets.artifactName, 'artifact 3')],
  ['artifact_names', '5 %', value(facets.artifactName, 'common artifact')],
  ['artifact_types', '40 rows', value(facets.artifactType, 'rare')],
  ['artifact_types', '33 %', value(facets.artifactType, 'apk')],
  ['artifact_architectures', '40 rows', value(facets.artifactArchitecture, 'rare')],
  ['artifact_architectures', '50 %', value(facets.artifactArchitecture, 'aarch64')],
  ['component_names', '40 rows', value(facets.componentName, 'component 3')],
  ['component_names', '10 %', value(facets.componentName, 'common component')],
  ['component_types', '40 rows', value(facets.componentType, 'rare')],
  ['component_types', '50 %', value(facets.componentType, 'python')],
  ['component_locations', '40 rows', value(facets.componentLocation, 'location 3')],
  ['component_locations', '20 %', value(facets.componentLocation, 'common location')],
  ['aliases', '40 rows', value(facets.alias, 'CVE-2024-3')],
  ['aliases', '2 %', value(facets.alias, 'CVE-COMMON')],
  ['origin', '40 rows', value(facets.origin, 'origin 3')],
  ['origin', '5 %', value(facets.origin, 'common origin')],
  ['event_review_states', '40 rows', number(facets.reviewStates, 4)],
  ['event_review_states', 'all', number(facets.reviewStates, 2)],
  ['event_types', '40 rows', number(facets.eventTypes, 8)],
  ['event_types', '67 %', number(facets.eventTypes, 3)],
  ['event_types (two)', 'all', number(facets.eventTypes, 3, 6)],
  ['latest_event_type', '40 rows', value(facets.latestEventType, '8')],
  ['latest_event_type', '67 %', value(facets.latestEventType, '3')],
  ['event_authors', '40 rows', value(facets.eventAuthor, 'rare')],
  ['event_authors', '50 %', value(facets.eventAuthor, 'person')],
  ['event_reviewers', '40 rows', value(facets.eventReviewer, 'rare')],
  ['event_reviewers', 'all', value(facets.eventReviewer, 'reviewer')],
  ['exclude_event_authors', 'all but 40', { ...none, excludedAuthors: ['rare'] }],
  ['exclude_event_authors', '50 %', { ...none, excludedAuthors: ['person'] }],
  ['query', '40 rows', { ...none, query: 'Needle' }],
  ['query', '5 %', { ...none, query: 'common art' }, true],
  ['query', 'all', { ...none, query: 'cve' }, true],
  ['aliases (two)', '2 %', { ...none, values: [{ facet: facets.alias, values: ['CVE-COMMON', 'CVE-2024-3'] }] }, true],
  [
    'two filters',
    '33 %',
    { ...number(facets.eventTypes, 3), values: value(facets.artifactArchitecture, 'aarch64').values },
    true,
  ],
]

type Opened = { db: Db; group: string; close: () => Promise<void> }

/** The database is made once; `--keep` uses it again in the next run. */
async function open(name: string, count: number): Promise<Opened> {
  const data = join(folder, name)
  const noted = join(folder, `${name}.json`)
  const schema = `bench_${name}`
  const database = server ? `${server}${server.includes('?') ? '&' : '?'}schema=${schema}` : ''
  const key = server ? { masterKey: randomBytes(32).toString('hex') } : {}
  const app = await createApp({ ...readConfig({}), data, database, ...key, logLevel: 'error' })
  if (!existsSync(noted)) {
    const group = newUid('/')
    const now = new Date().toISOString()
    const about = {
      description: '',
      verified: false,
      kind: 0,
      status: 2,
      resourceLimits: {},
      createTime: now,
      updateTime: now,
    }
    await app.db.tx((tx) => insertGroup(tx, { uid: group, name: 'bench', ...about }))
    const began = performance.now()
    const batch = 2000
    for (let done = 0; done < count; done += batch) {
      const made = Array.from({ length: Math.min(batch, count - done) }, (_, i) => advisory(group, done + i))
      await app.db.tx((tx) =>
        saveAdvisories(
          tx,
          made.map((after) => ({ before: undefined, after, sourceHash: '' })),
        ),
      )
      if (done % 100_000 === 0)
        console.error(`${name}: ${done} after ${Math.round((performance.now() - began) / 1000)} s`)
    }
    if (server) await app.db.all(sql`ANALYZE`)
    writeFileSync(noted, JSON.stringify({ group }))
  }
  const { group } = JSON.parse(readFileSync(noted, 'utf8')) as { group: string }
  return { db: app.db, group, close: () => app.close() }
}

const page = { order: { field: 'uid', column: 'uid', desc: false }, after: undefined, size: 50, skip: 0, binding: '' }

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let times = 0
  do {
    await work()
    times++
  } while (performance.now() - began < 20)
  return (performance.now() - began) / times
}

const opened = { small: await open('small', Number(values.small)), large: await open('large', Number(values.large)) }
const fixed = (ms: number) => ms.toFixed(2).padStart(8)
console.log(
  'filter                          matches     list small    large  ratio   count small    large  ratio   both',
)
for (const [name, share, filter, oneByOne] of cases) {
  const times = {
    small: { list: [] as number[], count: [] as number[] },
    large: { list: [] as number[], count: [] as number[] },
  }
  for (let round = 0; round < rounds; round++) {
    for (const size of ['small', 'large'] as const) {
      const { db, group } = opened[size]
      const branches = [{ below: group }]
      times[size].list.push(await timeOf(() => listAdvisories(db, branches, page, filter)))
      times[size].count.push(await timeOf(() => countAdvisories(db, branches, filter)))
    }
  }
  const [listSmall, listLarge] = [median(times.small.list), median(times.large.list)]
  const [countSmall, countLarge] = [median(times.small.count), median(times.large.count)]
  const ratio = (large: number, small: number) => (large / small).toFixed(2).padStart(6)
  console.log(
    `${name.padEnd(31)} ${share.padEnd(10)} ${fixed(listSmall)} ${fixed(listLarge)} ${ratio(listLarge, listSmall)}      ` +
      `${fixed(countSmall)} ${fixed(countLarge)} ${ratio(countLarge, countSmall)} ${ratio(listLarge + countLarge, listSmall + countSmall)}` +
      `${oneByOne ? '  counted one by one; remembered until a change' : ''}`,
  )
}
for (const { close } of Object.values(opened)) await close()
if (!values.keep) rmSync(folder, { recursive: true })
