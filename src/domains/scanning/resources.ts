import type { Resource } from '#lib/resource.ts'
import { riskAcceptanceType } from './risks/risks.model.ts'
import { signerType } from './signers/signers.model.ts'

export const resources: readonly Resource[] = [
  { type: riskAcceptanceType, table: 'risk_acceptances', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { type: signerType, table: 'vex_signers', kinds: [], uid: 'none', groupDeletion: 'goes' },
]
