import { auditEntryType } from '#domains/outbox/audit.model.ts'
import type { Resource } from '#lib/resource.ts'
import { deliveryType } from './delivery/deliveries.model.ts'
import { subscriptionType } from './subscriptions/subscriptions.model.ts'

export const resources: readonly Resource[] = [
  { type: subscriptionType, table: 'subscriptions', kinds: ['subscriptions'], uid: 'node', groupDeletion: 'blocks' },
  { type: deliveryType, table: 'deliveries', kinds: [], uid: 'none', groupDeletion: 'apart' },
  { type: auditEntryType, table: 'audit_log', kinds: ['audit_log'], uid: 'node', groupDeletion: 'stays' },
]
