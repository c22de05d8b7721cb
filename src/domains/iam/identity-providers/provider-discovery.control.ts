import type { Handlers } from '#app.ts'
import {
  ProviderDiscovery_State,
  type ProviderDiscoveryService,
} from '#gen/pinfold/control/iam/v1/provider_discovery_pb.ts'
import { timestamp } from '#lib/timestamp.ts'
import { getDiscovery } from './identity-providers.service.ts'

export const providerDiscovery: Handlers<typeof ProviderDiscoveryService> = {
  async getProviderDiscovery(call, { uid }) {
    const discovery = await getDiscovery(call, uid)
    return {
      $typeName: 'pinfold.control.iam.v1.ProviderDiscovery',
      uid,
      state: discovery ? ProviderDiscovery_State.UNREADABLE : ProviderDiscovery_State.READABLE,
      problem: discovery?.problem ?? '',
      ...(discovery ? { checkTime: timestamp(discovery.checkTime) } : {}),
    }
  },
}
