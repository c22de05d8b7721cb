import type { Handlers } from '#app.ts'
import type { ScanReport, ScanReportsService, VexStatement } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { scanImage } from '../scanners/scanners.service.ts'
import { importReport, listScanReports, type ReportFacts } from './scan-reports.service.ts'
import { listStatements, type Statement } from './statements.service.ts'

export const scanReports: Handlers<typeof ScanReportsService> = {
  async importScanReport(call, { repoUid, digest, report }) {
    return toMessage(await importReport(call, repoUid, digest, report))
  },

  async scanImage(call, { repoUid, digest }) {
    const scans = await scanImage(call, repoUid, digest)
    return {
      $typeName: 'pinfold.control.scanning.v1.ScanImageResponse',
      scans: scans.map(({ scanner, requestTime, beginTime, attempts, problem, digest: image }) => ({
        $typeName: 'pinfold.control.scanning.v1.ScanRequest',
        ...{ scanner, digest: image, attempts, problem, requestTime: timestamp(requestTime) },
        ...(beginTime === '' ? {} : { beginTime: timestamp(beginTime) }),
      })),
    }
  },

  async listStatements(call, { repoUid, digest }) {
    const statements = (await listStatements(call, repoUid, digest)).map(statementMessage)
    return { $typeName: 'pinfold.control.scanning.v1.ListStatementsResponse', statements }
  },

  async listScanReports(call, { repoUid, digest }) {
    const reports = await listScanReports(call, repoUid, digest)
    return {
      $typeName: 'pinfold.control.scanning.v1.ListScanReportsResponse',
      reports: reports.map(toMessage),
    }
  },
}

function statementMessage({ takeTime, referrer: _, within: __, ...said }: Statement): VexStatement {
  return { $typeName: 'pinfold.control.scanning.v1.VexStatement', ...said, takeTime: timestamp(takeTime) }
}

function toMessage(one: ReportFacts): ScanReport {
  const { id, digest, origin, referrer, rawDigest, actor, state, reason, message, tool, toolVersion, format } = one
  return {
    $typeName: 'pinfold.control.scanning.v1.ScanReport',
    ...{
      id: BigInt(id),
      digest,
      origin,
      referrer,
      rawDigest,
      actor,
      state,
      reason,
      message,
      tool,
      toolVersion,
      format,
    },
    ...{ vulnerabilities: one.total, signatures: one.signatures, signers: one.signers },
    takeTime: timestamp(one.takeTime),
    ...(one.createTime === '' ? {} : { readTime: timestamp(one.createTime), seenTime: timestamp(one.seenTime) }),
    ...(one.buildTime === '' ? {} : { buildTime: timestamp(one.buildTime) }),
  }
}
