// The calls of the reference about admission policies, after those that end a pull rule.
import type { Json } from '../support/pinfold.ts'

export const gateCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  ['control.registry.v1.PullRulesService/GetPullRuleException', { uid: '$pullException' }],
  ['control.registry.v1.PullRulesService/ListPullRuleExceptions', { scopeUid: '$app' }],
  ['control.registry.v1.PullRulesService/RevokePullRuleException', { uid: '$pullException' }],
  ['control.registry.v1.PullRulesService/DeletePullRule', { uid: '$pullRule' }],
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
  [
    'control.scanning.v1.GatesService/PreviewGate',
    { parent: '$app', gate: { name: 'no-critical', vulnerabilities: { leastSeverity: 'CRITICAL' } } },
  ],
  ['control.scanning.v1.PolicyChecksService/CheckPolicies', { uid: '$app', digest: '$digest' }],
  [
    'control.scanning.v1.GatesService/CreateGateException',
    {
      parent: '$app',
      gateException: { digest: '$digest', reason: 'Runs without a network', expireTime: '$weekAhead' },
    },
    'gateException',
  ],
  ['control.scanning.v1.GatesService/GetGateException', { uid: '$gateException' }],
  ['control.scanning.v1.GatesService/ListGateExceptions', { scopeUid: '$app' }],
  ['control.scanning.v1.GatesService/RevokeGateException', { uid: '$gateException' }],
  ['control.scanning.v1.GatesService/DeleteGate', { uid: '$gate' }],
]
