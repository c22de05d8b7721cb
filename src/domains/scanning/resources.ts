import type { Resource } from '#lib/resource.ts'
import { gateExceptionType, gateType } from './gates/gates.model.ts'
import { riskAcceptanceType } from './risks/risks.model.ts'
import { signerType } from './signers/signers.model.ts'

export const resources: readonly Resource[] = [
  { type: riskAcceptanceType, table: 'risk_acceptances', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { type: signerType, table: 'vex_signers', kinds: [], uid: 'none', groupDeletion: 'goes' },
  {
    type: gateType,
    table: 'gates',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { gates: ['insert', 'update', 'delete'] },
  },
  {
    type: gateExceptionType,
    table: 'gate_exceptions',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { gates: ['insert', 'update', 'delete'] },
  },
]
