// Sends one request for a scan: starts the scan, or asks for its report. The state is in the database after each request, so a
// server that stops loses no work. If the scanner has lost a scan, the scan is started again.
import type { App, Work } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { noRights } from '#domains/iam/access/rights.ts'
import { giveBack } from '#domains/registry/blobs/usage.service.ts'
import { findRepoByUid, pathIn, type RepoNamed } from '#domains/registry/repos/paths.service.ts'
import { ownCause } from '#lib/cause.ts'
import { AppError } from '#lib/errors.ts'
import { operatorUid, parentOf } from '#lib/uid.ts'
import { mostWaiting, type NewReport } from '../scan-reports/scan-reports.model.ts'
import { countWaiting, insertReport, pruneReports } from '../scan-reports/scan-reports.store.ts'
import { storeScanReport } from '../scan-reports/stored-report.service.ts'
import { beginScan, fetchReport, type ScannerAddress, ScannerError } from './adapter.service.ts'
import * as store from './scan-jobs.store.ts'
import { isFor, type ScanJob, type Scanner } from './scanners.model.ts'
import { noteProblem } from './scanners.store.ts'

/** `url` is the address at which clients reach this server. */
export type Scanning = { app: App; lease: Lease; scanner: Scanner; asked: ScannerAddress; url: string }
/** Results of a request. `away`: the scanner did not answer, so it gets no requests for a while. */
export type Stepped = 'started' | 'reported' | 'waits' | 'dropped' | 'away'

const firstLookMs = 2_000
const nextLookMs = 5_000
/** Timeout of a started scan in ms. */
const longestScanMs = 30 * 60_000
/** Delay in ms after a scanner was unavailable, or if a job cannot continue. */
export const awayMs = 60_000
const backOffMs = 10_000
const longestBackOffMs = 3_600_000
/** Limit on the attempts of a scan. Attempts during which the scanner was unavailable are not counted. */
const mostAttempts = 8

/** Sends the next request of a job. Does not throw errors of the scanner. */
export async function stepScan(scanning: Scanning, job: ScanJob): Promise<Stepped> {
  const { app, lease, scanner } = scanning
  const uid = (await store.repoOf(app.db, job.repo))?.uid
  const repo = uid === undefined ? undefined : await findRepoByUid(app.db, uid)
  // The operator may have excluded the repository since the job was queued.
  if (!repo || !isFor(scanner, repo)) {
    await lease.tx((tx) => store.deleteJob(tx, job.id))
    return 'dropped'
  }
  if (scanner.consumes.length > 0 && !scanner.consumes.includes(job.mediaType)) {
    return failJob(scanning, repo, job, 'UNSUPPORTED', `${scanner.name} does not scan images of type ${job.mediaType}`)
  }
  try {
    return job.remote === '' ? await startScan(scanning, repo, job) : await pollReport(scanning, repo, job)
  } catch (error) {
    if (!(error instanceof ScannerError)) throw error
    return handleScannerError(scanning, repo, job, error)
  }
}

async function startScan(scanning: Scanning, repo: RepoNamed, job: ScanJob): Promise<Stepped> {
  const { app, scanner, asked, url } = scanning
  const path = await pathIn(app.db, parentOf(repo.uid), repo.name)
  const token = await app.scannerToken({ url, scanner: scanner.name, repo: { uid: repo.uid, path } })
  const remote = await beginScan(asked, {
    registryUrl: scanner.registryUrl || url,
    authorization: `Bearer ${token}`,
    repository: path,
    digest: job.digest,
    mediaType: job.mediaType,
    produces: scanner.produces,
  })
  if (scanner.problem !== '') await scanning.lease.tx((tx) => noteProblem(tx, scanner, ''))
  await saveJob(scanning, { ...job, remote, beginTime: app.clock().toISOString(), problem: '' }, firstLookMs)
  return 'started'
}

async function pollReport(scanning: Scanning, repo: RepoNamed, job: ScanJob): Promise<Stepped> {
  const { app, scanner, asked } = scanning
  // If the queue of reports to be parsed is full, the report is requested later.
  if ((await countWaiting(app.db, job.organization, mostWaiting)) >= mostWaiting) {
    await saveJob(scanning, job, awayMs)
    return 'waits'
  }
  const answer = await fetchReport(asked, job.remote, scanner.produces)
  if ('body' in answer) return storeReport(scanning, repo, job, Buffer.from(answer.body))
  if (app.clock().getTime() - Date.parse(job.beginTime) > longestScanMs) {
    throw new ScannerError('failed', `the scan did not finish within ${longestScanMs / 60_000} minutes`)
  }
  await saveJob(scanning, job, Math.max(answer.waitMs || nextLookMs, 1000))
  return 'waits'
}

async function storeReport(scanning: Scanning, repo: RepoNamed, job: ScanJob, content: Buffer): Promise<Stepped> {
  const { app, lease, scanner, url } = scanning
  if (content.length === 0) throw new ScannerError('failed', 'the report of the scanner is empty')
  // If the job was deleted with its image during the request, no blob is stored.
  if (!(await store.isWaiting(app.db, job.id))) return 'dropped'
  try {
    const rawDigest = await storeScanReport(workOf(app), repo, content, url)
    if (rawDigest === undefined) return 'dropped'
    await lease.tx(async (tx) => {
      // If the job was deleted meanwhile, nothing refers to the stored blob, so garbage collection deletes it.
      if (!(await store.deleteJob(tx, job.id))) return
      const { buildTime } = scanner
      await insertReport(
        tx,
        { ...toNewReport(scanning, repo, job), rawDigest, buildTime },
        undefined,
        app.clock().toISOString(),
      )
    })
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'RESOURCE_EXHAUSTED') throw error
    return failJob(scanning, repo, job, 'QUOTA_EXCEEDED', error.message)
  }
  app.scanning.reported.notify()
  return 'reported'
}

const toNewReport = ({ scanner }: Scanning, repo: RepoNamed, { digest, actor }: ScanJob): NewReport => ({
  ...{ repo, digest, origin: 'scanner', referrer: scanner.name, rawDigest: '', actor },
})

/** Work of the operator, who configured the scanner. */
function workOf(app: App): Work {
  const caller = { uid: operatorUid, operator: true, rights: noRights }
  return { app, caller, cause: ownCause(app.clock, operatorUid), log: app.log }
}

async function handleScannerError(
  scanning: Scanning,
  repo: RepoNamed,
  job: ScanJob,
  error: ScannerError,
): Promise<Stepped> {
  const { app, scanner } = scanning
  const { trouble, message, waitMs } = error
  const isLate = job.beginTime !== '' && app.clock().getTime() - Date.parse(job.beginTime) > longestScanMs
  if (trouble === 'away' && !isLate) {
    await saveJob(scanning, { ...job, problem: message }, Math.max(waitMs, awayMs))
    await scanning.lease.tx((tx) => noteProblem(tx, scanner, message))
    return 'away'
  }
  const attempts = job.attempts + 1
  if (trouble === 'refused' || attempts >= mostAttempts) {
    return failJob(scanning, repo, job, 'SCANNER_FAILED', `${scanner.name}: ${message}`)
  }
  const backMs = Math.min(backOffMs * 4 ** (attempts - 1), longestBackOffMs)
  await saveJob(scanning, { ...job, remote: '', beginTime: '', attempts, problem: message }, Math.max(waitMs, backMs))
  return 'waits'
}

/** Postpones the job without changing its state. */
export async function postpone(scanning: Pick<Scanning, 'app' | 'lease'>, job: ScanJob): Promise<void> {
  await saveJob(scanning, job, awayMs)
}

async function saveJob({ app, lease }: Pick<Scanning, 'app' | 'lease'>, job: ScanJob, waitMs: number): Promise<void> {
  const dueTime = new Date(app.clock().getTime() + waitMs).toISOString()
  await lease.tx((tx) => store.noteJob(tx, job, dueTime))
}

/** Ends the job as failed. The reason appears in the list of the image's reports. */
async function failJob(
  scanning: Scanning,
  repo: RepoNamed,
  job: ScanJob,
  reason: string,
  message: string,
): Promise<Stepped> {
  const { app, lease, scanner } = scanning
  await lease.tx(async (tx) => {
    if (!(await store.deleteJob(tx, job.id))) return
    await insertReport(tx, toNewReport(scanning, repo, job), { reason, message }, app.clock().toISOString())
    await giveBack(tx, repo.uid, await pruneReports(tx, repo.id, job.digest))
  })
  app.log.warn('scan failed', { scanner: scanner.name, repo: repo.uid, digest: job.digest, reason, why: message })
  return 'dropped'
}
