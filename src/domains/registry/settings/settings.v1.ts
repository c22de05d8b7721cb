import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import type { RegistrySettings as SettingsMessage } from '#gen/pinfold/registry/v1/settings_pb.ts'
import type { RegistrySettings } from './settings.model.ts'
import * as service from './settings.service.ts'

export const settingsV1: Handlers<typeof Registry> = {
  async getRegistrySettings(call, { registryId }) {
    return toMessage(registryId, await service.getSettings(call, registryId))
  },

  async updateRegistrySettings(call, { registryId, uniqueTags, eolGracePeriod }) {
    await service.replaceSettings(call, registryId, { uniqueTags, eolGracePeriod })
    return toMessage(registryId, { uniqueTags, eolGracePeriod })
  },
}

function toMessage(registryId: string, { uniqueTags, eolGracePeriod }: RegistrySettings): SettingsMessage {
  return { $typeName: 'pinfold.platform.registry.RegistrySettings', registryId, uniqueTags, eolGracePeriod }
}
