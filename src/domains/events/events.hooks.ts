// Hooks of the iam domain that the events domain implements.
import type { DomainHooks } from '#hooks.ts'
import { pendingOf } from './delivery/delivery-limits.service.ts'
import { withoutSecrets } from './subscriptions/subscriptions.model.ts'
import { countOf, sinksOf } from './subscriptions/subscriptions.store.ts'

export const eventsHooks = (): DomainHooks => ({
  async resourceNames(reader, { organization, uids }) {
    const sinks = await sinksOf(
      reader,
      uids.filter((uid) => uid.startsWith(`${organization}/`)),
    )
    // A sink can contain a password.
    return sinks.map((one) => ({ uid: one.uid, kind: 'webhook', name: withoutSecrets(one).sink }))
  },

  async quotaUse(reader, organization) {
    return {
      pending_deliveries: await pendingOf(reader, organization),
      subscriptions: await countOf(reader, organization),
    }
  },
})
