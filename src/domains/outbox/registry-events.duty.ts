import type { Duty } from '#duty.ts'

/** Writes the pulls that were noted, and the pushes that were refused. Each node writes its own. */
export const writeRegistryEvents: Duty = {
  name: 'events.registry',
  everyMs: 1000,
  runsOn: 'every node',
  run: async ({ registryEvents }) => ({ events: await registryEvents.flush() }),
}
