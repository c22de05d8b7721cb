import type { Domain } from '#domain.ts'
import { registryEvents } from './registry-events.control.ts'
import { writeRegistryEvents } from './registry-events.job.ts'

export const outbox: Domain = {
  services: [],
  eventBodies: [...registryEvents],
  resources: [],
  jobs: [writeRegistryEvents],
}
