// Hooks of iam that the domain of events implements.
import type { DomainHooks } from '#hooks.ts'
import { pendingOf } from './delivery/room.service.ts'

export const eventsHooks = (): DomainHooks => ({
  async quotaUse(reader, organization) {
    return { pending_deliveries: await pendingOf(reader, organization) }
  },
})
