import type { Duty } from '#duty.ts'

/** Writes when identities were last used. Each node writes what it has seen. */
export const writeLastSeen: Duty = {
  name: 'identities.seen',
  everyMs: 30_000,
  runsOn: 'every node',
  run: async ({ lastSeen }) => ({ identities: await lastSeen.flush() }),
}
