// Image contents, images that wait to be read, and advisories for a package are found by an index, for any amount of data.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql, type Tx } from '#db/sql.ts'
import { listAbout } from '#domains/advisories/advisories/publication.store.ts'
import * as attached from '#domains/registry/images/attached.store.ts'
import * as contents from '#domains/registry/images/image-contents.store.ts'
import * as history from '#domains/registry/tags/tag-history.store.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const digest = `sha256:${'c'.repeat(64)}`
const time = '2026-03-01T00:00:00.000Z'
const read = {
  repo: 1,
  organization: 'a'.repeat(40),
  digest,
  dueTime: time,
  attempts: 1,
  owner: '',
  fence: 3,
  again: 0,
}

async function queriesOf(ask: (tx: Tx) => Promise<unknown>): Promise<Sql[]> {
  const queries: Sql[] = []
  const note = async <T>(query: Sql, answer: T): Promise<T> => {
    queries.push(query)
    return answer
  }
  const reader: Reader = { all: (query) => note(query, []), get: (query) => note(query, undefined) }
  await ask({ ...reader, run: (query) => note(query, 0), shard: 0, engine: 'sqlite', async meet() {}, after() {} })
  return queries
}

const asked: Record<string, (tx: Tx) => Promise<unknown>> = {
  findContents: (tx) => contents.findContents(tx, 1, [digest, 'x']),
  findPackages: (tx) => contents.findPackages(tx, 'x'),
  isAnyDue: (tx) => contents.isAnyDue(tx, 0, time),
  nextRead: (tx) => contents.nextRead(tx, 0, 'a'.repeat(40)),
  countAgain: (tx) => contents.countAgain(tx, 'a'.repeat(40), 10),
  keepContents: (tx) => contents.keepContents(tx, 1, digest),
  listOutdated: (tx) => contents.listOutdated(tx, 1, 10),
  nextOutdated: (tx) => contents.nextOutdated(tx, 'a'.repeat(40)),
  hasOutdated: (tx) => contents.hasOutdated(tx),
  queueReadAgain: (tx) => contents.queueReadAgain(tx, 1, digest, time),
  queueRead: (tx) => contents.queueRead(tx, 1, digest, time),
  ownedReads: (tx) => contents.ownedReads(tx),
  claimRead: (tx) => contents.claimRead(tx, read, 'node'),
  giveBackRead: (tx) => contents.requeueRead(tx, read, { dueTime: time, attempts: 2 }),
  endRead: (tx) => contents.endRead(tx, read),
  isQueued: (tx) => contents.isQueued(tx, 1, [digest, 'x']),
  typesOf: (tx) => contents.typesOf(tx, 1, digest),
  listSbomsAndStatements: (tx) => attached.listSbomsAndStatements(tx, 1, digest, 11),
  listIndexesWith: (tx) => attached.listIndexesWith(tx, 1, digest),
  listSboms: (tx) => attached.listSboms(tx, 1, digest),
  listEnvelopes: (tx) => attached.listEnvelopes(tx, 1, digest, 10),
  queueIndexesWith: (tx) => contents.queueIndexesWith(tx, 1, digest, time),
  deleteContents: (tx) => contents.deleteContents(tx, 1),
  movesBetween: (tx) => history.movesBetween(tx, 1, 'latest', { from: time, to: time, most: 10 }),
  movesBefore: (tx) => history.movesBefore(tx, 1, 'latest', { before: time, most: 10 }),
  listAbout: (tx) => listAbout(tx, ['a'.repeat(40), 'b'.repeat(40)], ['busybox', 'zlib']),
}

const bad = onPostgres ? /\bSeq Scan\b/ : /\bSCAN (?!.* USING (?:COVERING )?INDEX)|TEMP B-TREE|AUTOMATIC/

for (const [name, ask] of Object.entries(asked)) {
  test(`${name} reads from an index`, async () => {
    for (const query of await queriesOf(ask)) {
      const plan = await pinfold.app.db.plan(query)
      assert.doesNotMatch(plan, bad, `${compile(query, '?')}\n${plan}`)
    }
  })
}

test('reads advisories for a name only of the organizations that they apply to', async () => {
  const groups = ['a'.repeat(40), 'b'.repeat(40)]
  const [query] = await queriesOf((reader) => listAbout(reader, groups, ['busybox', 'zlib']))
  const plan = await pinfold.app.db.plan(query!)
  const within = onPostgres
    ? /Index Cond: .*term_id = .*uid > .*uid < /g
    : /SEARCH p .*\(term_id=\? AND uid>\? AND uid<\?\)/g
  assert.equal(plan.match(within)?.length, groups.length, plan)
})
