import type { LongDuty } from '#duty.ts'
import { startDeliveries } from './deliver.ts'

/** Routes events to the queues of their subscriptions and sends them. Queues have owners, so every node takes part. */
export const deliverEvents: LongDuty = {
  name: 'deliveries',
  start: startDeliveries,
}
