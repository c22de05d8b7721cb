// The scan reads, changes and deletes rows by an index, for any number of packages, findings and records.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { compile, type Reader, type Sql, type Tx } from '#db/sql.ts'
import * as gone from '#domains/registry/images/deleted-contents.store.ts'
import * as contents from '#domains/registry/images/image-contents.store.ts'
import * as imageLists from '#domains/registry/images/image-lists.store.ts'
import * as upkeep from '#domains/scanning/cleanup/cleanup.store.ts'
import * as findings from '#domains/scanning/findings/findings.store.ts'
import * as open from '#domains/scanning/findings/open-findings.store.ts'
import * as suppressions from '#domains/scanning/findings/suppressions.store.ts'
import * as known from '#domains/scanning/image-findings/image-findings.store.ts'
import { createSharedKnown } from '#domains/scanning/image-findings/shared-findings.store.ts'
import * as images from '#domains/scanning/images/images.store.ts'
import * as limits from '#domains/scanning/lists/lists.store.ts'
import * as lists from '#domains/scanning/lists/lists.store.ts'
import * as queue from '#domains/scanning/queue/queue.store.ts'
import * as records from '#domains/scanning/records/records.store.ts'
import { onPostgres, type Pinfold, startPinfold } from '../support/pinfold.ts'
import { recordAbout } from '../support/scanning.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const time = '2026-03-01T00:00:00.000Z'
const page = { after: 1, most: 10 }
const names = { names: ['openssl', 'libssl3'], ecosystems: ['Alpine:v3.19', 'Alpine', 'apk'] }
const key = { hash: 'x', distribution: { id: 'alpine', version: '3.19' } }
const item = {
  ...({ kind: 'list', organization: '', item: '1' } as const),
  ...{ dueTime: time, attempts: 1, owner: '', fence: 1, progress: '' },
}
const run = { sourceNo: 1, generation: 1, now: time }
const edited = { record: recordAbout('CVE-2026-1', 'PyPI', 'flask', '9'), hash: 'h', core: 'c', organization: '' }
const pair = { asOwner: true, one: 1, other: 1 }
const found = { componentNo: 1, affectedNo: 1 }

/** The statements of each function, and the results with which it continues. Without results it stops. */
const asked: Record<string, { ask(tx: Tx): Promise<unknown>; rows?: object[] }> = {
  findList: { ask: (tx) => lists.findList(tx, key) },
  findListByNo: { ask: (tx) => lists.findListByNo(tx, 1) },
  findPayer: { ask: (tx) => lists.findPayer(tx, 1) },
  setPayer: { ask: (tx) => lists.setPayer(tx, 1, { payer: 'a', bytes: 1, charged: 1 }) },
  organizationsWith: { ask: (tx) => contents.organizationsWith(tx, 'x', 10) },
  completeListOf: { ask: (tx) => lists.completeList(tx, 1) },
  unmatchedOf: { ask: (tx) => lists.unmatchedOf(tx, 1, 10) },
  noteListMatched: { ask: (tx) => lists.noteListMatched(tx, 1, time) },
  findLists: { ask: (tx) => lists.findLists(tx, [key, { ...key, hash: 'y' }]) },
  ecosystemsOfList: { ask: (tx) => lists.ecosystemsOfList(tx, { listNo: 1, ecosystems: undefined }) },
  noteEcosystems: { ask: (tx) => lists.noteEcosystems(tx, 1, ['Alpine:v3.19']) },
  matchedListsAfter: { ask: (tx) => lists.matchedListsAfter(tx, 1, 10) },
  setOver: { ask: (tx) => limits.setOver(tx, 1, time) },
  setWithin: { ask: (tx) => limits.setWithin(tx, 1, time) },
  limitsOf: { ask: (tx) => limits.limitsOf(tx, [1, 2]) },
  misheldOfOver: { ask: (tx) => limits.packagesWithWrongHold(tx, 1, true, page) },
  misheldOfWithin: { ask: (tx) => limits.packagesWithWrongHold(tx, 1, false, page) },
  hold: { ask: (tx) => limits.hold(tx, 1, [1, 2]) },
  release: { ask: (tx) => limits.release(tx, 1, [1, 2]) },
  countOpen: { ask: (tx) => limits.countOpen(tx, 1, page) },
  componentsNamed: { ask: (tx) => findings.componentsNamed(tx, 'openssl', { ...page, upTo: 100 }) },
  componentsAfter: { ask: (tx) => findings.componentsAfter(tx, 1, 10) },
  affectedNow: { ask: (tx) => findings.affectedNow(tx, names, page) },
  openFindings: { ask: (tx) => findings.openFindings(tx, [1, 2], { after: 1, upTo: 100 }) },
  closeFindings: { ask: (tx) => findings.closeFindings(tx, [1, 2], time) },
  countOwn: { ask: (tx) => findings.countOwn(tx, { components: [1, 2], organizations: ['a', 'b'] }, 100) },
  noteMatched: { ask: (tx) => findings.noteMatched(tx, [1, 2], time) },
  recordsOf: { ask: (tx) => findings.recordsOf(tx, [1, 2]) },
  severitiesNamed: { ask: (tx) => findings.severitiesNamed(tx, ['CVE-2026-1', 'CVE-2026-2']) },
  pairsTouching: { ask: (tx) => suppressions.pairsTouching(tx, [1, 2], { after: undefined, most: 10 }) },
  pairsTouchingOwners: { ask: (tx) => suppressions.pairsTouching(tx, [1, 2], { after: pair, most: 10 }) },
  pairsOfComponent: { ask: (tx) => suppressions.pairsOfComponent(tx, 1, page) },
  pairsOfList: { ask: (tx) => suppressions.pairsOfList(tx, 1, page) },
  foundIn: { ask: (tx) => suppressions.foundIn(tx, [1, 2], { after: found, most: 10 }) },
  saidAbout: { ask: (tx) => suppressions.advisoryEntriesAbout(tx, names, ['CVE-2026-1', 'CVE-2026-2']) },
  suppressedNow: { ask: (tx) => suppressions.suppressedNow(tx, [1, 2]) },
  endSuppressions: { ask: (tx) => suppressions.endSuppressions(tx, [1, 2], time) },
  componentsUnrated: { ask: (tx) => images.componentsUnrated(tx, ['a'], 10) },
  unratedInList: { ask: (tx) => images.unratedInList(tx, 1, 'a', 10) },
  findKnown: { ask: (tx) => known.findKnown(tx, 1, ['a'], 10) },
  knownTogether: {
    ask: (tx) => createSharedKnown(tx).ofLists([1, 2], ['a'], 10),
  },
  findKnownNow: { ask: (tx) => known.findKnownNow(tx, 1, ['a'], 10) },
  countEntries: { ask: (tx) => limits.countEntries(tx, 1), rows: [{ total: 0 }] },
  pastTexts: { ask: (tx) => known.pastTexts(tx, [1, 2]) },
  editRecord: { ask: (tx) => records.editRecord(tx, run, 1, edited) },
  ratingNames: { ask: (tx) => records.ratingNames(tx, [1, 2]) },
  countedOf: { ask: (tx) => open.countedOf(tx, [1, 2]) },
  countComponents: { ask: (tx) => open.countComponents(tx, [1, 2]) },
  uncountedOf: { ask: (tx) => open.uncountedOf(tx, 1, page) },
  addChanges: { ask: (tx) => open.addChanges(tx, [{ componentNo: 1, delta: 1 }]) },
  nextChange: { ask: (tx) => open.nextChange(tx, 1) },
  advanceChange: { ask: (tx) => open.advanceChange(tx, 1, 2) },
  endChange: { ask: (tx) => open.endChange(tx, 1) },
  listsWith: { ask: (tx) => open.listsWith(tx, 1, page) },
  changeLists: { ask: (tx) => open.changeLists(tx, [1, 2], 1) },
  openOfPage: { ask: (tx) => open.openOfPage(tx, 1, page), rows: [{ total: 0, last: null, least: null, open: 0 }] },
  setOpen: { ask: (tx) => open.setOpen(tx, 1, 1) },
  listsToFollow: { ask: (tx) => open.listsToFollow(tx, [1, 2], { most: 10, leastCharged: 100 }) },
  forgetOpen: { ask: (tx) => open.forgetOpen(tx, 1) },
  openOfComponent: { ask: (tx) => open.openOfComponent(tx, 1) },
  openOfList: { ask: (tx) => open.openOfList(tx, 1) },
  nextMatch: { ask: (tx) => queue.nextMatch(tx, 'a') },
  ownedMatches: { ask: (tx) => queue.ownedMatches(tx) },
  claimMatch: { ask: (tx) => queue.claimMatch(tx, item, 'node') },
  endMatch: { ask: (tx) => queue.endMatch(tx, item) },
  giveBackMatch: { ask: (tx) => queue.requeueMatch(tx, item, time) },
  pauseMatch: { ask: (tx) => queue.pauseMatch(tx, item, time) },
  findCurrent: { ask: (tx) => records.findCurrent(tx, 1, ['CVE-2026-1', 'CVE-2026-2']) },
  listOutdated: { ask: (tx) => records.listOutdated(tx, 1, 2, 10) },
  renewRecords: { ask: (tx) => records.renewRecords(tx, [1, 2], 2) },
  retireRecords: { ask: (tx) => records.retireRecords(tx, [1, 2], time) },
  packagesNamed: { ask: (tx) => records.packagesNamed(tx, ['CVE-2026-1', 'CVE-2026-2'], 10) },
  namesInUse: { ask: (tx) => records.namesInUse(tx, ['openssl', 'libssl3']) },
  isInUse: { ask: (tx) => contents.isInUse(tx, 'x') },
  saveSize: { ask: (tx) => contents.saveSize(tx, 1, 'a', 1) },
  findSizes: { ask: (tx) => contents.findSizes(tx, 1, ['a', 'b']) },
  findPast: { ask: (tx) => contents.findPast(tx, 1, ['a', 'b'], 10) },
  findEverywhere: { ask: (tx) => contents.findEverywhere(tx, 'a', page) },
  contentsAfter: { ask: (tx) => gone.contentsAfter(tx, { repo: 1, digest: 'a' }, 10) },
  pastAfter: { ask: (tx) => gone.pastAfter(tx, { repo: 1, digest: 'a', time }, 10) },
  goneOf: { ask: (tx) => gone.missingDigests(tx, 1, ['a', 'b']) },
  deletePast: { ask: (tx) => gone.deletePast(tx, 1, [{ digest: 'a', time }]) },
  deleteAllPast: { ask: (tx) => gone.deleteAllPast(tx, 1, ['a', 'b']) },
  dropPackages: { ask: (tx) => contents.dropPackages(tx, 'x') },
  componentsWith: { ask: (tx) => images.componentsWith(tx, 'CVE-2026-1', undefined, 10) },
  componentsWithIn: { ask: (tx) => images.componentsWith(tx, 'CVE-2026-1', ['a'], 10) },
  foundInList: { ask: (tx) => images.foundInList(tx, 1, { name: 'CVE-2026-1', organization: '' }, 10) },
  unknownBelow: { ask: (tx) => imageLists.unknownBelow(tx, 'a', 10) },
  listsAfter: { ask: (tx) => upkeep.listsAfter(tx, 1, 10) },
  bury: { ask: (tx) => upkeep.markListDeleted(tx, 1) },
  emptyList: { ask: (tx) => upkeep.emptyList(tx, 1, 10), rows: [{ componentNo: 1 }, { componentNo: 2 }] },
  deleteList: { ask: (tx) => upkeep.deleteList(tx, 1) },
  componentsOnHoldAfter: { ask: (tx) => upkeep.componentsOnHoldAfter(tx, 1, 10) },
  isListed: { ask: (tx) => upkeep.isListed(tx, 1) },
  deleteFindings: {
    ask: (tx) => upkeep.deleteFindings(tx, 1, 10),
    rows: [
      { findingNo: 1, affectedNo: 1, recordNo: 1, organization: '', charged: 0 },
      { findingNo: 2, affectedNo: 2, recordNo: 2, organization: 'a', charged: 200 },
    ],
  },
  deleteTies: { ask: (tx) => upkeep.deleteTies(tx, 1, 10) },
  deleteComponent: { ask: (tx) => upkeep.deleteComponent(tx, 1) },
}

async function queriesOf({ ask, rows = [] }: (typeof asked)[string]): Promise<Sql[]> {
  const queries: Sql[] = []
  const note = async <T>(query: Sql, answer: T): Promise<T> => {
    queries.push(query)
    return answer
  }
  const reader: Reader = {
    all: <T>(query: Sql) => note(query, rows as T[]),
    get: <T>(query: Sql) => note(query, rows[0] as T | undefined),
  }
  await ask({
    ...reader,
    engine: pinfold.app.db.engine,
    run: (query) => note(query, 1),
    shard: 0,
    async meet() {},
    after() {},
  })
  return queries
}

// Sorts contain only the requested rows, and no table is scanned to find them.
const bad = onPostgres
  ? /\bSeq Scan\b/
  : /\bSCAN (?!.* USING (?:COVERING )?INDEX|CONSTANT|\w+ USING INTEGER|p\b|matches\b|\()|AUTOMATIC/

for (const [name, one] of Object.entries(asked)) {
  test(`${name} uses an index`, async () => {
    const queries = await queriesOf(one)
    assert.ok(queries.length > 0)
    for (const query of queries) {
      const plan = await pinfold.app.db.plan(query)
      assert.doesNotMatch(plan, bad, `${compile(query, '?')}\n${plan}`)
    }
  })
}
