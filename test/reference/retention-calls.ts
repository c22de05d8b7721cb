// Calls of the reference for retention.
import type { Json } from '../support/pinfold.ts'

export const retentionCalls: readonly (readonly [method: string, request: Json, name?: string])[] = [
  [
    'control.registry.v1.RetentionService/CreateRetentionRule',
    { parent: '$app', retentionRule: { name: 'a quarter', tags: ['v*'], keepDaysAfter: 90, mode: 'ENFORCE' } },
    'retentionRule',
  ],
  ['control.registry.v1.RetentionService/GetRetentionRule', { uid: '$retentionRule' }],
  [
    'control.registry.v1.RetentionService/UpdateRetentionRule',
    { retentionRule: { uid: '$retentionRule', keepDaysAfter: 365 }, updateMask: 'keep_days_after' },
  ],
  ['control.registry.v1.RetentionService/ListRetentionRules', { scopeUid: '$app' }],
  ['control.registry.v1.RetentionService/DeleteRetentionRule', { uid: '$retentionRule' }],
  [
    'control.registry.v1.RetentionService/CreateTagRule',
    { parent: '$app', tagRule: { name: 'releases', tags: ['v*'], exceptTags: ['v*-rc*'], immutable: true } },
    'tagRule',
  ],
  ['control.registry.v1.RetentionService/GetTagRule', { uid: '$tagRule' }],
  [
    'control.registry.v1.RetentionService/UpdateTagRule',
    { tagRule: { uid: '$tagRule', movers: ['$builder'] }, updateMask: 'movers' },
  ],
  ['control.registry.v1.RetentionService/ListTagRules', { scopeUid: '$app' }],
  ['control.registry.v1.RetentionService/DeleteTagRule', { uid: '$tagRule' }],
  [
    'control.registry.v1.RetentionService/CreateHold',
    { parent: '$app', hold: { digest: '$digest', reason: 'Evidence of an incident' } },
    'hold',
  ],
  ['control.registry.v1.RetentionService/GetHold', { uid: '$hold' }],
  ['control.registry.v1.RetentionService/ListHolds', { scopeUid: '$app' }],
  ['control.registry.v1.RetentionService/GetPromise', { repoUid: '$app', digest: '$digest' }],
  ['control.registry.v1.RetentionService/ReleaseHold', { uid: '$hold' }],
  [
    'control.registry.v1.RetentionService/Quarantine',
    { parent: '$app', digest: '$digest', reason: 'It holds a key' },
    'quarantine',
  ],
  ['control.registry.v1.RetentionService/GetQuarantined', { uid: '$quarantine' }],
  ['control.registry.v1.RetentionService/ListQuarantined', { scopeUid: '$app' }],
  ['control.registry.v1.RetentionService/ReleaseQuarantine', { uid: '$quarantine' }],
  ['control.registry.v1.RetentionPlansService/PlanRetention', { parent: '$app' }, 'retentionPlan'],
  ['control.registry.v1.RetentionPlansService/GetRetentionPlan', { uid: '$retentionPlan' }],
  ['control.registry.v1.RetentionPlansService/ListRetentionPlans', { scopeUid: '$app' }],
  ['control.registry.v1.RetentionPlansService/ListPlannedDeletions', { planUid: '$retentionPlan' }],
  ['control.registry.v1.RetentionPlansService/ApplyRetention', { uid: '$retentionPlan' }],
]
