// Hooks of the iam domain that the events domain implements.
import type { DomainHooks } from '#hooks.ts'
import { pendingOf } from './delivery/delivery-limits.service.ts'
import { countOf } from './subscriptions/subscriptions.store.ts'

export const eventsHooks = (): DomainHooks => ({
  async quotaUse(reader, organization) {
    return {
      pending_deliveries: await pendingOf(reader, organization),
      subscriptions: await countOf(reader, organization),
    }
  },
})
