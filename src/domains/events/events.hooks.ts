// What events do when iam asks for it.
import type { DomainHooks } from '#hooks.ts'
import { pendingOf } from './delivery/room.service.ts'

export const eventsHooks = (): DomainHooks => ({
  async quotaUse(reader, organization) {
    return { pending_deliveries: await pendingOf(reader, organization) }
  },
})
