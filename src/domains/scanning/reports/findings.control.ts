import type { Handlers } from '#app.ts'
import type { FindingsService } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { verifyStep } from '../findings/verify.service.ts'
import { ownSource } from '../own-advisories/own-advisories.service.ts'
import type { Statement } from '../scan-reports/statements.service.ts'
import { statementsFor } from '../scan-reports/statements-for.service.ts'
import { toCoverage, toGap } from './coverage.control.ts'
import { imageFindings, type ShownFinding } from './findings.service.ts'

export const findings: Handlers<typeof FindingsService> = {
  async getImageFindings(call, { repoUid, digest }) {
    const { findings: found, gaps, coverage } = await imageFindings(call, repoUid, digest)
    const asked = found.map(({ vulnerabilities, record, component }) => {
      return { names: [...vulnerabilities, record.id, ...record.aliases], component }
    })
    const allStatements = await statementsFor(call, repoUid, digest, asked)
    return {
      $typeName: 'pinfold.control.scanning.v1.ImageFindings',
      digest,
      findings: found.map((one, i) => ({ ...toMessage(one), statements: allStatements[i]!.map(statementMessage) })),
      gaps: gaps.map(toGap),
      coverage: toCoverage(coverage),
    }
  },

  async verifyFindings(call, { after }) {
    const { checked, differences, next, waiting } = await verifyStep(call.app, after)
    return {
      $typeName: 'pinfold.control.scanning.v1.VerifyFindingsResponse',
      checked: BigInt(checked),
      differences,
      next,
      waiting: BigInt(waiting),
    }
  },
}

function statementMessage({ takeTime, referrer: _, within: __, ...statement }: Statement) {
  const $typeName = 'pinfold.control.scanning.v1.VexStatement' as const
  return { $typeName, ...statement, takeTime: timestamp(takeTime) }
}

function toMessage({
  vulnerabilities,
  purl,
  locations,
  source,
  record,
  affected,
  fixes,
  level,
  title,
  score,
  foundTime,
  suppressedBy,
  acceptedBy,
  rank: { exploited, likelihood },
}: ShownFinding) {
  return {
    $typeName: 'pinfold.control.scanning.v1.Finding' as const,
    vulnerabilities,
    purl,
    locations,
    source,
    // For our own advisories, the record is shown as the advisory's public ID.
    record: source === ownSource ? (record.aliases[0] ?? '') : record.id,
    ecosystem: affected.ecosystem,
    package: affected.name,
    ranges: JSON.stringify(affected.ranges),
    fixedVersions: fixes,
    ...{ severity: level, title },
    ...(score !== undefined && { score }),
    foundTime: timestamp(foundTime),
    public: affected.organization === '',
    acceptedBy: acceptedBy.map(({ vulnerability, uid, signer, reason, actor, expireTime }) => ({
      $typeName: 'pinfold.control.scanning.v1.AcceptedRisk' as const,
      ...{ vulnerability, riskAcceptanceUid: uid, vexSignerUid: signer, reason, actor },
      expireTime: timestamp(expireTime),
    })),
    ...(exploited && { exploited: { $typeName: 'pinfold.control.scanning.v1.Exploited' as const, ...exploited } }),
    ...(likelihood && { likelihood: { $typeName: 'pinfold.control.scanning.v1.Likelihood' as const, ...likelihood } }),
    ...(suppressedBy && {
      suppressedBy: {
        $typeName: 'pinfold.control.scanning.v1.Suppression' as const,
        ...suppressedBy,
        fromTime: timestamp(suppressedBy.fromTime),
      },
    }),
  }
}
