// The newest report of an image that a repo holds.
import type { Call } from '#app.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { AppError, found, invalid } from '#lib/errors.ts'
import { newestOutside } from '../outside/scan-reports.service.ts'
import {
  type ImageReport,
  lengthOf,
  maxRaw,
  newestReport,
  packagesLength,
  vulnReportType,
} from './image-reports.service.ts'

export type { ImageReport, ReportedVulnerability } from './image-reports.service.ts'

/** Throws NOT_FOUND while nothing is known of the image. */
export async function getVulnReport(call: Call, repo: string, digest: string): Promise<ImageReport> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  const report = (await newestReport(call, repo, digest)) ?? (await newestOutside(call, repo, digest))
  const { vulnerabilities } = found(report, vulnReportType, digest)
  // Each of its packages repeats what is said of the vulnerability.
  const length = vulnerabilities.reduce(
    (sum, one) => sum + lengthOf(one) * one.packages.length + packagesLength(one),
    0,
  )
  if (length <= maxRaw) return found(report, vulnReportType, digest)
  const message = `the report has more than ${maxRaw} characters; ListVulnReports names each vulnerability once`
  throw new AppError('RESOURCE_EXHAUSTED', message, { reason: 'LIST_TOO_LONG' })
}
