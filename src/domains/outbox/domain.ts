import type { Domain } from '#domain.ts'
import { registryEvents } from './registry-events.control.ts'
import { writeRegistryEvents } from './registry-events.duty.ts'

export const outbox: Domain = {
  services: [],
  eventBodies: [...registryEvents],
  resources: [],
  duties: [writeRegistryEvents],
}
