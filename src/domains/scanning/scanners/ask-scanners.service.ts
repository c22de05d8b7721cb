// Processes scan jobs. Each scanner has a separate limit on concurrent requests, and organizations take turns. So a slow scanner
// does not delay other scanners, and an organization with many jobs does not delay other organizations.
import { setTimeout as sleep } from 'node:timers/promises'
import type { App } from '#app.ts'
import type { Lease } from '#db/leases.ts'
import { readMetadata, type ScannerAddress, ScannerError } from './adapter.service.ts'
import { nextJob, organizationsDue } from './scan-jobs.store.ts'
import { awayMs, postpone, type Stepped, stepScan } from './scan-step.service.ts'
import type { ScanJob, Scanner } from './scanners.model.ts'
import { addressOf } from './scanners.service.ts'
import * as store from './scanners.store.ts'

/** Limit on concurrent requests to one scanner. Each of these requests is for another organization. */
const mostAtOnce = 4
/** Time in ms after which a scanner's metadata is read again. */
const metadataMs = 3_600_000
/** Interval in ms at which new jobs are searched for while requests are in progress. */
const lookMs = 1000

export type ScanRun = { started: number; reported: number; dropped: number }

type ScannerQueue = {
  scanner: Scanner
  /** Organizations with a request in progress. */
  serving: Set<string>
  /** The organization whose job was started last. */
  after: string
  /** Time in ms until which the scanner gets no requests, because it was unavailable. */
  pausedUntil: number
  /**
   * For each organization, the time in ms until which the scanner gets no requests for it. A pushed image can be the reason that
   * the scanner does not answer.
   */
  resting: Map<string, number>
  /** True if the scanner did not answer a request for an image. Then the scanner's metadata is read again before the next job. */
  needsMetadata: boolean
}

/** Processes jobs until none is due. */
export async function askScanners(app: App, lease: Lease): Promise<ScanRun> {
  const sum: ScanRun = { started: 0, reported: 0, dropped: 0 }
  const url = await store.servedUrl(app.db, app.config.url)
  if (url === '') return sum
  const all = new Map<number, ScannerQueue>()
  const flights = new Set<Promise<void>>()
  const failures: unknown[] = []
  let news = Promise.withResolvers<void>()
  const unsubscribe = app.scanning.scans.subscribe(() => news.resolve())
  try {
    while (lease.holds() && failures.length === 0) {
      const coming = news.promise
      for (const scanner of await store.listScanners(app.db)) {
        const scannerQueue = all.get(scanner.id) ?? createScannerQueue(scanner)
        all.set(scanner.id, scannerQueue)
        scannerQueue.scanner = scanner
        for (const job of await findDueJobs(app, scannerQueue)) {
          const flight: Promise<void> = processJob({ app, lease, url }, scannerQueue, job)
            .then((stepped) => {
              if (stepped === 'away') pauseOrganization(scannerQueue, job, app.clock().getTime() + awayMs)
              else if (stepped !== 'waits') sum[stepped]++
            })
            .catch((error: unknown) => void failures.push(error))
            .finally(() => {
              scannerQueue.serving.delete(job.organization)
              flights.delete(flight)
              news.resolve()
            })
          flights.add(flight)
        }
      }
      if (flights.size === 0) break
      await Promise.race([coming, sleep(lookMs, undefined, { ref: false })])
      news = Promise.withResolvers()
    }
  } finally {
    unsubscribe()
    await Promise.all(flights)
  }
  if (failures.length > 0 && !lease.signal.aborted) throw failures[0]
  return sum
}

const createScannerQueue = (scanner: Scanner): ScannerQueue => ({
  scanner,
  ...{ serving: new Set(), after: '', pausedUntil: 0, resting: new Map(), needsMetadata: false },
})

/**
 * Pauses the jobs of an organization. If the scanner does not return its metadata at the next job, jobs of all organizations
 * pause.
 */
function pauseOrganization(scannerQueue: ScannerQueue, { organization }: ScanJob, until: number): void {
  scannerQueue.resting.set(organization, until)
  scannerQueue.needsMetadata = true
}

/**
 * Next due jobs, one for each organization, up to the limit on concurrent requests. Begins with the organization after the last
 * one.
 */
async function findDueJobs({ db, clock }: App, scannerQueue: ScannerQueue): Promise<ScanJob[]> {
  if (scannerQueue.pausedUntil > clock().getTime() || scannerQueue.serving.size >= mostAtOnce) return []
  const now = clock().toISOString()
  for (const [organization, until] of scannerQueue.resting)
    if (until <= Date.parse(now)) scannerQueue.resting.delete(organization)
  const jobs: ScanJob[] = []
  for (const organization of await organizationsDue(db, scannerQueue.scanner.id, scannerQueue.after, now)) {
    if (scannerQueue.serving.has(organization) || scannerQueue.resting.has(organization)) continue
    const job = await nextJob(db, scannerQueue.scanner.id, organization, now)
    if (!job) continue
    scannerQueue.serving.add(organization)
    scannerQueue.after = organization
    jobs.push(job)
    if (scannerQueue.serving.size >= mostAtOnce) break
  }
  return jobs
}

type Serving = { app: App; lease: Lease; url: string }

/**
 * Sends the next request of a job. Throws only if the job cannot be postponed, for example because the database is unavailable.
 */
async function processJob({ app, lease, url }: Serving, scannerQueue: ScannerQueue, job: ScanJob): Promise<Stepped> {
  const { scanner } = scannerQueue
  try {
    const asked = await findScanner(app, lease, scannerQueue)
    if (asked === 'gone') return 'dropped'
    if (asked !== 'away') return await stepScan({ app, lease, url, ...asked }, job)
    scannerQueue.pausedUntil = app.clock().getTime() + awayMs
    await postpone({ app, lease }, job)
    return 'away'
  } catch (error) {
    if (!lease.holds()) throw error
    // The cause can be a full disk. This job is postponed, and other jobs continue.
    app.log.error('scan step failed and is tried again', { error, scanner: scanner.name, digest: job.digest })
    await postpone({ app, lease }, job)
    return 'waits'
  }
}

/** Address of the scanner and its current metadata. Returns `gone` for a removed scanner, and `away` for an unavailable one. */
async function findScanner(
  app: App,
  lease: Lease,
  scannerQueue: ScannerQueue,
): Promise<{ scanner: Scanner; asked: ScannerAddress } | 'gone' | 'away'> {
  const { scanner, needsMetadata } = scannerQueue
  try {
    const address = await addressOf(app, scanner)
    if (!address) return 'gone'
    const asked: ScannerAddress = { outgoing: app.toScanners, signal: lease.signal, ...address }
    const now = app.clock()
    if (!needsMetadata && scanner.askTime !== '' && now.getTime() - Date.parse(scanner.askTime) < metadataMs)
      return { scanner, asked }
    const problem = needsMetadata ? scanner.problem : ''
    const metadata = { ...(await readMetadata(asked)), askTime: now.toISOString(), problem }
    await lease.tx((tx) => store.storeScannerMetadata(tx, scanner, metadata))
    scannerQueue.needsMetadata = false
    return { scanner: { ...scanner, ...metadata }, asked }
  } catch (error) {
    if (!(error instanceof ScannerError)) throw error
    await lease.tx((tx) => store.noteProblem(tx, scanner, error.message))
    return 'away'
  }
}
