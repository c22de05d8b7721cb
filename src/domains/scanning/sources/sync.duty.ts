import type { Duty } from '#duty.ts'
import { syncDue } from './sync.service.ts'

/** Reads sources again when their time has come, where the settings say so. */
export const syncSources: Duty = {
  name: 'vulnerabilities.sync',
  everyMs: 30_000,
  runsOn: 'one node',
  run: (app, lease) => {
    return syncDue({ app, log: app.log }, { signal: lease.signal, holds: () => lease.holds(), now: app.clock })
  },
}
