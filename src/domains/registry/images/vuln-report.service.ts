// The newest report of an image that a repo holds.
import type { Call } from '#app.ts'
import { newestOutside } from '#domains/scanning/outside/scan-reports.service.ts'
import { type ImageReport, newestReport, vulnReportType } from '#domains/scanning/reports/image-reports.service.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { found, invalid } from '#lib/errors.ts'

export type { ImageReport, ReportedVulnerability } from '#domains/scanning/reports/image-reports.service.ts'

/** Throws NOT_FOUND while nothing is known of the image. */
export async function getVulnReport(call: Call, repo: string, digest: string): Promise<ImageReport> {
  if (!sha256Pattern.test(digest)) {
    throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
  }
  const report = (await newestReport(call, repo, digest)) ?? (await newestOutside(call, repo, digest))
  return found(report, vulnReportType, digest)
}
