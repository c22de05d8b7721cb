import type { Job } from '#job.ts'

/** Background job that writes the collected pulls and refused pushes. Each server writes its own. */
export const writeRegistryEvents: Job = {
  name: 'events.registry',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ registryEvents }) => ({ events: await registryEvents.flush() }),
}
