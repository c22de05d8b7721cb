import type { Resource } from '#lib/resource.ts'
import { riskAcceptanceType } from './risks/risks.model.ts'

export const resources: readonly Resource[] = [
  { type: riskAcceptanceType, table: 'risk_acceptances', kinds: [], uid: 'none', groupDeletion: 'goes' },
]
