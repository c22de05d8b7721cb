// Findings of other scanners are read from an index in any amount of data.
import { after, before, test } from 'node:test'
import type { Reader, Sql, Tx } from '#db/sql.ts'
import { allRows } from '#domains/registry/repos/removals.model.ts'
import * as reports from '#domains/scanning/scan-reports/scan-reports.store.ts'
import * as said from '#domains/scanning/scan-reports/signed-statements.store.ts'
import * as jobs from '#domains/scanning/scanners/scan-jobs.store.ts'
import * as signed from '#domains/scanning/signers/signed-reports.store.ts'
import * as signers from '#domains/scanning/signers/signers.store.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { checkPlanOf } from '../support/plans.ts'

let pinfold: Pinfold
before(async () => {
  pinfold = await startPinfold()
})
after(() => pinfold[Symbol.asyncDispose]())

const digest = `sha256:${'c'.repeat(64)}`
const time = '2026-03-01T00:00:00.000Z'
const organization = 'a'.repeat(40)
const repo = { id: 1, uid: organization }
const about = { repo, digest, origin: 'referrer' as const, referrer: digest, rawDigest: digest, actor: '' }
const read = {
  ...{ scanner: 1, tool: 'grype', toolVersion: '1', format: 'grype', buildTime: '', total: 0 },
  ...{ vulnerabilities: '[]', levels: '[]', statements: '', signatures: 0, note: '' },
}
const image = { repoUid: organization, digest }

const filter = { scanner: 1, since: '', until: time, most: 10 }

async function queriesOf(ask: (tx: Tx) => Promise<unknown>): Promise<Sql[]> {
  const queries: Sql[] = []
  const note = async <T>(query: Sql, answer: T): Promise<T> => {
    queries.push(query)
    return answer
  }
  const reader: Reader = { all: (query) => note(query, []), get: (query) => note(query, undefined) }
  const { engine } = pinfold.app.db
  await ask({ ...reader, engine, run: (query) => note(query, 0), shard: 0, async meet() {}, after() {} })
  return queries
}

const job = { organization, digest, mediaType: '', actor: '', requestTime: time }
const state = { id: 1, remote: '', beginTime: '', attempts: 0, problem: '' }

const byUid = { field: 'uid', column: 'uid', desc: false }
const page = { order: byUid, after: undefined, size: 50, skip: 0, binding: '' }

const asked: Record<string, (tx: Tx) => Promise<unknown>> = {
  reviveReport: (tx) => reports.reviveReport(tx, about, time),
  isPushed: (tx) => reports.isPushed(tx, about),
  countWaiting: (tx) => reports.countWaiting(tx, organization, 10),
  nextWaiting: (tx) => reports.nextWaiting(tx, organization),
  postponeReport: (tx) => reports.postponeReport(tx, 1, 1, time),
  ignoreReport: (tx) => reports.ignoreReport(tx, 1, 'X', ''),
  finishReport: (tx) => reports.finishReport(tx, 1, read, time),
  findSame: (tx) => reports.findSame(tx, { repo: 1, digest, rawDigest: digest }, read),
  pruneReports: (tx) => reports.pruneReports(tx, 1, digest),
  listFacts: (tx) => reports.listFacts(tx, 1, digest, 10),
  factsOfRepo: (tx) => reports.factsOfRepo(tx, 1, 10),
  factsOfDigest: (tx) => reports.factsOfDigest(tx, digest, undefined, filter),
  factsOfOrganization: (tx) => reports.factsOfDigest(tx, digest, { organization, scopes: [organization] }, filter),
  findReport: (tx) => reports.findReport(tx, 1),
  findLevels: (tx) => reports.findLevels(tx, 1),
  documentsOf: (tx) => reports.documentsOf(tx, 1, digest, 10),
  findStatements: (tx) => reports.findStatements(tx, 1),
  deleteAllReportsOf: (tx) => reports.deleteReportsOf(tx, 1, allRows),
  deleteReportsOf: (tx) => reports.deleteReportsOf(tx, 1, 10),
  deleteReportsOfImage: (tx) => reports.deleteReportsOfImage(tx, 1, digest),
  signedBelow: (tx) => signed.signedBelow(tx, organization, { after: 1, most: 10 }),
  checkSigned: (tx) => signed.checkSigned(tx, [1], time),
  nextUnchecked: (tx) => signed.nextUnchecked(tx, organization),
  noteChecked: (tx) => signed.noteChecked(tx, 1, [], 1),
  saidNow: (tx) => said.activeStatements(tx, image, 'x', ['CVE-1']),
  countSigned: (tx) => said.countSigned(tx, image, 10),
  hidingOf: (tx) => said.ignoringStatementsOf(tx, image, ['CVE-1']),
  hasSigned: (tx) => said.hasSigned(tx, organization),
  deleteSignedOf: (tx) => said.deleteSignedOf(tx, organization, allRows),
  deleteSomeSignedOf: (tx) => said.deleteSignedOf(tx, organization, 10),
  deleteSignedOfImage: (tx) => said.deleteSignedOfImage(tx, organization, digest),
  nextSigned: (tx) => said.nextSigned(tx, image),
  deleteSignedOfDeleted: (tx) => said.deleteSignedOfDeleted(tx, image, 10),
  'a page of signers': (tx) => signers.signerTable.list.page(tx, [organization], page, { now: time }),
  signersAt: (tx) => signers.signersAt(tx, [organization], time),
  countSigners: (tx) => signers.countLive(tx, organization, 10),
  dueSigners: (tx) => signers.signerTable.due(tx, time, 10),
  nextNew: (tx) => signers.nextNew(tx, 0),
  insertJob: (tx) => jobs.insertJob(tx, 1, 1, job),
  organizationsDue: (tx) => jobs.organizationsDue(tx, 1, organization, time),
  nextJob: (tx) => jobs.nextJob(tx, 1, organization, time),
  noteJob: (tx) => jobs.noteJob(tx, state, time),
  deleteJob: (tx) => jobs.deleteJob(tx, 1),
  repoOf: (tx) => jobs.repoOf(tx, 1),
  jobsOf: (tx) => jobs.jobsOf(tx, 1, [digest]),
  isWaiting: (tx) => jobs.isWaiting(tx, 1),
  deleteJobsOfImage: (tx) => jobs.deleteJobsOfImage(tx, 1, digest),
  deleteSomeJobsOf: (tx) => jobs.deleteJobsOf(tx, 1, 10),
  deleteSomeJobsFor: (tx) => jobs.deleteSomeJobsFor(tx, 1, 10),
  deleteJobsOf: (tx) => jobs.deleteJobsOf(tx, 1, allRows),
}

for (const [name, ask] of Object.entries(asked)) {
  test(`${name} uses an index`, async () => {
    for (const query of await queriesOf(ask)) await checkPlanOf(pinfold, query, name)
  })
}
