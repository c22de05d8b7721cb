import type { Handlers } from '#app.ts'
import {
  ProviderDiscovery_State,
  ProviderDiscoverySchema,
  type ProviderDiscoveryService,
} from '#gen/pinfold/control/iam/v1/provider_discovery_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { getDiscovery } from './identity-providers.service.ts'

const { READABLE, UNREADABLE } = ProviderDiscovery_State
const toMessage = messageOf(ProviderDiscoverySchema)

export const providerDiscovery: Handlers<typeof ProviderDiscoveryService> = {
  async getProviderDiscovery(call, { uid }) {
    const discovery = await getDiscovery(call, uid)
    return toMessage({ problem: '', ...discovery, uid, state: discovery ? UNREADABLE : READABLE })
  },
}
