// The calls of the reference about what has to be so of what is pulled.
import type { Json } from '../support/pinfold.ts'

export const gateCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  [
    'control.scanning.v1.GatesService/CreateGate',
    {
      parent: '$app',
      gate: { name: 'no-fixable', vulnerabilities: { leastSeverity: 'HIGH', onlyFixable: true, afterDays: 14 } },
    },
    'gate',
  ],
  ['control.scanning.v1.GatesService/GetGate', { uid: '$gate' }],
  ['control.scanning.v1.GatesService/UpdateGate', { gate: { uid: '$gate', mode: 'ENFORCE' }, updateMask: 'mode' }],
  ['control.scanning.v1.GatesService/ListGates', { scopeUid: '$app' }],
  ['control.scanning.v1.GatesService/PreviewGateSeverities', { uid: '$gate' }],
  ['control.scanning.v1.PolicyChecksService/CheckPolicies', { uid: '$app', digest: '$digest' }],
  [
    'control.scanning.v1.GatesService/CreateGateException',
    {
      parent: '$app',
      gateException: { digest: '$digest', reason: 'Runs without a network', expireTime: '$weekAhead' },
    },
    'gateException',
  ],
  ['control.scanning.v1.GatesService/ListGateExceptions', { scopeUid: '$app' }],
  ['control.scanning.v1.GatesService/RevokeGateException', { uid: '$gateException' }],
  ['control.scanning.v1.GatesService/DeleteGate', { uid: '$gate' }],
]
