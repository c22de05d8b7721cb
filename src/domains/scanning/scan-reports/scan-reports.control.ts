import type { Handlers } from '#app.ts'
import type { ScanReport, ScanReportsService, VexStatement } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { pageOf, readPage } from '#lib/lists/paging.ts'
import { timestamp } from '#lib/timestamp.ts'
import { importReport, listScanReports, type ReportFacts } from './scan-reports.service.ts'
import { getStatement, listStatements, type Statement } from './statements.service.ts'

const takeTime = { column: 'take_time', sort: true } as const
const reportRules = { fields: { id: { column: 'id', sort: true }, takeTime }, defaultOrder: 'id desc' } as const
const statementRules = {
  fields: { takeTime, vulnerability: { column: 'vulnerability', sort: true } },
  defaultOrder: 'take_time desc',
} as const

/** Number with leading zeros, so that texts sort in the order of the numbers. */
const numbered = (number: number): string => String(number).padStart(16, '0')

/** Sort key of a statement. Statements of newer documents sort later. Within a document, statements sort in reverse order. */
function sortKeyOf({ uid }: Statement): string {
  const [document = '', position = ''] = uid.split('.')
  return `${numbered(Number(document))}.${numbered(1e6 - Number(position))}`
}

export const scanReports: Handlers<typeof ScanReportsService> = {
  async importScanReport(call, { repoUid, digest, report }) {
    return toMessage(await importReport(call, repoUid, digest, report))
  },

  async getStatement(call, { repoUid, digest, uid }) {
    return statementMessage(await getStatement(call, repoUid, digest, uid))
  },

  async listStatements(call, request) {
    const { repoUid, digest } = request
    const page = readPage(call, request, statementRules, [repoUid, digest])
    const all = await listStatements(call, repoUid, digest)
    const listed = pageOf(call, page, all, (one) => {
      return { value: page.order.field === 'takeTime' ? one.takeTime : one.vulnerability, uid: sortKeyOf(one) }
    })
    const response = 'pinfold.control.scanning.v1.ListStatementsResponse'
    return listResponse(response, 'statements', listed, statementMessage, request)
  },

  async listScanReports(call, request) {
    const { repoUid, digest } = request
    const page = readPage(call, request, reportRules, [repoUid, digest])
    const all = await listScanReports(call, repoUid, digest)
    const listed = pageOf(call, page, all, (one) => {
      return { value: page.order.field === 'takeTime' ? one.takeTime : numbered(one.id), uid: numbered(one.id) }
    })
    const response = 'pinfold.control.scanning.v1.ListScanReportsResponse'
    return listResponse(response, 'reports', listed, toMessage, request)
  },
}

function statementMessage({ takeTime, referrer: _, within: __, ...statement }: Statement): VexStatement {
  return { $typeName: 'pinfold.control.scanning.v1.VexStatement', ...statement, takeTime: timestamp(takeTime) }
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
