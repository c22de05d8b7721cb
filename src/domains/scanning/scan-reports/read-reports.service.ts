// Parses queued scan reports one after the other, in a separate process.
import type { App } from '#app.ts'
import { ContentMissing } from '#blobs/blobs.ts'
import { Unreadable } from '#contents/packages.ts'
import type { Reader } from '#contents/reader.ts'
import type { ScanReport } from '#contents/reports/scan-report.ts'
import type { Tx } from '#db/sql.ts'
import { locationIn } from '#domains/registry/blobs/blobs.service.ts'
import { charge, giveBack } from '#domains/registry/blobs/usage.service.ts'
import { scannableIn } from '#domains/registry/images/scannable.service.ts'
import { AppError } from '#lib/errors.ts'
import { dueByOrganization } from '#lib/scheduling/read-scheduler.ts'
import {
  maxReportBytes,
  type ReadReport,
  reportOrigins,
  scannerNumbers,
  sizeOf,
  type WaitingReport,
} from './scan-reports.model.ts'
import * as store from './scan-reports.store.ts'

export { createReader, type Reader, type ReaderLimits, readerLimits } from '#contents/reader.ts'

/** Runs a write transaction. Fails if the job has lost its lease. */
export type Write = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>

/** Yields the first due report of each organization. Begins with the organization that follows `after`. */
export function dueReports({ db, clock }: App, after: string): AsyncGenerator<WaitingReport> {
  return dueByOrganization((behind) => store.nextWaiting(db, behind), after, clock().toISOString())
}

const isPushed: ReadonlySet<number> = new Set([reportOrigins.referrer, reportOrigins.attestation])
export const maxAttempts = 10
const backOffMs = 10_000
const longestBackOffMs = 6 * 3_600_000

/** Time of the next attempt to parse a report. The delay grows exponentially up to 6 hours. */
export const nextAttemptTime = ({ clock }: App, attempts: number): string =>
  new Date(clock().getTime() + Math.min(backOffMs * 4 ** (attempts - 1), longestBackOffMs)).toISOString()

/**
 * Parses one report and stores its findings. If the report cannot be used, stores the reason. Rejects only if `signal` aborts or
 * the lease is lost.
 */
export async function readOne(
  app: App,
  reader: Reader,
  waiting: WaitingReport,
  { write, signal }: { write: Write; signal: AbortSignal },
): Promise<void> {
  let read: ScanReport
  try {
    read = await reader.readReport(await opened(app, waiting), signal)
  } catch (error) {
    signal.throwIfAborted()
    return postponeOrIgnore(app, waiting, error, write)
  }
  const elsewhere = await problemOfSubjects(app, waiting, read)
  if (elsewhere) return write((tx) => storeIgnored(tx, waiting, 'OTHER_SUBJECT', elsewhere))
  await storeReport(app, waiting, read, write)
}

/**
 * Describes the problem if the subject of an in-toto statement is neither the image nor an image that its index lists. An
 * unsigned statement may have no subjects.
 */
async function problemOfSubjects(
  { db }: App,
  { repo, digest }: WaitingReport,
  { subjects, sealed }: ScanReport,
): Promise<string | undefined> {
  if (!subjects || (subjects.length === 0 && !sealed) || (await areOf(db, repo, digest, subjects))) return undefined
  return 'the statement is not about the image that it refers to'
}

/** True if one of the subjects is the digest of the image or of an image that the index lists. */
export async function areOf(
  db: App['db'],
  repo: number,
  digest: string,
  subjects: readonly string[],
): Promise<boolean> {
  if (subjects.includes(digest)) return true
  return subjects.length > 0 && (await scannableIn(db, repo, digest)).some((one) => subjects.includes(one.digest))
}

/** Opens the stored content of a report. Throws Unreadable if the blob is missing or has more than 32 MiB. */
export async function opened({ db, blobs }: App, { repo, rawDigest }: Pick<WaitingReport, 'repo' | 'rawDigest'>) {
  const blob = await locationIn(db, repo, rawDigest)
  if (!blob) throw new Unreadable('BLOB_MISSING', `the repository does not have the blob ${rawDigest}`)
  if (blob.size > maxReportBytes) {
    throw new Unreadable('LIMIT_EXCEEDED', `the report has more than ${maxReportBytes} bytes`)
  }
  return async (until: AbortSignal) => {
    try {
      const stream = (await blobs.read(blob)).stream()
      if (until.aborted) stream.destroy()
      until.addEventListener('abort', () => stream.destroy(), { once: true })
      return stream
    } catch (error) {
      throw error instanceof ContentMissing
        ? new Unreadable('BLOB_MISSING', `the blob store does not have the blob ${rawDigest}`)
        : error
    }
  }
}

async function postponeOrIgnore(app: App, waiting: WaitingReport, error: unknown, write: Write): Promise<void> {
  const { id, repo, digest, origin } = waiting
  const attempts = waiting.attempts + 1
  const isFaulty = error instanceof Unreadable && error.reason !== 'BLOB_MISSING'
  if (!isFaulty && attempts < maxAttempts) {
    if (!(error instanceof Unreadable))
      app.log.error('reading a scanner report failed and is tried again', { repo, digest, attempts, error })
    return write((tx) => store.postponeReport(tx, id, attempts, nextAttemptTime(app, attempts)))
  }
  const [reason, message] =
    error instanceof Unreadable
      ? [error.reason, error.message]
      : ['FAILED', `the report could not be read in ${maxAttempts} attempts`]
  await write(async (tx) => {
    // A pushed CycloneDX SBOM without vulnerabilities is not a faulty report, so it is deleted without a message.
    if (reason === 'UNSUPPORTED' && isPushed.has(origin)) return store.deleteReport(tx, id)
    return storeIgnored(tx, waiting, reason, message)
  })
}

async function storeIgnored(
  tx: Tx,
  { id, organization, repo, digest }: WaitingReport,
  reason: string,
  message: string,
) {
  await store.ignoreReport(tx, id, reason, message)
  await giveBack(tx, organization, await store.pruneReports(tx, repo, digest))
}

async function storeReport(app: App, waiting: WaitingReport, read: ScanReport, write: Write): Promise<void> {
  const { id, repo, digest, organization } = waiting
  const { tool, format, vulnerabilities } = read
  const buildTime = read.dbBuildTime || waiting.buildTime
  const report: ReadReport = {
    ...{ scanner: scannerNumbers[tool.name] ?? 0, tool: tool.name, toolVersion: tool.version, format, buildTime },
    ...{ total: vulnerabilities.length, vulnerabilities: JSON.stringify(vulnerabilities) },
    levels: JSON.stringify(vulnerabilities.map((one) => [one.id, one.severity])),
    statements: read.statements ? JSON.stringify(read.statements) : '',
    ...{ signatures: read.signatures ?? 0, note: read.note ?? '' },
  }
  try {
    await write(async (tx) => {
      const now = app.clock().toISOString()
      const same = await store.findSame(tx, waiting, report)
      if (same !== undefined) {
        await store.noteLastSeen(tx, same, now)
        return storeIgnored(tx, waiting, 'SAME', `the report has the same content as report ${same}`)
      }
      if (!(await store.finishReport(tx, id, report, now))) return
      await giveBack(tx, organization, await store.pruneReports(tx, repo, digest))
      await charge(tx, { app }, organization, sizeOf(report))
    })
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'RESOURCE_EXHAUSTED') throw error
    await write((tx) => storeIgnored(tx, waiting, 'QUOTA_EXCEEDED', error.message))
  }
  app.log.info('scanner report read', {
    repo,
    digest,
    tool: tool.name,
    format,
    vulnerabilities: vulnerabilities.length,
  })
}
