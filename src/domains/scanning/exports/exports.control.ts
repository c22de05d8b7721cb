import type { Handlers } from '#app.ts'
import type { FindingsService } from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import { toCoverage, toGap } from '../reports/coverage.control.ts'
import { exportFindings } from './exports.service.ts'

export const findingsExports: Handlers<typeof FindingsService> = {
  async exportImageFindings(call, { repoUid, digest, format }) {
    const { gaps, coverage, ...exported } = await exportFindings(call, repoUid, digest, format)
    return {
      $typeName: 'pinfold.control.scanning.v1.ExportedFindings',
      ...exported,
      gaps: gaps.map(toGap),
      coverage: toCoverage(coverage),
    }
  },
}
