// API messages for coverage gaps and for the state of a scan result.
import {
  type CoverageGap,
  type ResultCoverage as CoverageMessage,
  ResultCoverage_State,
} from '#gen/pinfold/control/scanning/v1/findings_pb.ts'
import type { Gap } from '../image-findings/reports.model.ts'
import type { ResultCoverage } from './result-coverage.model.ts'

export const toGap = (gap: Gap): CoverageGap => ({ $typeName: 'pinfold.control.scanning.v1.CoverageGap', ...gap })

export const toCoverage = ({ state, ...rest }: ResultCoverage): CoverageMessage => ({
  $typeName: 'pinfold.control.scanning.v1.ResultCoverage',
  state: ResultCoverage_State[state],
  ...rest,
})
