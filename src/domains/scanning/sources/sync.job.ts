import type { Job } from '#job.ts'
import { syncDue } from './sync.service.ts'

/** Background job that reads data sources again when they are due. The job runs only if the settings enable it. */
export const syncSources: Job = {
  name: 'vulnerabilities.sync',
  everyMs: 30_000,
  runsOn: 'one node',
  run: (app, lease) => {
    return syncDue({ app, log: app.log }, { signal: lease.signal, holds: () => lease.holds(), now: app.clock })
  },
}
